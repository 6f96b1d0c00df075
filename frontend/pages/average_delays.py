"""How late one or several carriers are over an interval: the page and its twins."""

from typing import Any

from flask import Blueprint, Response, render_template, request

from frontend.backend_client import Backend, Json
from frontend.charts.time_axis import TimeAxis, in_days, shown
from frontend.coverage import Coverage, CoverageKeeper
from frontend.errors import Refused
from frontend.evidence import Answered, Citation, uncited
from frontend.flight_numbers import CARRIER
from frontend.form_request import asked, filled_in
from frontend.questions.delay_panels import GROUPS, Panels, panels
from frontend.questions.delays import (
    DAY_COLUMNS,
    FEW_ARRIVALS,
    FEW_IN_A_SLOT,
    Report,
    day_rows,
    report,
)
from frontend.questions.group_queries import Breakdowns, Groups
from frontend.questions.intervals import offered
from frontend.twins import Twin, twins

MOST_CARRIERS = 6  # more could not be told apart
ASKED: Groups = {"day": {"distribution": "true"}, **{by: {} for by in GROUPS}}
ADDED = {"weekday": ("by_weekday",), "hour": ("by_hour", "without_hour")}
"""What the answer for another group adds to that of the days."""


def blueprint(backend: Backend, keeper: CoverageKeeper) -> Blueprint:
    """`/average_delays` and its twins."""
    routes = Blueprint("average_delays", __name__)
    breakdowns = Breakdowns(backend, keeper)

    def answers(given: dict[str, str]) -> Json:
        """The answers for all carriers, up to the same block, each with all its groups.

        Raises Refused, BackendAway.
        """
        carriers = chosen()
        if len(carriers) > MOST_CARRIERS:
            detail = f"at most {MOST_CARRIERS} carriers can be compared, not {len(carriers)}"
            raise Refused({"field": CARRIER, "detail": detail}, 400, None)
        if not carriers:
            raise Refused({"field": CARRIER, "detail": "please choose at least one"}, 400, None)
        question = dict(given)
        found: list[Json] = []
        for carrier in carriers:
            by_group = breakdowns.by(question | {CARRIER: carrier}, ASKED)
            added = {name: by_group[by][name] for by in GROUPS for name in ADDED[by]}
            found.append(by_group["day"] | added)
            question["as_of"] = str(found[0]["as_of"]["height"])
        return {"carriers": found}

    @routes.get("/average_delays")
    def page() -> Response:
        """The form, and the answer if something is asked."""
        known = keeper.now()
        given, cited = request.args.to_dict(), Citation(request.args)
        result = asked(uncited(given), cited.asked(answers))
        found = result.answer["carriers"] if result.answer else []
        interval = found[0]["query"] if found else result.values
        shown_report = _report(found, known) if found else None
        text = render_template(
            "average_delays.html",
            known=known,
            asked=result,
            chosen=chosen(),
            most_carriers=MOST_CARRIERS,
            intervals=offered(known, interval.get("FINAL_DATE")),
            report=shown_report,
            panels=_panels(found, shown_report, known) if shown_report else {},
            limits={"arrivals": FEW_ARRIVALS, "in_a_slot": FEW_IN_A_SLOT},
            interval=interval,
            answered=(answered := [Answered("average_delays", one) for one in found]),
            citation=cited.verdict(answered),
        )
        return Response(text, result.status, content_type="text/html; charset=utf-8")

    @twins(routes, "/average_delays")
    def twin() -> Twin:
        """The answers for each carrier, and incomplete periods; as CSV the delays by day."""
        found = answers(filled_in(uncited(request.args.to_dict())))
        carriers, known = found["carriers"], keeper.now()
        in_time = _report(carriers, known)
        periods = {"unit": in_time.time.unit, "incomplete": in_time.incomplete}
        days = day_rows(carriers, in_days(_axis(carriers, known)))
        return Twin({**found, "periods": periods}, DAY_COLUMNS, days, carriers[0]["as_of"])

    return routes


def chosen() -> list[str]:
    """The carriers that this request names, each once."""
    given = (text.strip() for text in request.args.getlist(CARRIER))
    return list(dict.fromkeys(text for text in given if text))


def _axis(found: list[Json], known: Coverage) -> TimeAxis:
    query: Any = found[0]["query"]
    days = [day["FL_DATE"] for answer in found for day in answer["by_day"]]
    return shown(query["INITIAL_DATE"], query["FINAL_DATE"], known, days)


def _report(found: list[Json], known: Coverage) -> Report:
    carriers = [known.carrier(answer["query"][CARRIER]) for answer in found]
    return report(found, carriers, _axis(found, known))


def _panels(found: list[Json], made: Report, known: Coverage) -> dict[str, Panels]:
    return panels(found, made.carriers, known, found[0]["query"])
