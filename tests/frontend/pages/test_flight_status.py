"""Flight status: the order of legs, their words, and the days around."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise, permutations
from typing import Any

import pytest
from flask.testing import FlaskClient

from backend.questions.carriers import CARRIER
from frontend.backend_client import Backend
from frontend.filters import plus
from frontend.pages import flight_status
from frontend.pages.flight_status import MOST_LEGS_SHOWN
from frontend.questions import flights_of_day
from tests.api.worlds import Json, World
from tests.cases import each_of
from tests.frontend.pages.reading import ids_on, source, table

PAGE = "/filter_transactions"


def legs_of(world: World, number: int, day: str, carrier: int | None = None) -> list[Json]:
    return [
        flight
        for flight in world.transactions
        if (flight["OP_CARRIER_FL_NUM"], flight["FL_DATE"]) == (number, day)
        and carrier in {None, flight["OP_CARRIER_AIRLINE_ID"]}
    ]


def carriers_of(world: World, number: int, day: str) -> set[int]:
    return {leg["OP_CARRIER_AIRLINE_ID"] for leg in legs_of(world, number, day)}


def keys(world: World) -> list[tuple[int, str]]:
    return sorted({(leg["OP_CARRIER_FL_NUM"], leg["FL_DATE"]) for leg in world.transactions})


def label(carrier: int) -> str:
    known = CARRIER[carrier]
    return f"{known.name} ({known.code})"


def chained(flights: Sequence[Json]) -> int:
    """Return how many legs begin where the leg before them ends."""
    return sum(leg["DEST"] == following["ORIGIN"] for leg, following in pairwise(flights))


def test_legs_are_chained_as_well_as_can_be(pages: FlaskClient, world: World) -> None:
    for number, day in keys(world)[::4]:
        twin = pages.get(f"{PAGE}.json?OP_CARRIER_FL_NUM={number}&FL_DATE={day}").get_json()
        legs = twin["flights"]
        carriers = [leg["carrier"] for leg in legs]
        assert carriers == sorted(label(leg["OP_CARRIER_AIRLINE_ID"]) for leg in legs)
        by_carrier = {name: [leg for leg in legs if leg["carrier"] == name] for name in carriers}
        for some in by_carrier.values():
            assert [leg["leg"] for leg in some] == list(range(1, len(some) + 1))
            assert chained(some) == max(map(chained, permutations(some)))


def test_carriers_that_share_a_number_are_named(pages: FlaskClient, world: World) -> None:
    number, day = max(keys(world), key=lambda key: len(carriers_of(world, *key)))
    carriers = carriers_of(world, number, day)
    query = f"{PAGE}?OP_CARRIER_FL_NUM={number}&FL_DATE={day}"
    page = source(pages, query)
    assert f"{len(carriers)} carriers had a flight with this number on that day" in page
    for carrier in carriers:
        assert f'<h2 id="carrier-{carrier}">{label(carrier)}</h2>' in page
        chosen = f"{query}&OP_CARRIER_AIRLINE_ID={carrier}"
        assert f'href="{chosen}"' in page
        alone = ids_on(source(pages, chosen))
        expected = legs_of(world, number, day, carrier)
        assert sorted(alone) == [leg["TRANSACTION_ID"] for leg in expected]


def test_the_days_around_have_their_outcome_and_a_link(pages: FlaskClient, world: World) -> None:
    first, last = (end(flight["FL_DATE"] for flight in world.transactions) for end in (min, max))
    middle = plus(first, 2)
    page = source(pages, f"{PAGE}?OP_CARRIER_FL_NUM=1&FL_DATE={middle}")
    twin = pages.get(f"{PAGE}.json?OP_CARRIER_FL_NUM=1&FL_DATE={middle}").get_json()
    days = [plus(middle, offset) for offset in range(-3, 4)]
    assert [row["FL_DATE"] for row in twin["days"]] == days
    for row in twin["days"]:
        day = row["FL_DATE"]
        assert row["is_covered"] == (first <= day <= last)
        flights = legs_of(world, 1, day)
        assert row["count"] == len(flights)
        expected = flights_of_day.outcome_of_all(flights) if row["is_covered"] else None
        assert row["outcome"] == expected
        assert (expected or "No data") in page
        link = f'<a href="{PAGE}?OP_CARRIER_FL_NUM=1&FL_DATE={day}">'
        assert (link in page) == (row["is_covered"] and day != middle)
    assert not twin["days"][0]["is_covered"]  # the day before the first


def test_a_number_alone_leads_to_its_report(pages: FlaskClient) -> None:
    answer = pages.get(f"{PAGE}?OP_CARRIER_FL_NUM=1&FL_DATE=&as_of=20")
    assert answer.headers["Location"] == "/report?OP_CARRIER_FL_NUM=1&as_of=20"


@each_of("height", [*range(4, 12), 30])
def test_the_days_of_one_carrier_are_its_own_up_to_a_block(
    pages: FlaskClient, world: World, height: int
) -> None:
    carrier = world.transactions[0]["OP_CARRIER_AIRLINE_ID"]
    query = f"OP_CARRIER_FL_NUM=1&OP_CARRIER_AIRLINE_ID={carrier}&as_of={height}"
    day = world.transactions[0]["FL_DATE"]
    around = pages.get(f"{PAGE}.json?{query}&FL_DATE={day}").get_json()["days"]
    for row in around:
        legs = legs_of(world, 1, row["FL_DATE"], carrier)
        assert row["count"] == sum(leg["BLOCK_HEIGHT"] <= height for leg in legs)


def test_a_day_without_the_flight_offers_the_nearest_others(
    pages: FlaskClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flight_status, "DAYS_OFFERED", 2)
    first, *_, last = flown = sorted(day for number, day in keys(world) if number == 1)
    for day, nearest in ((plus(first, -40), flown[:2]), (plus(last, 40), flown[-2:])):
        page = source(pages, f"{PAGE}?OP_CARRIER_FL_NUM=1&FL_DATE={day}&OP_CARRIER_AIRLINE_ID=")
        linked = re.findall(rf'href="{PAGE}\?OP_CARRIER_FL_NUM=1&FL_DATE=([0-9-]+)"', page)
        assert linked == nearest
    assert "The ledger has no flight 1 on that day" in page
    assert "flight number 1 of any carrier, scheduled to leave on" in page
    assert "but none at all on that day." in page
    month = source(pages, f"{PAGE}?OP_CARRIER_FL_NUM=1&FL_DATE=2099-03-01&FINAL_DATE=2099-03-31")
    assert "scheduled to leave in March 2099" in month


@pytest.mark.parametrize(("number", "asked_days"), [(1, []), (1999, [0, 3])])
def test_of_days_without_the_flight_alone_it_is_asked_once_whether_they_have_others(
    pages: FlaskClient,
    monkeypatch: pytest.MonkeyPatch,
    world: World,
    number: int,
    asked_days: list[int],
) -> None:
    day = min(flight["FL_DATE"] for flight in world.transactions)
    asked, ask = list[str](), Backend.get

    def noted(self: Backend, path: str, parameters: Any = None) -> Json:
        if path == "/flight_counter" and parameters["group_by"] == "day":
            asked.extend(parameters[name] for name in ("INITIAL_DATE", "FINAL_DATE"))
        return ask(self, path, parameters)

    monkeypatch.setattr(Backend, "get", noted)
    page = source(pages, f"{PAGE}?OP_CARRIER_FL_NUM={number}&FL_DATE={day}")
    assert ("The ledger has no flight" in page) == bool(asked_days)
    assert asked == [plus(day, later) for later in asked_days]


def test_another_carrier_offers_those_that_flew(pages: FlaskClient, world: World) -> None:
    everybody = {flight["OP_CARRIER_AIRLINE_ID"] for flight in world.transactions}
    number, day, other = next(
        (number, day, min(everybody - users))
        for number, day in keys(world)
        if (users := carriers_of(world, number, day)) < everybody
    )
    query = f"{PAGE}?OP_CARRIER_FL_NUM={number}&FL_DATE={day}"
    page = source(pages, f"{query}&OP_CARRIER_AIRLINE_ID={other}")
    assert f"of {label(other)}, scheduled to leave on" in page
    for carrier in carriers_of(world, number, day):
        assert f'<a href="{query}&OP_CARRIER_AIRLINE_ID={carrier}">{label(carrier)}</a>' in page


def test_an_unknown_number_offers_similar_ones(pages: FlaskClient, world: World) -> None:
    flights = [(flight["OP_CARRIER_FL_NUM"], flight) for flight in world.transactions]
    numbers = {number for number, _ in flights}
    others = sorted(
        (number for number in numbers if str(number).startswith("1") and number != 19),
        key=lambda number: (-sum(known == number for known, _ in flights), str(number)),
    )
    alike = [19, *others][:8]
    assert 19 in numbers
    day = world.transactions[0]["FL_DATE"]
    for query in (f"{PAGE}?OP_CARRIER_FL_NUM=1999&FL_DATE={day}", "/report?OP_CARRIER_FL_NUM=1999"):
        page = source(pages, query)
        linked = re.findall(r'<td><a href="/report\?OP_CARRIER_FL_NUM=(\d+)"', page)
        assert list(map(int, linked)) == alike, query
    page = source(
        pages, "/report?OP_CARRIER_FL_NUM=19&INITIAL_DATE=2099-03-01&FINAL_DATE=2099-03-01"
    )
    assert '<td><a href="/report?OP_CARRIER_FL_NUM=1' in page
    assert '<td><a href="/report?OP_CARRIER_FL_NUM=19"' not in page


def change_answers(patch: pytest.MonkeyPatch, change: Callable[[Json], None]) -> None:
    """Have the service's answers to the question changed on their way."""
    ask = Backend.get

    def changed(self: Backend, path: str, parameters: Any = None) -> Json:
        answer = ask(self, path, parameters)
        if path == PAGE:
            change(answer)
        return answer

    patch.setattr(Backend, "get", changed)


def test_of_many_legs_the_first_are_shown(
    pages: FlaskClient, monkeypatch: pytest.MonkeyPatch, world: World
) -> None:
    def repeat(answer: Json) -> None:
        answer["flights"] = [leg for leg in answer["flights"] for _ in range(120)]
        answer["count"] *= 120

    change_answers(monkeypatch, repeat)
    number, day = max(keys(world), key=lambda key: len(carriers_of(world, *key)))
    query = f"?OP_CARRIER_FL_NUM={number}&FL_DATE={day}"
    count = 120 * len(legs_of(world, number, day))
    page = source(pages, PAGE + query)
    assert len(ids_on(page)) == MOST_LEGS_SHOWN < count
    assert f"The ledger has {count:,} legs" in page
    lead = page.partition('<p class="lead">')[2].partition("</p>")[0]
    for carrier in carriers_of(world, number, day):  # most have no place on this page
        assert f'href="{PAGE}{query}&OP_CARRIER_AIRLINE_ID={carrier}">{label(carrier)}<' in lead
    assert len(table(pages, f"{PAGE}.csv{query}")) == count


def test_legs_of_several_days_are_in_the_order_of_time(
    pages: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the newest flights were added first."""
    change_answers(monkeypatch, lambda answer: answer["flights"].reverse())
    query = "?OP_CARRIER_FL_NUM=1&FL_DATE=2015-01-01&FINAL_DATE=2015-01-10"
    rows = table(pages, f"{PAGE}.csv{query}")
    times = [(row["carrier"], row["FL_DATE"], int(row["leg"])) for row in rows]
    assert times == sorted(times)
    assert len(set(times)) > len({carrier for carrier, *_ in times})
    shown = ids_on(source(pages, PAGE + query))
    assert shown == [int(row["TRANSACTION_ID"]) for row in rows][:MOST_LEGS_SHOWN]
