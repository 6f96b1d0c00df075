"""Departures of a day and the usual ones: their order, and how often a number leaves."""

import re
from collections import Counter
from typing import Any

import pytest
from flask.testing import FlaskClient

from frontend.backend_client import Backend
from frontend.coverage import NOTHING_KNOWN
from frontend.pages import departures
from frontend.pages.departures import MOST_SHOWN, Departures
from frontend.question import Question
from tests.api.processes import Service
from tests.api.worlds import Json, World
from tests.frontend.pages.reading import pages_over, table
from tests.index.worlds import scheduled


def leaving(world: World, **wanted: str) -> list[Json]:
    """The flights with these values."""
    return [
        leg
        for leg in world.transactions
        if all(str(leg[name]) == value for name, value in wanted.items())
    ]


def linked(page: str, caption: str) -> list[str]:
    """The flight numbers that a table of legs links, in its order."""
    part = page.partition(f'id="{caption}"')[2].partition("</table>")[0]
    return re.findall(r"OP_CARRIER_FL_NUM=(\d+)", part)


def test_a_days_flights_are_all_there_in_the_order_of_their_schedule(
    pages: FlaskClient, world: World
) -> None:
    day = world.transactions[len(world.transactions) // 2]["FL_DATE"]
    legs = leaving(world, FL_DATE=day)
    timed = sorted((scheduled(leg), leg["TRANSACTION_ID"], leg) for leg in legs if scheduled(leg))
    page = pages.get(f"/departures?FL_DATE={day}").text
    numbers = [str(leg["OP_CARRIER_FL_NUM"]) for *_, leg in timed]
    assert linked(page, "flights") == numbers[:MOST_SHOWN]
    assert f"There are {len(timed)} flights; this page shows the first {MOST_SHOWN}." in page
    assert len(linked(page, "untimed")) == len(legs) - len(timed) > 0


def test_an_airport_that_flights_leave_in_one_hour_shows_that_hour(
    pages: FlaskClient, world: World
) -> None:
    hours: dict[tuple[str, str], set[str]] = {}
    for leg in world.transactions:
        if time := scheduled(leg):
            hours.setdefault((leg["ORIGIN"], leg["FL_DATE"]), set()).add(time[:2])
    code, day, hour = next((*key, *found) for key, found in hours.items() if len(found) == 1)
    page = pages.get(f"/departures?ORIGIN={code}&INITIAL_DATE={day}&FINAL_DATE={day}").text
    assert f"&amp;hour={int(hour)}" in page.partition('<caption id="hours"')[2]


def test_lists_that_are_cut_say_so(
    pages: FlaskClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontend.pages.departures.MOST_SHOWN", 1)
    untimed = Counter(leg["FL_DATE"] for leg in world.transactions if not scheduled(leg))
    day, count = untimed.most_common(1)[0]
    page = pages.get(f"/departures?FL_DATE={day}").text
    timed = len(leaving(world, FL_DATE=day)) - count
    assert f"There are {timed} flights; this page shows the first 1." in page
    assert (
        f"There are {count} flights without a scheduled time; this page shows the first 1." in page
    )
    assert [len(linked(page, name)) for name in ("flights", "untimed")] == [1, 1]
    hours = [(e["ORIGIN"], scheduled(e)[:2]) for e in world.transactions if scheduled(e)]
    hour = "ORIGIN={}&hour={}".format(*Counter(hours).most_common(1)[0][0])
    rows = table(pages, f"/departures.csv?{hour}")
    numbers = {
        (row["OP_CARRIER_FL_NUM"], row["OP_CARRIER_AIRLINE_ID"], row["DEST"]) for row in rows
    }
    sentence = f"There are {len(numbers)} flights; this page shows the 1 most frequent."
    assert sentence in pages.get(f"/departures?{hour}").text


class InPieces(Backend):
    """A backend that gives few flights at a time."""

    def get(self, path: str, parameters: Any = None) -> Json:
        few = {"limit": "40"} if path == "/departures" else {}
        return super().get(path, {**(parameters or {}), **few})


def test_all_flights_of_a_day_are_read(
    service: Service, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontend.context.Backend", InPieces)
    pages = pages_over(service.url)
    day = world.transactions[0]["FL_DATE"]
    rows = table(pages, f"/departures.csv?FL_DATE={day}")
    expected = [str(leg["TRANSACTION_ID"]) for leg in leaving(world, FL_DATE=day)]
    assert sorted(row["TRANSACTION_ID"] for row in rows) == sorted(expected)
    assert len(expected) > 80


def test_an_interval_is_typed_as_a_day(pages: FlaskClient) -> None:
    typed = pages.get("/departures?ORIGIN=LAX&FL_DATE=2 to 4 January 2015", follow_redirects=True)
    page, days = typed.text, "INITIAL_DATE=2015-01-02&FINAL_DATE=2015-01-04"
    assert 'name="FL_DATE" type="text" value="2015-01-02 to 2015-01-04"' in page
    twin = f"/departures.json?{typed.request.query_string.decode()}"
    assert pages.get(twin).text == pages.get(f"/departures.json?ORIGIN=LAX&{days}").text
    assert typed.status_code == 200


def test_figures_of_an_hour_say_what_they_are_of(pages: FlaskClient, world: World) -> None:
    """Flights without a recorded hour, mostly cancelled, are in none."""
    day = next(leg for leg in world.transactions if leg["CANCELLED"])["FL_DATE"]
    hours = pages.get(f"/days/{day}").text.partition('id="hour"')[2].partition("</table>")[0]
    of_hour = pages.get(f"/departures?FL_DATE={day}&hour=8").text
    assert "<dt>On time (% of flights with a recorded hour)" in of_hour
    for text in (hours, of_hour.partition('id="hours"')[2]):
        assert "On time (% of flights with a recorded hour)" in text
    assert "<dt>Cancelled" not in of_hour
    assert not re.search(r"Cancelled \(|% of arrivals|% of scheduled", hours)


def test_figures_of_other_days_than_the_list_name_them(
    pages: FlaskClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(departures, "MOST_DAYS_OF_AIRPORT", 3)
    flight = max(
        (leg for leg in world.transactions if scheduled(leg)), key=lambda leg: leg["FL_DATE"]
    )
    page = pages.get(f"/departures?ORIGIN={flight['ORIGIN']}&hour={scheduled(flight)[:2]}").text
    lead = page.partition('<p class="lead">')[2].partition("</p>")[0]
    assert "8 to 10 January 2015:" in lead
    above = page.partition('<p class="hint">Chance plays')[0].rstrip()
    assert above.endswith("<h2>Flights of this hour, 1 to 10 January 2015</h2>")
    assert "By hour of scheduled departure, 1 to 10 January 2015" in page


def group(number: int, time: str, flights: int, on_time: float) -> Json:
    """A group of the service's answer; flights without a time are cancelled."""
    ends = {"ORIGIN": "JFK", "DEST": "SFO", "OP_CARRIER_AIRLINE_ID": 19977, "departure": time}
    counts = {"flights": flights, "cancelled": 0 if time else flights}
    shares = {"on_time_share_of_scheduled": on_time, "on_time_share_of_arrived": 1.0}
    return {**ends, "OP_CARRIER_FL_NUM": number, **counts, **shares}


def test_cancelled_flights_count_where_their_number_does() -> None:
    groups = [
        group(1, "0805", 6, 0.5),
        group(1, "0815", 2, 1.0),
        group(1, "0900", 4, 0.25),
        group(1, "", 8, 0.0),
        group(2, "0900", 9, 1.0),
        group(3, "0830", 9, 1.0),
    ]
    board = Departures(NOTHING_KNOWN, Question("", {"hour": 8}), {}, {"by_departure": groups})
    (nine, half_past, third), (eight, five_past, first) = board.usual
    assert (nine, half_past, third.number) == (9, "0830", 3)
    assert (eight, five_past, first.number) == (8, "0805", 1)
    assert (first.flights, first.on_time, first.cancelled) == (20, 6, 8)
    tied = [group(1, "0800", 1, 1.0), group(1, "1800", 1, 1.0)]
    ((_, none, _),) = Departures(NOTHING_KNOWN, Question("", {}), {}, {"by_departure": tied}).usual
    assert none == ""
