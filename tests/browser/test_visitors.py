"""Nothing that a visitor does is visible to another."""

import requests

from tests.browser.conftest import Visit
from tests.browser.sites import Site
from tests.browser.table import PAGES

FORMS = ("/add", "/upload")  # whose pages are posted
NOT_FOR_ALL = ("no-cache", "no-store", "private")


def test_visitors_do_not_see_each_other(visit: Visit, site: Site) -> None:
    first, second = visit(site), visit(site)
    mine = first.open("/search?q=Timbuktu+for+me+alone")
    assert "for me alone" in mine.inner_text("main")
    mine.goto("/")
    mine.get_by_role("button", name="Pause updates").click()
    theirs = second.open("/")
    assert theirs.locator("#search").input_value() == ""
    assert theirs.locator("[data-pause]").get_attribute("aria-pressed") == "false"
    for row in PAGES:
        answer = requests.get(site.url + site.address(row.address), timeout=10)
        assert "for me alone" not in answer.text
        kept = answer.headers["Cache-Control"]
        assert any(word in kept for word in NOT_FOR_ALL), row.address


def test_cookies_are_of_one_visitor_and_out_of_reach_of_scripts(visit: Visit, site: Site) -> None:
    """That scripts find none is looked at on every page: see `test_every_page`."""
    visitor = visit(site)
    with requests.Session() as other:
        for row in PAGES:
            other.get(site.url + site.address(row.address), timeout=10)
        theirs = {cookie.value for cookie in other.cookies}
    assert theirs
    for form in FORMS:
        visitor.open(form)
    cookies = visitor.context.cookies()
    assert cookies
    for cookie in cookies:
        assert cookie["httpOnly"]
        assert cookie["sameSite"] == "Strict"
        assert cookie["value"] not in theirs


def test_a_page_that_shows_no_form_to_post_sets_no_cookie(site: Site) -> None:
    for row in PAGES:
        answer = requests.get(site.url + site.address(row.address), timeout=10)
        assert bool(answer.cookies) is (row.address in FORMS), row.address
