"""Makes the page of delays from the backend's answers: charts, tables, warnings."""

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
from frontend.questions.flights_of_day import LATE_FROM_MINUTES

WEEK_DAYS = 7
LEAST_DAYS_FOR_WEEKS = 14  # with fewer days a mean of seven of them would say little

BIN_MINUTES = 15
TICK_MINUTES = 30

FEW_ARRIVALS = 100
"""With fewer, chance matters. Delays of single flights scatter by about 40 minutes (standard
deviation), so that a mean of 100 is uncertain by 2 * 40 / sqrt(100) = 8 minutes, and the 90th
percentile rests on the ten flights beyond it."""
FEW_IN_A_SLOT = 10


class Cell(NamedTuple):  # a page has thousands: a tuple is made twice as fast as a data class
    """A carrier's flights in a slot of the time axis. delays: their sum, in minutes."""

    flights: int = 0
    arrived: int = 0
    cancelled: int = 0
    no_arrival: int = 0
    on_time: int = 0
    delays: int = 0

    @property
    def mean(self) -> float | None:
        """The mean delay in minutes; None without arrivals."""
        return self.delays / self.arrived if self.arrived else None

    @property
    def on_time_share(self) -> float | None:
        """The share of the arrived flights that were on time."""
        return self.on_time / self.arrived if self.arrived else None

    def with_day(self, day: Json) -> "Cell":
        """The cell that also counts a row of the backend's `by_day`."""
        arrived = day["arrived"]
        return Cell(
            self.flights + day["flights"],
            self.arrived + arrived,
            self.cancelled + day["cancelled"],
            self.no_arrival + day["no_arrival"],
            self.on_time + round((day["on_time_share_of_arrived"] or 0) * arrived),
            self.delays + round((day["average_delay"] or 0) * arrived),
        )


NO_FLIGHTS = Cell()


@dataclass(frozen=True)
class Delays:
    """One carrier's delays. rank: its place on the page, from 1. answer: of `/average_delays`.

    week_means: as of the function of that name, if the time axis has days.
    """

    rank: int
    carrier: Carrier
    answer: Json
    cells: Mapping[int, Cell]
    week_means: Mapping[int, float]

    @property
    def code(self) -> str:
        """A short name of the carrier."""
        return self.carrier.code or str(self.carrier.number)

    @property
    def are_few(self) -> bool:
        """Whether there are so few arrivals that chance matters."""
        arrived: int = self.answer["arrived"]
        return 0 < arrived < FEW_ARRIVALS

    @property
    def are_few_a_slot(self) -> bool:
        """Whether most of the carrier's days (or months) rest on a handful of flights."""
        arrived = [cell.arrived for cell in self.cells.values()]
        return bool(arrived) and median(arrived) < FEW_IN_A_SLOT

    @cached_property
    def means(self) -> dict[int, float]:
        """Slot -> mean delay in minutes."""
        return {s: cell.delays / cell.arrived for s, cell in self.cells.items() if cell.arrived}


@dataclass(frozen=True, slots=True)
class Bin:
    """A bin of the histogram. low: in minutes, inclusive. high: exclusive. None: no bound."""

    low: int | None
    high: int | None

    @property
    def name(self) -> str:
        """The name of the bin: "0 to 14 min", because delays are whole minutes."""
        if self.high is None:
            return f"{minutes(self.low)} or more"
        last = self.high - 1
        return f"{minutes(last)} or less" if self.low is None else _range(self.low, last)

    @property
    def kind(self) -> str:
        """Whether the flights in the bin are on time or late."""
        return "late" if self.high is None or self.high > LATE_FROM_MINUTES else "on_time"


def _range(low: int, last: int) -> str:
    return f"{number(low)} to {minutes(last)}"


@dataclass(frozen=True)
class DelaysReport:
    """All that the page shows of some carriers over the same days."""

    time: TimeAxis
    carriers: Sequence[Delays]

    @property
    def is_one_day(self) -> bool:
        """Whether there is no more than a day to be shown."""
        return self.time.unit == "day" and len(self.time.slots) == 1

    @property
    def has_week_means(self) -> bool:
        """Whether the lines are means of seven days."""
        return any(each.week_means for each in self.carriers)

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
        return [("OP_CARRIER_AIRLINE_ID", str(each.carrier.number)) for each in self.carriers]

    @cached_property
    def bins(self) -> list[Bin]:
        """The bins of all histograms together, without gaps."""
        starts = [
            each["to"] - BIN_MINUTES if each["from"] is None else each["from"]
            for each in self._histogram_rows()
        ]
        is_open_below = any(each["from"] is None for each in self._histogram_rows())
        is_open_above = any(each["to"] is None for each in self._histogram_rows())
        if not starts:
            return []
        lows = range(min(starts), max(starts) + 1, BIN_MINUTES)
        return [
            Bin(
                None if is_open_below and low == lows[0] else low,
                None if is_open_above and low == lows[-1] else low + BIN_MINUTES,
            )
            for low in lows
        ]

    def _histogram_rows(self) -> Iterator[Json]:
        for each in self.carriers:
            yield from each.answer["distribution"]["histogram"]

    @cached_property
    def counts(self) -> list[list[int]]:
        """Arrivals of each carrier in each bin."""
        found = []
        for each in self.carriers:
            rows = each.answer["distribution"]["histogram"]
            flights = {(row["from"], row["to"]): row["flights"] for row in rows}
            found.append([flights.get((one.low, one.high), 0) for one in self.bins])
        return found

    def histograms(self) -> list[tuple[Delays, Bars]]:
        """A histogram for each carrier with arrivals: their shares in percent, on one scale."""
        bins = self.bins
        kinds = [one.kind for one in bins]
        edges = [
            (place, number(one.low) + ("+" if one.high is None else ""))
            for place, one in enumerate(bins)
            if one.low is not None and one.low % TICK_MINUTES == 0
        ]
        drawn = [
            (each, counts, [100 * count / each.answer["arrived"] for count in counts])
            for each, counts in zip(self.carriers, self.counts, strict=True)
            if each.answer["arrived"]
        ]
        upright = axis((percent for _, _, shares in drawn for percent in shares), unit=" %")
        divide = next((place for place, kind in enumerate(kinds) if place and kind == "late"), None)
        return [
            (each, histogram(edges, shares, self._texts(counts), kinds, upright, divide))
            for each, counts, shares in drawn
        ]

    def _texts(self, counts: Sequence[int]) -> list[str]:
        """What each bar of a histogram stands for."""
        arrived = sum(counts)
        return [
            f"{one.name}: {counted(count, 'flight')}, {share(count / arrived)}"
            for one, count in zip(self.bins, counts, strict=True)
        ]

    def lines(self) -> list[tuple[Delays | None, Lines]]:
        """One chart of all carriers; if that were too full, one for each on the same scale."""
        series = [
            Series(each.code, each.rank, each.means, each.week_means) for each in self.carriers
        ]
        if len(series) == 1 or len(self.time.slots) <= MOST_MARKED:
            return [(None, lines_in_time(self.time, series, list(self._slot_texts())))]
        upright = usual_axis([value for each in series for value in each.values.values()])
        ticks = time_ticks(self.time)
        return [
            (each, lines_in_time(self.time, [one], [], upright, ticks))
            for each, one in zip(self.carriers, series, strict=True)
            if one.values
        ]

    def beyond(self, drawn: Sequence[tuple[Delays | None, Lines]]) -> list[str]:
        """The means that the charts cut off, in words."""
        return [
            f"{line.name}, {self.time.names[slot]}: {minutes(one.means[slot])}"
            for _, chart in drawn
            for line in chart.lines
            for one in self.carriers
            if one.rank == line.number
            for slot, _ in line.beyond
        ]

    def _slot_texts(self) -> Iterator[str]:
        for place, name in enumerate(self.time.names):
            means = "\n".join(_slot_text(each, place) for each in self.carriers)
            yield f"{name}\n{means}"

    def rows(self) -> Iterator[tuple[str, list[Cell]]]:
        """(day or other slot, each carrier's flights in it), for slots with flights."""
        for place, name in enumerate(self.time.names):
            cells = [each.cells.get(place, NO_FLIGHTS) for each in self.carriers]
            if any(cell.flights for cell in cells):
                yield name, cells

    def mean_rows(self) -> Iterator[tuple[str, list[str]]]:
        """(day or other slot, mean delay of each carrier in minutes), as numbers in text."""
        for name, cells in self.rows():
            yield name, [number(cell.mean, 1) for cell in cells]

    def count_rows(self) -> Iterator[tuple[str, list[str]]]:
        """(day or other slot, all numbers of the first carrier), as numbers in text."""
        for name, (cell, *_) in self.rows():
            counts = (cell.flights, cell.arrived, cell.cancelled, cell.no_arrival)
            yield name, [number(cell.mean, 1), share(cell.on_time_share), *map(number, counts)]

    def week_rows(self) -> Iterator[tuple[str, list[str]]]:
        """(middle day, mean delay of seven days of each carrier in minutes), as numbers in text."""
        for place, name in enumerate(self.time.names):
            means = [each.week_means.get(place) for each in self.carriers]
            if any(mean is not None for mean in means):
                yield name, [number(mean, 1) for mean in means]


def _slot_text(each: Delays, place: int) -> str:
    text = f"{each.code} {minutes(each.means.get(place), 1)}"
    week = each.week_means.get(place)
    return text if week is None else f"{text}, {WEEK_DAYS} days {minutes(week, 1)}"


def report(answers: Sequence[Json], carriers: Sequence[Carrier], time: TimeAxis) -> DelaysReport:
    """The report. answers: of `/average_delays`, by day and with distribution, one per carrier."""
    found = []
    for rank, (carrier, answer) in enumerate(zip(carriers, answers, strict=True), 1):
        cells = _cells(answer["by_day"], time)
        of_weeks = week_means(cells, len(time.slots)) if time.unit == "day" else {}
        found.append(Delays(rank, carrier, answer, cells, of_weeks))
    return DelaysReport(time, found)


def _cells(days: Sequence[Json], time: TimeAxis) -> dict[int, Cell]:
    found: dict[int, Cell] = {}
    for day in days:
        place = time.place(day["FL_DATE"])
        found[place] = found.get(place, NO_FLIGHTS).with_day(day)
    return found


def week_means(cells: Mapping[int, Cell], count: int) -> dict[int, float]:
    """Day -> mean delay in minutes of the flights of seven days: three before to three after it.

    count: of the days, which are numbered from 0. Empty for fewer than `LEAST_DAYS_FOR_WEEKS`.
    """
    if count < LEAST_DAYS_FOR_WEEKS:
        return {}
    days = [cells.get(day, NO_FLIGHTS) for day in range(count)]
    arrived = list(accumulate((day.arrived for day in days), initial=0))
    delays = list(accumulate((day.delays for day in days), initial=0))
    found = {}
    for first in range(count - WEEK_DAYS + 1):
        flights = arrived[first + WEEK_DAYS] - arrived[first]
        if flights:
            minutes_late = delays[first + WEEK_DAYS] - delays[first]
            found[first + WEEK_DAYS // 2] = minutes_late / flights
    return found


DAY_COLUMNS = (
    "OP_CARRIER_AIRLINE_ID",
    "FL_DATE",
    "average_delay",
    "flights",
    "arrived",
    "cancelled",
    "no_arrival",
    "on_time_share_of_arrived",
    "on_time_share_of_scheduled",
    "average_departure_delay",
    "average_delay_of_7_days",
)


def day_rows(answers: Sequence[Json], days: TimeAxis) -> Iterator[dict[str, Any]]:
    """The days of each answer, for the CSV twin: `DAY_COLUMNS`. days: the axis of all of them."""
    for answer in answers:
        carrier = answer["query"]["OP_CARRIER_AIRLINE_ID"]
        of_weeks = week_means(_cells(answer["by_day"], days), len(days.slots))
        for day in answer["by_day"]:
            week = of_weeks.get(days.place(day["FL_DATE"]))
            yield {"OP_CARRIER_AIRLINE_ID": carrier, **day, "average_delay_of_7_days": week}
