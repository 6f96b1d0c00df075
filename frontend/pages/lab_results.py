"""The performance lab: what it is, the results it left, their reports and files.

It needs no backend. A report is a page of its own, written by the lab: it has its styles and
drawings in it, and no script. It is sent with a policy that allows just that.
"""

from flask import Blueprint, Response, abort, render_template, send_file

from frontend.context import settings
from frontend.filters import duration
from frontend.lab import quantities, result_folders
from frontend.twins import JSON_ALONE, Twin, twins

MOST_SHOWN = 100  # results in the list
CHARTS_AT_ONCE = 4  # on the page of a result; the report has all
METRIC_COLUMNS = ("name", "value", "unit", "low", "high")
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)

routes = Blueprint("lab", __name__)
for template_filter in (*quantities.FILTERS, duration):
    routes.add_app_template_filter(template_filter, f"lab_{template_filter.__name__}")


@routes.get("/lab")
def results() -> str:
    results, left_out = result_folders.listing(settings.lab_dirs)
    return render_template(
        "lab/lab.html",
        results=results[:MOST_SHOWN],
        more=len(results) - MOST_SHOWN,
        left_out=left_out,
        folder=settings.lab_dirs[0],
        findings_at_once=result_folders.FINDINGS_AT_ONCE,
    )


@twins(routes, "/lab", JSON_ALONE)
def results_twin() -> Twin:
    results, left_out = result_folders.listing(settings.lab_dirs)
    reasons = [{"folder": name, "reason": why} for name, why in left_out]
    return Twin({"results": [result.as_json() for result in results], "left_out": reasons})


@routes.get("/lab/results/<name>")
def result(name: str) -> str:
    return render_template("lab/result.html", result=_result(name), charts_at_once=CHARTS_AT_ONCE)


@twins(routes, "/lab/results/<name>")
def result_twin(name: str) -> Twin:
    """Return findings and metrics of a result, and how it was made; as CSV the metrics."""
    content = _result(name).as_json()
    return Twin(content, METRIC_COLUMNS, content["metrics"])


@routes.get("/lab/results/<name>/figures/<int:number>.svg")
def figure(name: str, number: int) -> Response:
    """Return a drawing of the report, as a picture; they are counted from 1."""
    figures = _result(name).figures()
    if not 1 <= number <= len(figures):
        abort(404, f"{name} has no figure {number}.")
    picture = Response(figures[number - 1].svg, content_type="image/svg+xml")
    picture.headers["Content-Security-Policy"] = REPORT_POLICY
    return picture


@routes.get("/lab/results/<name>/report")
def report(name: str) -> Response:
    return file(name, result_folders.REPORT)


@routes.get("/lab/results/<name>/<file>")
def file(name: str, file: str) -> Response:
    """Return a file as the lab wrote it: its report, or another that reports may link to."""
    path = _result(name).file(file)
    if path is None:
        abort(404, f"{name} has no {file} to show.")
    kind = result_folders.FILES[path.suffix]
    response = send_file(path, mimetype=kind, conditional=True, max_age=0)
    response.headers["Content-Security-Policy"] = REPORT_POLICY
    return response


def _result(name: str) -> result_folders.Result:
    result = result_folders.find(settings.lab_dirs, name)
    if result is None:
        abort(404, "The lab has no result with that name, or cannot read it.")
    return result
