"""`/rankings`: carriers, airports and routes by how late they are, over any interval."""

from dataclasses import dataclass

from flask import Blueprint, Response, render_template, request

from frontend.backend_client import Backend, Json
from frontend.coverage import CoverageKeeper, all_days
from frontend.errors import Refused
from frontend.form_request import FormRequest, asked, filled_in
from frontend.questions.delays import FEW_ARRIVALS
from frontend.questions.group_queries import interval_of, require_known
from frontend.questions.group_rows import (
    FIGURES,
    KEYS,
    SORTS,
    Extremes,
    Ranking,
    Row,
    extremes,
    ranking,
    rows_of,
)
from frontend.questions.intervals import offered
from frontend.twins import Twin, twins

PATH = "/rankings"
BY = {
    "carrier": "Carriers",
    "route": "Routes",
    "origin": "Departure airports",
    "destination": "Arrival airports",
}
ROWS_A_PAGE = 50
DEFAULTS = {"by": "carrier", "sort": "average_delay", "order": "descending", "page": "1"}


@dataclass(frozen=True, slots=True)
class Ranked:
    """A ranking as the page shows it. options: of the request, with defaults."""

    answer: Json
    ranking: Ranking
    options: dict[str, str]
    interval: dict[str, str]

    @property
    def first(self) -> int:
        """The rank of the first row of the page."""
        return ROWS_A_PAGE * (int(self.options["page"]) - 1) + 1

    @property
    def rows(self) -> list[Row]:
        """The rows of the page."""
        return self.ranking.ranked[self.first - 1 :][:ROWS_A_PAGE]

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return -(-len(self.ranking.ranked) // ROWS_A_PAGE)

    @property
    def extremes(self) -> Extremes | None:
        """The best and the worst of all groups."""
        return extremes(self.ranking.ranked)

    def address(self, **changed: str) -> list[tuple[str, str]]:
        """The parameters of this page with others in their place."""
        options = {**self.options, "page": "1", **changed}
        given = {name: text for name, text in options.items() if DEFAULTS[name] != text}
        return list({**given, **self.interval}.items())


def blueprint(backend: Backend, keeper: CoverageKeeper) -> Blueprint:
    """`/rankings` and its twins."""
    routes = Blueprint("rankings", __name__)

    def ranked(given: dict[str, str]) -> Ranked:
        """The ranking that a request asks for. Raises Refused, BackendAway."""
        options = _options(given)
        require_known(given, DEFAULTS)
        known = keeper.now()
        question = all_days(known) | {n: text for n, text in given.items() if n not in DEFAULTS}
        answer = backend.get("/average_delays", question | {"group_by": options["by"]})
        interval = interval_of(answer)
        rows = rows_of(answer, options["by"], known, interval)
        order = ranking(rows, options["sort"], is_descending=options["order"] == "descending")
        return Ranked(answer, order, options, interval)

    @routes.get(PATH)
    def page() -> Response:
        """The ranking and its form."""
        known = keeper.now()
        given = filled_in(request.args.to_dict()) or dict(DEFAULTS)
        result = FormRequest(given)
        if known.first_date:
            result = asked(given, lambda values: {"ranked": ranked(values)})
        found = result.answer["ranked"] if result.answer else None
        text = render_template(
            "rankings.html",
            known=known,
            asked=result,
            ranked=found,
            kinds=BY,
            rows_a_page=ROWS_A_PAGE,
            few_arrivals=FEW_ARRIVALS,
            intervals=offered(known, found.interval["FINAL_DATE"] if found else None),
        )
        return Response(text, result.status, content_type="text/html; charset=utf-8")

    @twins(routes, PATH)
    def twin() -> Twin:
        """All groups, the ranked ones in order; those with few flights have no rank."""
        found = ranked(filled_in(request.args.to_dict()))
        in_order = [row.plain() for row in found.ranking.ranked]
        few = [row.plain() for row in found.ranking.few]
        as_of = found.answer["as_of"]
        query = found.options | found.interval
        return Twin(
            {"query": query, "as_of": as_of, "ranked": in_order, "few_flights": few},
            ("rank", *KEYS[found.options["by"]], "name", *FIGURES),
            [{"rank": rank, **row} for rank, row in enumerate(in_order, 1)] + few,
            as_of,
        )

    return routes


def _options(given: dict[str, str]) -> dict[str, str]:
    """What is ranked, and how. Raises Refused."""
    options = {name: given.get(name, default) for name, default in DEFAULTS.items()}
    allowed = {"by": BY, "sort": SORTS, "order": ("descending", "ascending")}
    for name, choices in allowed.items():
        if options[name] not in choices:
            reason = f"must be one of {', '.join(choices)}"
            raise Refused.parameter(name, options[name], reason)
    page = options["page"]
    if not (page.isascii() and page.isdigit() and 0 < int(page[:9]) < 10**6):
        raise Refused.parameter("page", page, "must be a number from 1")
    return options
