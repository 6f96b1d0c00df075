"""Measures how fast files are imported (row 4): as BTS has them, and of a kind that needs deriving.

An import checks a file to its end before it stores the first flight. How long that takes it says
itself, so what checking adds is measured in the same run. Made-up flights are not checked.
"""

import csv
import lzma
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadtests.bench.figures import Figure, and_best, at_least, at_most
from loadtests.bench.footprint import CORES, spent_on
from loadtests.bench.session import Bench
from loadtests.chains import Chain, Source, imported
from loadtests.machine import at_most_cores

CHECKED = re.compile(r"^checking .*: 100%, ([\d,]+) rows?, ([\d,]+) a second", re.MULTILINE)
DERIVED_KIND = {
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
DECIMAL = {"DEP_TIME", "DEP_DELAY", "ARR_TIME", "ARR_DELAY", "CANCELLED", "AIR_TIME"}


@dataclass(frozen=True, slots=True)
class Imports:
    """Imports of the same source. checks_s: how long each checked it."""

    chains: list[Chain]
    checks_s: list[float]

    def per_s(self, *, with_check: bool) -> list[float]:
        """Return the flights per second of each."""
        return [
            chain.flights / (chain.import_wall_s - (0 if with_check else check_s))
            for chain, check_s in self._pairs()
        ]

    def shares_added(self) -> list[float]:
        """Return how many percent longer each took because it checked."""
        return [100 * check / (chain.import_wall_s - check) for chain, check in self._pairs()]

    def raw(self) -> dict[str, Any]:
        """Return the numbers that the figures are made from."""
        walls_s = [chain.import_wall_s for chain in self.chains]
        cpus_s = [chain.import_cpu_s for chain in self.chains]
        return {**spent_on(self.chains[0].flights, walls_s, cpus_s), "check_s": self.checks_s}

    def _pairs(self) -> Iterable[tuple[Chain, float]]:
        return zip(self.chains, self.checks_s, strict=True)


def imports(bench: Bench) -> Iterator[Figure]:
    """Flights per second of an import into an empty folder, with everything indexed."""
    source = bench.month_source
    month = _imported(bench, source)
    what, per_s, raw = f"import of {source.label}", month.per_s(with_check=True), month.raw()
    if any(month.checks_s):
        yield Figure(4, f"{what} with its check, flights per second", and_best(per_s), raw=raw)
        shares = month.shares_added()
        yield Figure.of(4, f"{what}, what checking adds", shares, at_most(33), raw, unit=" %")
        what, per_s = f"{what} without its check", month.per_s(with_check=False)
    target, told = at_least(100_000), and_best(per_s)
    yield Figure.of(4, f"{what}, flights per second", per_s, target, raw, measured=told)
    if source.is_known_month:
        yield _derived_kind(bench, Path(source.arguments[0]))


def _derived_kind(bench: Bench, month: Path) -> Figure:
    file = bench.scratch / "flights_sample.csv"
    write_derived(month, file)
    done = _imported(bench, Source("the month as a file of Kaggle", (str(file),)))
    file.unlink()
    per_s = done.per_s(with_check=True)
    what = "import of the same flights as a file of Kaggle, with its check, flights per second"
    return Figure.of(4, what, per_s, at_least(50_000), done.raw(), measured=and_best(per_s))


def _imported(bench: Bench, source: Source) -> Imports:
    log, done = bench.scratch / "import.log", Imports([], [])
    with at_most_cores(CORES):
        for _ in bench.repeats(f"importing {source.label}"):
            log.unlink(missing_ok=True)
            done.chains.append(imported(source, bench.empty_folder(), log))
            done.checks_s.append(check_s(log.read_text(encoding="utf-8")))
    return done


def check_s(log: str) -> float:
    """Return the seconds that an import checked, by what it has written; 0 if it did not check."""
    match = CHECKED.search(log)
    return int(match[1].replace(",", "")) / int(match[2].replace(",", "")) if match else 0.0


def write_derived(month: Path, derived: Path) -> None:
    """Write the flights of a month of BTS as a file of Kaggle, which lacks states and weekdays."""
    with (
        lzma.open(month, "rt", encoding="utf-8", newline="") as source,
        derived.open("w", encoding="utf-8", newline="") as target,
    ):
        writer = csv.writer(target, lineterminator="\n")
        writer.writerow(DERIVED_KIND)
        for row in csv.DictReader(source):
            writer.writerow(_decimal(name, row[name]) for name in DERIVED_KIND.values())


def _decimal(name: str, value: str) -> str:
    return f"{int(value)}.0" if value and name in DECIMAL else value
