"""Makes the page of delays from the backend's answers: charts, tables, warnings."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from statistics import median
from typing import Any, NamedTuple

from frontend.backend_client import Json
from frontend.charts.plots import (
    MOST_MARKED,
    Bars,
    Lines,
    Series,
    axis,
    histogram,
    lines_in_time,
    time_ticks,
    usual_axis,
)
from frontend.charts.time_axis import TimeAxis
from frontend.coverage import Carrier
from frontend.filters import counted, minutes, number, share
from frontend.questions.figures import COUNTS, together
from frontend.questions.flights_of_day import LATE_FROM_MINUTES

WEEK_DAYS = 7
LEAST_DAYS_FOR_WEEKS = 14  # with fewer days a mean of seven of them would say little

BIN_MINUTES = 15
TICK_MINUTES = 30

SCATTER_MINUTES = 40
"""By about so much delays of single flights scatter (standard deviation)."""
FEW_ARRIVALS = 100
"""With fewer, chance matters. Because of SCATTER_MINUTES a mean of 100 is uncertain by
2 * 40 / sqrt(100) = 8 minutes, and the 90th percentile rests on the ten flights beyond it."""
FEW_IN_A_SLOT = 10


NO_FLIGHTS = together([])


@dataclass(frozen=True)
class Delays:
    """One carrier's delays. rank: its place on the page, from 1. answer: of `/average_delays`.

    week_means: as of the function of that name, if the time axis has days.
    """

    rank: int
    carrier: Carrier
    answer: Json
    cells: Mapping[int, Json]
    week_means: Mapping[int, float]

    @property
    def code(self) -> str:
        return self.carrier.code or str(self.carrier.number)

    @property
    def are_few(self) -> bool:
        """Whether there are so few arrivals that chance matters."""
        arrived: int = self.answer["arrived"]
        return 0 < arrived < FEW_ARRIVALS

    @property
    def are_few_a_slot(self) -> bool:
        """Whether most of the carrier's days (or months) rest on a handful of flights."""
        arrived = [cell["arrived"] for cell in self.cells.values()]
        return bool(arrived) and median(arrived) < FEW_IN_A_SLOT

    @cached_property
    def means(self) -> dict[int, float]:
        """Slot -> mean delay in minutes."""
        return {s: cell["average_delay"] for s, cell in self.cells.items() if cell["arrived"]}

    @property
    def histogram(self) -> dict[tuple[int | None, int | None], int]:
        """Bounds of a bin in minutes -> arrivals."""
        rows = self.answer["distribution"]["histogram"]
        return {(row["from"], row["to"]): row["flights"] for row in rows}


class Bin(NamedTuple):
    """A bin of the histogram. low: in minutes, inclusive. high: exclusive. None: no bound."""

    low: int | None
    high: int | None

    @property
    def name(self) -> str:
        """The name of the bin: "0 to 14 min", because delays are whole minutes."""
        if self.high is None:
            return f"{minutes(self.low)} or more"
        last = minutes(self.high - 1)
        return f"{last} or more" if self.low is None else f"{abs(self.low)} to {last}"

    @property
    def kind(self) -> str:
        return "late" if self.high is None or self.high > LATE_FROM_MINUTES else "on_time"


@dataclass(frozen=True)
class DelaysReport:
    """All that the page shows of some carriers over the same days."""

    time: TimeAxis
    carriers: Sequence[Delays]

    @property
    def is_one_day(self) -> bool:
        return self.time.unit == "day" and len(self.time.slots) == 1

    @property
    def has_week_means(self) -> bool:
        return any(delays.week_means for delays in self.carriers)

    @property
    def incomplete(self) -> list[Json]:
        """The months or years of which only some days are there."""
        slots = ((self.time.names[place], self.time.slots[place]) for place in self.time.incomplete)
        return [
            {"name": name, "first": slot.first.isoformat(), "last": slot.last.isoformat()}
            for name, slot in slots
        ]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The carriers as parameters of an address."""
        return [("OP_CARRIER_AIRLINE_ID", str(delays.carrier.number)) for delays in self.carriers]

    @cached_property
    def bins(self) -> list[Bin]:
        """The bins of all histograms together, without gaps."""
        bounds = {bound for delays in self.carriers for bound in delays.histogram}
        starts = [(high or 0) - BIN_MINUTES if low is None else low for low, high in bounds]
        if not starts:
            return []
        first, last = min(starts), max(starts)
        is_open_below, is_open_above = (None in ends for ends in zip(*bounds, strict=True))
        return [
            Bin(
                None if is_open_below and low == first else low,
                None if is_open_above and low == last else low + BIN_MINUTES,
            )
            for low in range(first, last + 1, BIN_MINUTES)
        ]

    @cached_property
    def counts(self) -> list[list[int]]:
        """Arrivals of each carrier in each bin."""
        histograms = [delays.histogram for delays in self.carriers]
        return [[arrivals.get(bin_, 0) for bin_ in self.bins] for arrivals in histograms]

    def histograms(self) -> list[tuple[Delays, Bars]]:
        """A histogram for each carrier with arrivals: their shares in percent, on one scale."""
        kinds = [bin_.kind for bin_ in self.bins]
        edges = [
            (place, number(low) + ("+" if high is None else ""))
            for place, (low, high) in enumerate(self.bins)
            if low is not None and low % TICK_MINUTES == 0
        ]
        drawn = [
            (delays, counts, [100 * count / delays.answer["arrived"] for count in counts])
            for delays, counts in zip(self.carriers, self.counts, strict=True)
            if delays.answer["arrived"]
        ]
        upright = axis((percent for _, _, shares in drawn for percent in shares), unit=" %")
        divide = next((place for place, kind in enumerate(kinds) if place and kind == "late"), None)
        return [
            (delays, histogram(edges, shares, self._texts(counts), kinds, upright, divide))
            for delays, counts, shares in drawn
        ]

    def _texts(self, counts: Sequence[int]) -> list[str]:
        """Return what each bar of a histogram stands for."""
        arrived = sum(counts)
        return [
            f"{bin_.name}: {counted(count, 'flight')}, {share(count / arrived)}"
            for bin_, count in zip(self.bins, counts, strict=True)
        ]

    def lines(self) -> list[tuple[Delays | None, Lines]]:
        """One chart of all carriers; if that were too full, one for each on the same scale."""
        series = [
            Series(delays.code, delays.rank, delays.means, delays.week_means)
            for delays in self.carriers
        ]
        if len(series) == 1 or len(self.time.slots) <= MOST_MARKED:
            return [(None, lines_in_time(self.time, series, list(self._slot_texts())))]
        upright = usual_axis([mean for delays in self.carriers for mean in delays.means.values()])
        ticks = time_ticks(self.time)
        return [
            (delays, lines_in_time(self.time, [line], [], upright, ticks))
            for delays, line in zip(self.carriers, series, strict=True)
            if line.values
        ]

    def beyond(self, drawn: Sequence[tuple[Delays | None, Lines]]) -> list[str]:
        """Return the means that the charts cut off, in words."""
        return [
            f"{line.name}, {self.time.names[slot]}: {minutes(delays.means[slot])}"
            for _, chart in drawn
            for line in chart.lines
            for delays in self.carriers
            if delays.rank == line.number
            for slot, _ in line.beyond
        ]

    def _slot_texts(self) -> Iterator[str]:
        for place, name in enumerate(self.time.names):
            yield "\n".join([name, *(_slot_text(delays, place) for delays in self.carriers)])

    def rows(self) -> Iterator[tuple[str, list[Json]]]:
        """(day or other slot, each carrier's flights in it), for slots with flights."""
        for place, name in enumerate(self.time.names):
            cells = [delays.cells.get(place, NO_FLIGHTS) for delays in self.carriers]
            if any(cell["flights"] for cell in cells):
                yield name, cells

    def mean_rows(self) -> Iterator[tuple[str, list[str]]]:
        """(day or other slot, mean delay of each carrier in minutes), as numbers in text."""
        for name, cells in self.rows():
            yield name, [number(cell["average_delay"], 1) for cell in cells]

    def count_rows(self) -> Iterator[tuple[str, list[str]]]:
        """(day or other slot, all numbers of the first carrier), as numbers in text."""
        for name, (cell, *_) in self.rows():
            counts = [number(cell[name]) for name in COUNTS]
            on_time = share(cell["on_time_share_of_arrived"])
            yield name, [number(cell["average_delay"], 1), on_time, *counts]

    def week_rows(self) -> Iterator[tuple[str, list[str]]]:
        """(middle day, mean delay of seven days of each carrier in minutes), as numbers in text."""
        for place, name in enumerate(self.time.names):
            means = [delays.week_means.get(place) for delays in self.carriers]
            if any(mean is not None for mean in means):
                yield name, [number(mean, 1) for mean in means]


def _slot_text(delays: Delays, place: int) -> str:
    text = f"{delays.code} {minutes(delays.means.get(place), 1)}"
    week = delays.week_means.get(place)
    return text if week is None else f"{text}, {WEEK_DAYS} days {minutes(week, 1)}"


def report(answers: Sequence[Json], carriers: Sequence[Carrier], time: TimeAxis) -> DelaysReport:
    """The report. answers: of `/average_delays`, by day and with distribution, one per carrier."""
    all_delays = []
    for rank, (carrier, answer) in enumerate(zip(carriers, answers, strict=True), 1):
        cells = _cells(answer["by_day"], time)
        weeks = week_means(cells, len(time.slots)) if time.unit == "day" else {}
        all_delays.append(Delays(rank, carrier, answer, cells, weeks))
    return DelaysReport(time, all_delays)


def _cells(days: Sequence[Json], time: TimeAxis) -> dict[int, Json]:
    cells: defaultdict[int, list[Json]] = defaultdict(list)
    for day in days:
        cells[time.place(day["FL_DATE"])].append(day)
    return {place: together(days) for place, days in cells.items()}


def week_means(cells: Mapping[int, Json], count: int) -> dict[int, float]:
    """Day -> mean delay in minutes of the flights of seven days: three before to three after it.

    count: of the days, which are numbered from 0. Empty for fewer than `LEAST_DAYS_FOR_WEEKS`.
    """
    if count < LEAST_DAYS_FOR_WEEKS:
        return {}
    days = [cells.get(day, NO_FLIGHTS) for day in range(count)]
    arrived = list(accumulate((day["arrived"] for day in days), initial=0))
    delays = list(accumulate((round(_delays(day)) for day in days), initial=0))
    means = {}
    for first in range(count - WEEK_DAYS + 1):
        flights = arrived[first + WEEK_DAYS] - arrived[first]
        if flights:
            minutes_late = delays[first + WEEK_DAYS] - delays[first]
            means[first + WEEK_DAYS // 2] = minutes_late / flights
    return means


def _delays(day: Json) -> float:
    """Return the sum of the arrival delays, in minutes."""
    return float((day["average_delay"] or 0) * day["arrived"])


DAY_COLUMNS = (
    *("OP_CARRIER_AIRLINE_ID", "FL_DATE", "average_delay"),
    *("flights", "arrived", "cancelled", "no_arrival"),
    *("on_time_share_of_arrived", "on_time_share_of_scheduled"),
    *("average_departure_delay", "average_delay_of_7_days"),
)


def day_rows(answers: Sequence[Json], days: TimeAxis) -> Iterator[dict[str, Any]]:
    """The days of each answer, for the CSV twin: `DAY_COLUMNS`. days: the axis of all of them."""
    for answer in answers:
        carrier = answer["query"]["OP_CARRIER_AIRLINE_ID"]
        weeks = week_means(_cells(answer["by_day"], days), len(days.slots))
        for day in answer["by_day"]:
            week = weeks.get(days.place(day["FL_DATE"]))
            yield {"OP_CARRIER_AIRLINE_ID": carrier, **day, "average_delay_of_7_days": week}
