"""The page of a report card."""

from collections import Counter

import pytest
from flask.testing import FlaskClient

from frontend.filters import share
from tests.api.worlds import World, averages_of


@pytest.fixture
def number(world: World) -> int:
    """The flight number with the most flights."""
    found: int = Counter(e["OP_CARRIER_FL_NUM"] for e in world.transactions).most_common(1)[0][0]
    return found


def test_the_report_says_how_often_it_is_late(
    pages: FlaskClient, world: World, number: int
) -> None:
    flown = [e for e in world.transactions if e["OP_CARRIER_FL_NUM"] == number]
    carriers = Counter(e["OP_CARRIER_AIRLINE_ID"] for e in flown)
    text = pages.get(f"/report?OP_CARRIER_FL_NUM={number}").text
    most = max(carriers.values())
    shares = [
        averages_of([e for e in flown if e["OP_CARRIER_AIRLINE_ID"] == carrier])[
            "on_time_share_of_arrived"
        ]
        for carrier, count in carriers.items()
        if count == most
    ]
    assert any(f"was on time for {share(each)}" in text for each in shares)
    assert any(f"<dd>{share(each)}</dd>" in text for each in shares)
    assert ("By carrier" in text) == (len(carriers) > 1)


def test_a_punctual_flight_has_no_longest_delay(pages: FlaskClient, world: World) -> None:
    legs = Counter(
        (e["OP_CARRIER_FL_NUM"], e["OP_CARRIER_AIRLINE_ID"], e["FL_DATE"])
        for e in world.transactions
    )
    early = next(
        e
        for e in world.transactions
        if (e["ARR_DELAY"] or 0) < 0
        and legs[e["OP_CARRIER_FL_NUM"], e["OP_CARRIER_AIRLINE_ID"], e["FL_DATE"]] == 1
    )
    query = {name: early[name] for name in ("OP_CARRIER_FL_NUM", "OP_CARRIER_AIRLINE_ID")}
    days = dict.fromkeys(("INITIAL_DATE", "FINAL_DATE"), early["FL_DATE"])
    text = pages.get("/report", query_string=query | days).text
    assert "Mean arrival delay" in text
    assert "The longest delay" not in text


def test_the_longest_delay_of_several_flights_is_not_that_of_one(
    pages: FlaskClient, world: World
) -> None:
    delays: dict[tuple[int, int], list[int]] = {}
    for leg in world.transactions:
        key = leg["OP_CARRIER_FL_NUM"], leg["OP_CARRIER_AIRLINE_ID"]
        delays.setdefault(key, []).append(leg["ARR_DELAY"] or 0)
    longest = {key: each.count(max(each)) for key, each in delays.items() if max(each) > 0}
    assert {1, 2} <= {*longest.values()}
    for wanted in (1, 2):
        number, carrier = next(key for key, count in longest.items() if count == wanted)
        query = {"OP_CARRIER_FL_NUM": number, "OP_CARRIER_AIRLINE_ID": carrier}
        page = pages.get("/report", query_string=query).text
        assert (" min late.</p>" in page) == (wanted == 1)
        assert (" min late, as did 1 other flight.</p>" in page) == (wanted == 2)
