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


def test_a_chart_says_its_values_where_the_pointer_or_the_focus_is(
    visit: Visit, site: Site
) -> None:
    carrier = site.values["carrier"]
    page = visit(site, permissions=["clipboard-read", "clipboard-write"]).open(
        f"/average_delays?OP_CARRIER_AIRLINE_ID={carrier}"
    )
    plot, value = page.locator("svg.plot").last, page.locator("output.value").last
    titles = plot.locator("rect > title").all_text_contents()
    assert len(titles) > 3
    plot.focus()
    assert value.text_content() == titles[0]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert value.text_content() == titles[2]
    page.keyboard.press("End")
    assert value.text_content() == titles[-1]
    plot.locator("rect").nth(1).hover()
    assert value.text_content() == titles[1]
    page.mouse.move(0, 0)
    assert value.text_content() == ""
    page.get_by_text("The same in a script").click()
    page.get_by_role("button", name="Copy").first.click()
    page.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == f"curl '{site.url}/average_delays.csv?OP_CARRIER_AIRLINE_ID={carrier}'"


def test_a_chart_says_the_value_that_a_finger_taps(visit: Visit, site: Site) -> None:
    page = visit(site, has_touch=True).open("/average_delays?OP_CARRIER_AIRLINE_ID={carrier}")
    plot, value = page.locator("svg.plot").last, page.locator("output.value").last
    titles = plot.locator("rect > title").all_text_contents()
    for number in (2, 1):
        plot.locator("rect").nth(number).tap()
        assert value.text_content() == titles[number]
