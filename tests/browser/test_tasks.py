"""Tasks of travellers: each is done in two steps or less from home, and ends at the right page.

A new task is a new row. A step does one thing: searches, follows a link, or sends a form. Which
page a text leads to is tested in `tests/frontend/search`, and that its numbers are right in
`tests/frontend/pages/test_numbers.py`, both without a browser.
"""

from collections.abc import Callable, Iterator
from itertools import cycle
from urllib.parse import parse_qsl, unquote_plus, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from backend.questions.carriers import CARRIER
from tests.browser.sites import Site
from tests.browser.visits import Visitor

SCREENS = {
    "wide": ({"width": 1200, "height": 800}, "light"),
    "narrow": ({"width": 360, "height": 740}, "dark"),
}
MOST_STEPS = 2

Step = Callable[[Page, dict[str, str]], None]


def search(text: str) -> Step:
    def step(page: Page, values: dict[str, str]) -> None:
        page.locator("#search").fill(text.format_map(values))
        page.get_by_role("button", name="Search").click()

    return step


def follow(link: str) -> Step:
    return lambda page, values: page.get_by_role("link", name=link, exact=True).first.click()


def send(button: str, **fields: str) -> Step:
    """Fill fields in, by their names, and send the form."""

    def step(page: Page, values: dict[str, str]) -> None:
        form = page.locator("form:not(.search)").filter(has=page.get_by_role("button", name=button))
        for name, value in fields.items():
            field = form.locator(f"[name={name}]")
            text = value.format_map(values)
            if field.evaluate("field => field.tagName") == "SELECT":
                field.select_option(text)
            else:
                field.fill(text)
        form.get_by_role("button", name=button).click()

    return step


def tick_two_and_compare(page: Page, values: dict[str, str]) -> None:
    """Tick the first two rows of a ranking. Adds what they are to `values`."""
    ticks = page.get_by_role("table", name="Carriers,").get_by_role("checkbox")
    for place in range(2):
        values[f"ticked_{place}"] = ticks.nth(place).get_attribute("value") or ""
        ticks.nth(place).check()
    page.get_by_role("button", name="Compare those ticked").first.click()


NUMBER = "OP_CARRIER_FL_NUM={number}&OP_CARRIER_AIRLINE_ID={carrier}"
CITIES = "ORIGIN_CITY_NAME={origin}&DEST_CITY_NAME={destination}"
TASKS: dict[str, tuple[str, *tuple[Step, ...]]] = {
    "How often is a flight late?": (
        f"/report?{NUMBER}",
        follow("how often a flight is late"),
        send("Show the report", OP_CARRIER_FL_NUM="{number}", OP_CARRIER_AIRLINE_ID="{carrier}"),
    ),
    "How punctual is a route?": (f"/route?{CITIES}", search("{origin} to {destination}")),
    "Which airport is worst?": (
        "/rankings?by=origin",
        follow("Rankings"),
        follow("Departure airports"),
    ),
    "Which flight leaves an airport at an hour of a day?": (
        "/departures?ORIGIN={airport}&FL_DATE={day}&hour=8",
        follow("which flight leaves when"),
        send("Show the departures", ORIGIN_CITY_NAME="{airport}", FL_DATE="{day}", hour="8"),
    ),
    "When is the best time to leave an airport?": ("/airports/{airport}", search("{airport}")),
    "Which day was worst?": ("/days", follow("Days")),
    "What happened on a day?": ("/days/{day}", search("{day}")),
    "How many flights go from one city to another?": (
        f"/flight_counter?{CITIES}",
        send("Count the flights", ORIGIN_CITY_NAME="{origin}", DEST_CITY_NAME="{destination}"),
    ),
    "What happened to a flight on a day?": (
        f"/filter_transactions?{NUMBER}&FL_DATE={{day}}",
        search("{code} {number} on {day}"),
    ),
    "On which days did a flight fly?": (
        f"/report?{NUMBER}",
        follow("Flight status"),
        send("Show the flight", OP_CARRIER_FL_NUM="{code} {number}", FL_DATE=""),
    ),
    "Which of the airlines in a ranking is better?": (
        "/compare?what=carrier&item={ticked_0}&item={ticked_1}",
        follow("Rankings"),
        tick_two_and_compare,
    ),
    "What does a block claim?": ("/blocks/{tip}", search("block {tip}")),
}


@pytest.fixture(scope="module")
def visitor(
    browser: Browser, sites: dict[str, Site], request: pytest.FixtureRequest
) -> Iterator[tuple[Visitor, Page]]:
    """Somebody who does many tasks one after the other, and their page."""
    size, scheme = SCREENS[request.param]
    somebody = Visitor(browser, sites["many"], viewport=size, color_scheme=scheme)
    yield somebody, somebody.context.new_page()
    somebody.context.close()
    assert somebody.faults == []


@pytest.mark.parametrize(
    ("visitor", "task"),
    [
        # Of two tasks one is done on a telephone, the other is not; and the other way round.
        pytest.param(name, task, marks=[pytest.mark.long] * (name != expected))
        for name in SCREENS
        for task, expected in zip(TASKS, cycle(SCREENS), strict=False)
    ],
    indirect=["visitor"],
)
def test_a_task_is_done_in_two_steps(visitor: tuple[Visitor, Page], task: str) -> None:
    somebody, tab = visitor
    page = somebody.open("/", page=tab)
    values = {name: unquote_plus(value) for name, value in somebody.site.values.items()}
    values["code"] = CARRIER[int(values["carrier"])].code
    address, *steps = TASKS[task]
    assert len(steps) <= MOST_STEPS
    for step in steps:
        step(page, values)
    page.wait_for_url(lambda url: asked(url) == asked(address.format_map(values)))
    expect(page.locator("main .error")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def asked(url: str) -> tuple[str, list[tuple[str, str]]]:
    """The page at an address and what it is about, but for the days, which are all of them."""
    parts = urlsplit(url)
    pairs = (pair for pair in parse_qsl(parts.query) if not pair[0].endswith("L_DATE"))
    return parts.path, sorted(pairs)
