"""Nothing that a visitor does is visible to another."""

import requests

from tests.browser.conftest import Visit
from tests.browser.sites import Site
from tests.browser.table import PAGES

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
        assert "Set-Cookie" not in answer.headers, row.address
