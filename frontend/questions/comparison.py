"""Compares carriers, airports, routes, flight numbers or days: asks about each as of one block."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from frontend.backend_client import Json
from frontend.context import backend, coverage
from frontend.coverage import Carrier, Coverage, all_days
from frontend.errors import Refused
from frontend.flight_numbers import understood
from frontend.question import (
    AS_OF,
    BOTH,
    CARRIER,
    DAY,
    DAYS,
    ENDS,
    ITEM,
    NUMBER,
    OPTIONS,
    Question,
    as_of_in,
    require_known,
)
from frontend.questions.group_rows import (
    FIGURES,
    PUNCTUALITY,
    SORTS,
    Row,
    Verdict,
    best_first,
    compared,
)
from frontend.questions.punctuality_report import PunctualityReport
from frontend.questions.route_delays import place_named
from frontend.search.times import Days, time_at

WHAT, SORT = "what", "sort"
LEAST_ITEMS, MOST_ITEMS = 2, 6
SHARED = (CARRIER, *ENDS, *DAYS)
"""What may narrow down all things that are compared."""
NOBODY = Carrier(0, None, None, 0)
ROUTE = re.compile(r" to | ?[-–→>] ?(?=[A-Za-z]{3}$)")

Parameters = dict[str, str]


@dataclass(frozen=True, slots=True)
class Subject:
    """A kind of things that can be compared. one: of them. hint: how they are written.

    read: returns the parameters of a question about what somebody typed. Raises Refused.
    """

    label: str
    one: str
    hint: str
    read: Callable[[str, Coverage], Parameters]


def _carrier(typed: str, known: Coverage) -> Parameters:
    wanted = typed.casefold()
    for carrier in known.carriers:
        if wanted in {str(carrier.number), (carrier.code or "").casefold()}:
            return {CARRIER: str(carrier.number)}
    numbers = [c.number for c in known.carriers if c.label.casefold().startswith(wanted)]
    if len(numbers) == 1:
        return {CARRIER: str(numbers[0])}
    reason = f"{'several carriers' if numbers else 'no carrier'} of the ledger can be meant"
    raise Refused.parameter(ITEM, typed, reason)


def _end(end: str) -> Callable[[str, Coverage], Parameters]:
    return lambda typed, known: place_named(typed, end, known, ITEM)


def _route(typed: str, known: Coverage) -> Parameters:
    ends = ROUTE.split(typed)
    if len(ends) != len(BOTH):
        raise Refused.parameter(ITEM, typed, "must be a route such as JFK-LAX or Boston to Chicago")
    return {
        name: value
        for end, name_of_end in zip(BOTH, ends, strict=True)
        for name, value in place_named(name_of_end, end, known, ITEM).items()
    }


def _flight(typed: str, known: Coverage) -> Parameters:
    return understood({NUMBER: typed}, known)


def _days(typed: str, known: Coverage) -> Parameters:
    newest = date.fromisoformat(known.last_date or str(date.max))
    days, end = time_at(typed, 0, newest) or (None, 0)
    if days is None or end != len(typed):
        raise Refused.parameter(ITEM, typed, "must be days such as July 2013, 2013-07 or 4 July")
    return dict(zip(DAYS, (days.first.isoformat(), days.last.isoformat()), strict=True))


SUBJECTS: Mapping[str, Subject] = {
    "carrier": Subject("Carriers", "Carrier", "Such as Delta, DL or 19790", _carrier),
    "origin": Subject("Departure airports", "Airport", "Such as JFK or Newark", _end("ORIGIN")),
    "destination": Subject("Arrival airports", "Airport", "Such as LAX or Boston", _end("DEST")),
    "route": Subject("Routes", "Route", "Such as JFK-LAX or Boston to Chicago", _route),
    "flight": Subject("Flight numbers", "Flight", "Such as UA1545", _flight),
    "days": Subject("Months or days", "Time", "Such as July 2013 or 4 July", _days),
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


@dataclass(frozen=True, slots=True)
class Comparison:
    """Things that are compared, in the order in which they are named. as_of: the last block."""

    rows: Sequence[Row]
    question: Question
    as_of: Json
    warnings: Sequence[Json]

    @property
    def sort(self) -> str:
        return str(self.question.values.get(SORT, PUNCTUALITY))

    @property
    def noun(self) -> str:
        """The measure by which they are compared."""
        return SORTS[self.sort].noun

    @property
    def ordered(self) -> list[Row]:
        """The rows, best first."""
        return best_first(self.rows, self.sort)

    @property
    def verdict(self) -> Verdict | None:
        return compared(self.rows, self.sort)


def comparison(given: Mapping[str, str], items: Sequence[str]) -> Comparison:
    """Return the comparison that a request asks for. Raises Refused, BackendAway."""
    require_known(given, WHAT, ITEM, SORT, *SHARED)
    what = given.get(WHAT, "")
    for name, value, allowed in (
        (WHAT, what, SUBJECTS),
        (SORT, given.get(SORT, PUNCTUALITY), SORTS),
    ):
        if value not in allowed:
            raise Refused.parameter(name, value, f"must be one of {', '.join(allowed)}")
    known = coverage.at(given.get(AS_OF))
    subjects = [SUBJECTS[what].read(item, known) for item in items]
    different = [
        subject for place, subject in enumerate(subjects) if subject not in subjects[:place]
    ]
    if len(different) < len(items) or not LEAST_ITEMS <= len(items) <= MOST_ITEMS:
        reason = f"name {LEAST_ITEMS} to {MOST_ITEMS} different ones to compare"
        raise Refused({"field": ITEM, "detail": reason}, 400)
    for name in given:
        if any(name in subject for subject in subjects):
            reason = f"cannot be given, because it is what is compared: name it as {ITEM}"
            raise Refused.parameter(name, given[name], reason)
    return _comparison(given, items, subjects, known)


def _comparison(
    given: Mapping[str, str], items: Sequence[str], subjects: Sequence[Parameters], known: Coverage
) -> Comparison:
    shared = all_days(known) | {name: given[name] for name in (*SHARED, *OPTIONS) if name in given}
    rows, answers = [], []
    for item, subject in zip(items, subjects, strict=True):
        answer = _answer({**shared, **subject})
        shared[AS_OF] = str(answer[AS_OF]["height"])
        answers.append(answer)
        asked = {
            name: answer["query"][name] for name in (NUMBER, *SHARED) if name in answer["query"]
        }
        figures = {name: answer[name] for name in (*FIGURES, "distribution")}
        address = Question("", asked | as_of_in(given)).page() if answer["flights"] else ""
        rows.append(Row({ITEM: item}, _name(subject, known), address, figures))
    query = answers[0]["query"]
    same = {name: query[name] for name in SHARED if name in query and name not in subjects[0]}
    options = {name: given[name] for name in (WHAT, SORT) if name in given}
    question = Question("compare", {**options, ITEM: list(items), **same, **as_of_in(given)})
    return Comparison(rows, question, answers[0][AS_OF], answers[0].get("warnings", ()))


def _answer(question: Parameters) -> Json:
    """Return the figures of the flights that are asked about, with their distribution."""
    if NUMBER not in question:
        return backend.get("/average_delays", {**question, "distribution": "true"})
    asked = {name: value for name, value in question.items() if name != "INITIAL_DATE"}
    answer = backend.get("/filter_transactions", {**asked, DAY: question["INITIAL_DATE"]})
    report = PunctualityReport(NOBODY, answer["flights"])
    days = {"INITIAL_DATE": answer["query"][DAY]}
    return {**answer, **report.figures, "query": {**answer["query"], **days}}
