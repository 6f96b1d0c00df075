"""On a telephone, 360 px wide, the column that matters is on the screen without scrolling."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page

from tests.browser.sites import Site
from tests.browser.test_every_page import require_fit
from tests.browser.visits import Visitor

WIDTH = 360
QUEUE = (
    "/lab/calculator/open?arrivals=0.02&arrivals_in=per_s&service_time_s=31.8&cv=0.03&servers=1"
    "&against=study"
)

MATTERS = (
    ("/", "Flights"),
    ("/blocks", "Flights"),
    ("/blocks/{tip}", "What happened"),
    ("/days/{day}", "Mean delay"),
    ("/rankings?by=route", "On time (% of scheduled)"),
    ("/report?OP_CARRIER_FL_NUM={shared_number}", "On time (% of scheduled)"),
    (QUEUE, "Change"),
)
HEADLINES = (
    ("/", "main .lead"),
    ("/filter_transactions?OP_CARRIER_FL_NUM={number}&FL_DATE={day}", "main .lead"),
    ("/average_delays?OP_CARRIER_AIRLINE_ID={carrier}", ".figure-large"),
    ("/flight_counter?ORIGIN_CITY_NAME={origin}&DEST_CITY_NAME={destination}", ".figure-large"),
    ("/rankings?by=route", "main .lead, main .notice"),
    ("/report?OP_CARRIER_FL_NUM={number}", "main .lead"),
    ("/route?ORIGIN_CITY_NAME={origin}&DEST_CITY_NAME={destination}", "main .lead"),
    ("/airports/{airport}", "main .lead"),
    ("/days/{day}", "main .lead"),
    ("/days", "main .lead"),
    ("/departures?ORIGIN={airport}&FL_DATE={day}", "main .lead"),
    ("/compare?what=carrier&item=WN&item=AA", "main .lead"),
    ("/search?q=worst+airport", ".found"),
)
ANSWER_ABOVE = 400
STACKED = ("/about", "/upload", "/transactions/{id}", "/blocks/{tip}")

WORD = "Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogoch, WLS"
TOO_LONG = (
    "/search?q=" + 168 * "a",
    f"/flight_counter?ORIGIN_CITY_NAME={WORD}&DEST_CITY_NAME={{destination}}",
)
"""Addresses with words that somebody typed."""
OF_A_CITY = (
    "/route?ORIGIN_CITY_NAME={origin}&DEST_CITY_NAME={destination}",
    "/airports/{airport}",
    "/flight_counter?ORIGIN_CITY_NAME={origin}&DEST_CITY_NAME={destination}",
    "/compare?what=origin&item={origin}&item={destination}",
    "/departures?ORIGIN_CITY_NAME={origin}",
    "/departures?ORIGIN={airport}&FL_DATE={day}",
    "/days?ORIGIN_CITY_NAME={origin}",
    "/days/{day}?ORIGIN_CITY_NAME={origin}",
    "/rankings?by=origin",
    "/filter_transactions?OP_CARRIER_FL_NUM={number}&FL_DATE={day}",
    "/transactions/{id}",
)
RENAME = """word => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    let count = 0;
    while (texts.nextNode()) {
        const renamed = texts.currentNode.data.replace(/[A-Z][\\w/. ]+, [A-Z]{2}\\b/g, word);
        count += renamed !== texts.currentNode.data;
        texts.currentNode.data = renamed;
    }
    document.querySelectorAll("details").forEach(details => details.open = true);
    return count;
}"""
"""Gives all cities a name that is a long word."""

LATE = "states => states.forEach(state => { state.textContent = 'On time, 11 min late'; })"
LARGER = "document.documentElement.style.fontSize = '150%'"

Open = Callable[[str], Page]


@pytest.fixture(scope="module")
def narrow(browser: Browser, sites: dict[str, Site]) -> Iterator[Open]:
    """Opens an address in the one tab of a visitor with a telephone."""
    visitor = Visitor(browser, sites["many"], viewport={"width": WIDTH, "height": 800})
    tab = visitor.context.new_page()

    def opened(address: str) -> Page:
        tab.set_viewport_size({"width": WIDTH, "height": 800})
        return visitor.open(address, page=tab)

    yield opened
    visitor.context.close()
    assert visitor.faults == []


def end_of(part: Locator) -> float:
    """Where a part of a page ends, px from the left."""
    box = part.bounding_box()
    assert box is not None
    return box["x"] + box["width"]


@pytest.mark.parametrize(("address", "heading"), MATTERS, ids=[row[0] for row in MATTERS])
def test_the_column_that_matters_is_on_the_screen(narrow: Open, address: str, heading: str) -> None:
    page = narrow(address)
    assert end_of(page.get_by_role("columnheader", name=heading, exact=True).first) <= WIDTH
    for caption in page.locator(".scroll caption:not(.hidden)").all():
        assert not caption.is_visible() or end_of(caption) <= WIDTH


@pytest.mark.parametrize(("address", "headline"), HEADLINES, ids=[row[0] for row in HEADLINES])
def test_the_answer_begins_on_the_first_screen(narrow: Open, address: str, headline: str) -> None:
    page = narrow(address)
    box = page.locator(headline).first.bounding_box()
    assert box is not None
    assert box["y"] < ANSWER_ABOVE
    if (change := page.get_by_text("Change", exact=True)).count():
        change.click()
        assert page.locator("details.asked form button").is_visible()


def test_a_ranking_shows_the_column_by_which_it_is_sorted(narrow: Open) -> None:
    for sort in ("flights", "average_delay", "on_time_share_of_arrived", "cancelled"):
        page = narrow(f"/rankings?by=carrier&sort={sort}")
        assert end_of(page.locator('th[aria-sort="descending"]')) <= WIDTH


def test_a_whole_week_of_a_calendar_is_on_the_screen(narrow: Open) -> None:
    page = narrow("/report?OP_CARRIER_FL_NUM={shared_number}")
    assert end_of(page.locator(".month tbody tr").first.locator("td").nth(6)) <= WIDTH


@pytest.mark.parametrize("address", STACKED)
def test_a_table_of_words_stands_cell_below_cell(narrow: Open, address: str) -> None:
    page = narrow(address)
    cells = page.locator("table.stacked td, table.named td")
    assert cells.count() > 3
    assert all(end_of(cells.nth(number)) <= WIDTH for number in range(4))


def test_long_words_do_not_make_a_page_wider_than_its_window(narrow: Open) -> None:
    for address in TOO_LONG:
        require_fit(narrow(address))
    for address in OF_A_CITY:
        page = narrow(address)
        assert page.evaluate(RENAME, WORD), address
        require_fit(page)


def test_a_month_that_is_not_whole_makes_no_page_wider(narrow: Open) -> None:
    """The ledger has one month, so the name of a season stands in its table of weekdays."""
    page = narrow("/airports/{airport}")
    page.locator(".when").evaluate(
        """when => when.insertAdjacentHTML("beforeend", `<table class="week"><tbody><tr>
            <th>Autumn (Sep to Nov)<small> (January 2009 until the 2nd)</small> <small
            class="few">few flights</small></th><td class="n">78</td><td class="n">99,999</td>
            <td class="n">12.3 min early</td></tr></tbody></table>`)"""
    )
    require_fit(page)
    page.evaluate(LARGER)
    require_fit(page, (WIDTH,))


def test_text_half_again_as_large_makes_no_page_wider(narrow: Open) -> None:
    for address in ("/", "/transactions/{id}"):
        page = narrow(address)
        page.locator(".state").evaluate_all(LATE)
        page.evaluate(LARGER)
        require_fit(page, (WIDTH,))


def test_words_have_room(narrow: Open) -> None:
    """A caption is as wide as its table, a name is not broken, a field shows its days."""
    page = narrow("/about")
    box = page.locator("caption").bounding_box()
    assert box is not None
    assert box["width"] > WIDTH / 2
    page = narrow("/lab/results/{result}")
    names = page.locator('[aria-labelledby="metrics"] th > code')
    heights = names.evaluate_all("all => all.map(name => name.getClientRects().length)")
    assert heights
    assert set(heights) == {1}
    page = narrow("/average_delays?OP_CARRIER_AIRLINE_ID={carrier}")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.get_by_text("Change", exact=True).click()
    days = page.get_by_label("Days", exact=True)
    days.fill("28 September 2012 to 30 November 2013")
    assert days.evaluate("field => field.scrollWidth <= field.clientWidth")
