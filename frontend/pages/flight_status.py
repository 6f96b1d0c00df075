"""What happened to flight N on day D; without a day, the last days on which it flew."""

from flask import Blueprint, render_template, request

from frontend import field_labels
from frontend.backend_client import Backend, Json
from frontend.coverage import CoverageKeeper
from frontend.errors import Refused
from frontend.evidence import Answered, Citation, uncited
from frontend.flight_numbers import understood
from frontend.form_request import FormRequest, asked
from frontend.questions import flights_of_day
from frontend.questions.status_answers import (
    DAY,
    PATH,
    DayStatus,
    FlightStatus,
    NumberStatus,
    plain,
    rows,
)
from frontend.twins import Twin, twins

MOST_LEGS_SHOWN = 100
COLUMNS = ("carrier", "leg", *field_labels.TRANSACTION_NAMES, "BLOCK_HEIGHT", "status", "outcome")
FILTERS = (
    flights_of_day.outcome,
    flights_of_day.outcome_of_all,
    flights_of_day.worst,
    flights_of_day.departure_day,
    flights_of_day.arrival_day,
    flights_of_day.day_in_words,
)


def blueprint(backend: Backend, coverage: CoverageKeeper) -> Blueprint:
    """Flight status, its twins, and the days on which a number flew."""
    routes = Blueprint("flight_status", __name__)
    for each in FILTERS:
        routes.add_app_template_filter(each)
    status = FlightStatus(backend, coverage)

    def answer(given: dict[str, str]) -> Json:
        _refuse_format(given)
        given = understood(given, coverage.now())
        return {"found": status.of_day(given) if DAY in given else status.of_number(given)}

    @routes.get(PATH)
    def page() -> tuple[str, int]:
        """The form, and what happened."""
        cited = Citation(request.args)
        question = asked(uncited(request.args), cited.asked(answer))
        found = question.answer and question.answer["found"]
        if isinstance(found, NumberStatus):
            shown = render_template("flight_days.html", asked=question, answer=found)
        else:
            answered = [Answered("filter_transactions", found.found)] if found else []
            offers = status.offers(found) if found and not found.count else None
            shown = render_template(
                "flight_status.html",
                asked=question,
                answer=found,
                offers=offers,
                most=MOST_LEGS_SHOWN,
                answered=answered,
                citation=cited.verdict(answered),
            )
        return shown, question.status

    @twins(routes, PATH)
    def twin() -> Twin:
        """The legs in order, and the days around; without a day, the last days with flights."""
        found = _found(asked(uncited(request.args), answer))
        as_of = found.found["as_of"] if isinstance(found, DayStatus) else None
        return Twin(plain(found), COLUMNS, rows(found.carriers), as_of)

    return routes


def _found(question: FormRequest) -> DayStatus | NumberStatus:
    """The answer for a twin, which has no form that could say what is wrong. Raises Refused."""
    if question.answer is None:
        raise question.refused or Refused({"detail": "there is no question"}, 400, None)
    found: DayStatus | NumberStatus = question.answer["found"]
    return found


def _refuse_format(given: dict[str, str]) -> None:
    """Raise Refused for `format`: the backend would take it, and answer with something else."""
    if "format" in given:
        detail = (
            "format: pages do not have this parameter; put .json or .csv behind the address instead"
        )
        raise Refused({"detail": detail, "field": "format"}, 400, None)
