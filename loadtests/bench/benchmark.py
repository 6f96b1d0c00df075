"""The project's own benchmark: what it promises, measured on this machine, as a table.

    scripts/bench                     about half an hour on a small PC
    scripts/bench --quick             every code path in a few minutes; the numbers mean nothing
    scripts/bench --only 1 3          only these rows of the table
    scripts/bench --full --keep DIR   100 times the blocks, too; keeps chains for the next run

Machines are shared and differ, so ratios within one run count. The table goes to standard output,
progress to standard error. The exit status is 0 when everything was measured, whether targets were
reached or not; 1 when something failed or an answer was wrong; 130 for Ctrl-C. Services listen at
free ports of the loopback address; they and all temporary files are removed in any case.
"""

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from loadtests.bench import (
    breakdowns,
    clusters,
    footprint,
    front,
    memory,
    pages,
    posting,
    proofs,
    scanning,
    throughput,
)
from loadtests.bench.figures import Figure, details, table
from loadtests.bench.session import FLIGHTS, LONGEST_FACTOR, Bench, Plan
from loadtests.chains import Chains, Source, generated
from loadtests.machine import description
from loadtests.processes import PROJECT, ProgramFailed
from loadtests.questions import KINDS, KNOWN_ANSWERS, KNOWN_MONTH, disagreements
from loadtests.wrk import WrkFailed

DEFAULT_MONTH = PROJECT.parent / "shared" / "data" / KNOWN_MONTH
MONTH_FLIGHTS = 605_765
TINY_FLIGHTS = 3000
QUIET_LOAD = 0.5

# These are only for guesses of the time left.
GUESSED_IMPORT_PER_S = 50_000
GUESSED_DISK_BYTES_A_FLIGHT = 60
GUESSED_STUDY_SCAN_PER_S = 80_000
GUESSED_VERIFY_PER_S = 50_000
GUESSED_PROVED_PER_S = 60_000
GUESSED_CLUSTER_PER_S = 2_500
GUESSED_SETUP_S = 20.0
GUESSED_FRONT_LOADS = 9


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table: how it is measured, and a guess of how many seconds that takes."""

    measure: Callable[[Bench], Iterator[Figure]]
    guess_s: Callable[[Plan], float]
    asks_month: bool = False


def _import_s(flights: int) -> float:
    return flights / GUESSED_IMPORT_PER_S


def _turns_s(plan: Plan) -> float:
    return len(KINDS) * plan.rounds * 2 * plan.round_s + GUESSED_SETUP_S


# In the order in which they are measured: row 7 needs the load of row 1 on the same service.
ROWS: Mapping[int, Row] = {
    4: Row(footprint.imports, lambda plan: plan.repeats * _import_s(plan.flights)),
    5: Row(footprint.bytes_on_disk, lambda plan: _import_s(plan.flights)),
    12: Row(footprint.verifies, lambda plan: plan.repeats * plan.flights / GUESSED_VERIFY_PER_S),
    1: Row(throughput.questions_against_nothing, lambda plan: 2 * _turns_s(plan), asks_month=True),
    7: Row(memory.memory, lambda plan: 4 * GUESSED_SETUP_S, asks_month=True),
    8: Row(throughput.other_answers, lambda plan: 4 * _turns_s(plan), asks_month=True),
    9: Row(posting.posts, lambda plan: 4 * plan.rounds * plan.round_s + GUESSED_SETUP_S),
    13: Row(
        front.front,
        lambda plan: 2 * GUESSED_SETUP_S + GUESSED_FRONT_LOADS * (plan.rounds + 1) * plan.round_s,
        asks_month=True,
    ),
    10: Row(
        throughput.worker_types,
        lambda plan: 3 * len(plan.worker_counts) * plan.repeats * (6 * plan.round_s + 2),
    ),
    14: Row(
        proofs.proofs, lambda plan: 3 * GUESSED_SETUP_S + 3 * plan.flights / GUESSED_PROVED_PER_S
    ),
    15: Row(breakdowns.breakdowns, lambda plan: GUESSED_SETUP_S),
    16: Row(
        clusters.clusters,
        lambda plan: (
            3 * GUESSED_SETUP_S
            + 3 * plan.rounds * plan.round_s
            + 2 * plan.flights / GUESSED_CLUSTER_PER_S
        ),
    ),
    11: Row(pages.pages, lambda plan: GUESSED_SETUP_S, asks_month=True),
    3: Row(
        scanning.scan_against_study,
        lambda plan: (
            (3 + 1.1 * len(KINDS) * plan.scan_rounds) * plan.flights / GUESSED_STUDY_SCAN_PER_S
        ),
        asks_month=True,
    ),
    2: Row(
        throughput.short_against_long,
        lambda plan: (
            _import_s(plan.flights * (1 + sum(plan.factors))) + len(plan.factors) * _turns_s(plan)
        ),
    ),
    6: Row(
        footprint.starts,
        lambda plan: GUESSED_SETUP_S + 2 * plan.repeats * (1 + len(plan.factors)),
    ),
}


class Progress:
    """Tells on standard error what is being done, and roughly for how much longer."""

    def __init__(self, guesses_s: Mapping[int, float]) -> None:
        self._left_s = dict(guesses_s)
        self._row: int | None = None
        self._start_s = self._row_start_s = monotonic()

    def begin(self, row: int) -> None:
        """Note that `row` is measured from now on."""
        if self._row is not None:
            del self._left_s[self._row]
        self._row, self._row_start_s = row, monotonic()

    def say(self, text: str) -> None:
        """One line."""
        now_s = monotonic()
        left_s = sum(self._left_s.values())
        if self._row is not None:
            left_s -= min(now_s - self._row_start_s, self._left_s[self._row])
        where = "" if self._row is None else f"row {self._row}: "
        elapsed = f"{now_s - self._start_s:.0f} s, about {left_s:.0f} s left"
        print(f"[{elapsed}] {where}{text}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark. Returns the exit status."""
    options = options_from(arguments)
    plan = plan_from(options)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _interrupt)
    try:
        with _folders(options.keep) as (folder, scratch):
            report = _measured(options, plan, folder, scratch)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except (ProgramFailed, WrkFailed, OSError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    print(report.text())
    if options.json is not None:
        options.json.write_text(json.dumps(report.as_json(), indent=2) + "\n", encoding="utf-8")
    return 1 if report.wrong_answers or report.failed else 0


def _interrupt(received: int, frame: object) -> None:  # noqa: ARG001  the signature of a handler
    """Stop at the first signal; the work that follows only tidies up, and must not be disturbed."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def options_from(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line (None: that of this process). Ends the process if it is wrong."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description=(__doc__ or "").strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--month",
        type=Path,
        metavar="FILE",
        help=f"file with the month of flights; default ../shared/data/{KNOWN_MONTH} beside the "
        "checkout if it is there, else as many generated flights",
    )
    parser.add_argument(
        "--only",
        type=int,
        nargs="+",
        choices=sorted(ROWS),
        metavar="ROW",
        help="measure only these rows",
    )
    parser.add_argument("--quick", action="store_true", help="use tiny data, to try out the code")
    parser.add_argument(
        "--full",
        action="store_true",
        help=f"measure {LONGEST_FACTOR} times the blocks, too: "
        f"{FLIGHTS * LONGEST_FACTOR / 1e6:.1f} million flights, "
        "a few gigabytes, half an hour and more",
    )
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="FOLDER",
        help="keep imported chains in FOLDER, and use those that are there already",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything as JSON, too")
    options = parser.parse_args(arguments)
    if options.month is not None and not options.month.is_file():
        parser.error(f"--month {options.month}: there is no such file")
    return options


def plan_from(options: argparse.Namespace) -> Plan:
    """The plan for these options."""
    rows = frozenset(options.only or ROWS)
    factors = (4, LONGEST_FACTOR) if options.full else (4,)
    if options.quick:
        return Plan(
            rows,
            flights=TINY_FLIGHTS,
            factors=factors,
            rounds=1,
            round_s=1,
            scan_rounds=1,
            repeats=1,
            questions_per_kind=50,
            hours=0.01,
            worker_counts=(1,),
        )
    return Plan(rows, factors=factors)


@contextmanager
def _folders(keep: Path | None) -> Iterator[tuple[Path, Path]]:
    """The folder of the chains and that of temporary files, on one disk; removed at the end."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
    prefix = "flightchain-bench-"
    with TemporaryDirectory(prefix=prefix, dir=keep, ignore_cleanup_errors=True) as scratch:
        yield keep or Path(scratch), Path(scratch)


@dataclass(frozen=True, slots=True)
class Report:
    """All that a run found. wrong_answers: None if there was no month with known answers.

    failed: whether a row could not be measured to its end.
    """

    header: Mapping[str, Any]
    figures: Sequence[Figure]
    wrong_answers: Sequence[str] | None
    failed: bool = False

    def text(self) -> str:
        """For people."""
        is_quick = bool(self.header["quick"])
        parts = [
            "\n".join(f"{name}: {value}" for name, value in self.header.items()),
            table(self.figures, is_meaningless=is_quick),
            self._answers(),
            details(self.figures),
        ]
        if is_quick:
            parts.insert(0, "QUICK RUN ON TINY DATA: THE NUMBERS MEAN NOTHING")
        return "\n\n".join(parts)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            **self.header,
            "figures": [figure.as_json() for figure in self.figures],
            "known_answers": self._answers(),
            "wrong_answers": self.wrong_answers,
        }

    def _answers(self) -> str:
        if self.wrong_answers is None:
            return "known answers: not asked for; they belong to another month or to rows left out"
        if self.wrong_answers:
            return "WRONG ANSWERS:\n" + "\n".join(self.wrong_answers)
        return f"known answers: all {len(KNOWN_ANSWERS)} come back from both engines"


def _measured(options: argparse.Namespace, plan: Plan, folder: Path, scratch: Path) -> Report:
    progress = Progress({row: ROWS[row].guess_s(plan) for row in ROWS if row in plan.rows})
    source = month_from(options, progress.say)
    header = _header(options, source, folder)
    log = scratch / "log.txt"
    shown_log = None if sys.stderr.isatty() else log
    if options.full:
        _announce_full(plan, progress.say)
    chains = Chains(folder, shown_log, source, plan.flights, progress.say)
    bench = Bench(plan, chains, scratch, log, progress.say)
    wrong_answers: list[str] | None = None
    figures: list[Figure] = []
    failed = False
    with closing(bench):
        for row in (row for row in ROWS if row in plan.rows):
            progress.begin(row)
            if ROWS[row].asks_month and source.is_known_month and wrong_answers is None:
                progress.say("asking the known answers of both engines")
                wrong_answers = disagreements(bench.month_service())
            if row not in {1, 7, 8, 9}:
                bench.close()  # the service on the month must not run while others are measured
            try:
                figures += ROWS[row].measure(bench)
            except (ProgramFailed, WrkFailed) as problem:  # what was measured is not lost for that
                progress.say(f"failed: {problem}")
                figures.append(
                    Figure(row, "NOT measured to its end", "FAILED", raw={"why": str(problem)})
                )
                failed = True
    figures.sort(key=lambda figure: figure.row)
    return Report(header, figures, wrong_answers, failed)


def month_from(options: argparse.Namespace, say: Callable[[str], None]) -> Source:
    """The source of the month. say: is told if it is not real."""
    if options.quick:
        return generated(TINY_FLIGHTS)
    file = options.month or (DEFAULT_MONTH if DEFAULT_MONTH.is_file() else None)
    if file is None:
        say(
            f"there is no file of real flights (--month, or {DEFAULT_MONTH}): "
            f"{MONTH_FLIGHTS:,} generated flights take its place, and no known answers are checked"
        )
        return generated(MONTH_FLIGHTS)
    return Source(file.name, (str(file.resolve()),), is_known_month=file.name == KNOWN_MONTH)


def _header(options: argparse.Namespace, source: Source, folder: Path) -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": options.quick,
        "month": source.label,
        **description(folder),
        "noise": _noise(),
    }


def _noise() -> str:
    """Whether another program kept the machine busy before anything was measured."""
    load = os.getloadavg()[0]
    if load > QUIET_LOAD:
        return f"the load average was {load:.2f} before the start: something else is running"
    return "quiet before the start"


def _announce_full(plan: Plan, say: Callable[[str], None]) -> None:
    flights = plan.flights * LONGEST_FACTOR
    say(
        f"--full imports {flights:,} generated flights: roughly {_import_s(flights) / 60:.0f} "
        f"minutes and {flights * GUESSED_DISK_BYTES_A_FLIGHT / 1e9:.1f} GB; "
        "a closer guess follows when shorter chains have been made"
    )


if __name__ == "__main__":
    sys.exit(main())
