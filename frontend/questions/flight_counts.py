"""Makes the page of a route from an answer: a chart, carriers, and cities that may be meant."""

from collections.abc import Iterator
from dataclasses import dataclass

from frontend.backend_client import Json
from frontend.charts.plots import Bars, bars_in_time
from frontend.charts.time_axis import TimeAxis, shown
from frontend.coverage import Coverage
from frontend.filters import counted
from frontend.question import Question
from frontend.search.cities import meant


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
    def incomplete(self) -> list[str]:
        return [self.time.names[place] for place in self.time.incomplete]

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


@dataclass(frozen=True, slots=True)
class UnknownCity:
    """A city that the ledger lacks. meant: (city, address of the question about it) in its place.

    is_airport: whether it is the code of an airport instead.
    """

    name: str
    meant: list[tuple[str, str]]
    is_airport: bool


def unknown_cities(known: Coverage, question: Question) -> list[UnknownCity]:
    """Return the cities of a question that the ledger lacks. Each offer puts both ends right."""
    named = {name: question.values.get(name, "") for name in ("ORIGIN_CITY_NAME", "DEST_CITY_NAME")}
    lacking = {name: city for name, city in named.items() if city and city not in known.cities}
    offers = {name: meant(known, city) for name, city in lacking.items()}
    best = {name: offered[0] for name, offered in offers.items() if offered}
    return [
        UnknownCity(
            named[name],
            [(city, question.address(**{**best, name: city})) for city in offered],
            known.airport(named[name].upper()) is not None,
        )
        for name, offered in offers.items()
    ]
