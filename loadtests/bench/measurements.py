"""Keeps in a file what was measured, and on which machine, day and commit.

`docs/performance.json` has the numbers that the documents show. `scripts/bench --json` writes it,
and `python -m tests.reference` makes the tables from it. When a row of the benchmark is measured
again, it replaces its earlier measurements; other rows stay, so each says its own machine and date.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from loadtests.bench.figures import Figure
from loadtests.processes import ProgramFailed


@dataclass(frozen=True, slots=True)
class Measurement:
    """Holds a figure and its origin. number: the row of `scripts/bench`. flights: asked about.

    target: empty if there is none; then `reached` is None. commit: the commit of the code.
    """

    number: int
    name: str
    value: str
    target: str
    reached: bool | None
    flights: str
    machine: str
    date: str
    commit: str

    @property
    def origin(self) -> str:
        return f"{self.date}, commit {self.commit}, {self.flights}, {self.machine}"


def measured(figures: Sequence[Figure], header: Mapping[str, Any]) -> list[Measurement]:
    """Return the figures of a run as measurements. header: of that run."""
    return [
        Measurement(
            figure.row,
            figure.what,
            f"{figure.measured}, noisy" if figure.noisy else figure.measured,
            figure.target,
            figure.reached,
            header["month"],
            machine_words(header),
            header["date"][: len("2026-11-24")],
            header["commit"],
        )
        for figure in figures
    ]


def machine_words(header: Mapping[str, Any]) -> str:
    """Describe the machine of a run, and what else it did if that is known. header: of the run."""
    kind = header["file_system"].partition(" on ")[0]
    gigabytes = f"{header['ram_mb'] / 1000:.0f} GB"
    facts = [header["cpu"], f"{header['cores']} cores", gigabytes, kind, header["kernel"]]
    return ", ".join(filter(None, [*facts, f"Python {header['python']}", header.get("noise")]))


def read(path: Path) -> list[Measurement]:
    """Return the measurements in a file, none without it. Raises ProgramFailed for another file."""
    try:
        rows = json.loads(path.read_text("utf-8"))
        return [Measurement(**row) for row in rows]
    except FileNotFoundError:
        return []
    except (TypeError, ValueError) as problem:
        message = f"{path} has no measurements of scripts/bench, and is not changed: {problem}"
        raise ProgramFailed(message) from None


def write(path: Path, measurements: Sequence[Measurement]) -> None:
    """Put the measurements into the file, in place of those with the same numbers; a line each."""
    numbers = {measurement.number for measurement in measurements}
    kept = [earlier for earlier in read(path) if earlier.number not in numbers]
    rows = sorted([*kept, *measurements], key=lambda measurement: measurement.number)
    lines = ",\n".join(json.dumps(asdict(row), ensure_ascii=False) for row in rows)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def markdown(measurements: Sequence[Measurement]) -> Iterator[str]:
    """Yield the lines of a table of the measurements, and below it where they come from."""
    yield from ("| Row | What | Measured | To reach |", "|---|---|---|---|")
    for row in measurements:
        target = f"{row.target}: missed" if row.reached is False else row.target
        yield f"| {row.number} | {row.name} | {row.value} | {target} |"
    by_origin = sorted(measurements, key=attrgetter("origin", "number"))
    for origin, rows in groupby(by_origin, attrgetter("origin")):
        numbers = dict.fromkeys(str(row.number) for row in rows)
        yield from ("", f"Row{'s' * (len(numbers) > 1)} {', '.join(numbers)}: {origin}.")
