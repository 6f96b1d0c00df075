"""Measures how fast files are imported (row 4): picked fields, another kind, a ready-made month.

An import checks a file to its end before it stores the first flight. What that costs is measured in
turns against `in_process.straight_import`, which checks each row just before it is stored.
"""

import csv
import lzma
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from loadtests.baseline import FLIGHT_FIELDS
from loadtests.bench.figures import Figure, Target, and_best, at_least, at_most, ratio
from loadtests.bench.footprint import CORES
from loadtests.bench.session import Bench
from loadtests.chains import Source, imported
from loadtests.machine import at_most_cores
from loadtests.processes import PROJECT, environment, finished

STRAIGHT = [sys.executable, "-m", "loadtests.in_process.straight_import"]
KAGGLE = "flights_sample_3m (2019 to 2023)"
READY_MADE = "ready-made month, downloaded since 2018"
KINDS = PROJECT / "backend" / "sources" / "kinds.toml"
OTHERS = ["1.00"] * 36 + [""] * 55  # what stands in the 91 other columns of such a month
DECIMAL = {"DEP_TIME", "DEP_DELAY", "ARR_TIME", "ARR_DELAY", "CANCELLED", "AIR_TIME"}


def imports(bench: Bench) -> Iterator[Figure]:
    """Measure the flights per second of an import into an empty folder, with all indexed."""
    source = bench.month_source
    if source.is_file:
        month_file = Path(source.arguments[0])
        yield from _with_and_without_check(bench, source.label, month_file)
    else:
        yield _import(bench, source, f"import of {source.label}", at_least(100_000))
    if source.is_known_month:
        scratch = bench.scratch
        write_as(month_file, file := scratch / "flights_sample.csv", KAGGLE)
        yield _another_kind(bench, file, "a file of Kaggle", at_least(50_000))
        write_as(month_file, file := scratch / "On_Time_2008_1.csv", READY_MADE, OTHERS)
        yield _another_kind(bench, file, "a ready-made month of 110 columns", None)


def _with_and_without_check(bench: Bench, label: str, file: Path) -> Iterator[Figure]:
    log, source = bench.scratch / "import.log", Source(label, (str(file),))
    with_s, without_s = list[float](), list[float]()
    with at_most_cores(CORES):
        for _ in bench.repeats(f"importing {label}, and without its check"):
            chain = imported(source, bench.empty_folder(), log)
            with_s.append(chain.import_wall_s)
            variables = environment(bench.empty_folder(), {})
            spent = finished([*STRAIGHT, str(file.resolve())], variables, log)[1]
            without_s.append(spent.wall_s)
    what = f"import of {label}"
    yield _rate(what, chain.flights, with_s, None)
    yield _rate(f"{what} without its check", chain.flights, without_s, at_least(100_000))
    yield ratio(4, f"{what} / without its check, time", with_s, without_s, at_most(1.33))


def _another_kind(bench: Bench, file: Path, kind: str, target: Target) -> Figure:
    source = Source(f"the month as {kind}", (str(file),))
    done = _import(bench, source, f"import of the same flights as {kind}", target)
    file.unlink()
    return done


def _import(bench: Bench, source: Source, what: str, target: Target) -> Figure:
    log = bench.scratch / "import.log"
    with at_most_cores(CORES):
        repeats = bench.repeats(f"importing {source.label}")
        done = [imported(source, bench.empty_folder(), log) for _ in repeats]
    return _rate(what, done[0].flights, [chain.import_wall_s for chain in done], target)


def _rate(what: str, flights: int, walls_s: Sequence[float], target: Target) -> Figure:
    per_s = [flights / wall_s for wall_s in walls_s]
    title = f"{what}, flights per second"
    return Figure.judged(4, title, per_s, target, measured=and_best(per_s))


def titles_of(kind: str) -> dict[str, str]:
    """Return the titles of a kind of files, as imports know them, and the fields below them."""
    table = tomllib.loads(KINDS.read_text("utf-8"))
    (columns,) = (row["columns"] for row in table["kind"] if row["name"] == kind)
    while group := re.search(r"@(\w+)", columns):
        columns = columns.replace(group[0], table["groups"][group[1]])
    pairs = (column.split("=") for column in columns.split())
    return {names[-1]: names[0] for names in pairs if names[0] in FLIGHT_FIELDS}


def write_as(month: Path, file: Path, kind: str, others: Sequence[str] = ()) -> None:
    """Write the flights of a month of BTS as another kind has them.

    others: what stands in each row besides.
    """
    titles = titles_of(kind)
    with (
        lzma.open(month, "rt", encoding="utf-8", newline="") as source,
        file.open("w", encoding="utf-8", newline="") as target,
    ):
        writer = csv.writer(target, lineterminator="\n")
        writer.writerow([*titles, *(f"Other{n}" for n in range(len(others)))])
        for row in csv.DictReader(source):
            writer.writerow([*(_decimal(name, row[name]) for name in titles.values()), *others])


def _decimal(name: str, value: str) -> str:
    return f"{int(value)}.0" if value and name in DECIMAL else value
