"""Shows a gap ledger: a waterfall from the predicted to the measured time, and a sentence a cause.

The entries of an experiment's gap are computed by `loadtests.models.gap_ledger`. Of study 000 no
rows are known, so the gap between the 102 s that it measured at 0.85 of L and the 155 s of M/G/1 is
accounted for by its printed numbers and by simulation of its protocol: runs of 30 minutes that
begin empty, each a mean of its requests, and the result the mean of those. What is replaced, from
the prediction to the measurement:

1. an empty queue at the beginning, all requests of all runs with the same weight;
2. each run with the same weight, though one of many requests is a slow one;
3. these 15 runs, of all that could have come: chance, with the range that simulation gives it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random

import numpy as np

from loadtests.lab.content import Cell, Figure, Section, Table, shown
from loadtests.lab.published import OPEN_RUN_S, OPEN_RUNS, OPEN_WORKLOADS, UNROUNDED, OpenWorkload
from loadtests.lab.report.drawing import Axis, Series, Source, drawn, figure
from loadtests.lab.report.page import plain_page
from loadtests.models import open_queue, replay
from loadtests.models.gap_ledger import Cause, Ledger
from loadtests.models.protocol import Expectation, Protocol, expectation
from loadtests.models.random_times import Gamma, poisson_times

_ALIKE = 1e-6  # an entry below this share of the prediction is none
_LARGE = 0.01  # share of the prediction from which an entry without an interval is told
_ROOM = 0.06  # of the drawing, at both sides of what it shows
_BARS: Mapping[Source, str] = {"model": "", "study": "adds", "second": "takes away", "ours": ""}

WORDS: Mapping[Cause, str] = {
    Cause.SERVER: "The server as a whole, because it told no times to tell causes apart by,",
    Cause.AROUND: "Order of service, connecting and receiving, which were not told apart,",
    Cause.ORDER: "Service out of the order of arrival",
    Cause.DISPATCH: "Late sending by the generator",
    Cause.RECEIVING: "Receiving answers otherwise than in the calibration",
    Cause.CONNECTING: "Connecting, accepting and writing, otherwise than in the calibration,",
    Cause.DRIFT: "The change of the service time between two calibrations",
    Cause.SERVICE_MEAN: "A mean service time other than the calibrated one",
    Cause.SERVICE_CV: "A spread of service times other than the calibrated one",
    Cause.AUTOCORRELATION: "That slow requests come in a row, or in bunches of arrivals,",
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
    told: str = ""  # the whole sentence, if the one that is made of these would not do

    def is_seen(self, predicted: float) -> bool:
        """Whether it is worth telling: its interval excludes 0, or it is large and has none."""
        if self.low is None or self.high is None:
            return abs(self.amount) >= _LARGE * predicted
        return self.low * self.high > 0

    def sentence(self, unit: str) -> str:
        """The entry in words."""
        if self.told:
            return self.told
        subject, size, of = self.words.rstrip(","), f"{shown(abs(self.amount))} {unit}", ""
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
    """A predicted and a measured time, and entries that sum to their difference, in `unit`."""

    predicted: float
    entries: Sequence[Entry]
    unit: str
    gap_low: float | None = None  # where the interval of the difference begins, if it is known
    gap_high: float | None = None

    @property
    def measured(self) -> float:
        """What the entries lead to."""
        return self.predicted + sum(entry.amount for entry in self.entries)


def of_ledger(found: Ledger, predicted_s: float) -> Gap:
    """The gap of a ledger in milliseconds, from the prediction to the measurement."""
    entries = []
    for cause, amount_s in reversed([*found.entries_s.items()]):
        of = found.intervals.get(cause)
        ends = (1000 * of.low, 1000 * of.high) if of else (None, None)
        entry = Entry(str(cause), WORDS[cause], 1000 * amount_s, *ends)
        is_none = abs(amount_s) < _ALIKE * predicted_s
        entries.append(Entry(entry.name, entry.words, 0.0) if is_none else entry)
    ends = (1000 * found.gap.low, 1000 * found.gap.high) if found.gap else (None, None)
    return Gap(1000 * predicted_s, entries, "ms", *ends)


def gap_told(gap: Gap) -> str:
    """The gap, and its causes as far as they are seen; if no interval is known, the largest one."""
    size = f"{gap.measured - gap.predicted:+.3g} {gap.unit}"
    if gap.gap_low is None:
        seen = sorted(gap.entries, key=lambda entry: -abs(entry.amount))[:1]
    else:
        size += f" ({gap.gap_low:+.3g} to {gap.gap_high:+.3g})"
        seen = [entry for entry in gap.entries if entry.is_seen(gap.predicted)]
    words = " ".join(entry.sentence(gap.unit) for entry in seen)
    return f"Measured less predicted: {size}. {words or 'No single cause is seen.'}"


def waterfall(title: str, told: str, gap: Gap) -> Figure:
    """The figure of a gap, with a table that has a sentence for each entry."""
    rows: list[Sequence[Cell]] = [("predicted", gap.predicted, None, None, "")]
    rows += [
        (entry.name, entry.amount, entry.low, entry.high, entry.sentence(gap.unit))
        for entry in gap.entries
    ]
    rows.append(("measured", gap.measured, None, None, ""))
    columns = ("Cause", f"Adds / {gap.unit}", "from", "to", "In words")
    return Figure(title, _drawn(gap), told, Table(title, columns, rows, digits=4))


def _drawn(gap: Gap) -> str:
    entries, amounts = gap.entries, [entry.amount for entry in gap.entries]
    levels = list(accumulate(amounts, initial=gap.predicted))
    low = [
        at + of.low if of.low is not None else None for of, at in zip(entries, levels, strict=False)
    ]
    high = [
        at + of.high if of.high is not None else None
        for of, at in zip(entries, levels, strict=False)
    ]
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
    x = Axis(f"mean response time / {gap.unit}{from_0}", limits=(floor, top))
    return drawn(x, Axis(""), series)


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """From 0, unless that would make what differs too small to see."""
    low, high = min(values), max(values)
    room = _ROOM * (high - low or high)
    return (max(0.0, low - room) if low > (high - low) else 0.0), high + room


# --- the gap of study 000 ------------------------------------------------------------------------

SIMULATED_RUNS = 20_000
CUSTOMERS, SIMULATED_QUEUES = 300, 2000  # of the figure of how a queue fills
CALIBRATION_RUNS = 16
LAW = Gamma(UNROUNDED.mean_s, UNROUNDED.variation)
_LEAD = (
    "Study 000 concluded that at high load its server stands out against M/G/1. It ran each load "
    "15 times for half an hour against an empty server, which is 44 service times. This page sends "
    "simulated M/G/1 queues, with the study's own service times, through the very same protocol, "
    "and asks what is left of the difference."
)


@dataclass(frozen=True, slots=True)
class Explained:
    """The gap at one load. expected: of the study's protocol."""

    printed: OpenWorkload
    formula_s: float
    expected: Expectation

    @property
    def gap(self) -> Gap:
        """The entries in seconds."""
        formula_s, pooled_s, mean_s = self.formula_s, self.expected.pooled_s, self.expected.mean_s
        low_s, high_s = self.expected.low_s - mean_s, self.expected.high_s - mean_s
        chance_s = self.printed.tested_s - mean_s
        told = (
            f"What is left is {chance_s:+.1f} s, "
            f"{'inside' if low_s <= chance_s <= high_s else 'outside'} the 95 % range of chance in "
            f"{OPEN_RUNS} such runs, {low_s:+.1f} to {high_s:+.1f} s."
        )
        weights = "Giving a run of few requests the weight of one of many"
        entries = [
            Entry(str(Cause.EMPTY), WORDS[Cause.EMPTY], pooled_s - formula_s),
            Entry("runs weigh the same", weights, mean_s - pooled_s),
            Entry("chance", "", chance_s, low_s, high_s, told),
        ]
        return Gap(formula_s, entries, "s")


def explained(printed: OpenWorkload, seed: int = 1) -> Explained:
    """The gap at a load of the study, from `SIMULATED_RUNS` runs."""
    rate_per_s = printed.fraction / UNROUNDED.mean_s
    rng = Random(f"{seed} explained {printed.fraction}")  # noqa: S311  no secrets
    protocol = Protocol(OPEN_RUN_S, OPEN_RUNS)
    expected = expectation(protocol, rate_per_s, LAW, rng, simulated_runs=SIMULATED_RUNS)
    formula = open_queue.mg1(rate_per_s, UNROUNDED.mean_s, UNROUNDED.variance_s2)
    return Explained(printed, formula.response_time_s, expected)


def study_page(seed: int = 1) -> str:
    """The page about the gap of study 000, which is the same for the same seed."""
    found = [explained(printed, seed) for printed in OPEN_WORKLOADS]
    highest = found[-1]
    told = (
        f"Study 000 at {highest.printed.fraction:g} of L, one server in order of arrival, service "
        f"times of {UNROUNDED.mean_s:.2f} s with a coefficient of variation of "
        f"{UNROUNDED.variation:.3f}. The line at “chance” is the 95 % range of {OPEN_RUNS} runs."
    )
    of_highest = waterfall("From 155 s to 102 s", told, highest.gap)
    sections = [
        Section("The gap at 0.85 of L", _findings(highest), [of_highest]),
        Section("Every load", parts=[_table(found)]),
        Section("How a queue fills", parts=[_filling(highest.formula_s, seed)]),
        Section("What this does not settle", [_calibration(highest), *_NOT_SETTLED]),
    ]
    return plain_page("Study 000 at high load: 102 s measured, 155 s predicted", [_LEAD], sections)


def _findings(found: Explained) -> list[str]:
    expected, tested_s = found.expected, found.printed.tested_s
    gap = (
        f"The gap is {tested_s - found.formula_s:.1f} s. The protocol alone makes "
        f"{expected.mean_s - found.formula_s:.1f} s of it: an M/G/1 queue, measured in the same "
        f"way, is expected to show {expected.mean_s:.1f} s, because a run has only "
        f"{expected.arrivals:.0f} requests and the queue was empty when they began to come."
    )
    conclusion = (
        f"So 15 runs of an M/G/1 queue show between {expected.low_s:.0f} and "
        f"{expected.high_s:.0f} s in 95 of 100 cases, and the printed {tested_s:g} s says nothing "
        "against M/G/1."
    )
    return [gap, *(entry.sentence("s") for entry in found.gap.entries), conclusion]


def _table(found: list[Explained]) -> Table:
    error_s = max(one.expected.standard_error_s for one in found)
    return Table.of(
        "The gaps of study 000",
        found,
        [
            ("Share of L", lambda one: f"{one.printed.fraction:g}"),
            ("Requests a run", lambda one: one.expected.arrivals),
            ("M/G/1 / s", lambda one: one.formula_s),
            ("Start from empty / s", lambda one: one.gap.entries[0].amount),
            ("Runs weigh the same / s", lambda one: one.gap.entries[1].amount),
            ("Expected / s", lambda one: one.expected.mean_s),
            ("Chance / s", lambda one: one.gap.entries[2].amount),
            ("95 % of chance / s", lambda one: _range(one.gap.entries[2])),
            ("Printed / s", lambda one: one.printed.tested_s),
        ],
        f"By {SIMULATED_RUNS} simulated runs a load; the largest standard error of an expected "
        f"mean is {error_s:.2f} s.",
        digits=4,
    )


def _range(entry: Entry) -> str:
    return f"{entry.low:+.1f} to {entry.high:+.1f}"


def _filling(formula_s: float, seed: int) -> Figure:
    """The mean response time of the first customer, the second and so on, at the highest load."""
    fraction = OPEN_WORKLOADS[-1].fraction
    rate_per_s = fraction / UNROUNDED.mean_s
    rng, sums_s = Random(f"{seed} filling"), np.zeros(CUSTOMERS)  # noqa: S311  no secrets
    for _ in range(SIMULATED_QUEUES):
        arrivals_s = poisson_times(rate_per_s, rng, count=CUSTOMERS)
        sums_s += replay.fcfs(arrivals_s, [LAW.draw(rng) for _ in arrivals_s])
    means_s = [float(mean_s) for mean_s in sums_s / SIMULATED_QUEUES]
    numbers, last = list(range(1, CUSTOMERS + 1)), round(rate_per_s * OPEN_RUN_S)
    series = [
        Series("M/G/1", "model", [1, CUSTOMERS], [formula_s] * 2),
        Series("n-th customer", "second", numbers, means_s, shape="curve"),
        Series("last of a run of the study", "study", [last], [means_s[last - 1]], shape="points"),
    ]
    told = (
        f"Mean response time of the n-th customer at {fraction:g} of L, by {SIMULATED_QUEUES} "
        f"simulated queues that begin empty. A run of the study ends at about the {last}th."
    )
    told_of = [1, 5, 10, 20, last, 80, 150, CUSTOMERS]
    rows = [(n, means_s[n - 1], 100 * means_s[n - 1] / formula_s) for n in told_of]
    table = Table("How a queue fills", ("Customer", "Mean / s", "% of the long run"), rows)
    x, y = Axis("customer"), Axis("mean response time / s", limits=(0, 180))
    return figure("How a queue fills", told, x, y, series, table)


_NOT_SETTLED = (
    (
        "A request to mine every minute went through the same server and is in no model. It "
        "would make the measured times longer, not shorter; how much is not printed."
    ),
    (
        "Simulation shows that an M/G/1 queue suffices as an explanation. It does not show "
        "that the server was one: a queue that is somewhat faster would pass as well."
    ),
)


def _calibration(found: Explained) -> str:
    rate_per_s, slower_s = found.printed.fraction / UNROUNDED.mean_s, 1.001 * UNROUNDED.mean_s
    more_s = open_queue.mg1(rate_per_s, slower_s, UNROUNDED.variance_s2).response_time_s
    requests = round(CALIBRATION_RUNS * OPEN_RUN_S / UNROUNDED.mean_s)
    error = UNROUNDED.variation / requests**0.5
    of_error_s = 1000 * error * (more_s - found.formula_s)
    return (
        f"Calibration: E[S] is the mean of about {requests} requests, so its standard error is "
        f"{100 * error:.2f} % if they were independent. At {found.printed.fraction:g} of L this is "
        f"± {1.96 * of_error_s:.1f} s in the prediction."
    )
