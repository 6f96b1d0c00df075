"""The three questions and the search, with the keyboard alone and without scripts."""

from urllib.parse import unquote_plus, urlsplit

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Visit
from tests.browser.sites import Site

MOST_STEPS = 60

# Page -> what is typed into the fields of its form that are empty, by name.
ASKED = {
    "/filter_transactions": {"OP_CARRIER_FL_NUM": "{number}"},
    "/average_delays": {},
    "/flight_counter": {"ORIGIN_CITY_NAME": "{origin}", "DEST_CITY_NAME": "{destination}"},
}


def focused(page: Page, path: str) -> tuple[str, str]:
    """Kind and name of the element that has the focus, if it is in the form of this page."""
    kind, name = page.evaluate(
        """path => {
            const at = document.activeElement, form = at.closest("form");
            const is_inside = form && form.getAttribute("action") === path;
            return is_inside ? [at.tagName, at.name] : ["", ""];
        }""",
        path,
    )
    return kind, name


@pytest.mark.parametrize("path", ASKED)
def test_a_question_is_asked_without_a_mouse(visit: Visit, site: Site, path: str) -> None:
    page = visit(site).open("/")
    for _ in range(MOST_STEPS):
        page.keyboard.press("Tab")
        kind, name = focused(page, path)
        if name in ASKED[path]:
            page.keyboard.type(unquote_plus(site.address(ASKED[path][name])))
        if kind == "BUTTON":
            break
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{path}?*")
    assert urlsplit(page.url).path == path
    assert "Not understood" not in page.title()
    assert page.locator(".error").count() == 0


@pytest.mark.parametrize("path", ASKED)
def test_a_question_is_asked_without_scripts(visit: Visit, site: Site, path: str) -> None:
    page = visit(site, java_script_enabled=False).open("/")
    form = page.locator(f"form[action='{path}']")
    for name, value in ASKED[path].items():
        form.locator(f"[name={name}]").fill(unquote_plus(site.address(value)))
    form.get_by_role("button").click()
    assert urlsplit(page.url).path == path
    assert page.locator("h1").is_visible()
    assert page.locator(".error").count() == 0


def test_a_search_leads_to_its_page_without_scripts(visit: Visit, site: Site) -> None:
    page = visit(site, java_script_enabled=False).open("/about")
    page.locator("#search").fill(site.values["day"])
    page.locator("#search").press("Enter")
    assert page.url == f"{site.url}/days/{site.values['day']}"
