"""Tasks of travellers: each is done in two steps or less from home, and ends at the right number.

A new task is a new row. A step does one thing: searches, follows a link, or sends a form.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus, urlencode

import pytest
import requests
from playwright.sync_api import Page, expect

from backend.questions.carriers import CARRIER
from frontend.filters import counted, day, minutes, number, share
from tests.browser.conftest import Visit
from tests.browser.sites import Site

WIDE, NARROW = {"width": 1200, "height": 800}, {"width": 360, "height": 740}
WAYS = [(WIDE, "light"), (NARROW, "dark")]
MOST_STEPS = 2

Step = Callable[[Page, dict[str, str]], None]
Json = dict[str, Any]


class Asked:
    """The service behind the pages. values: see `values_of`."""

    def __init__(self, site: Site) -> None:
        self._site, self.values = site, values_of(site)

    def __call__(self, name: str, group_by: str = "", **parameters: str) -> Json:
        """Its answer to a question; without days about all. Values have names as in `Site`."""
        given = {field: self.values[value] for field, value in parameters.items()}
        if name == "average_delays":
            days = {"INITIAL_DATE": self.values["first"], "FINAL_DATE": self.values["last"]}
            given = {**days, **({"group_by": group_by} if group_by else {}), **given}
        answer = requests.get(f"{self._site.service.url}/{name}?{urlencode(given)}", timeout=10)
        found: Json = answer.json()
        return found


def values_of(site: Site) -> dict[str, str]:
    """The values of a site as people write them, and some more."""
    values = {name: unquote_plus(value) for name, value in site.values.items()}
    return {**values, "airline": CARRIER[int(values["carrier"])].name}


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


def largest(by: str) -> Callable[[Asked], list[str]]:
    """The figures of the group with the most flights, which every ranking has."""

    def shown(ask: Asked) -> list[str]:
        row = ask("average_delays", group_by=by)[f"by_{by}"][0]
        return [number(row["flights"]), share(row["on_time_share_of_scheduled"])]

    return shown


@dataclass(frozen=True, slots=True)
class Task:
    """question: of the traveller. steps: from home. shown: what the service says to it."""

    question: str
    steps: tuple[Step, ...]
    shown: Callable[[Asked], list[str]]


TASKS = (
    Task(
        "How late is an airline?",
        (search("How late is {airline}?"),),
        lambda ask: [
            minutes(ask("average_delays", OP_CARRIER_AIRLINE_ID="carrier")["average_delay"], 1)
        ],
    ),
    Task(
        "How often is a flight late?",
        (
            follow("how often a flight is late"),
            send(
                "Show the report",
                OP_CARRIER_FL_NUM="{number}",
                OP_CARRIER_AIRLINE_ID="{carrier}",
            ),
        ),
        how_often_late,
    ),
    Task("How punctual is a route?", (search("{origin} to {destination}"),), of_route),
    Task(
        "Which airport is worst?",
        (follow("Rankings"), follow("Departure airports")),
        largest("origin"),
    ),
    Task("Which route is worst?", (search("worst route"),), largest("route")),
    Task(
        "Which flight leaves an airport at an hour of a day?",
        (
            follow("which flight leaves when"),
            send(
                "Show the departures", ORIGIN_CITY_NAME="{airport}", FL_DATE="{day}", hour="{hour}"
            ),
        ),
        departures_of_a_day,
    ),
    Task("Which day was worst?", (follow("Days"),), worst_day),
    Task("What happened on a day?", (search("{day}"),), a_day),
)


@pytest.mark.parametrize(("size", "scheme"), WAYS, ids=["wide", "narrow"])
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.question)
def test_a_task_is_done_in_two_steps(
    visit: Visit, site: Site, task: Task, size: dict[str, int], scheme: str
) -> None:
    page, ask = visit(site, viewport=size, color_scheme=scheme).open("/"), Asked(site)
    first = ask("departures", FL_DATE="day", ORIGIN="airport")["flights"][0]
    values = {**ask.values, "hour": str(scheduled_hour(first))}
    assert len(task.steps) <= MOST_STEPS
    for step in task.steps:
        step(page, values)
    content = page.locator("main")
    for text in task.shown(ask):
        expect(content).to_contain_text(text)
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
