"""Harms a running service in every way that the table knows, and reports what came of it."""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.report import Outcome, Task, details, table
from tests.faults.scenarios import SCENARIOS, Scenario

OPTIONS = {scenario.option: scenario.full for scenario in SCENARIOS}


def main() -> None:
    """Run the scenarios that are asked for; the exit status is 1 if anything was found."""
    given = _parser().parse_args()
    chosen = [one for one in SCENARIOS if not given.scenario or _slug(one) in given.scenario]
    print(f"seed {given.seed}; again with --seed {given.seed}", flush=True)
    outcomes: list[tuple[str, Outcome]] = []
    with tempfile.TemporaryDirectory(prefix="soak-", dir=given.folder) as folder:
        for one in chosen:
            outcome = _run(one, vars(given), Path(folder) / _slug(one))
            outcomes.append((one.name, outcome))
    print(f"\n{table(outcomes)}\n\n{details(outcomes)}")
    sys.exit(any(outcome.findings for _, outcome in outcomes))


def _run(one: Scenario, given: "dict[str, int]", folder: Path) -> Outcome:
    folder.mkdir()
    started = time.monotonic()
    print(f"{one.name}: {given[one.option]} …", flush=True)
    chance = random.Random(f"{given['seed']} {one.name}")
    outcome = one.run(Task(given[one.option], folder, chance, _says))
    print(f"{one.name}: took {time.monotonic() - started:.0f} s", flush=True)
    return outcome


def _says(line: str) -> None:
    print(f"    {line}", flush=True)


def _slug(one: Scenario) -> str:
    return one.name.replace(" ", "-")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    names = [_slug(one) for one in SCENARIOS]
    parser.add_argument(
        "scenario", nargs="*", choices=[*names, []], help=f"one of {', '.join(names)}; or all"
    )
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="the luck")
    parser.add_argument("--folder", help="where chains are made (the system's for what passes)")
    for name, full in OPTIONS.items():
        parser.add_argument(f"--{name}", type=int, default=full, help=f"how often ({full})")
    return parser


if __name__ == "__main__":
    main()
