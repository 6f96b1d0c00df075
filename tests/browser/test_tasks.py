"""Tasks of travellers: each is done in two steps or less from home, and ends at the right number.

A new task is a new row. A step does one thing: searches, follows a link, or sends a form. Which
page a text leads to is tested in `tests/frontend/search`, without a browser.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from itertools import cycle
from typing import Any
from urllib.parse import unquote_plus, urlencode

import pytest
import requests
from playwright.sync_api import Browser, Page, expect

from backend.questions.carriers import CARRIER
from frontend.filters import counted, day, minutes, number, share
from tests.browser.sites import Site
from tests.browser.visits import Visitor

SCREENS = {
    "wide": ({"width": 1200, "height": 800}, "light"),
    "narrow": ({"width": 360, "height": 740}, "dark"),
}
MOST_STEPS = 2

Step = Callable[[Page, dict[str, str]], None]
Json = dict[str, Any]


class Asked:
    """The service behind the pages. values: see `values_of`."""

    def __init__(self, site: Site) -> None:
        self._site, self.values = site, values_of(site)

    def __call__(self, name: str, group_by: str = "", **parameters: str) -> Json:
        """Return the answer to a question, about all days if none are given. Values: see `Site`."""
        given = {field: self.values[value] for field, value in parameters.items()}
        if name == "average_delays":
            days = {"INITIAL_DATE": self.values["first"], "FINAL_DATE": self.values["last"]}
            given = {**days, **({"group_by": group_by} if group_by else {}), **given}
        answer = requests.get(f"{self._site.service.url}/{name}?{urlencode(given)}", timeout=10)
        content: Json = answer.json()
        return content


def values_of(site: Site) -> dict[str, str]:
    """The values of a site as people write them, with the code of the carrier."""
    values = {name: unquote_plus(value) for name, value in site.values.items()}
    return {**values, "code": CARRIER[int(values["carrier"])].code}


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


def hours_of_the_week(ask: Asked) -> list[str]:
    """How punctual the departures of an airport are by hour."""
    rows = ask("average_delays", group_by="hour", ORIGIN="airport")["by_hour"]
    return [
        "By hour and weekday",
        *(f"{row['hour']:02}:00" for row in rows),
        *(f"{100 * row['on_time_share_of_scheduled']:.0f}" for row in rows),
    ]


def worst_day(ask: Asked) -> list[str]:
    days = ask("average_delays", group_by="day")["by_day"]
    worst = min(days, key=lambda row: (row["on_time_share_of_scheduled"], -row["flights"]))
    return [day(worst["FL_DATE"]), share(worst["on_time_share_of_scheduled"])]


def a_day(ask: Asked) -> list[str]:
    total = ask("average_delays", INITIAL_DATE="day", FINAL_DATE="day")
    shown = counted(total["flights"], "flight"), share(total["on_time_share_of_scheduled"])
    return [*shown, minutes(total["average_delay"], 1)]


def departures_of_a_day(ask: Asked) -> list[str]:
    flights = ask("departures", FL_DATE="day", ORIGIN="airport")["flights"]
    at_hour = [leg for leg in flights if scheduled_hour(leg) == scheduled_hour(flights[0])]
    return [
        counted(len(at_hour), "flight"),
        *(str(leg["OP_CARRIER_FL_NUM"]) for leg in at_hour),
        *(f"{leg['DEP_TIME'][:2]}:{leg['DEP_TIME'][2:]}" for leg in at_hour),
    ]


def scheduled_hour(leg: Json) -> int:
    left = int(leg["DEP_TIME"] or 0)
    return int((left // 100 * 60 + left % 100 - (leg["DEP_DELAY"] or 0)) % 1440 // 60)


def how_often_late(ask: Asked) -> list[str]:
    legs = ask("filter_transactions", OP_CARRIER_FL_NUM="number", FL_DATE="first",
        FINAL_DATE="last", OP_CARRIER_AIRLINE_ID="carrier")["flights"]  # fmt: skip
    punctual = sum(leg["status"] == "on_time" for leg in legs)
    return [share(punctual / len(legs)), counted(len(legs), "scheduled flight")]


def of_route(ask: Asked) -> list[str]:
    total = ask("average_delays", ORIGIN_CITY_NAME="origin", DEST_CITY_NAME="destination")
    return [number(total["flights"]), share(total["on_time_share_of_scheduled"])]


def largest_origin(ask: Asked) -> list[str]:
    """The figures of the airport with the most flights, which every ranking has."""
    row = ask("average_delays", "origin")["by_origin"][0]
    return [number(row["flights"]), share(row["on_time_share_of_scheduled"])]


def ticked_carriers(ask: Asked) -> list[str]:
    ticked = ("ticked_0", "ticked_1")
    totals = [ask("average_delays", OP_CARRIER_AIRLINE_ID=value) for value in ticked]
    shares = [share(total["on_time_share_of_scheduled"]) for total in totals]
    return [number(total["flights"]) for total in totals] + shares


def count_of_flights(ask: Asked) -> list[str]:
    asked = {"ORIGIN_CITY_NAME": "origin", "DEST_CITY_NAME": "destination"}
    days = {"INITIAL_DATE": "first", "FINAL_DATE": "last"}
    return [number(ask("flight_counter", **asked, **days)["count"])]


def legs_of_flight(ask: Asked) -> list[str]:
    legs = ask("filter_transactions", OP_CARRIER_FL_NUM="number", FL_DATE="day",
        OP_CARRIER_AIRLINE_ID="carrier")["flights"]  # fmt: skip
    times = [leg[name] for leg in legs for name in ("DEP_TIME", "ARR_TIME") if leg[name]]
    ids = [f"Transaction {number(leg['TRANSACTION_ID'])}" for leg in legs]
    return [*ids, *(f"{time[:2]}:{time[2:]}" for time in times)]


def days_flown(ask: Asked) -> list[str]:
    legs = ask("filter_transactions", OP_CARRIER_FL_NUM="number", FL_DATE="first",
        FINAL_DATE="last", OP_CARRIER_AIRLINE_ID="carrier")["flights"]  # fmt: skip
    days = {date.fromisoformat(leg["FL_DATE"]) for leg in legs}
    return [f"{when.day} {when:%B}: " for when in days]


def hash_of_block(ask: Asked) -> list[str]:
    block = ask(f"blocks/{ask.values['tip']}")["block"]
    return [block["hash"], block["transactions_root"]]


@dataclass(frozen=True, slots=True)
class Task:
    """A traveller's `question`. steps: from home. shown: the service's answer, as on the page."""

    question: str
    steps: tuple[Step, ...]
    shown: Callable[[Asked], list[str]]


TASKS = (
    Task("How often is a flight late?",
        (follow("how often a flight is late"),
         send("Show the report", OP_CARRIER_FL_NUM="{number}", OP_CARRIER_AIRLINE_ID="{carrier}")),
        how_often_late),
    Task("How punctual is a route?", (search("{origin} to {destination}"),), of_route),
    Task("Which airport is worst?", (follow("Rankings"), follow("Departure airports")),
        largest_origin),
    Task("Which flight leaves an airport at an hour of a day?",
        (follow("which flight leaves when"),
         send("Show the departures", ORIGIN_CITY_NAME="{airport}", FL_DATE="{day}", hour="{hour}")),
        departures_of_a_day),
    Task("When is the best time to leave an airport?", (search("{airport}"),), hours_of_the_week),
    Task("Which day was worst?", (follow("Days"),), worst_day),
    Task("What happened on a day?", (search("{day}"),), a_day),
    Task("How many flights go from one city to another?",
        (send("Count the flights", ORIGIN_CITY_NAME="{origin}", DEST_CITY_NAME="{destination}"),),
        count_of_flights),
    Task("What happened to a flight on a day?", (search("{code} {number} on {day}"),),
        legs_of_flight),
    Task("On which days did a flight fly?",
        (follow("Flight status"),
         send("Show the flight", OP_CARRIER_FL_NUM="{code} {number}", FL_DATE="")),
        days_flown),
    Task("Which of the airlines in a ranking is better?",
        (follow("Rankings"), tick_two_and_compare), ticked_carriers),
    Task("What does a block claim?", (search("block {tip}"),), hash_of_block),
)  # fmt: skip


@pytest.fixture(scope="module")
def ask(sites: dict[str, Site]) -> Asked:
    asked = Asked(sites["many"])
    first = asked("departures", FL_DATE="day", ORIGIN="airport")["flights"][0]
    asked.values["hour"] = str(scheduled_hour(first))
    return asked


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
        pytest.param(
            name, task, id=f"{name}-{task.question}", marks=[pytest.mark.long] * (name != expected)
        )
        for name in SCREENS
        for task, expected in zip(TASKS, cycle(SCREENS), strict=False)
    ],
    indirect=["visitor"],
)
def test_a_task_is_done_in_two_steps(visitor: tuple[Visitor, Page], ask: Asked, task: Task) -> None:
    somebody, tab = visitor
    page = somebody.open("/", page=tab)
    assert len(task.steps) <= MOST_STEPS
    for step in task.steps:
        step(page, ask.values)
    content = page.locator("main")
    for text in task.shown(ask):
        expect(content).to_contain_text(text)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
