"""The lab's calculator: an open queue and a closed network, at addresses that hold the question.

Nothing is measured and the backend is not asked: the models answer.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from flask import Blueprint, redirect, render_template, request
from werkzeug.wrappers import Response as AnyResponse

from frontend.form_request import FormRequest, filled_in, submit
from frontend.lab import closed_network_form, network_charts, open_queue_form, presets, study
from frontend.lab.curves import STUDY_CURVE, Chart
from frontend.twins import JSON_ALONE, Twin, twins

SPARE_ROWS = 2  # empty rows below those that are filled in
FEWEST_ROWS = 4
MOST_ROWS_OPEN = 12  # a table with more rows is folded
CHARTS = (
    ("Throughput", network_charts.throughput),
    ("Response time", network_charts.response),
    ("Utilisation of the stations", network_charts.utilisation),
)

routes = Blueprint("calculator", __name__)


@routes.get("/lab/calculator")
def calculator() -> str:
    """Return the page that leads to both halves of the calculator and to the presets."""
    return render_template("lab/calculator.html", queues=presets.QUEUES, networks=presets.NETWORKS)


@twins(routes, "/lab/calculator", JSON_ALONE)
def calculator_twin() -> Twin:
    halves = {"open": presets.QUEUES, "closed": presets.NETWORKS}
    return Twin(
        {half: [preset.as_json() for preset in offered] for half, offered in halves.items()}
    )


@routes.get("/lab/calculator/open")
def open_page() -> tuple[str, int]:
    form = submit(request.args, open_queue_form.answer_to)
    answer = form.answer
    chart = open_queue_form.response_chart(answer) if answer else None
    return _page(
        "lab/open.html",
        form,
        presets.QUEUES,
        chart,
        chart=chart,
        limits=open_queue_form,
        study=study,
    )


@twins(routes, "/lab/calculator/open")
def open_twin() -> Twin:
    """Return the results of the models; as CSV the curves."""
    answer = open_queue_form.answer_to(filled_in(request.args))
    rows = open_queue_form.curve_rows(answer.queue)
    return Twin(answer.as_json(), tuple(rows[0]), rows)


@routes.get("/lab/calculator/closed")
def closed_page() -> AnyResponse | tuple[str, int]:
    """Return the form, and the answer if something is asked; at an address without empty fields."""
    given = filled_in(request.args)
    wanted = closed_network_form.without_blanks(given)
    if len(wanted) < len(request.args) and not set(given) - set(closed_network_form.FIELDS):
        return redirect(f"{request.path}?{urlencode(wanted)}")
    form = submit(given, closed_network_form.answer_to)
    answer = form.answer
    charts = [(title, draw(answer)) for title, draw in CHARTS] if answer else []
    return _page(
        "lab/closed.html",
        form,
        presets.NETWORKS,
        charts[0][1] if charts else None,
        charts_of=charts,
        shown_rows=_shown_rows(form.values),
        studied=presets.NETWORKS[0].values,
        most_rows_open=MOST_ROWS_OPEN,
        limits=closed_network_form,
    )


@twins(routes, "/lab/calculator/closed")
def closed_twin() -> Twin:
    """Return the results of mean value analysis, and bounds; as CSV a row for each N."""
    answer = closed_network_form.answer_to(filled_in(request.args))
    rows = answer.curve.rows()
    return Twin(answer.as_json(), tuple(rows[0]), rows)


def _page(
    template: str,
    form: FormRequest[Any],
    offered: tuple[presets.Preset, ...],
    first_chart: Chart | None,
    **more: Any,
) -> tuple[str, int]:
    """Return a half. first_chart: may lack the study's curve, which does not fit into all."""
    is_compared = bool(form.answer and form.answer.before and first_chart)
    curves = first_chart.curves if first_chart else ()
    text = render_template(
        template,
        form_request=form,
        answer=form.answer,
        presets=offered,
        chosen=presets.chosen(offered, form.values),
        is_study_hidden=is_compared and STUDY_CURVE not in {curve.number for curve in curves},
        **more,
    )
    return text, form.status


def _shown_rows(values: Mapping[str, str]) -> list[int]:
    """Return the numbers of the rows to show: those that are filled in, and some more."""
    last = max(closed_network_form.filled_rows(values), default=0)
    most = min(max(FEWEST_ROWS, last + SPARE_ROWS), closed_network_form.MOST_STATIONS)
    return list(range(1, most + 1))
