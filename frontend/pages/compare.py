"""`/compare`: which of several carriers, airports, routes, flights or days is better.

Each is asked about as of one block.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, partial
from itertools import combinations

from flask import Blueprint, request

from frontend.backend_client import Json
from frontend.charts.time_axis import covered
from frontend.context import coverage
from frontend.coverage import Coverage, all_days
from frontend.errors import Refused
from frontend.evidence import Evidence, uncited
from frontend.filters import short_interval
from frontend.form_request import cited_page, filled_in
from frontend.parameters import values_of
from frontend.question import (
    AS_OF,
    BOTH,
    CARRIER,
    DAY,
    DAYS,
    ENDS,
    ITEM,
    MOST_ITEMS,
    NUMBER,
    OPTIONS,
    Question,
    as_of_in,
    require_known,
)
from frontend.questions.figures import FIGURES
from frontend.questions.group_queries import answer_as_of, flights_of_number
from frontend.questions.group_rows import NOUNS, PUNCTUALITY, SORTS, Row, best_first
from frontend.questions.punctuality_report import figures_of
from frontend.questions.verdicts import Verdict, verdict
from frontend.search.fields import (
    DAYS_FIELD,
    alternatives,
    require_clear_days,
    route,
    understood,
)
from frontend.search.hints import examples
from frontend.search.times import Days
from frontend.twins import Twin, twins

PATH = "/compare"
WHAT, SORT = "what", "sort"
LEAST_ITEMS = 2
MOST_QUOTED = 60  # characters of an item in a message
SHARED = (CARRIER, *ENDS, *DAYS)
"""What may narrow down all things that are compared."""

Parameters = dict[str, str]

routes = Blueprint("compare", __name__)


@dataclass(frozen=True, slots=True)
class Subject:
    """A kind of things that can be compared. one: of them.

    read: returns the parameters of a question about what somebody typed; {} if it is none.
    """

    label: str
    one: str
    read: Callable[[str, Coverage], Parameters]


_field = partial(partial, understood)  # reads what is typed into a field of that name
SUBJECTS: Mapping[str, Subject] = {
    "carrier": Subject("Carriers", "Carrier", _field(CARRIER)),
    "origin": Subject("Departure airports", "Airport", _field("ORIGIN")),
    "destination": Subject("Arrival airports", "Airport", _field("DEST")),
    "route": Subject("Routes", "Route", route),
    "flight": Subject("Flight numbers", "Flight", _field(NUMBER)),
    "days": Subject("Months or days", "Time", _field(DAYS_FIELD)),
}


def _name(subject: Parameters, known: Coverage) -> str:
    """Return what somebody compares, as pages name it."""
    carrier = known.carrier(subject[CARRIER]) if CARRIER in subject else None
    if number := subject.get(NUMBER):
        return carrier.flight(int(number)) if carrier else f"flight number {number}"
    if carrier:
        return carrier.label
    if first := subject.get("INITIAL_DATE"):
        return Days(date.fromisoformat(first), date.fromisoformat(subject["FINAL_DATE"])).name
    if all({end, f"{end}_CITY_NAME"} & subject.keys() for end in BOTH):
        return " to ".join(subject.get(end) or subject[f"{end}_CITY_NAME"] for end in BOTH)
    return "".join(Question("", subject).end(end, known) for end in BOTH)


def _cut(subject: Parameters, known: Coverage) -> str:
    """Return which days of a time that is compared the ledger has; "" if it has all."""
    asked = [subject[name] for name in DAYS if name in subject]
    has = [day.isoformat() for day in covered(asked[0], asked[1], known)] if asked else []
    return f" ({short_interval(has[0], has[1])})" if has != asked else ""


@dataclass(frozen=True)
class Comparison:
    """Things that are compared, in the order in which they are named. evidence: of each.

    common: the names of two that have flights in common; () if there are none.
    """

    rows: Sequence[Row]
    question: Question
    evidence: Sequence[Evidence]
    warnings: Sequence[Json]
    common: Sequence[str]

    @property
    def sort(self) -> str:
        return str(self.question.values.get(SORT, PUNCTUALITY))

    @property
    def noun(self) -> str:
        """The measure by which they are compared."""
        return SORTS[self.sort].noun

    @property
    def direction(self) -> str:
        """The order of the measure, best first."""
        return "ascending" if SORTS[self.sort].is_low_good else "descending"

    @property
    def ordered(self) -> list[Row]:
        """The rows, best first."""
        return best_first(self.rows, self.sort)

    @cached_property
    def verdict(self) -> Verdict | None:
        """The best and the worst; None if chance cannot be judged."""
        return None if self.common else verdict(self.rows, self.sort)


def _comparison(given: Mapping[str, str]) -> Comparison:
    """Return the comparison that a request asks for. Raises Refused, BackendAway."""
    items = values_of(ITEM)
    require_known(given, WHAT, ITEM, SORT, *SHARED)
    what = given.get(WHAT, "")
    for name, value, allowed in (
        (WHAT, what, {name: subject.label for name, subject in SUBJECTS.items()}),
        (SORT, given.get(SORT, PUNCTUALITY), NOUNS),
    ):
        if value not in allowed:
            raise Refused.choice(name, value, allowed)
    known = coverage.at(given.get(AS_OF))
    reason = f"name {LEAST_ITEMS} to {MOST_ITEMS} different items to compare"
    if len(items) > MOST_ITEMS:
        raise Refused({"field": ITEM, "detail": f"{reason}; these are {len(items)}"}, 400)
    subjects = [_read(what, item, known) for item in items]
    is_repeated = any(first == other for first, other in combinations(subjects, 2))
    if is_repeated or len(items) < LEAST_ITEMS:
        raise Refused({"field": ITEM, "detail": reason}, 400)
    for name in given:
        if any(name in subject for subject in subjects):
            reason = f"cannot be given, because it is what is compared: name it as {ITEM}"
            raise Refused.parameter(name, given[name], reason)
    return _compared(given, items, subjects, known)


def _have_flights_in_common(first: Parameters, other: Parameters, known: Coverage) -> bool:
    """Return whether two subjects of a kind overlap: chance could then not be judged."""
    start, end = DAYS
    if start in first:
        return first[start] <= other[end] and other[start] <= first[end]
    if first.keys() & ENDS.keys():
        questions = Question("", first), Question("", other)
        ends = ([{*q.airports(end, known)} for q in questions] for end in BOTH)
        return all(airports & others for airports, others in ends)
    return all(first[name] == other[name] for name in first.keys() & other.keys())


def _read(what: str, item: str, known: Coverage) -> Parameters:
    """Return the parameters of a question about an item. Raises Refused if it is none."""
    if asked := SUBJECTS[what].read(item, known):
        return asked
    if what == "days":
        require_clear_days({ITEM: item}, known, {ITEM})
    written = examples(known)[what]
    reason = f"“{item[:MOST_QUOTED]}” is not understood"
    are_places = what in {"origin", "destination", "route"}
    if several := alternatives(item, known, are_places=are_places):
        reason += f": it may be {' or '.join(several)}"
    elif written:
        reason += f"; write it as in {written}"
    raise Refused({"field": ITEM, "value": item, "detail": reason}, 400)


def _compared(
    given: Mapping[str, str], items: Sequence[str], subjects: Sequence[Parameters], known: Coverage
) -> Comparison:
    shared = all_days(known) | {name: given[name] for name in (*SHARED, *OPTIONS) if name in given}
    rows: list[Row] = []
    evidence: list[Evidence] = []
    for item, subject in zip(items, subjects, strict=True):
        height = evidence[0].height if evidence else None
        kind, answer = _answer({**shared, **subject}, height)
        evidence.append(Evidence(Question.of(kind, answer, given), answer))
        figures, query = answer, answer["query"]
        if NUMBER in subject:
            figures, query = _figures_by_day(answer["flights"]), {**query, DAYS[0]: query[DAY]}
        asked = {name: query[name] for name in (NUMBER, *SHARED) if name in query}
        days = figures["by_day"]
        figures = {name: figures[name] for name in (*FIGURES, "distribution")}
        address = Question("", asked | as_of_in(given)).page() if figures["flights"] else ""
        name, cut = _name(subject, known), _cut(subject, known)
        rows.append(Row({ITEM: item}, name, address, figures, days, cut))
    compared = {name for subject in subjects for name in subject}  # a city beside an airport
    same = {name: asked[name] for name in SHARED if name in asked and name not in compared}
    options = {name: given[name] for name in (WHAT, SORT) if name in given}
    question = Question("compare", {**options, ITEM: list(items), **same, **as_of_in(given)})
    pairs = combinations(zip(rows, subjects, strict=True), 2)
    common = [(a.name, b.name) for (a, x), (b, y) in pairs if _have_flights_in_common(x, y, known)]
    warnings = _warnings([answered.answer for answered in evidence], same)
    return Comparison(rows, question, evidence, warnings, common[0] if common else ())


def _figures_by_day(legs: Sequence[Json]) -> Json:
    by_day: dict[str, list[Json]] = {}
    for leg in legs:
        by_day.setdefault(leg[DAY], []).append(leg)
    days = [{DAY: day, **figures_of(of_day)} for day, of_day in by_day.items()]
    return {**figures_of(legs), "by_day": days}


def _warnings(answers: Sequence[Json], shared: Collection[str]) -> list[Json]:
    """Return the warnings of all answers, each once; what to ask instead only if it is shared."""
    warnings = {}
    for warning in (warning for answer in answers for warning in answer.get("warnings", ())):
        meant = warning["did_you_mean"] if warning["field"] in shared else ()
        warnings[warning["detail"]] = {**warning, "did_you_mean": meant}
    return list(warnings.values())


def _answer(question: Parameters, height: int | None) -> tuple[str, Json]:
    """Return which of the service's questions is asked, and its answer."""
    if NUMBER not in question:
        more = {"distribution": "true", "group_by": "day"}
        return "average_delays", answer_as_of({**question, **more}, height)
    return "filter_transactions", flights_of_number(question, height)


@routes.get(PATH)
def page() -> tuple[str, int]:
    return cited_page(
        "compare.html",
        _comparison,
        items=values_of(ITEM),
        most_items=MOST_ITEMS,
        subjects=SUBJECTS,
        kinds=[(name, subject.label) for name, subject in SUBJECTS.items()],
    )


@twins(routes, PATH)
def twin() -> Twin:
    """Return what is compared, and the difference between the best and the worst."""
    compared = _comparison(filled_in(uncited(request.args)))
    rows = [row.as_json() for row in compared.rows]
    verdict, as_of = compared.verdict, compared.evidence[0].answer["as_of"]
    answer = {
        "query": dict(compared.question.values),
        "as_of": as_of,
        "compared": rows,
        "verdict": verdict and {"text": verdict.better, "interval": verdict.interval},
    }
    return Twin(answer, (ITEM, "name", *FIGURES), rows, as_of)
