"""How late one or several carriers are over an interval: the page and its twins."""

from typing import Any

from flask import Blueprint, render_template, request

from frontend.backend_client import Json
from frontend.charts.time_axis import TimeAxis, in_days, shown
from frontend.context import coverage
from frontend.coverage import Coverage
from frontend.errors import Refused
from frontend.evidence import Citation, Evidence, uncited
from frontend.form_request import filled_in, submit
from frontend.question import AS_OF, CARRIER, KINDS, Question, require_known
from frontend.questions.delays import DAY_COLUMNS, DelaysReport, day_rows, report
from frontend.questions.group_queries import WEEK, Groups, answers_by_group
from frontend.questions.group_rows import PUNCTUALITY, Row, Verdict, compared, rows_of
from frontend.twins import Twin, twins

MOST_CARRIERS = 6  # more could not be distinguished
ASKED: Groups = {"day": {"distribution": "true"}, **WEEK}

NAME = "average_delays"

routes = Blueprint(NAME, __name__)


@routes.get("/average_delays")
def page() -> tuple[str, int]:
    known, citation = coverage.at(request.args.get(AS_OF)), Citation(request.args)
    form = submit(uncited(request.args), citation.or_newest(_answers))
    answers, given = form.answer or [], citation.found(form.values)
    delays = _report(answers, known) if answers else None
    evidence = [Evidence(Question.of(NAME, answer, given), answer) for answer in answers]
    question = _question(evidence) if evidence else None
    text = render_template(
        "average_delays.html",
        known=known,
        form_request=form,
        chosen=_chosen(),
        most_carriers=MOST_CARRIERS,
        report=delays,
        compared=_compared(answers, known),
        weeks=[
            {by: rows_of(answer, by, known, each.question) for by in WEEK if f"by_{by}" in answer}
            for each, answer in zip(evidence, answers, strict=True)
        ],
        question=question,
        unknown=question.offers(_warnings(answers)) if question else [],
        evidence=evidence,
        verdict=citation.verdict(evidence),
    )
    return text, form.status


def _warnings(answers: list[Json]) -> list[Json]:
    """Return the warnings of all answers, each once."""
    found = (warning for answer in answers for warning in answer.get("warnings", ()))
    return list({(warning["field"], warning["value"]): warning for warning in found}.values())


def _compared(answers: list[Json], known: Coverage) -> Verdict | None:
    """Return which of several carriers is the best."""
    named = ((known.carrier(answer["query"][CARRIER]).called, answer) for answer in answers)
    return compared([Row({}, name, "", answer) for name, answer in named], PUNCTUALITY)


def _question(evidence: list[Evidence]) -> Question:
    """Return the question about all carriers."""
    first = evidence[0].question
    carriers = [each.question.values[CARRIER] for each in evidence]
    return Question(NAME, {**first.values, CARRIER: carriers})


@twins(routes, "/average_delays")
def twin() -> Twin:
    """The answers for each carrier, and incomplete periods; as CSV the delays by day."""
    given = filled_in(uncited(request.args))
    answers, known = _answers(given), coverage.at(given.get(AS_OF))
    delays = _report(answers, known)
    periods = {"unit": delays.time.unit, "incomplete": delays.incomplete}
    days = day_rows(answers, in_days(_axis(answers, known)))
    return Twin({"carriers": answers, "periods": periods}, DAY_COLUMNS, days, answers[0]["as_of"])


def _answers(given: dict[str, str]) -> list[Json]:
    """Return the answers for all carriers, up to the same block, each with all its groups.

    Raises Refused, BackendAway.
    """
    require_known(given, *KINDS[NAME].parameters)
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
        added = {f"by_{by}": by_group[by][f"by_{by}"] for by in by_group}
        without_hour = by_group["hour"]["without_hour"]
        answers.append(by_group["day"] | added | {"without_hour": without_hour})
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
