"""The performance lab: what it is, the results it left, their reports and files.

A report is a page of its own, written by the lab: it has its styles and drawings in it, and no
script. It is sent with a policy that allows just that.
"""

from collections.abc import Sequence
from pathlib import Path

from flask import Blueprint, Response, abort, render_template, send_file

from frontend.filters import duration
from frontend.lab import quantities, result_folders
from frontend.settings import Settings
from frontend.twins import JSON_ALONE, Twin, twins

MOST_SHOWN = 100  # results in the list
CHARTS_AT_ONCE = 4  # on the page of a result; the report has all
METRIC_COLUMNS = ("name", "value", "unit", "low", "high")
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


def blueprint(settings: Settings) -> Blueprint:
    """`/lab`, its results and their twins. It needs no backend."""
    routes = Blueprint("lab", __name__)
    for filter_ in (*quantities.FILTERS, duration):
        routes.add_app_template_filter(filter_, f"lab_{filter_.__name__}")
    _add_list(routes, settings.lab_dirs)
    _add_results(routes, settings.lab_dirs)
    return routes


def _add_list(routes: Blueprint, folders: Sequence[Path]) -> None:
    @routes.get("/lab")
    def lab() -> str:
        """What the lab is, and its results."""
        listing = result_folders.listing(folders)
        return render_template(
            "lab/lab.html",
            results=listing.results[:MOST_SHOWN],
            more=len(listing.results) - MOST_SHOWN,
            left_out=listing.left_out,
            folder=folders[0],
            findings_at_once=result_folders.FINDINGS_AT_ONCE,
        )

    @twins(routes, "/lab", JSON_ALONE)
    def lab_twin() -> Twin:
        """All results, newest first."""
        listing = result_folders.listing(folders)
        left_out = [{"folder": name, "reason": why} for name, why in listing.left_out]
        return Twin(
            {"results": [result.as_json() for result in listing.results], "left_out": left_out}
        )


def _add_results(routes: Blueprint, folders: Sequence[Path]) -> None:
    def found(name: str) -> result_folders.Result:
        result = result_folders.find(folders, name)
        if result is None:
            abort(404, "The lab has no result with that name, or cannot read it.")
        return result

    @routes.get("/lab/results/<name>")
    def result(name: str) -> str:
        """Findings and metrics of a result, and how it was made."""
        one = found(name)
        return render_template("lab/result.html", result=one, charts_at_once=CHARTS_AT_ONCE)

    @twins(routes, "/lab/results/<name>")
    def result_twin(name: str) -> Twin:
        """Findings and metrics of a result, and how it was made; as CSV the metrics."""
        result = found(name).as_json()
        return Twin(result, METRIC_COLUMNS, result["metrics"])

    @routes.get("/lab/results/<name>/report")
    def report(name: str) -> Response:
        """The report about a result, as the lab wrote it."""
        return _sent(found(name), result_folders.REPORT)

    @routes.get("/lab/results/<name>/figures/<int:number>.svg")
    def figure(name: str, number: int) -> Response:
        """A drawing of the report, as a picture; they are counted from 1."""
        figures = found(name).figures()
        if not 1 <= number <= len(figures):
            abort(404, f"{name} has no figure {number}.")
        picture = Response(figures[number - 1].svg, content_type="image/svg+xml")
        picture.headers["Content-Security-Policy"] = REPORT_POLICY
        return picture

    @routes.get("/lab/results/<name>/<file>")
    def file(name: str, file: str) -> Response:
        """A table with raw rows, a log, a drawing, or another file that reports may link to."""
        return _sent(found(name), file)


def _sent(result: result_folders.Result, name: str) -> Response:
    """A file of `result`, unchanged."""
    path = result.file(name)
    if path is None:
        abort(404, f"{result.name} has no {name} to show.")
    response = send_file(
        path, mimetype=result_folders.FILES[path.suffix], conditional=True, max_age=0
    )
    response.headers["Content-Security-Policy"] = REPORT_POLICY
    return response
