"""Departures of a day and the usual ones, as plain Python counts them."""

import re
from collections import Counter

from flask.testing import FlaskClient

from tests.api.worlds import Json, World
from tests.frontend.pages.reading import ids_on, table
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
    assert linked(page, "flights") == [str(leg["OP_CARRIER_FL_NUM"]) for *_, leg in timed]
    assert len(linked(page, "untimed")) == len(legs) - len(timed) > 0
    rows = table(pages, f"/departures.csv?FL_DATE={day}")
    assert {int(row["TRANSACTION_ID"]) for row in rows} == {leg["TRANSACTION_ID"] for leg in legs}


def test_an_hour_has_its_flights_and_those_that_may_be_its(
    pages: FlaskClient, world: World
) -> None:
    leg = next(leg for leg in world.transactions if scheduled(leg))
    day, origin, hour = leg["FL_DATE"], leg["ORIGIN"], int(scheduled(leg)[:2])
    legs = leaving(world, FL_DATE=day, ORIGIN=origin)
    page = pages.get(f"/departures?FL_DATE={day}&ORIGIN={origin}&hour={hour}").text
    at_hour = [leg for leg in legs if scheduled(leg)[:2] == f"{hour:02}"]
    assert len(linked(page, "flights")) == len(at_hour)
    assert len(linked(page, "untimed")) == sum(not scheduled(leg) for leg in legs)
    assert f"<dt>Flights</dt><dd>{len(at_hour)}</dd>" in page


def test_the_usual_departures_are_flight_numbers_with_all_of_their_flights(
    pages: FlaskClient, world: World
) -> None:
    ends, _ = Counter(
        (leg["ORIGIN"], leg["DEST"]) for leg in world.transactions if scheduled(leg)
    ).most_common(1)[0]
    legs = leaving(world, ORIGIN=ends[0], DEST=ends[1])
    hour = Counter(scheduled(leg)[:2] for leg in legs if scheduled(leg)).most_common(1)[0][0]
    page = pages.get(f"/departures?ORIGIN={ends[0]}&DEST={ends[1]}&hour={int(hour)}").text
    cells = r'.*?<td class="n">([\d:]+)</td>' * 2
    rows = re.findall(
        rf"OP_CARRIER_FL_NUM=(\d+)&amp;OP_CARRIER_AIRLINE_ID=(\d+){cells}\s*"
        r'<td class="n spare">(\d+)</td>\s*<td class="n">([\d.]+) %</td>',
        page,
        re.DOTALL,
    )
    at_hour = [leg for leg in legs if scheduled(leg)[:2] == hour]
    assert len(rows) == len(
        {(leg["OP_CARRIER_FL_NUM"], leg["OP_CARRIER_AIRLINE_ID"]) for leg in at_hour}
    )
    for number, carrier, time, count, of_all, share in rows:
        mine = leaving(
            world,
            ORIGIN=ends[0],
            DEST=ends[1],
            OP_CARRIER_FL_NUM=number,
            OP_CARRIER_AIRLINE_ID=carrier,
        )
        assert time[:2] == hour
        assert int(count) == sum(scheduled(leg)[:2] == hour for leg in mine)
        assert int(of_all) == len(mine)
        punctual = sum(leg["ARR_DELAY"] is not None and leg["ARR_DELAY"] < 15 for leg in mine)
        assert share == f"{100 * punctual / len(mine):.1f}"
    assert rows


def test_an_hour_without_flights_says_so(pages: FlaskClient) -> None:
    page = pages.get("/departures?FL_DATE=1987-10-01&hour=3").text
    assert "no flight is recorded in this hour" in page
    assert not ids_on(page)
