"""Shows a gap ledger: a waterfall from the predicted to the measured time, and a sentence a cause.

They are computed by `loadtests.models.gap_ledger`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from loadtests.lab.content import Cell, Figure, Table, shown
from loadtests.lab.report.drawing import Axis, Series, Source, drawn
from loadtests.models.gap_ledger import Cause, Ledger

_ALIKE = 1e-6  # an entry below this share of the prediction is none
_ROOM = 0.06  # of the drawing, at both sides of what it shows
_BARS: Mapping[Source, str] = {"model": "", "study": "adds", "second": "takes away", "ours": ""}

WORDS: Mapping[Cause, str] = {
    Cause.SERVER: "The server as a whole, because it told no times to tell causes apart by,",
    Cause.AROUND: "Order of service, connecting and receiving, otherwise than in the calibration,",
    Cause.DISPATCH: "Late sending by the generator",
    Cause.DRIFT: "The change of the service time between two calibrations",
    Cause.SERVICE_MEAN: "A mean service time other than the calibrated one",
    Cause.SPREAD: "Service times that vary otherwise than in the calibration, or come in a row,",
    Cause.EMPTY: "Beginning with an empty queue",
    Cause.SAMPLING: "The chance that brought just these arrivals",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A cause, the amount that it adds, and its interval if one is known."""

    name: str
    words: str  # begin a sentence
    amount: float
    low: float | None = None
    high: float | None = None

    @property
    def is_seen(self) -> bool:
        """Whether it is worth telling: its interval excludes 0."""
        return self.low is not None and self.high is not None and self.low * self.high > 0

    @property
    def sentence(self) -> str:
        """The entry in words."""
        subject, size, of = self.words.rstrip(","), f"{shown(abs(self.amount))} ms", ""
        if self.low is not None and self.high is not None:
            of = f" ({shown(self.low)} to {shown(self.high)})"
            if self.low <= 0 <= self.high:
                return f"{subject}: no effect is seen{of}."
        if self.amount == 0:
            return f"{subject}: none."
        does = f"adds {size}" if self.amount > 0 else f"takes {size} away"
        return f"{self.words} {does}{of}."


@dataclass(frozen=True, slots=True)
class Gap:
    """A predicted and a measured time in ms, and entries that sum to their difference."""

    predicted: float
    entries: Sequence[Entry]
    gap_low: float | None = None  # where the interval of the difference begins, if it is known
    gap_high: float | None = None

    @property
    def measured(self) -> float:
        """What the entries lead to."""
        return self.predicted + sum(entry.amount for entry in self.entries)


def of_ledger(found: Ledger, predicted_s: float) -> Gap:
    """The gap of a ledger, from the prediction to the measurement."""
    entries = []
    for cause, amount_s in reversed([*found.entries_s.items()]):
        of = found.intervals.get(cause)
        ends = (1000 * of.low, 1000 * of.high) if of else (None, None)
        entry = Entry(str(cause), WORDS[cause], 1000 * amount_s, *ends)
        is_none = abs(amount_s) < _ALIKE * predicted_s
        entries.append(Entry(entry.name, entry.words, 0.0) if is_none else entry)
    ends = (1000 * found.gap.low, 1000 * found.gap.high) if found.gap else (None, None)
    return Gap(1000 * predicted_s, entries, *ends)


def gap_told(gap: Gap) -> str:
    """The gap, and its causes as far as they are seen; if no interval is known, the largest one."""
    size = f"{gap.measured - gap.predicted:+.3g} ms"
    if gap.gap_low is None:
        seen = sorted(gap.entries, key=lambda entry: -abs(entry.amount))[:1]
    else:
        size += f" ({gap.gap_low:+.3g} to {gap.gap_high:+.3g})"
        seen = [entry for entry in gap.entries if entry.is_seen]
    words = " ".join(entry.sentence for entry in seen)
    return f"Measured less predicted: {size}. {words or 'No single cause is seen.'}"


def waterfall(title: str, told: str, gap: Gap) -> Figure:
    """The figure of a gap, with a table that has a sentence for each entry."""
    rows: list[Sequence[Cell]] = [("predicted", gap.predicted, None, None, "")]
    rows += [
        (entry.name, entry.amount, entry.low, entry.high, entry.sentence) for entry in gap.entries
    ]
    rows.append(("measured", gap.measured, None, None, ""))
    columns = ("Cause", "Adds / ms", "from", "to", "In words")
    return Figure(title, _drawn(gap), told, Table(title, columns, rows, digits=4))


def _drawn(gap: Gap) -> str:
    entries, amounts = gap.entries, [entry.amount for entry in gap.entries]
    levels = list(accumulate(amounts, initial=gap.predicted))
    low, high = (
        [None if end is None else at + end for end, at in zip(ends, levels, strict=False)]
        for ends in ([entry.low for entry in entries], [entry.high for entry in entries])
    )
    floor, top = _limits([value for value in (*levels, *low, *high) if value is not None])
    names = ["predicted", *(entry.name for entry in entries), "measured"]
    begins = [floor, *levels[:-1], floor]
    widths = [gap.predicted - floor, *amounts, gap.measured - floor]
    sources = ["model", *("study" if amount >= 0 else "second" for amount in amounts), "ours"]
    ends = [None, *low, None], [None, *high, None]
    series = []
    for source, name in _BARS.items():
        ys = [width if of == source else None for width, of in zip(widths, sources, strict=True)]
        if source in sources:
            series.append(Series(name, source, names, ys, *ends, "rows", begins))
    from_0 = "" if floor == 0 else ", not from 0 on"
    x = Axis(f"mean response time / ms{from_0}", limits=(floor, top))
    return drawn(x, Axis(""), series)


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """From 0, unless that would make what differs too small to see."""
    low, high = min(values), max(values)
    room = _ROOM * (high - low or high)
    return (max(0.0, low - room) if low > (high - low) else 0.0), high + room
