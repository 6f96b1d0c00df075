"""The questions that travellers ask first: each is answered in two steps or less from home."""

from collections.abc import Callable
from urllib.parse import unquote_plus

import pytest
from playwright.sync_api import Page, expect

from backend.questions.carriers import CARRIER
from tests.browser.conftest import Visit
from tests.browser.sites import Site
from tests.browser.test_every_page import WCAG, violations

WIDE, NARROW = {"width": 1200, "height": 800}, {"width": 360, "height": 740}
WAYS = [(WIDE, "light"), (WIDE, "dark"), (NARROW, "light"), (NARROW, "dark")]


def searched(page: Page, text: str) -> None:
    page.locator("#search").fill(text)
    page.get_by_role("button", name="Search").click()


def how_late_is_a_carrier(page: Page, site: Site) -> None:
    name = CARRIER[int(site.values["carrier"])].name
    searched(page, f"How late is {name}?")
    expect(page.get_by_role("heading", level=1)).to_contain_text(name)


def how_often_is_a_flight_late(page: Page, site: Site) -> None:
    page.get_by_role("link", name="how often a flight is late").click()
    page.get_by_label("Flight number").fill(site.values["number"])
    page.get_by_role("button", name="Show the report").click()
    expect(page.get_by_role("heading", name="Day by day")).to_be_visible()
    expect(page.get_by_text("Days flown")).to_be_visible()


def which_hour_and_carrier_are_best_on_a_route(page: Page, site: Site) -> None:
    origin, dest = (unquote_plus(site.values[end]) for end in ("origin", "destination"))
    searched(page, f"{origin} to {dest}")
    expect(page.get_by_role("table", name="By carrier")).to_be_visible()
    expect(page.get_by_role("table", name="By hour and weekday")).to_be_visible()


def which_airport_is_worst(page: Page, _: Site) -> None:
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Rankings").click()
    page.get_by_role("link", name="Departure airports").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("airports")


def which_of_two_carriers_is_better(page: Page, site: Site) -> None:
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Rankings").click()
    ticks = page.get_by_role("table", name="Carriers,").get_by_role("checkbox")
    items = [ticks.nth(place).get_attribute("value") for place in (0, 1)]
    ticks.nth(0).check()
    ticks.nth(1).check()
    page.get_by_role("button", name="Compare those ticked").first.click()
    expect(page.locator(".lead")).to_contain_text("with 95 % confidence")
    rows = page.get_by_role("table", name="Compared by").get_by_role("row").all_text_contents()
    for item in items:
        days = f"INITIAL_DATE={site.values['first']}&FINAL_DATE={site.values['last']}"
        answer = site.service.json(f"/average_delays?OP_CARRIER_AIRLINE_ID={item}&{days}")
        share = f"{100 * answer['on_time_share_of_scheduled']:.1f} %"
        assert any(CARRIER[int(item or 0)].name in row and share in row for row in rows)


def which_route_is_worst(page: Page, _: Site) -> None:
    searched(page, "worst route")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Routes")


@pytest.mark.parametrize(("size", "scheme"), WAYS, ids=str)
@pytest.mark.parametrize(
    "ask",
    [
        how_late_is_a_carrier,
        how_often_is_a_flight_late,
        which_hour_and_carrier_are_best_on_a_route,
        which_airport_is_worst,
        which_of_two_carriers_is_better,
        which_route_is_worst,
    ],
)
def test_a_question_is_answered_in_two_steps(
    visit: Visit,
    site: Site,
    ask: Callable[[Page, Site], None],
    size: dict[str, int],
    scheme: str,
) -> None:
    page = visit(site, viewport=size, color_scheme=scheme).open("/")
    ask(page, site)
    assert violations(page, WCAG) == ""
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= size["width"]
