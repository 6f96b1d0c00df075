"""Makes the page of the flights between two cities from an answer: a chart, and carriers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from frontend.charts.maps import Distance, distance_between
from frontend.charts.plots import Bars, bars_in_time
from frontend.charts.time_axis import TimeAxis, shown
from frontend.evidence import Answered
from frontend.filters import counted
from frontend.question import BOTH


@dataclass(frozen=True)
class CountsReport(Answered):
    """Says what the page shows of an answer.

    answer: of `/flight_counter`, by day and by carrier, and the `reverse_count`.
    """

    @property
    def distance(self) -> Distance | None:
        return distance_between(*(self.question.airports(end, self.known) for end in BOTH))

    @cached_property
    def time(self) -> TimeAxis:
        query, days = self.answer["query"], [day["FL_DATE"] for day in self.answer["by_day"]]
        return shown(query["INITIAL_DATE"], query["FINAL_DATE"], self.known, days)

    @cached_property
    def counts(self) -> Sequence[int]:
        """The flights of each slot of the time axis."""
        counts = [0] * len(self.time.slots)
        for day in self.answer["by_day"]:
            counts[self.time.place(day["FL_DATE"])] += day["count"]
        return counts

    def bars(self) -> Bars:
        texts = [f"{name}: {counted(count, 'flight')}" for name, count in self.rows()]
        return bars_in_time(self.time, self.counts, texts)

    def rows(self) -> Iterator[tuple[str, int]]:
        """Return (day or other slot, flights)."""
        return zip(self.time.names, self.counts, strict=True)

    @property
    def busiest(self) -> tuple[str, int]:
        return max(self.rows(), key=lambda row: row[1])
