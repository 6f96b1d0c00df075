"""Nothing that a visitor does is visible to another."""

from tests.browser.conftest import Visit
from tests.browser.sites import Site
from tests.browser.table import PAGES


def test_visitors_do_not_see_each_other(visit: Visit, site: Site) -> None:
    first, second = visit(site), visit(site)
    mine = first.open("/search?q=Timbuktu+for+me+alone")
    assert "for me alone" in mine.inner_text("main")
    mine.goto("/")
    mine.get_by_role("button", name="Pause updates").click()
    for row in PAGES:
        page = second.open(row.address, row.status)
        assert "for me alone" not in page.content()
        page.close()
    theirs = second.open("/")
    assert theirs.locator("#search").input_value() == ""
    assert theirs.locator("[data-pause]").get_attribute("aria-pressed") == "false"


def test_cookies_are_of_one_visitor_and_out_of_reach_of_scripts(visit: Visit, site: Site) -> None:
    visitors = [visit(site), visit(site)]
    jars = []
    for visitor in visitors:
        for row in PAGES:
            page = visitor.open(row.address, row.status)
            assert page.evaluate("document.cookie") == ""
            assert page.evaluate("localStorage.length + sessionStorage.length") == 0
            page.close()
        jars.append(visitor.context.cookies())
    for cookie in (cookie for jar in jars for cookie in jar):
        assert cookie["httpOnly"]
        assert cookie["sameSite"] == "Strict"
    values = [{cookie["value"] for cookie in jar} for jar in jars]
    assert values[0].isdisjoint(values[1])


def test_no_answer_may_be_kept_for_others(visit: Visit, site: Site) -> None:
    visitor = visit(site)
    for row in PAGES:
        page = visitor.context.new_page()
        answer = page.goto(site.address(row.address))
        assert answer is not None
        kept = answer.headers["cache-control"]
        assert "no-cache" in kept or "no-store" in kept or "private" in kept, row.address
        page.close()
