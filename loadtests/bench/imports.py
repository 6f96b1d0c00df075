"""Measures how fast files are imported (row 4): picked fields, another kind, a ready-made month.

An import checks a file to its end before it stores the first flight. How long that takes it says
itself, so what checking adds is measured in the same run. Made-up flights are not checked.
"""

import csv
import lzma
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from loadtests.bench.figures import Figure, Target, and_best, at_least, at_most
from loadtests.bench.footprint import CORES, spent_on
from loadtests.bench.session import Bench
from loadtests.chains import Chain, Source, imported
from loadtests.machine import at_most_cores

CHECKED = re.compile(r"^checking .*: 100%, ([\d,]+) rows?, ([\d,]+) a second", re.MULTILINE)
KAGGLE = {
    "FL_DATE": "FL_DATE",
    "DOT_CODE": "OP_CARRIER_AIRLINE_ID",
    "FL_NUMBER": "OP_CARRIER_FL_NUM",
    "ORIGIN": "ORIGIN",
    "ORIGIN_CITY": "ORIGIN_CITY_NAME",
    "DEST": "DEST",
    "DEST_CITY": "DEST_CITY_NAME",
    "DEP_TIME": "DEP_TIME",
    "DEP_DELAY": "DEP_DELAY",
    "ARR_TIME": "ARR_TIME",
    "ARR_DELAY": "ARR_DELAY",
    "CANCELLED": "CANCELLED",
    "AIR_TIME": "AIR_TIME",
}
"""Titles of Kaggle's flights_sample_3m, and the fields of BTS that they are made from."""
READY_MADE = {
    "Year": "YEAR",
    "DayOfWeek": "DAY_OF_WEEK",
    "FlightDate": "FL_DATE",
    "DOT_ID_Reporting_Airline": "OP_CARRIER_AIRLINE_ID",
    "Flight_Number_Reporting_Airline": "OP_CARRIER_FL_NUM",
    "OriginAirportID": "ORIGIN_AIRPORT_ID",
    "Origin": "ORIGIN",
    "OriginCityName": "ORIGIN_CITY_NAME",
    "OriginStateName": "ORIGIN_STATE_NM",
    "DestAirportID": "DEST_AIRPORT_ID",
    "Dest": "DEST",
    "DestCityName": "DEST_CITY_NAME",
    "DestStateName": "DEST_STATE_NM",
    "DepTime": "DEP_TIME",
    "DepDelay": "DEP_DELAY",
    "ArrTime": "ARR_TIME",
    "ArrDelay": "ARR_DELAY",
    "Cancelled": "CANCELLED",
    "AirTime": "AIR_TIME",
}
"""Titles of the months that BTS has ready-made, and the fields that they stand for."""
OTHERS = ["1.00"] * 36 + [""] * 55  # what stands in the 91 other columns of such a month
DECIMAL = {"DEP_TIME", "DEP_DELAY", "ARR_TIME", "ARR_DELAY", "CANCELLED", "AIR_TIME"}


Imports = list[tuple[Chain, float]]  # of one source, and for how many seconds each was checked


def imports(bench: Bench) -> Iterator[Figure]:
    """Measure the flights per second of an import into an empty folder, with all indexed."""
    source = bench.month_source
    month = _imported(bench, source)
    what, raw = f"import of {source.label}", _raw(month)
    per_s = _per_s(month)
    if any(check_s for _, check_s in month):
        yield Figure(4, f"{what} with its check, flights per second", and_best(per_s), raw=raw)
        added = [100 * check_s / (chain.import_wall_s - check_s) for chain, check_s in month]
        yield Figure.judged(4, f"{what}, what checking adds", added, at_most(33), raw, unit=" %")
        what += " without its check"
        per_s = [chain.flights / (chain.import_wall_s - check_s) for chain, check_s in month]
    title, target, shown = f"{what}, flights per second", at_least(100_000), and_best(per_s)
    yield Figure.judged(4, title, per_s, target, raw, measured=shown)
    if source.is_known_month:
        month_file, scratch = Path(source.arguments[0]), bench.scratch
        write_as(month_file, file := scratch / "flights_sample.csv", KAGGLE)
        yield _another_kind(bench, file, "a file of Kaggle", at_least(50_000))
        write_as(month_file, file := scratch / "On_Time_2008_1.csv", READY_MADE, OTHERS)
        yield _another_kind(bench, file, "a ready-made month of 110 columns", None)


def _another_kind(bench: Bench, file: Path, kind: str, target: Target) -> Figure:
    done = _imported(bench, Source(f"the month as {kind}", (str(file),)))
    file.unlink()
    what = f"import of the same flights as {kind}, with its check, flights per second"
    per_s = _per_s(done)
    return Figure.judged(4, what, per_s, target, _raw(done), measured=and_best(per_s))


def _imported(bench: Bench, source: Source) -> Imports:
    log, done = bench.scratch / "import.log", Imports()
    with at_most_cores(CORES):
        for _ in bench.repeats(f"importing {source.label}"):
            log.unlink(missing_ok=True)
            chain = imported(source, bench.empty_folder(), log)
            done.append((chain, seconds_checked(log.read_text(encoding="utf-8"))))
    return done


def _per_s(done: Imports) -> list[float]:
    return [chain.flights / chain.import_wall_s for chain, _ in done]


def _raw(done: Imports) -> dict[str, Any]:
    walls_s = [chain.import_wall_s for chain, _ in done]
    cpus_s = [chain.import_cpu_s for chain, _ in done]
    checks_s = [check_s for _, check_s in done]
    return {**spent_on(done[0][0].flights, walls_s, cpus_s), "check_s": checks_s}


def seconds_checked(log: str) -> float:
    """Return the seconds that an import checked, by what it has written; 0 if it did not check."""
    match = CHECKED.search(log)
    return int(match[1].replace(",", "")) / int(match[2].replace(",", "")) if match else 0.0


def write_as(month: Path, file: Path, kind: Mapping[str, str], others: Sequence[str] = ()) -> None:
    """Write the flights of a month of BTS as another kind has them.

    kind: its titles, and the fields below them. others: what stands in each row besides.
    """
    with (
        lzma.open(month, "rt", encoding="utf-8", newline="") as source,
        file.open("w", encoding="utf-8", newline="") as target,
    ):
        writer = csv.writer(target, lineterminator="\n")
        writer.writerow([*kind, *(f"Other{n}" for n in range(len(others)))])
        for row in csv.DictReader(source):
            writer.writerow([*(_decimal(name, row[name]) for name in kind.values()), *others])


def _decimal(name: str, value: str) -> str:
    return f"{int(value)}.0" if value and name in DECIMAL else value
