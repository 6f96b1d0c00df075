"""Holds forecasts against what was measured: in a report, and those of many results in a record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadtests.experiments.what_if import forecasting
from loadtests.experiments.what_if.forecasting import FRACTION, RESPONSE, THROUGHPUT, Forecast
from loadtests.generation.rows import Row, closed_window
from loadtests.lab.content import Figure, Metric, Report, Section, Table, capital, times
from loadtests.lab.repeated import accepted_by_run, rows_by_run
from loadtests.lab.report.drawing import Axis, Series, figure
from loadtests.lab.report.page import plain_page
from loadtests.lab.results import MANIFEST, Results, ResultsError
from loadtests.models.estimates import wilson

NAME, FORECASTS = "what-if", "forecasts"
WARM_UP = 5  # requests of each customer of a closed run that do not count
SHOWN: Mapping[str, tuple[str, float, str]] = {
    THROUGHPUT: (f"answers a second, {forecasting.CUSTOMERS} customers", 1.0, "1/s"),
    RESPONSE: (f"mean response time in ms at {FRACTION:g} of the forecast throughput", 1e3, "s"),
}
"""Quantity -> it in words with a unit, the factor to that unit, and the unit of its metric."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A forecast and what was measured; None if it was not, or no run of it counts.

    rejected: number of runs that were made for it and do not count.
    """

    forecast: Forecast
    measured: float | None
    rejected: int

    @property
    def held(self) -> bool | None:
        """Whether it came as forecast."""
        return None if self.measured is None else self.forecast.covers(self.measured)

    @property
    def told(self) -> str:
        """The change in words."""
        of = self.forecast.change
        return next((change.told for change in forecasting.CHANGES if change.name == of), of)

    @property
    def numbers(self) -> tuple[float, float, float, float | None]:
        """Low, middle and high of the forecast, and what was measured, as they are shown."""
        of, (_, factor, _) = self.forecast, SHOWN[self.forecast.quantity]
        return factor * of.low, factor * of.middle, factor * of.high, times(factor, self.measured)

    @property
    def verdict(self) -> str | None:
        """Whether it held, as a cell of a table."""
        return None if self.held is None else "yes" if self.held else "no"


def scored(results: Results) -> list[Scored]:
    """All forecasts of a result, in their order, with the first run of each that counts.

    Raises ResultsError if its raw rows are gone, as those of an example are.
    """
    rows, found = rows_by_run(results), []
    for one in results.lines_if_any(FORECASTS, Forecast):
        runs = runs_of(results, one.change, one.quantity)
        counted = next((name for name, counts in runs.items() if counts), None)
        if counted and not rows[counted]:
            raise ResultsError(f"{results.folder} has no raw rows of its run {counted}")
        value = _value(one.quantity, rows[counted]) if counted else None
        found.append(Scored(one, value, list(runs.values()).count(False)))
    return found


def runs_of(results: Results, change: str, quantity: str) -> Mapping[str, bool]:
    """The runs that were made for a forecast, and whether each counts."""
    begins = f"{change}-{quantity}-"
    return {run: ok for run, ok in accepted_by_run(results).items() if run.startswith(begins)}


def _value(quantity: str, rows: Sequence[Row]) -> float:
    if quantity == THROUGHPUT:
        return closed_window(rows, WARM_UP).throughput_per_s
    in_order = sorted(rows, key=lambda row: row.index)
    return forecasting.mean_response_s([row.closed_response_s for row in in_order])


_LEAD = (
    "A forecast says what one run will show, with a range that 95 of 100 such runs would be in if "
    "the model were right within 5 %. It is simulated from requests of two customers and of one "
    "who pauses, who asked on several occasions before anything was changed."
)


def analyse(results: Results) -> Report:
    """Report on the forecasts. Raises ResultsError."""
    found = scored(results)
    score = [one for one in found if one.measured is not None]
    held = sum(bool(one.held) for one in score)
    rejected = ""
    if number := sum(one.measured is None and one.rejected > 0 for one in found):
        rejected = (
            f"{number} of {len(found)} forecasts were measured, but every run was rejected; the "
            "table of runs has the reasons."
        )
    if score:
        conclusion = f"{held} of {len(score)} forecasts held."
    elif found:
        waiting = f"{len(found)} forecasts were made and wait for their measurement."
        conclusion = rejected or waiting
    else:
        conclusion = "No forecast was made, because not all of the service is learnt yet."
    parts: list[Table | Figure] = [_table(found, quantity) for quantity in forecasting.QUANTITIES]
    metrics = [*map(_metric, score)]
    if score:
        parts.append(_figure(score, held))
        metrics.append(Metric("forecasts_held", held / len(score)))
    return Report(
        [*filter(None, dict.fromkeys([conclusion, *map(_sentence, score), rejected]))],
        [Section("Forecast and measured", [_LEAD], parts)],
        metrics,
        failure="" if score else rejected,
        conclusion=conclusion,
    )


def _sentence(one: Scored) -> str:
    words, (low, _, high, value) = SHOWN[one.forecast.quantity][0], one.numbers
    verdict = "as forecast" if one.held else "not as forecast"
    return f"{one.told}: {words}: {value:.3g}, {verdict} ({low:.3g} to {high:.3g})."


def _metric(one: Scored) -> Metric:
    of = one.forecast
    return Metric(f"{of.quantity}[{of.change}]", one.measured or 0.0, SHOWN[of.quantity][2])


def _table(found: Sequence[Scored], quantity: str) -> Table:
    of = [one for one in found if one.forecast.quantity == quantity]
    rows = [(one.told, *one.numbers, one.verdict) for one in of]
    columns = ("Service", "Low", "Middle", "High", "Measured", "Held")
    note = f"The forecasts were made at {of[0].forecast.made}." if of else ""
    return Table(capital(SHOWN[quantity][0]), columns, rows, note)


def _figure(score: Sequence[Scored], held: int) -> Figure:
    """Each measured value over the middle of its forecast, with the range of the forecast."""
    names = [f"{one.told} ({one.forecast.quantity})" for one in score]
    ratios = [(one.measured or 0.0) / one.forecast.middle for one in score]
    low = [one.forecast.low / one.forecast.middle for one in score]
    high = [one.forecast.high / one.forecast.middle for one in score]
    rows = list(zip(names, ratios, low, high, strict=True))
    table = Table("Measured over forecast", ("Forecast", "Ratio", "Low", "High"), rows)
    told = f"Of {len(score)} measured values, {held} lie within the range of their forecast."
    x = Axis("measured / middle of the forecast")
    series = [Series("", "ours", names, ratios, low, high, shape="rows")]
    title = "Measured over forecast, with the range of each forecast"
    return figure(title, told, x, Axis(""), series, table)


# --- the forecasts of many results ---------------------------------------------------------------


def record(folder: Path) -> str:
    """A page of all forecasts in the results of a folder, and the share that held.

    Raises ResultsError if it is not a folder.
    """
    if not folder.is_dir():
        raise ResultsError(f"{folder} is not a folder")
    rows, held = [], []
    for path in sorted(folder.glob(f"*/{MANIFEST}")):
        results = Results(path.parent)
        manifest = results.manifest()
        for one in scored(results) if manifest.get("experiment") == NAME else ():
            low, _, high, measured = one.numbers
            cpu, made = str(manifest["machine"].get("cpu", "")), one.forecast.made
            words = SHOWN[one.forecast.quantity][0]
            rows.append((made, cpu, one.told, words, low, high, measured, one.verdict))
            held += [] if one.held is None else [one.held]
    columns = ("Made", "Processor", "Service", "Forecast", "Low", "High", "Measured", "Held")
    section = Section("All forecasts", (), [Table("Forecasts", columns, rows)])
    return plain_page("Record of forecasts", [_record_told(len(rows), held)], [section])


def _record_told(made: int, held: Sequence[bool]) -> str:
    if not held:
        return f"{made} forecasts were made; none was measured yet."
    low, high = wilson(sum(held), len(held))
    return (
        f"{made} forecasts were made and {len(held)} measured. {sum(held)} of these held, "
        f"{100 * sum(held) / len(held):.0f} % (95 % interval: {100 * low:.0f} to "
        f"{100 * high:.0f} %). If the models were right within 5 %, at least 95 % would hold."
    )
