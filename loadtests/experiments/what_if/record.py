"""Adds up the forecasts of many results: how many there were, and how many held."""

from pathlib import Path

from loadtests.experiments.what_if.scoring import scored
from loadtests.lab.report.content import Section, Table
from loadtests.lab.report.page import plain_page
from loadtests.lab.results import MANIFEST, Results, ResultsError
from loadtests.models.estimates import wilson

NAME = "what-if"


def results_in(folder: Path) -> list[Results]:
    """The results of what-if in a folder, by their names. Raises ResultsError if it is none."""
    if not folder.is_dir():
        raise ResultsError(f"{folder} is not a folder")
    of = [Results(path.parent) for path in sorted(folder.glob(f"*/{MANIFEST}"))]
    return [one for one in of if one.manifest().get("experiment") == NAME]


def page(folder: Path) -> str:
    """All forecasts in the results of a folder, and the share that held. Raises ResultsError."""
    found = [(of, one) for of in results_in(folder) for one in scored(of)]
    rows = []
    for of, one in found:
        low, _, high, measured = one.numbers
        cpu = str(of.manifest()["machine"].get("cpu", ""))
        rows.append((one.made, cpu, one.told, one.words, low, high, measured, one.verdict))
    columns = ("Made", "Processor", "Service", "Forecast", "Low", "High", "Measured", "Held")
    scores = [bool(one.held) for _, one in found if one.held is not None]
    section = Section("All forecasts", (), [Table("Forecasts", columns, rows)])
    return plain_page("Record of forecasts", [_told(len(found), scores)], [section])


def _told(made: int, scores: list[bool]) -> str:
    if not scores:
        return f"{made} forecasts were made; none was measured yet."
    low, high = wilson(sum(scores), len(scores))
    return (
        f"{made} forecasts were made and {len(scores)} measured. {sum(scores)} of these held, "
        f"{100 * sum(scores) / len(scores):.0f} % (95 % interval: {100 * low:.0f} to "
        f"{100 * high:.0f} %). If the models were right within 5 %, at least 95 % would hold."
    )
