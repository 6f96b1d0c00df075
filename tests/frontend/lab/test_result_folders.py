"""Results of the lab in folders, and the figures of their reports."""

import html
import json
import os
from pathlib import Path
from xml.etree import ElementTree

import pytest

from frontend.app import create_app
from frontend.lab.report_figures import figures_in
from frontend.lab.result_folders import MOST_JSON_BYTES, find, listing
from frontend.settings import Settings
from tests.api.processes import ROOT
from tests.cases import each_of
from tests.frontend.lab.folders import MANIFEST, make_result


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder with one result."""
    return make_result(tmp_path / "results" / "one").parent


def test_the_newest_result_comes_first(tmp_path: Path) -> None:
    for name, started in (("old", "2026-01-01"), ("new", "2026-03-01"), ("mid", "2026-02-01")):
        make_result(tmp_path / name, started=f"{started}T10:00:00+00:00")
    make_result(tmp_path / "never", started=None)
    assert [each.name for each in listing((tmp_path,))[0]] == ["new", "mid", "old", "never"]


def test_examples_come_after_the_results_of_this_machine(tmp_path: Path) -> None:
    results, examples = tmp_path / "results", tmp_path / "examples"
    make_result(results / "both", seed=1)
    make_result(examples / "both", seed=2)
    make_result(examples / "example", started="2026-01-01T00:00:00+00:00")
    listed, _ = listing((results, examples))
    assert [(each.name, each.is_example) for each in listed] == [("both", False), ("example", True)]
    both = find((results, examples), "both")
    assert both
    assert both.manifest["seed"] == 1


def test_what_holds_no_manifest_is_no_result(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "report.html").write_text("x")
    listed, left_out = listing((tmp_path, tmp_path / "file", tmp_path / "none"))
    assert (listed, left_out) == ([], [])
    assert find((tmp_path,), "other") is None


DAMAGED = {
    "half written": '{"experiment": "open',
    "empty": "",
    "a list": "[]",
    "of no experiment": "{}",
    "of a number": '{"experiment": 3}',
    "half a surrogate": '{"experiment": "\\ud800"}',
    "too deep": "[" * 100_000,
    "too long": json.dumps({"experiment": "x" * MOST_JSON_BYTES}),
    "a long number": '{"experiment": "x", "seed": 1' + "0" * 5000 + "}",
    "no text": '{"experiment": "\udcff"}',
}


@each_of("text", DAMAGED.values())
def test_a_damaged_manifest_is_left_out_with_the_reason(results: Path, text: str) -> None:
    content = text.encode(errors="surrogateescape")
    (results / "bad").mkdir(exist_ok=True)
    (results / "bad" / "manifest.json").write_bytes(content)
    listed, left_out = listing((results,))
    assert [result.name for result in listed] == ["one"]
    ((name, reason),) = left_out
    assert name == "bad"
    assert reason.startswith("manifest.json")
    assert find((results,), "bad") is None


@each_of("text", ["", "{", "[]", "{}", '{"findings": 1, "metrics": []}'])
def test_a_damaged_summary_leaves_the_rest(results: Path, text: str) -> None:
    (results / "one" / "summary.json").write_text(text)
    result = find((results,), "one")
    assert result
    assert result.summary.findings == ()
    assert result.problem.startswith("summary.json")


def test_a_number_that_is_none_is_left_out(tmp_path: Path) -> None:
    folder = make_result(tmp_path / "one")
    text = """{"findings": ["one"], "metrics": [{"name": "a", "value": NaN, "low": 1e999},
        {"name": "b", "value": 2, "unit": "s"}]}"""
    (folder / "summary.json").write_text(text)
    result = find((tmp_path,), "one")
    assert result
    values = [(metric.name, metric.value, metric.low) for metric in result.summary.metrics]
    assert values == [("a", None, None), ("b", 2, None)]
    json.dumps(result.as_json(), allow_nan=False)


@each_of(
    "changes",
    [
        {name: value}
        for name in MANIFEST
        if name != "experiment"
        for value in (None, 7, "x", [1], {"a": None}, True, -(10**300))
    ],
)
def test_any_manifest_is_shown_or_left_out_with_the_reason(
    results: Path, changes: dict[str, object]
) -> None:
    (results / "one" / "manifest.json").write_text(json.dumps(MANIFEST | changes))
    listed, left_out = listing((results,))
    for result in listed:
        assert isinstance(result.title + result.mode + result.machine, str)
        assert result.took_s is None or result.took_s == 1152
        assert list(result.facts())
    reasons = [reason for _, reason in left_out]
    assert len(listed) + len(reasons) == 1
    assert all(reason.startswith("manifest.json: ") for reason in reasons)


@each_of("time", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59"])
def test_a_time_that_cannot_be_is_none(results: Path, time: str) -> None:
    (results / "one" / "manifest.json").write_text(json.dumps(MANIFEST | {"started": time}))
    ((result,), _) = listing((results,))
    assert result.started_ms is None


def test_a_name_with_the_name_of_a_folder_leads_nowhere(results: Path) -> None:
    """No address of a page has such names; `test_pages` tries those that can be asked for."""
    assert find((results,), "../results/one") is None
    result = find((results,), "one")
    assert result
    assert result.file("summary.json") == results / "one" / "summary.json"
    assert result.file("../one/summary.json") is None


def test_a_name_that_does_not_fit_into_an_address_is_left_out(tmp_path: Path) -> None:
    for name in ("a b", "twin.json", os.fsdecode(b"\xff")):
        make_result(tmp_path / name)
    listed, left_out = listing((tmp_path,))
    assert listed == []
    assert len(left_out) == 3
    assert all(name.encode() and "address" in reason for name, reason in left_out)


NAME = "open-workload-20261003-101500"
EXAMPLES = ROOT / "loadtests" / "examples"


def test_an_example_says_where_its_words_are_explained(tmp_path: Path) -> None:
    make_result(tmp_path / NAME)
    pages = create_app(Settings(lab_dirs=(tmp_path, EXAMPLES))).test_client()
    for name, is_example in (("open-workload", True), (NAME, False)):
        page = pages.get(f"/lab/results/{name}").text
        assert (
            "<code>loadtests/examples/README.md</code> says what they mean" in page
        ) == is_example
        assert "Of 6 loads that can be decided" not in page


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
    for half in (b"<figure><h3>half", "<figure><h3>µ".encode()[:-1]):
        (tmp_path / NAME / "report.html").write_bytes(half)
        shown = pages.get(f"/lab/results/{NAME}")
        assert (shown.status_code, "<h2>Charts</h2>" in shown.text) == (200, False)


def test_the_examples_say_what_they_come_to_and_nothing_that_contradicts_it() -> None:
    for name in ("open-workload", "queueing-network"):
        result = find([EXAMPLES], name)
        assert result is not None
        assert result.summary.conclusion not in result.summary.findings
        assert sum("bottleneck is" in finding for finding in result.summary.findings) <= 1
        signed = "paired_difference"  # all others are times, rates and shares
        others = [metric for metric in result.summary.metrics if not metric.name.startswith(signed)]
        assert all(metric.low is None or metric.low >= 0 for metric in others)
