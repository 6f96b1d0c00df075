"""The pages of the lab and the calculator over HTTP, while no backend is there."""

import gzip
import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from flask.testing import FlaskClient

from backend.base.errors import InvalidSetting
from frontend.app import CONTENT_SECURITY_POLICY
from frontend.lab.presets import NETWORKS, QUEUES
from frontend.settings import Settings, from_environment
from tests.frontend.lab.folders import FINDING, make_result
from tests.frontend.lab.test_closed_network_form import ONE, stations
from tests.frontend.pages.reading import MOST_BYTES, raw, source, table, text

EVERY = [*QUEUES, *NETWORKS]
OPEN = "/lab/calculator/open?" + urlencode(
    {"arrivals": "1.2", "arrivals_in": "share", "service_time_s": "2", "cv": "1", "servers": "1"}
)
Dirs = tuple[Path, Path]


# --- settings --------------------------------------------------------------------------------


def test_a_setting_says_where_results_are() -> None:
    folders = from_environment({"FLIGHTCHAIN_LAB_DIR": "/srv/lab"}).lab_dirs
    assert folders == (Path("/srv/lab"), Settings().lab_dirs[1])
    assert from_environment({}).lab_dirs == Settings().lab_dirs
    assert [path.name for path in Settings().lab_dirs] == ["results", "examples"]
    with pytest.raises(InvalidSetting, match="FLIGHTCHAIN_LAB_DIR"):
        from_environment({"FLIGHTCHAIN_LAB_DIR": ""})


# --- results ---------------------------------------------------------------------------------


def test_without_results_it_says_how_to_make_one(lab_pages: FlaskClient, lab_dirs: Dirs) -> None:
    page = text(lab_pages, "/lab")
    assert "There are no results yet" in page
    assert str(lab_dirs[0]) in page
    assert "scripts/lab run open-workload --quick" in page
    assert lab_pages.get("/lab.json").get_json() == {"results": [], "left_out": []}


def test_the_list_shows_what_each_is(lab_pages: FlaskClient, lab_dirs: Dirs) -> None:
    make_result(lab_dirs[0] / "one", started="2026-10-03T08:00:00+00:00")
    more = {"state": "interrupted", "mode": "real", "scale": None, "quick": True}
    make_result(lab_dirs[0] / "two", title="A title", **more)
    make_result(lab_dirs[0] / "three", state="interrupted", ended=None)
    make_result(lab_dirs[1] / "four")
    (lab_dirs[0] / "half").mkdir()
    (lab_dirs[0] / "half" / "manifest.json").write_text("{")
    page = text(lab_pages, "/lab")
    words = ("Emulated, K = 100", "Real", "Interrupted", "Quick", "cut off", "Example")
    for part in (*words, "Open workload", "A title", "ARM Cortex-A72, 4 cores"):
        assert part in page
    assert page.count(FINDING) == 4
    assert "A third finding" not in page
    assert "half : manifest.json is not complete JSON" in page
    twin = lab_pages.get("/lab.json").get_json()
    assert len(twin["results"]) == 4
    assert twin["left_out"][0]["folder"] == "half"


def test_the_list_begins_with_what_a_result_comes_to(
    lab_pages: FlaskClient, lab_dirs: Dirs
) -> None:
    folder = make_result(lab_dirs[0] / "one")
    summary = json.loads((folder / "summary.json").read_text())
    summary["conclusion"] = "The forecast holds at 3 of 4 loads."
    (folder / "summary.json").write_text(json.dumps(summary))
    page = text(lab_pages, "/lab")
    assert page.index("The forecast holds at 3 of 4") < page.index(FINDING)
    assert "The run was quiet" not in page  # two are enough here


def test_a_service_elsewhere_is_not_said_to_run_on_the_machine_of_the_lab(
    lab_pages: FlaskClient, lab_dirs: Dirs
) -> None:
    make_result(lab_dirs[0] / "one", experiment="pi", mode="real", host="http://pi.local:8000")
    page = text(lab_pages, "/lab")
    assert "on http://pi.local:8000, asked from ARM Cortex-A72, 4 cores" in page
    page = text(lab_pages, "/lab/results/one")
    assert "machine of the generator: cpu" in page
    make_result(lab_dirs[0] / "two", experiment="tool-results", mode="files")
    assert text(lab_pages, "/lab").count("ARM Cortex-A72") == 1


def test_a_result_has_findings_metrics_and_facts(lab_pages: FlaskClient, lab_dirs: Dirs) -> None:
    make_result(lab_dirs[0] / "one")
    page = text(lab_pages, "/lab/results/one")
    for words in (FINDING, "A third finding.", "response_time_mean[0.85]", "1.581", "46/K ms"):
        assert words in page
    assert "ARM Cortex-A72" in page
    assert "19 minutes" in page
    twin = lab_pages.get("/lab/results/one.json").get_json()
    assert twin["metrics"][0]["low"] == 1.44
    assert twin["manifest"]["scale"] == 100
    (first, _) = table(lab_pages, "/lab/results/one.csv")
    assert first == {
        "name": "response_time_mean[0.85]",
        "value": "1.5812345",
        "unit": "s",
        "low": "1.44",
        "high": "1.72",
    }


def test_a_missing_summary_says_how_to_make_it(lab_pages: FlaskClient, lab_dirs: Dirs) -> None:
    folder = make_result(lab_dirs[0] / "one", state="interrupted", ended=None)
    (folder / "summary.json").unlink()
    (folder / "report.html").unlink()
    page = text(lab_pages, "/lab/results/one")
    assert f"scripts/lab analyse {folder}" in page
    assert "Read the report" not in page
    assert lab_pages.get("/lab/results/one/report").status_code == 404
    assert lab_pages.get("/lab").status_code == 200


def test_an_experiment_that_answers_no_says_so(lab_pages: FlaskClient, lab_dirs: Dirs) -> None:
    folder = make_result(lab_dirs[0] / "one")
    (folder / "summary.json").write_text(
        '{"findings": [], "metrics": [], "failure": "the clock is too coarse"}'
    )
    assert "It failed: the clock is too coarse" in text(lab_pages, "/lab/results/one")


def test_what_results_say_is_never_markup(lab_pages: FlaskClient, lab_dirs: Dirs) -> None:
    bad = "<script>alert(1)</script>"
    folder = make_result(lab_dirs[0] / "one", title=bad, mode=bad, machine={"cpu": bad, bad: bad})
    (folder / "summary.json").write_text(
        f'{{"findings": ["{bad}"], "metrics": [{{"name": "{bad}", "value": 1}}], '
        f'"failure": "{bad}"}}'
    )
    for address in ("/lab", "/lab/results/one"):
        assert "<script>alert" not in lab_pages.get(address).text


def test_a_report_has_a_policy_of_its_own(lab_pages: FlaskClient, lab_dirs: Dirs) -> None:
    folder = make_result(lab_dirs[0] / "one")
    with lab_pages.get("/lab/results/one/report") as answer:
        assert answer.get_data() == (folder / "report.html").read_bytes()
        assert answer.content_type == "text/html; charset=utf-8"
    (policy,) = answer.headers.get_all("Content-Security-Policy")
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline';")
    assert "script" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    (usual,) = lab_pages.get("/lab").headers.get_all("Content-Security-Policy")
    assert usual == CONTENT_SECURITY_POLICY


def test_files_beside_a_report_can_be_read(lab_pages: FlaskClient, lab_dirs: Dirs) -> None:
    folder = make_result(lab_dirs[0] / "one")
    (folder / "flames.svg").write_text("<svg><script>alert(1)</script></svg>")
    with lab_pages.get("/lab/results/one/requests.csv") as rows:
        assert rows.get_data() == b"run,index\r\none,0\r\n"
        assert rows.content_type == "text/csv; charset=utf-8"
    with lab_pages.get("/lab/results/one/flames.svg") as drawing:
        assert drawing.mimetype == "image/svg+xml"
    assert "default-src 'none'" in drawing.headers["Content-Security-Policy"]
    assert 'href="/lab/results/one/flames.svg"' in source(lab_pages, "/lab/results/one")


ASTRAY = ("..", "%2e%2e", "..%2fsecret", "one%00", "é", "~", ".hidden", "x" * 121, "a%2fb", "none")
FILES = ("run.sh", ".secret.csv", "data.csv.bak", "no_suffix", "folder.csv")


def test_no_address_leads_out(lab_pages: FlaskClient, lab_dirs: Dirs) -> None:
    folder = make_result(lab_dirs[0] / "one")
    make_result(lab_dirs[0].parent / "secret")
    for name in (*FILES[:-1], ".hidden"):
        (folder / name).write_text("")
    (folder / "folder.csv").mkdir()
    results = [f"{name}{part}" for name in ASTRAY for part in ("", ".json", "/report")]
    files = [f"one/{name}" for name in (*ASTRAY, *FILES, "..%2f..%2fsecret%2fmanifest.json")]
    for address in ("", *results, *files):
        assert lab_pages.get(f"/lab/results/{address}").status_code == 404, address


# --- calculator ------------------------------------------------------------------------------


def test_every_question_of_the_calculator_is_a_link(lab_pages: FlaskClient) -> None:
    page = source(lab_pages, "/lab/calculator")
    twin = lab_pages.get("/lab/calculator.json").get_json()
    assert {question["address"] for half in twin.values() for question in half} == {
        preset.address for preset in EVERY
    }
    for preset in EVERY:
        assert preset.address in page
        shown = source(lab_pages, preset.address)
        with lab_pages.application.app_context():
            assert preset.assumptions in shown
        assert 'aria-current="true">' + preset.name in shown
        assert ("Compared with the study's Pi" in shown) is ("against" in preset.values)


def test_an_answer_is_on_the_page_and_in_its_twins(lab_pages: FlaskClient) -> None:
    address = QUEUES[0].address
    page = text(lab_pages, address)
    for words in ("155.3 s", "270.0 s", "0.8500", "M/G/1, shared processor"):
        assert words in page
    twin = lab_pages.get(address.replace("open?", "open.json?")).get_json()
    assert twin["models"]["fcfs"]["response_time_s"] == pytest.approx(155.3446, abs=1e-3)
    rows = table(lab_pages, address.replace("open?", "open.csv?"))
    assert float(rows[0]["fcfs_response_time_s"]) == pytest.approx(40.499375)


def test_a_network_of_one_customer_is_not_said_to_have_customers(lab_pages: FlaskClient) -> None:
    page = lab_pages.get("/lab/calculator/closed?" + urlencode(ONE | {"customers": "1"})).text
    for words in ("1 customer · ", "Throughput of 1 customer, X", "Response time of 1 customer, R"):
        assert words in page


def test_a_network_has_a_row_for_each_number_of_customers(lab_pages: FlaskClient) -> None:
    address = NETWORKS[0].address
    page = text(lab_pages, address)
    for words in ("DISK is the bottleneck", "0.04238/s", "2.077", "30 rows", "703.7"):
        assert words in page
    twin = lab_pages.get(address.replace("closed?", "closed.json?")).get_json()
    assert [row["customers"] for row in twin["populations"]] == list(range(1, 31))
    rows = table(lab_pages, address.replace("closed?", "closed.csv?"))
    assert len(rows) == 30
    assert float(rows[29]["utilisation DISK"]) == pytest.approx(0.9993, abs=1e-3)


def test_too_many_arrivals_are_answered_in_words(lab_pages: FlaskClient) -> None:
    page = text(lab_pages, OPEN)
    assert "It cannot keep up." in page
    assert "The line grows by 360.0 requests each hour, without end." in page
    twin = lab_pages.get(OPEN.replace("open?", "open.json?")).get_json()
    assert twin["is_stable"] is False
    assert twin["models"] == {}
    beside = text(lab_pages, f"{OPEN}&against=study")
    assert "grows without end" in beside
    at_capacity = text(lab_pages, OPEN.replace("arrivals=1.2", "arrivals=1"))
    assert "The line grows without end." in at_capacity


def test_what_is_wrong_stands_beside_its_field_and_above_the_form(lab_pages: FlaskClient) -> None:
    address = "/lab/calculator/closed?" + urlencode(ONE | {"visits_1": "x", "customers": "500"})
    page = raw(lab_pages, address, 400)
    assert 'id="visits_1-error">Must be a number such as 0.85 or 1e-4.' in page
    assert 'id="customers-error">Must be a whole number from 1 to 200.' in page
    assert '<a href="#visits_1">Visits, station 1</a>: Must be a number' in page
    assert 'value="x"' in page
    twin = lab_pages.get(address.replace("closed?", "closed.json?"))
    assert (twin.status_code, twin.mimetype) == (400, "application/problem+json")
    assert "visits_1" in twin.get_json()["detail"]
    page = raw(lab_pages, "/lab/calculator/open?arrivals=x&service_time_s=-1&servers=0&foo=3", 400)
    notice = page[page.index('role="alert"') :].partition("</div>")[0]
    named = re.findall(r'<a href="#(\w+)">(.*?)</a>: ', notice)
    labels = dict(re.findall(r'<label for="(\w+)">(.*?)</label>', page))
    fields = ("arrivals", "service_time_s", "cv", "servers")  # as in the form
    assert named == [(name, labels[name]) for name in fields]
    assert "Foo is not a field of this form." in notice


@pytest.mark.parametrize("half", ["open", "closed"])
def test_a_form_begins_with_the_numbers_of_the_study(lab_pages: FlaskClient, half: str) -> None:
    page = source(lab_pages, f"/lab/calculator/{half}")
    assert f'value="{ {"open": "40.49938", "closed": "0.046"}[half] }"' in page
    assert lab_pages.get(f"/lab/calculator/{half}.json").status_code == 400
    assert lab_pages.get(f"/lab/calculator/{half}.csv").status_code == 400


def test_an_address_is_kept_without_empty_fields(lab_pages: FlaskClient) -> None:
    blank = {"name_2": "", "visits_2": "", "service_time_s_2": "", "kind_2": "queue"}
    sent = ONE | {"kind_1": "queue"} | blank | {"servers_2": "1", "against": ""}
    answer = lab_pages.get("/lab/calculator/closed?" + urlencode(sent))
    assert answer.status_code == 302
    kept = parse_qs(urlsplit(answer.location).query)
    assert kept == {name: [value] for name, value in (ONE | {"kind_1": "queue"}).items()}
    assert lab_pages.get(answer.location).status_code == 200


def test_after_an_answer_there_are_rows_for_more_stations(lab_pages: FlaskClient) -> None:
    for count, rows in ((1, 4), (3, 5), (9, 10), (10, 10)):
        page = source(lab_pages, "/lab/calculator/closed?" + urlencode(stations(count)))
        assert len(re.findall(r'<input id="name_\d+"', page)) == rows


def test_the_largest_answer_is_within_the_budget(lab_pages: FlaskClient) -> None:
    form = {"customers": "200", "think_time_s": "5", "against": "study"}
    each = {"name": f"{'Station':x<22}{{}}", "visits": "513.123", "service_time_s": "0.0{}"}
    address = "/lab/calculator/closed?" + urlencode(stations(10, **each) | form)
    answer = lab_pages.get(address, headers={"Accept-Encoding": "gzip"})
    assert len(answer.get_data()) <= MOST_BYTES
    assert gzip.decompress(answer.get_data()).count(b"<tr>") > 200
