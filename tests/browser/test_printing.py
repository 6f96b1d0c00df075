"""Printed pages: charts are whole, text is dark on white, and no column is cut off."""

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Visit
from tests.browser.sites import Site

A4 = {"width": 718, "height": 1050}  # px, without the usual margins
DELAYS = "/average_delays?OP_CARRIER_AIRLINE_ID=19393"
COUNTS = "/flight_counter?ORIGIN_CITY_NAME={origin}&DEST_CITY_NAME={destination}"


@pytest.fixture(params=["light", "dark"])
def printed(request: pytest.FixtureRequest, visit: Visit, site: Site) -> Page:
    """A page as a printer gets it, from a screen that is light or dark."""
    page = visit(site, viewport=A4).open(DELAYS)
    page.emulate_media(media="print", color_scheme=request.param)
    return page


def test_text_is_dark_whatever_the_screen(printed: Page) -> None:
    for selector in ("h1", "caption", "svg text"):
        colour = printed.locator(selector).first.evaluate(
            "it => getComputedStyle(it)[it.tagName == 'text' ? 'fill' : 'color']"
        )
        channels = [int(part) for part in colour.strip("rgb()").split(",")]
        assert max(channels) < 128, (selector, colour)


def test_what_cannot_be_used_on_paper_is_left_out(printed: Page) -> None:
    for selector in (
        "header.site",
        "form",
        ".intervals",
        "details:not(.asked) > summary",
        ".asked > summary span",
    ):
        elements = printed.locator(selector)
        assert elements.count() > 0
        assert not any(element.is_visible() for element in elements.all()), selector
    assert printed.locator(".asked > summary").is_visible()  # says which days


def test_colours_that_texts_speak_of_are_printed(visit: Visit, site: Site) -> None:
    page = visit(site, viewport=A4).open("/airports/{airport}")
    page.emulate_media(media="print")
    marks = page.locator("th > input")
    assert marks.count() > 0
    assert not any(mark.is_visible() for mark in marks.all())
    cells = page.locator(".week [class^='n l'], .heat li")
    colours = cells.evaluate_all("all => all.map(one => getComputedStyle(one).printColorAdjust)")
    assert set(colours) == {"exact"}


def test_colours_that_texts_speak_of_are_there_in_forced_colours(visit: Visit, site: Site) -> None:
    page = visit(site, forced_colors="active").open("/days")
    cells = page.locator(".heat li")
    colours = cells.evaluate_all("all => all.map(one => getComputedStyle(one).backgroundColor)")
    assert len({*colours}) == len(colours) > 1


def test_no_column_of_the_comparison_is_cut_off(visit: Visit, site: Site) -> None:
    page = visit(site, viewport=A4).open("/compare?what=carrier&item=WN&item=AA")
    page.emulate_media(media="print")
    table = page.locator("table.groups").bounding_box()
    assert table is not None
    assert table["x"] + table["width"] <= A4["width"]


@pytest.mark.parametrize("address", [DELAYS, COUNTS])
def test_no_chart_is_split_between_two_sheets(visit: Visit, site: Site, address: str) -> None:
    page = visit(site).open(address)
    page.emulate_media(media="print")
    element = page.locator("figure").evaluate_all(
        "all => all.map(one => getComputedStyle(one).breakInside)"
    )
    assert element
    assert set(element) == {"avoid"}
