"""How many flights there are between two cities: the page and its twins."""

from flask import Blueprint, Response, render_template, request

from frontend.backend_client import Backend, Json
from frontend.charts.coordinates import Places
from frontend.charts.maps import Maps
from frontend.coverage import Coverage, CoverageKeeper, all_days
from frontend.errors import Refused
from frontend.evidence import Answered, Citation, uncited
from frontend.form_request import asked, filled_in
from frontend.questions.flight_counts import DESTINATION, ORIGIN, Report, unknown
from frontend.questions.group_queries import Breakdowns
from frontend.questions.intervals import offered
from frontend.twins import Twin, twins

PATH = "/flight_counter"


def blueprint(backend: Backend, keeper: CoverageKeeper) -> Blueprint:
    """`/flight_counter` and its twins."""
    routes = Blueprint("flight_counter", __name__)
    maps = Maps(Places())
    breakdowns = Breakdowns(backend, keeper)

    def answer(given: dict[str, str]) -> Json:
        """The backend's answers by day and by carrier, up to the same block, as one answer."""
        for name in (ORIGIN, DESTINATION):
            if name not in given:
                raise Refused({"field": name, "detail": "is missing"}, 400, None)
        question = all_days(keeper.now()) | given
        found = backend.get(PATH, question | {"group_by": "day"})
        question["as_of"] = str(found["as_of"]["height"])
        found["by_carrier"] = backend.get(PATH, question | {"group_by": "carrier"})["by_carrier"]
        back = {ORIGIN: given[DESTINATION], DESTINATION: given[ORIGIN]}
        question.pop("group_by", None)
        return found | {"reverse_count": backend.get(PATH, question | back)["count"]}

    def _only_origins(found: Json | None, known: Coverage) -> list[str]:
        """The airports from which all flights leave; looked up if none go in one direction."""
        if found is None or (found["count"] and found["reverse_count"]):
            return []
        return breakdowns.only_origins(known)

    @routes.get(PATH)
    def page() -> Response:
        """The form, and the answer if something is asked."""
        known = keeper.now()
        given, cited = request.args.to_dict(), Citation(request.args)
        result = asked(uncited(given), cited.asked(answer))
        found = result.answer
        interval = found["query"] if found else result.values
        text = render_template(
            "flight_counter.html",
            known=known,
            asked=result,
            intervals=offered(known, interval.get("FINAL_DATE")),
            interval=interval,
            found=found,
            report=Report(found, known) if found else None,
            map=maps.route(known, interval[ORIGIN], interval[DESTINATION]) if found else None,
            only_origins=_only_origins(found, known),
            unknown=unknown(known, interval) if found and not found["count"] else [],
            answered=(answered := [Answered("flight_counter", found)] if found else []),
            citation=cited.verdict(answered),
        )
        return Response(text, result.status, content_type="text/html; charset=utf-8")

    @twins(routes, PATH)
    def twin() -> Twin:
        """The backend's answers as one; as CSV the flights of each day."""
        found = answer(filled_in(uncited(request.args.to_dict())))
        return Twin(found, ("FL_DATE", "count"), found["by_day"], found["as_of"])

    return routes
