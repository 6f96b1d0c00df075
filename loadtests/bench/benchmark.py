"""Measures what the project promises on this machine, and shows it as a table.

    scripts/bench                     about half an hour on a small PC
    scripts/bench --quick             every code path in a few minutes; the numbers mean nothing
    scripts/bench --only 2 3          only these rows of the table
    scripts/bench --json docs/performance.json; python -m tests.reference
                                      puts the numbers into the documents
    scripts/bench --full --keep DIR   100 times the blocks, too (60.6 million flights, a few
                                      gigabytes, half an hour and more); keeps chains for later

The month of flights is --month, or ../shared/data/ontime-2008-01.csv.xz beside the checkout if it
is there, else as many generated flights.
Machines are shared and differ, so ratios within one run count. The table goes to standard output,
progress to standard error. The exit status is 0 when everything was measured, whether targets were
reached or not; 1 when something failed or an answer was wrong; 130 for Ctrl-C. Services listen at
free ports of the loopback address; they and all temporary files are removed in any case.
"""

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from loadtests.bench import answer_times, footprint, imports, posting, throughput
from loadtests.bench.figures import Figure, table
from loadtests.bench.measurements import measured, read, write
from loadtests.bench.session import LONGEST_FACTOR, QUICK, Bench, Plan, say
from loadtests.chains import Source, generated
from loadtests.machine import commit, description
from loadtests.processes import PROJECT, ProgramFailed
from loadtests.questions import KNOWN_ANSWERS, KNOWN_MONTH, disagreements
from loadtests.wrk import WrkFailed

DEFAULT_MONTH = PROJECT.parent / "shared" / "data" / KNOWN_MONTH
MONTH_FLIGHTS = 605_765
QUIET_LOAD = 0.5
MOST_GROWN = 80_000_000  # flights in the years that `made_months` can make up
FAILED = "FAILED"  # in place of what was measured

# As they are measured. Rows 1, 8, 10 and 18 are gone; the others keep their numbers.
ROWS: Mapping[int, Callable[[Bench], Iterator[Figure]]] = {
    4: imports.imports,
    5: footprint.bytes_on_disk,
    12: footprint.verifies,
    17: footprint.exports,
    7: footprint.memory,
    9: posting.posts,
    13: throughput.front,
    14: answer_times.proofs,
    15: answer_times.breakdowns,
    16: posting.clusters,
    11: answer_times.pages,
    3: answer_times.scan_against_study,
    2: throughput.short_against_long,
    6: footprint.starts,
}
ASK_THE_MONTH = {3, 7, 11, 13}  # which must know the known answers


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark. Returns the exit status."""
    options = options_from(arguments)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _interrupt)
    keep = options.keep
    try:
        if options.growth:
            from loadtests.bench.growth import growth_curves  # needs what the lab needs

            growth_curves(options.growth, options.folder)
            return 0
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
        beginning = "flightchain-bench-"
        with TemporaryDirectory(prefix=beginning, dir=keep, ignore_cleanup_errors=True) as scratch:
            header, figures, wrong = _measured(options, keep or Path(scratch), Path(scratch))
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except (ProgramFailed, WrkFailed, OSError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    print(text_of(header, figures, describe_answers(wrong)))
    failed = {figure.row for figure in figures if figure.measured == FAILED}
    if options.json is not None and not wrong:
        whole = [figure for figure in figures if figure.row not in failed]
        write(options.json, measured(whole, header))
    return 1 if wrong or failed else 0


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
    parser.add_argument("--month", type=Path, metavar="FILE", help="file with the month of flights")
    parser.add_argument(
        "--only", type=int, nargs="+", choices=sorted(ROWS), metavar="ROW", help="only these rows"
    )
    parser.add_argument("--quick", action="store_true", help="use tiny data, to try out the code")
    parser.add_argument("--full", action="store_true", help="measure 100 times the blocks, too")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="folder of kept chains")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write the measurements into FILE, in place of earlier ones of the same rows",
    )
    parser.add_argument(
        "--growth", type=int, metavar="FLIGHTS", help="only measure how costs grow with flights"
    )
    parser.add_argument(
        "--folder", type=Path, metavar="FOLDER", default=Path("growth"), help="of --growth"
    )
    options = parser.parse_args(arguments)
    if options.growth is not None and not 0 < options.growth <= MOST_GROWN:
        parser.error(f"--growth {options.growth}: must be between 1 and {MOST_GROWN}")
    if options.month is not None and not options.month.is_file():
        parser.error(f"--month {options.month}: there is no such file")
    if options.json is not None:
        _require_json(parser, options)
    return options


def _require_json(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """End the process if `--json` names a file that the run could not, or should not, write to."""
    try:
        kept = read(options.json)
    except (OSError, ProgramFailed) as problem:
        parser.error(str(problem))
    if not options.json.resolve().parent.is_dir():
        parser.error(f"--json {options.json}: there is no such folder")
    if options.quick and kept:
        parser.error(f"{options.json} has measurements, and the numbers of --quick mean nothing")


def plan_from(options: argparse.Namespace) -> Plan:
    return replace(
        QUICK if options.quick else Plan(),
        rows=frozenset(options.only or ROWS),
        factors=(4, LONGEST_FACTOR) if options.full else (4,),
    )


def describe_answers(wrong_answers: Sequence[str] | None) -> str:
    """Return what became of the known answers; None: they were not asked for."""
    if wrong_answers is None:
        return "known answers: not asked for; they belong to another month or to rows left out"
    if wrong_answers:
        return "WRONG ANSWERS:\n" + "\n".join(wrong_answers)
    return f"known answers: all {len(KNOWN_ANSWERS)} come back from both engines"


def text_of(header: Mapping[str, Any], figures: Sequence[Figure], answers: str) -> str:
    parts = [
        "\n".join(f"{name}: {value}" for name, value in header.items()),
        table(figures, is_meaningless=header["quick"]),
        answers,
    ]
    if header["quick"]:
        parts.insert(0, "QUICK RUN ON TINY DATA: THE NUMBERS MEAN NOTHING")
    return "\n\n".join(parts)


def _measured(
    options: argparse.Namespace, folder: Path, scratch: Path
) -> tuple[dict[str, Any], list[Figure], list[str] | None]:
    """Measure the chosen rows. folder: of the chains. scratch: for what is not kept.

    Returns the header, the figures, and wrong answers; None if no known ones were asked for.
    """
    source = month_from(options)
    header, log = _header(options, source, folder), scratch / "log.txt"
    import_log = None if sys.stderr.isatty() else log
    wrong_answers: list[str] | None = None
    figures: list[Figure] = []
    plan = plan_from(options)
    bench = Bench(plan, source, folder, scratch, log, import_log)
    for number, measure in ROWS.items():
        if number not in plan.rows:
            continue
        say(f"row {number}")
        if number in ASK_THE_MONTH and source.is_known_month and wrong_answers is None:
            say("asking the known answers of both engines")
            with bench.service(bench.month()) as service:
                wrong_answers = disagreements(service)
        try:
            figures.extend(measure(bench))
        except (ProgramFailed, WrkFailed) as problem:  # what was measured is not lost for that
            say(f"failed: {problem}")
            figures.append(Figure(number, f"NOT measured to its end: {problem}", FAILED))
    return header, sorted(figures, key=lambda figure: figure.row), wrong_answers


def month_from(options: argparse.Namespace) -> Source:
    """Return the source of the month, and say so if it is not real."""
    if options.quick:
        return generated(QUICK.flights)
    file = options.month or (DEFAULT_MONTH if DEFAULT_MONTH.is_file() else None)
    if file is None:
        say(
            f"there is no file of real flights (--month, or {DEFAULT_MONTH}): "
            f"{MONTH_FLIGHTS:,} generated flights take its place, and no known answers are checked"
        )
        return generated(MONTH_FLIGHTS)
    return Source(file.name, (str(file.resolve()),), is_known_month=file.name == KNOWN_MONTH)


def _header(options: argparse.Namespace, source: Source, folder: Path) -> dict[str, Any]:
    load, noise = os.getloadavg()[0], "quiet before the start"
    if load > QUIET_LOAD:
        noise = f"the load average was {load:.2f} before the start: something else is running"
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": options.quick,
        "month": source.label,
        "commit": (commit() or "unknown")[:12],
        **description(folder),
        "noise": noise,
    }


if __name__ == "__main__":
    sys.exit(main())
