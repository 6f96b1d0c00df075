"""The lab's calculator: an open queue and a closed network, at addresses that hold the question.

Nothing is measured and the backend is not asked: the models answer.
"""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from flask import Blueprint, Response, redirect, render_template, request
from werkzeug.wrappers import Response as Answer

from frontend.form_request import FormRequest, asked, filled_in
from frontend.lab import (
    closed_network_form,
    comparisons,
    network_charts,
    open_queue_form,
    presets,
    study,
)
from frontend.lab.curves import STUDY_CURVE, Chart
from frontend.twins import JSON_ALONE, Twin, twins

SPARE_ROWS = 2  # empty rows below those that are filled in
FEWEST_ROWS = 4
MOST_ROWS_OPEN = 12  # a table with more rows is folded


def blueprint() -> Blueprint:
    """`/lab/calculator` and its two halves, with twins."""
    routes = Blueprint("calculator", __name__)

    @routes.get("/lab/calculator")
    def calculator() -> str:
        """The page that leads to both halves of the calculator and to the presets."""
        return render_template(
            "lab/calculator.html", queues=presets.QUEUES, networks=presets.NETWORKS
        )

    @twins(routes, "/lab/calculator", JSON_ALONE)
    def calculator_twin() -> Twin:
        """The presets of both halves."""
        return Twin({"open": _listed(presets.QUEUES), "closed": _listed(presets.NETWORKS)})

    @routes.get("/lab/calculator/open")
    def open_page() -> Response:
        """The form, and the answer if something is asked."""
        question = _asked(open_queue_form.answer_to)
        found = question.answer["found"] if question.answer else None
        return _page(
            "lab/open.html",
            question,
            presets.QUEUES,
            found=found,
            rows=comparisons.of_queue(found) if found else [],
            chart=(chart := open_queue_form.response_chart(found) if found else None),
            is_study_hidden=_is_study_hidden(found, chart),
            limits=open_queue_form,
            study=study,
        )

    @twins(routes, "/lab/calculator/open")
    def open_twin() -> Twin:
        """The results of the models; as CSV the curves."""
        given = _given()
        rows = open_queue_form.curve_rows(open_queue_form.read(given))
        return Twin(open_queue_form.answer_to(given).as_json(), tuple(rows[0]), rows)

    @routes.get("/lab/calculator/closed")
    def closed_page() -> Answer:
        """The form, and the answer if something is asked; at an address without empty fields."""
        given = _given()
        wanted = closed_network_form.without_blanks(given)
        if len(wanted) < len(request.args) and not set(given) - set(closed_network_form.FIELDS):
            return redirect(f"{request.path}?{urlencode(wanted)}")
        question = _asked(closed_network_form.answer_to)
        found = question.answer["found"] if question.answer else None
        return _page(
            "lab/closed.html",
            question,
            presets.NETWORKS,
            found=found,
            rows=comparisons.of_network(found) if found else [],
            charts_of=(charts := _charts(found) if found else ()),
            is_study_hidden=_is_study_hidden(found, charts[0][1] if charts else None),
            shown_rows=_shown_rows(question.values),
            studied=presets.NETWORKS[0].values,
            most_rows_open=MOST_ROWS_OPEN,
            limits=closed_network_form,
        )

    @twins(routes, "/lab/calculator/closed")
    def closed_twin() -> Twin:
        """The results of mean value analysis, and bounds; as CSV a row for each N of customers."""
        given = _given()
        rows = closed_network_form.answer(closed_network_form.read(given)).rows()
        return Twin(closed_network_form.answer_to(given).as_json(), tuple(rows[0]), rows)

    return routes


def _given() -> dict[str, str]:
    return filled_in(request.args.to_dict())


def _asked(answer_to: Callable[[Mapping[str, str]], object]) -> FormRequest:
    return asked(request.args.to_dict(), lambda given: {"found": answer_to(given)})


def _page(
    template: str, question: FormRequest, offered: tuple[presets.Preset, ...], **more: Any
) -> Response:
    text = render_template(
        template,
        asked=question,
        presets=offered,
        chosen=presets.chosen(offered, question.values),
        **more,
    )
    return Response(text, question.status, content_type="text/html; charset=utf-8")


def _is_study_hidden(
    found: open_queue_form.Answer | closed_network_form.Answer | None, chart: Chart | None
) -> bool:
    """Whether the study's curve was asked for but does not fit into the chart."""
    if found is None or found.before is None or chart is None:
        return False
    return STUDY_CURVE not in {curve.number for curve in chart.curves}


def _charts(found: closed_network_form.Answer) -> tuple[tuple[str, Chart], ...]:
    return (
        ("Throughput", network_charts.throughput(found)),
        ("Response time", network_charts.response(found)),
        ("Utilisation of the stations", network_charts.utilisation(found)),
    )


def _shown_rows(values: Mapping[str, str]) -> list[int]:
    """The numbers of the rows to show: those that are filled in, and some more."""
    last = max(closed_network_form.filled_rows(values), default=0)
    most = min(max(FEWEST_ROWS, last + SPARE_ROWS), closed_network_form.MOST_STATIONS)
    return list(range(1, most + 1))


def _listed(offered: tuple[presets.Preset, ...]) -> list[dict[str, Any]]:
    return [
        {"name": each.name, "assumes": each.told, "address": each.address, **each.values}
        for each in offered
    ]
