"""The page of a result begins with its conclusion and its charts."""

import html
from pathlib import Path
from xml.etree import ElementTree

from frontend.app import create_app
from frontend.lab.report_figures import figures_in
from frontend.lab.result_folders import find
from frontend.settings import Settings
from tests.api.processes import ROOT
from tests.frontend.lab.folders import make_result

NAME = "open-workload-20261003-101500"
EXAMPLES = ROOT / "loadtests" / "examples"


def test_each_drawing_of_a_report_is_a_picture_by_itself() -> None:
    report = (EXAMPLES / "open-workload" / "report.html").read_text(encoding="utf-8")
    figures = list(figures_in(report))
    assert len(figures) == report.count("<figure>") > 1
    for figure in figures:
        assert figure.title
        assert figure.caption
        picture = ElementTree.fromstring(figure.svg)
        assert picture.tag == "{http://www.w3.org/2000/svg}svg"
        assert "--data-1:" in figure.svg
        assert "aria-hidden" not in figure.svg.partition(">")[0]


def test_a_page_begins_with_the_conclusion_and_the_charts(tmp_path: Path) -> None:
    make_result(tmp_path / NAME)
    pages = create_app(Settings(lab_dirs=(tmp_path,))).test_client()
    page = pages.get(f"/lab/results/{NAME}").text
    assert page.index(f"/lab/results/{NAME}/figures/1.svg") < page.index("<h2>Findings</h2>")
    assert page.index('class="lead"') < page.index("<h2>Charts</h2>")
    conclusion = pages.get(f"/lab/results/{NAME}.json").get_json()["conclusion"]
    assert f'<p class="lead">{html.escape(conclusion)}</p>' in page
    assert 'alt="It grows. Emulated storage, K = 100."' in page
    picture = pages.get(f"/lab/results/{NAME}/figures/1.svg")
    assert (picture.status_code, picture.mimetype) == (200, "image/svg+xml")
    assert "script" not in picture.headers["Content-Security-Policy"]
    for number in (0, 2):
        assert pages.get(f"/lab/results/{NAME}/figures/{number}.svg").status_code == 404
    (tmp_path / NAME / "report.html").write_text("<figure><h3>half", encoding="utf-8")
    assert "<h2>Charts</h2>" not in pages.get(f"/lab/results/{NAME}").text


def test_the_examples_say_what_they_come_to_and_nothing_that_contradicts_it() -> None:
    for name in ("open-workload", "queueing-network"):
        result = find([EXAMPLES], name)
        assert result is not None
        assert result.summary.conclusion not in result.summary.findings
        assert sum("bottleneck is" in finding for finding in result.summary.findings) <= 1
        signed = "paired_difference"  # all others are times, rates and shares
        measured = [one for one in result.summary.metrics if not one.name.startswith(signed)]
        assert all(metric.low is None or metric.low >= 0 for metric in measured)
