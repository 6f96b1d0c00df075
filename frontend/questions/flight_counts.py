"""Makes the page of a route from an answer: a chart, and carriers."""

from collections.abc import Iterator

from frontend.backend_client import Json
from frontend.charts.plots import Bars, bars_in_time
from frontend.charts.time_axis import TimeAxis, shown
from frontend.coverage import Coverage
from frontend.filters import counted


class CountsReport:
    """What the page shows of an answer.

    counts: the answer of `/flight_counter`, by day and by carrier.
    """

    def __init__(self, counts: Json, known: Coverage) -> None:
        query = counts["query"]
        days = [day["FL_DATE"] for day in counts["by_day"]]
        self.time: TimeAxis = shown(query["INITIAL_DATE"], query["FINAL_DATE"], known, days)
        self.counts = [0] * len(self.time.slots)
        for day in counts["by_day"]:
            self.counts[self.time.place(day["FL_DATE"])] += day["count"]
        self.carriers = [
            (
                known.carrier(row["OP_CARRIER_AIRLINE_ID"]),
                row["count"],
                row["count"] / counts["count"],
            )
            for row in counts["by_carrier"]
        ]

    def bars(self) -> Bars:
        texts = [f"{name}: {counted(count, 'flight')}" for name, count in self.rows()]
        return bars_in_time(self.time, self.counts, texts)

    def rows(self) -> Iterator[tuple[str, int]]:
        """(day or other slot, flights)."""
        return zip(self.time.names, self.counts, strict=True)

    @property
    def busiest(self) -> tuple[str, int]:
        return max(self.rows(), key=lambda row: row[1])

    @property
    def ties(self) -> int:
        """How many other days have as many flights as the busiest one."""
        return self.counts.count(self.busiest[1]) - 1

    @property
    def empty_slots(self) -> int:
        return self.counts.count(0)
