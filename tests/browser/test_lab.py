"""The lab's pages in a browser: a report under its own policy, the calculator by keyboard."""

from dataclasses import replace
from pathlib import Path

from playwright.sync_api import expect

from frontend.app import create_app
from frontend.settings import Settings
from tests.browser.conftest import Visit
from tests.browser.sites import RESULT, Site
from tests.browser.test_every_page import require_fit
from tests.frontend.lab.folders import make_result
from tests.http_servers import served_in_a_thread


def test_a_report_shows_its_styles_and_drawings(visit: Visit, site: Site) -> None:
    page = visit(site, color_scheme="dark").open("/lab/results/{result}")
    page.get_by_role("link", name="Read the report").click()
    page.wait_for_url(f"**/lab/results/{RESULT}/report")
    expect(page.locator("h1")).to_have_text("Open workload")
    line = page.locator("svg path").first
    assert line.evaluate("it => getComputedStyle(it).stroke") not in {"none", "rgb(0, 0, 0)"}
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgba(0, 0, 0, 0)"
    require_fit(page)


def test_no_script_of_a_report_runs(visit: Visit, site: Site, tmp_path: Path) -> None:
    report = make_result(tmp_path / RESULT) / "report.html"
    text = report.read_text(encoding="utf-8")
    bad = "<script>document.title = 'changed'</script><img src=x onerror=alert(1)></body>"
    report.write_text(text.replace("</body>", bad), encoding="utf-8")
    pages = create_app(Settings(backend_url=site.service.url, lab_dirs=(tmp_path,)))
    with served_in_a_thread(pages) as url:
        visitor = visit(replace(site, url=url), "Content Security Policy")
        page = visitor.open("/lab/results/{result}/report")
        assert page.title() == "Open workload – Flightchain lab"


def test_a_network_is_changed_without_a_mouse(visit: Visit, site: Site) -> None:
    """From the study's numbers: the third station is emptied, the disk becomes a delay."""
    page = visit(site).open("/lab/calculator/closed")
    page.locator("#kind_2").focus()
    page.keyboard.press("ArrowDown")
    for name in ("name_3", "visits_3", "service_time_s_3"):
        page.locator(f"#{name}").focus()
        page.keyboard.press("Control+A")
        page.keyboard.press("Delete")
    page.locator("#customers").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/closed?*")
    assert "name_3" not in page.url
    assert "kind_3" not in page.url
    assert "kind_2=delay" in page.url
    expect(page.locator("main")).to_contain_text("CPU is the bottleneck")
