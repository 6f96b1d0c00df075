"""Harms a running service in every way that the table knows, and reports what came of it."""

import argparse
import random
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.faults.report import Outcome, Task, details, table
from tests.faults.scenarios import SCENARIOS, Scenario
from tests.units.supervised import reason_without

RESTART_WITHIN_S = 2.0


def main() -> None:
    """Run the scenarios that are asked for; the exit status is 1 if anything was found."""
    given = _parser().parse_args()
    chosen = [one for one in SCENARIOS if not given.scenario or one.name in given.scenario]
    print(f"seed {given.seed}: `--seed {given.seed}` makes the same choices again", flush=True)
    print(reason_without() or "all processes have the filters and limits of their units")
    outcomes: list[tuple[str, Outcome]] = []
    folder = Path(tempfile.mkdtemp(prefix="soak-", dir=given.folder))
    for one in chosen:
        outcome = _run(one, getattr(given, one.option), given.seed, folder / one.name)
        outcomes.append((one.name, outcome))
        if not outcome.findings:
            shutil.rmtree(folder / one.name)
    print(f"\n{table(outcomes)}\n\n{details(outcomes)}")
    if any(outcome.findings for _, outcome in outcomes):
        print(f"\nchains and logs of scenarios that found something are kept in {folder}")
        sys.exit(1)
    folder.rmdir()


def _run(scenario: Scenario, much: float, seed: int, folder: Path) -> Outcome:
    folder.mkdir()
    started = time.monotonic()
    print(f"{scenario.name}: {much:g} {scenario.what}", flush=True)
    chance = random.Random(f"{seed} {scenario.name}")
    try:
        outcome = scenario.run(Task(round(much * scenario.scale), folder, chance, _says))
    except Exception as error:  # noqa: BLE001  the others shall run, and this one count as a finding
        traceback.print_exc()
        outcome = Outcome(findings=[("crashed", f"the scenario itself: {error!r}")])
    if outcome.restart_s > RESTART_WITHIN_S:
        outcome.add("slow", f"a restart took {outcome.restart_s:.2f} s")
    print(f"{scenario.name}: took {time.monotonic() - started:.0f} s", flush=True)
    return outcome


def _says(line: str) -> None:
    print(f"    {line}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    names = [scenario.name for scenario in SCENARIOS]
    parser.add_argument(
        "scenario", nargs="*", metavar="SCENARIO", help=f"all if none is given: {', '.join(names)}"
    )
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of all choices")
    parser.add_argument("--folder", help="where the chains are made, instead of the usual place")
    for scenario in SCENARIOS:
        meaning = f"{scenario.what} ({scenario.full:g})"
        parser.add_argument(
            f"--{scenario.option}", type=float, default=scenario.full, metavar="N", help=meaning
        )
    return parser


if __name__ == "__main__":
    main()
