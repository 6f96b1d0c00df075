"""`/flight_counter`: how many flights there are between two cities: a chart, and carriers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from flask import Blueprint, request

from frontend.backend_client import Json
from frontend.charts.maps import Distance, distance_between
from frontend.charts.plots import Bars, bars_in_time
from frontend.charts.time_axis import TimeAxis, covered, time_axis
from frontend.context import backend, coverage
from frontend.coverage import all_days
from frontend.evidence import Answered, uncited
from frontend.filters import counted
from frontend.form_request import cited_page, filled_in
from frontend.question import AS_OF, BOTH, ENDS, KINDS, Question, ends_in, require_known
from frontend.questions.group_queries import periods_with_flights
from frontend.twins import Twin, twins

NAME = "flight_counter"
PATH = f"/{NAME}"

routes = Blueprint("flight_counter", __name__)


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
        return time_axis(*covered(query["INITIAL_DATE"], query["FINAL_DATE"], self.known, days))

    @cached_property
    def counts(self) -> Sequence[int]:
        """The flights of each slot of the time axis."""
        counts = [0] * len(self.time.slots)
        for day in self.answer["by_day"]:
            counts[self.time.place(day["FL_DATE"])] += day["count"]
        return counts

    @cached_property
    def without_any(self) -> set[int]:
        """The slots in which the ledger has no flights at all, on any route."""
        if all(self.counts):
            return set()
        first, last = self.time.slots[0].first, self.time.slots[-1].last
        height = self.answer[AS_OF]["height"]
        periods = periods_with_flights(str(first), str(last), self.time.unit, height)
        return {*range(len(self.counts))} - set(map(self.time.place, periods))

    def bars(self) -> Bars:
        texts = [f"{name}: {counted(count, 'flight')}" for name, count in self.rows()]
        return bars_in_time(self.time, self.counts, texts)

    def rows(self) -> Iterator[tuple[str, int]]:
        """Return (day or other slot, flights)."""
        return zip(self.time.names, self.counts, strict=True)

    @property
    def busiest(self) -> tuple[str, int]:
        return max(self.rows(), key=lambda row: row[1])


@routes.get(PATH)
def page() -> tuple[str, int]:
    return cited_page("flight_counter.html", _report)


@twins(routes, PATH)
def twin() -> Twin:
    """Return the backend's answers as one; as CSV the flights of each day."""
    counts = _counts(filled_in(uncited(request.args)))
    return Twin(counts, ("FL_DATE", "count"), counts["by_day"], counts["as_of"])


def _report(given: dict[str, str]) -> CountsReport:
    counts, known = _counts(given), coverage.at(given.get(AS_OF))
    return CountsReport(known, Question.of(NAME, counts, given), counts)


def _counts(given: dict[str, str]) -> Json:
    """Return the backend's answers by day and by carrier, up to the same block, as one answer."""
    require_known(given, *KINDS[NAME].parameters)
    ends_in(given)
    question = all_days(coverage.at(given.get(AS_OF))) | given
    counts = backend.get(PATH, question | {"group_by": "day"})
    question[AS_OF] = str(counts[AS_OF]["height"])
    counts["by_carrier"] = backend.get(PATH, question | {"group_by": "carrier"})["by_carrier"]
    back = {ENDS.get(name, name): text for name, text in question.items()}
    return counts | {"reverse_count": backend.get(PATH, back)["count"]}
