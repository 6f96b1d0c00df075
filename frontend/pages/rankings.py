"""`/rankings`: carriers, airports and routes by how late they are, over any interval."""

from dataclasses import dataclass, replace
from functools import cached_property

from flask import Blueprint, request

from frontend.backend_client import Json
from frontend.charts.maps import RoutesMap, map_of_routes
from frontend.context import backend, coverage
from frontend.coverage import all_days
from frontend.errors import Refused
from frontend.form_request import answer_page, filled_in
from frontend.question import CARRIER, DAYS, ENDS, Question, require_known
from frontend.questions.figures import FIGURES
from frontend.questions.group_rows import KEYS, NOUNS, Row, in_order, rows_of
from frontend.questions.verdicts import Verdict, verdict
from frontend.twins import Twin, twins

PATH = "/rankings"
BY = {
    "carrier": "Carriers",
    "route": "Routes",
    "origin": "Departure airports",
    "destination": "Arrival airports",
}
NARROWED = (CARRIER, *ENDS)  # to the flights of a carrier, from a place or to a place
ROWS_A_PAGE = 50
DEFAULTS = {"by": "carrier", "sort": "average_delay", "order": "descending", "page": "1"}

routes = Blueprint("rankings", __name__)


@dataclass(frozen=True)
class RankingPage:
    """A ranking as the page shows it. options: of the request, with defaults.

    Groups without arrivals enough are apart, most flights first: they never win.
    """

    answer: Json
    groups: list[Row]
    options: dict[str, str]
    question: Question

    @cached_property
    def ranked(self) -> list[Row]:
        rows = [row for row in self.groups if not row.is_few]
        return in_order(rows, self.options["sort"], is_descending=self.is_descending)

    @property
    def few(self) -> list[Row]:
        rows = [row for row in self.groups if row.is_few]
        return in_order(rows, "flights", is_descending=True)

    @property
    def first(self) -> int:
        """The rank of the first row of the page."""
        return ROWS_A_PAGE * (int(self.options["page"]) - 1) + 1

    @property
    def rows(self) -> list[Row]:
        return self.ranked[self.first - 1 :][:ROWS_A_PAGE]

    @property
    def map(self) -> RoutesMap | None:
        """The routes of the page on a map; None for other groups."""
        rows = self.rows if self.options["by"] == "route" else []
        known = coverage.now()
        return map_of_routes(known, {(row.key["ORIGIN"], row.key["DEST"]): row for row in rows})

    @property
    def pages(self) -> int:
        return -(-len(self.ranked) // ROWS_A_PAGE)

    @property
    def verdict(self) -> Verdict | None:
        return verdict(
            self.ranked,
            self.options["sort"],
            is_descending=self.is_descending,
            has_others=bool(self.few),
        )

    @property
    def is_descending(self) -> bool:
        return self.options["order"] == "descending"

    def with_options(self, **changed: str) -> Question:
        """Return the question of this page, from the first rank on, with other options."""
        options = {**self.options, "page": "1", **changed}
        given = {name: text for name, text in options.items() if DEFAULTS[name] != text}
        return replace(self.question, values={**given, **self.question.values})


@routes.get(PATH)
def page() -> tuple[str, int]:
    return answer_page(
        "rankings.html", _ranking, may_be_empty=True, kinds=BY, rows_a_page=ROWS_A_PAGE
    )


@twins(routes, PATH)
def twin() -> Twin:
    """Return all groups, the ranked ones in order; those with few flights have no rank."""
    ranked = _ranking(filled_in(request.args))
    in_order = [row.as_json() for row in ranked.ranked]
    few = [row.as_json() for row in ranked.few]
    as_of, query = ranked.answer["as_of"], ranked.options | dict(ranked.question.values)
    return Twin(
        {"query": query, "as_of": as_of, "ranked": in_order, "few_flights": few},
        ("rank", *KEYS[ranked.options["by"]], "name", *FIGURES),
        [{"rank": rank, **row} for rank, row in enumerate(in_order, 1)] + few,
        as_of,
    )


def _ranking(given: dict[str, str]) -> RankingPage:
    """Return the ranking that a request asks for. Raises Refused, BackendAway."""
    options = _options(given)
    require_known(given, *DEFAULTS, *DAYS, *NARROWED)
    known = coverage.at(given.get("as_of"))
    asked = all_days(known) | {n: text for n, text in given.items() if n not in DEFAULTS}
    answer = backend.get("/average_delays", asked | {"group_by": options["by"]})
    narrowed = {name: given[name] for name in NARROWED if name in given}
    days = Question.of("rankings", answer, given, *DAYS)
    question = replace(days, values={**narrowed, **days.values})
    rows = rows_of(answer, options["by"], known, question)
    return RankingPage(answer, rows, options, question)


def _options(given: dict[str, str]) -> dict[str, str]:
    """Return what is ranked, and how. Raises Refused."""
    options = {name: given.get(name, default) for name, default in DEFAULTS.items()}
    allowed = {"by": BY, "sort": NOUNS, "order": {"descending": "", "ascending": ""}}
    for name, choices in allowed.items():
        if options[name] not in choices:
            raise Refused.choice(name, options[name], choices)
    page = options["page"]
    if not (page.isascii() and page.isdigit() and len(page) <= 6 and int(page)):
        raise Refused.parameter("page", page, "must be a number from 1")
    return options
