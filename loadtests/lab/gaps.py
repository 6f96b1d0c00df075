"""Shows a gap ledger: a waterfall from the predicted to the measured time, and what is seen.

They are computed by `loadtests.models.gap_ledger`.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate

from loadtests.lab.content import Cell, Figure, Table
from loadtests.lab.repeated import Estimate, from_interval
from loadtests.lab.report.drawing import Axis, Series, Source, drawn
from loadtests.lab.sentences import Sentences
from loadtests.models.estimates import LEAST_VALUES, Interval
from loadtests.models.gap_ledger import Cause, Ledger

SENTENCES = Sentences("open_workload")

_ALIKE = 1e-6  # an entry below this share of the prediction is none
_ROOM = 0.06  # of the drawing, at both sides of what it shows
_BARS: Mapping[Source, str] = {"model": "", "study": "adds", "second": "takes away", "ours": ""}

WORDS: Mapping[Cause, str] = {
    Cause.SERVER: "The server as a whole, which reported no times that would separate causes,",
    Cause.AROUND: "Order of service, connecting and receiving, unlike in the calibration,",
    Cause.DISPATCH: "Late sending by the generator",
    Cause.DRIFT: "The change of the service time between two calibrations",
    Cause.SERVICE_MEAN: "A mean service time other than the calibrated one",
    Cause.SPREAD: "Service times that vary unlike in the calibration, or are alike in a row,",
    Cause.EMPTY: "Beginning with an empty queue",
    Cause.SAMPLING: "The chance of these arrivals",
}


def entries_of(ledger: Ledger, predicted_s: float) -> dict[Cause, Estimate]:
    """Return what each cause adds in ms, from the prediction to the measurement."""
    return {
        cause: _entry(amount_s, ledger.intervals.get(cause), predicted_s)
        for cause, amount_s in reversed([*ledger.entries_s.items()])
    }


def _entry(amount_s: float, interval: Interval | None, predicted_s: float) -> Estimate:
    if abs(amount_s) < _ALIKE * predicted_s:
        return Estimate(0.0)
    return from_interval(interval.times(1000)) if interval else Estimate(1000 * amount_s)


def waterfall(title: str, ledger: Ledger, predicted_s: float) -> Figure:
    """Return the figure of a gap. It names the causes that are seen, or else the largest."""
    entries, predicted = entries_of(ledger, predicted_s), 1000 * predicted_s
    seen = [cause for cause, own in entries.items() if own.high is not None and own.is_finding]
    if ledger.gap is None:
        seen = [max(entries, key=lambda cause: abs(entries[cause].value))]
    measured = predicted + sum(entry.value for entry in entries.values())
    caption = SENTENCES.paragraph(
        "gap",
        ledger=ledger,
        size=measured - predicted,
        seen={cause: entries[cause] for cause in seen},
        words=WORDS,
        least=LEAST_VALUES,
    )
    rows: list[Sequence[Cell]] = [
        ("predicted", predicted, None, None),
        *((str(cause), entry.value, entry.low, entry.high) for cause, entry in entries.items()),
        ("measured", measured, None, None),
    ]
    table = Table(title, ("Cause", "Adds / ms", "from", "to"), rows, digits=4)
    return Figure(title, _drawn(predicted, entries, measured), caption, table)


def _drawn(predicted: float, entries: Mapping[Cause, Estimate], measured: float) -> str:
    amounts = [entry.value for entry in entries.values()]
    levels = list(accumulate(amounts, initial=predicted))
    low, high = (
        [None if end is None else at + end for end, at in zip(ends, levels, strict=False)]
        for ends in zip(*((entry.low, entry.high) for entry in entries.values()), strict=True)
    )
    floor, top = _limits([value for value in (*levels, *low, *high) if value is not None])
    names = ["predicted", *map(str, entries), "measured"]
    begins = [floor, *levels[:-1], floor]
    widths = [predicted - floor, *amounts, measured - floor]
    sources = ["model", *("study" if amount >= 0 else "second" for amount in amounts), "ours"]
    ends = [None, *low, None], [None, *high, None]
    series = []
    for source, name in _BARS.items():
        ys = [width if own == source else None for width, own in zip(widths, sources, strict=True)]
        if source in sources:
            series.append(Series(name, source, names, ys, *ends, "rows", begins))
    from_0 = "" if floor == 0 else ", not from 0 on"
    x = Axis(f"mean response time / ms{from_0}", limits=(floor, top))
    return drawn(x, Axis(""), series)


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """Return limits from 0 on, unless that would make what differs too small to see."""
    low, high = min(values), max(values)
    room = _ROOM * (high - low or high)
    return (max(0.0, low - room) if low > (high - low) else 0.0), high + room
