"""`/average_delays`: how late a carrier is over an interval; several are compared."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any, NamedTuple

from flask import Blueprint, redirect, request
from werkzeug.wrappers import Response as AnyResponse

from frontend.backend_client import Json
from frontend.charts.plots import Bars, Lines, histogram, line_in_time
from frontend.charts.time_axis import TimeAxis, covered, in_days, time_axis
from frontend.context import coverage
from frontend.coverage import Carrier
from frontend.errors import Refused
from frontend.evidence import Answered, uncited
from frontend.filters import counted, minutes, number, share
from frontend.form_request import cited_page, filled_in
from frontend.parameters import values_of
from frontend.question import AS_OF, CARRIER, ITEM, KINDS, MOST_ITEMS, Question, require_known
from frontend.questions.figures import COUNTS, FEW_IN_A_SLOT, together
from frontend.questions.flights_of_day import LATE_FROM_MINUTES
from frontend.questions.group_queries import WEEK, Groups, answers_by_group
from frontend.questions.group_rows import Row, rows_of
from frontend.twins import Twin, twins

ASKED: Groups = {"day": {"distribution": "true"}, **WEEK}

NAME = "average_delays"
WEEK_DAYS = 7
LEAST_DAYS_FOR_WEEKS = 14  # with fewer days a mean of seven of them would say little

BIN_MINUTES = 15
TICK_MINUTES = 30

routes = Blueprint(NAME, __name__)


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
class DelaysReport(Answered):
    """All that the page shows of a carrier.

    answer: of `/average_delays`, by day and with distribution, and by what is in WEEK.
    """

    time: TimeAxis

    @property
    def carrier(self) -> Carrier:
        return self.known.carrier(self.question.values[CARRIER])

    @property
    def week(self) -> dict[str, list[Row]]:
        """The groups by hour, weekday and month."""
        groups = [by for by in WEEK if f"by_{by}" in self.answer]
        return {by: rows_of(self.answer, by, self.known, self.question) for by in groups}

    @cached_property
    def cells(self) -> dict[int, Json]:
        """Slot -> the figures of its flights."""
        return _cells(self.answer["by_day"], self.time)

    @property
    def are_few_a_slot(self) -> bool:
        """Whether most of the days (or months) rest on a handful of flights."""
        arrived = [cell["arrived"] for cell in self.cells.values()]
        return bool(arrived) and median(arrived) < FEW_IN_A_SLOT

    @cached_property
    def means(self) -> dict[int, float]:
        """Slot -> mean delay in minutes."""
        return {s: cell["average_delay"] for s, cell in self.cells.items() if cell["arrived"]}

    @cached_property
    def week_means(self) -> dict[int, float]:
        """As of the function of that name, if the time axis has days."""
        return week_means(self.cells, len(self.time.slots)) if self.time.unit == "day" else {}

    @cached_property
    def bins(self) -> dict[Bin, int]:
        """The bins of the histogram without gaps, and the arrivals in each."""
        rows = self.answer["distribution"]["histogram"]
        arrivals = {(row["from"], row["to"]): row["flights"] for row in rows}
        starts = [(high or 0) - BIN_MINUTES if low is None else low for low, high in arrivals]
        bins = {}
        for start in range(min(starts, default=0), max(starts, default=-1) + 1, BIN_MINUTES):
            ends = (None, start + BIN_MINUTES), (start, None), (start, start + BIN_MINUTES)
            bounds = next((pair for pair in ends if pair in arrivals), ends[-1])
            bins[Bin(*bounds)] = arrivals.get(bounds, 0)
        return bins

    def histogram(self) -> Bars:
        """Return the share of the arrivals in each bin, in percent."""
        arrived, kinds = self.answer["arrived"], [bin_.kind for bin_ in self.bins]
        edges = [
            (place, number(low) + ("+" if high is None else ""))
            for place, (low, high) in enumerate(self.bins)
            if low is not None and low % TICK_MINUTES == 0
        ]
        texts = [
            f"{bin_.name}: {counted(count, 'flight')}, {share(count / arrived)}"
            for bin_, count in self.bins.items()
        ]
        divide = next((place for place, kind in enumerate(kinds) if place and kind == "late"), None)
        shares = [100 * count / arrived for count in self.bins.values()]
        return histogram(edges, shares, texts, kinds, divide)

    def line(self) -> Lines:
        """Return the mean of each slot, and that of seven days."""
        return line_in_time(self.time, self.means, self.week_means, self._slot_texts())

    def beyond(self, chart: Lines) -> list[str]:
        """Return the means that the chart cuts off, in words."""
        slots = [slot for slot, _ in chart.lines[0].beyond]
        return [f"{self.time.names[slot]}: {minutes(self.means[slot])}" for slot in slots]

    def _slot_texts(self) -> Iterator[str]:
        for place, name in enumerate(self.time.names):
            week = self.week_means.get(place)
            of_week = "" if week is None else f", {WEEK_DAYS} days {minutes(week, 1)}"
            yield f"{name}\n{minutes(self.means.get(place), 1)}{of_week}"

    def rows(self) -> Iterator[tuple[str, list[str]]]:
        """Return (day or other slot, its figures as text) of slots with flights."""
        for place, cell in sorted(self.cells.items()):
            counts = [number(cell[name]) for name in COUNTS]
            on_time = share(cell["on_time_share_of_arrived"])
            yield self.time.names[place], [number(cell["average_delay"], 1), on_time, *counts]


def _cells(days: Sequence[Json], time: TimeAxis) -> dict[int, Json]:
    cells: defaultdict[int, list[Json]] = defaultdict(list)
    for day in days:
        cells[time.place(day["FL_DATE"])].append(day)
    return {place: together(days) for place, days in cells.items()}


def week_means(cells: Mapping[int, Json], count: int) -> dict[int, float]:
    """Return by day the mean delay of seven days in minutes: three before to three after it.

    count: of the days, which are numbered from 0. Empty for fewer than `LEAST_DAYS_FOR_WEEKS`.
    """
    if count < LEAST_DAYS_FOR_WEEKS:
        return {}
    means = {}
    for first in range(count - WEEK_DAYS + 1):
        week = [cells[day] for day in range(first, first + WEEK_DAYS) if day in cells]
        if arrived := sum(cell["arrived"] for cell in week):
            late = (round((cell["average_delay"] or 0) * cell["arrived"]) for cell in week)
            means[first + WEEK_DAYS // 2] = sum(late) / arrived
    return means


DAY_COLUMNS = (
    *("OP_CARRIER_AIRLINE_ID", "FL_DATE", "average_delay"),
    *("flights", "arrived", "cancelled", "no_arrival"),
    *("on_time_share_of_arrived", "on_time_share_of_scheduled"),
    *("average_departure_delay", "average_delay_of_7_days"),
)


def day_rows(answers: Sequence[Json], days: TimeAxis) -> Iterator[dict[str, Any]]:
    """Return each answer's days for the CSV twin, as `DAY_COLUMNS`. days: the axis of all."""
    for answer in answers:
        carrier = answer["query"]["OP_CARRIER_AIRLINE_ID"]
        weeks = week_means(_cells(answer["by_day"], days), len(days.slots))
        for day in answer["by_day"]:
            week = weeks.get(days.place(day["FL_DATE"]))
            yield {"OP_CARRIER_AIRLINE_ID": carrier, **day, "average_delay_of_7_days": week}


@routes.get("/average_delays")
def page() -> AnyResponse | tuple[str, int]:
    """Return the delays of a carrier; at another address a comparison of several."""
    if len(carriers := values_of(CARRIER)) > 1:
        others = {n: text for n, text in filled_in(request.args).items() if n != CARRIER}
        compared = Question("compare", {"what": "carrier", ITEM: carriers, **others})
        return redirect(compared.address())
    return cited_page("average_delays.html", _report)


def _report(given: dict[str, str]) -> DelaysReport:
    answer, known = _answer(given), coverage.at(given.get(AS_OF))
    return DelaysReport(known, Question.of(NAME, answer, given), answer, _axis(answer))


@twins(routes, "/average_delays")
def twin() -> Twin:
    """Return the answers for each carrier, and incomplete periods; as CSV the delays by day."""
    given, carriers = filled_in(uncited(request.args)), values_of(CARRIER)
    if len(carriers) > MOST_ITEMS:
        detail = f"at most {MOST_ITEMS} carriers can be shown at once, not {len(carriers)}"
        raise Refused({"field": CARRIER, "detail": detail}, 400)
    answers: list[Json] = []
    for carrier in carriers or [""]:
        answers.append(_answer({**given, CARRIER: carrier}))
        given[AS_OF] = str(answers[0][AS_OF]["height"])
    axis = _axis(*answers)
    cut = ((axis.names[place], axis.slots[place]) for place in axis.incomplete)
    incomplete = [
        {"name": n, "first": str(period.first), "last": str(period.last)} for n, period in cut
    ]
    periods = {"unit": axis.unit, "incomplete": incomplete}
    days = day_rows(answers, in_days(axis))
    return Twin({"carriers": answers, "periods": periods}, DAY_COLUMNS, days, answers[0]["as_of"])


def _answer(given: dict[str, str]) -> Json:
    """Return the answer for a carrier with all its groups. Raises Refused, BackendAway."""
    require_known(given, *KINDS[NAME].parameters)
    if not given.get(CARRIER):
        raise Refused.missing(CARRIER)
    by_group = answers_by_group(given, ASKED)
    groups = {f"by_{by}": answer[f"by_{by}"] for by, answer in by_group.items()}
    return {**by_group["day"], **groups, "without_hour": by_group["hour"]["without_hour"]}


def _axis(*answers: Json) -> TimeAxis:
    query = answers[0]["query"]
    days = [day["FL_DATE"] for answer in answers for day in answer["by_day"]]
    known = coverage.at(request.args.get(AS_OF))
    return time_axis(*covered(query["INITIAL_DATE"], query["FINAL_DATE"], known, days))
