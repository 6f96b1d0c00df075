"""How late one or several carriers are over an interval: the page and its twins."""

from typing import Any

from flask import Blueprint, render_template, request

from frontend.backend_client import Json
from frontend.charts.time_axis import TimeAxis, in_days, shown
from frontend.context import coverage
from frontend.coverage import Coverage
from frontend.errors import Refused
from frontend.evidence import Citation, ProvableAnswer, uncited
from frontend.flight_numbers import CARRIER
from frontend.form_request import filled_in, submit
from frontend.questions.delay_panels import GROUPS, panels
from frontend.questions.delays import DAY_COLUMNS, FEW_IN_A_SLOT, DelaysReport, day_rows, report
from frontend.questions.group_queries import Groups, answers_by_group
from frontend.questions.intervals import offered
from frontend.twins import Twin, twins

MOST_CARRIERS = 6  # more could not be distinguished
ASKED: Groups = {"day": {"distribution": "true"}, **{by: {} for by in GROUPS}}
ADDED = {"weekday": ("by_weekday",), "hour": ("by_hour", "without_hour")}
"""What the answer for another group adds to that of the days."""

routes = Blueprint("average_delays", __name__)


@routes.get("/average_delays")
def page() -> tuple[str, int]:
    known, citation = coverage.now(), Citation(request.args)
    form = submit(uncited(request.args), citation.or_newest(_answers))
    answers = form.answer or []
    interval = answers[0]["query"] if answers else form.values
    delays = _report(answers, known) if answers else None
    provable = [ProvableAnswer("average_delays", answer) for answer in answers]
    text = render_template(
        "average_delays.html",
        known=known,
        form_request=form,
        chosen=_chosen(),
        most_carriers=MOST_CARRIERS,
        intervals=offered(known, interval.get("FINAL_DATE")),
        report=delays,
        panels=panels(answers, delays.carriers, known, interval) if delays else {},
        few_in_a_slot=FEW_IN_A_SLOT,
        interval=interval,
        provable=provable,
        verdict=citation.verdict(provable),
    )
    return text, form.status


@twins(routes, "/average_delays")
def twin() -> Twin:
    """The answers for each carrier, and incomplete periods; as CSV the delays by day."""
    answers, known = _answers(filled_in(uncited(request.args))), coverage.now()
    delays = _report(answers, known)
    periods = {"unit": delays.time.unit, "incomplete": delays.incomplete}
    days = day_rows(answers, in_days(_axis(answers, known)))
    return Twin({"carriers": answers, "periods": periods}, DAY_COLUMNS, days, answers[0]["as_of"])


def _answers(given: dict[str, str]) -> list[Json]:
    """Return the answers for all carriers, up to the same block, each with all its groups.

    Raises Refused, BackendAway.
    """
    carriers = _chosen()
    if len(carriers) > MOST_CARRIERS:
        detail = f"at most {MOST_CARRIERS} carriers can be compared, not {len(carriers)}"
        raise Refused({"field": CARRIER, "detail": detail}, 400)
    if not carriers:
        raise Refused({"field": CARRIER, "detail": "please choose at least one"}, 400)
    question = dict(given)
    answers: list[Json] = []
    for carrier in carriers:
        by_group = answers_by_group(question | {CARRIER: carrier}, ASKED)
        added = {name: by_group[by][name] for by in GROUPS for name in ADDED[by]}
        answers.append(by_group["day"] | added)
        question["as_of"] = str(answers[0]["as_of"]["height"])
    return answers


def _chosen() -> list[str]:
    """Return the carriers that this request names, each once."""
    given = (text.strip() for text in request.args.getlist(CARRIER))
    return list(dict.fromkeys(text for text in given if text))


def _axis(answers: list[Json], known: Coverage) -> TimeAxis:
    query: Any = answers[0]["query"]
    days = [day["FL_DATE"] for answer in answers for day in answer["by_day"]]
    return shown(query["INITIAL_DATE"], query["FINAL_DATE"], known, days)


def _report(answers: list[Json], known: Coverage) -> DelaysReport:
    carriers = [known.carrier(answer["query"][CARRIER]) for answer in answers]
    return report(answers, carriers, _axis(answers, known))
