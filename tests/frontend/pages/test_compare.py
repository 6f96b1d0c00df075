"""Anything is compared: one sentence about the best, and what chance can explain."""

import html
import re
from collections.abc import Callable, Mapping
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import pytest
from flask.testing import FlaskClient

from backend.questions.carriers import CARRIER
from frontend.filters import short_interval
from frontend.questions import group_rows
from tests.api.worlds import Json, World, averages_of
from tests.cases import each_of
from tests.frontend.pages.reading import raw, table

Is = Callable[[Json], bool]


def where(**wanted: object) -> Is:
    return lambda flight: all(flight[name] == value for name, value in wanted.items())


def address(what: str, items: Mapping[str, object] | list[str], more: Mapping[str, str]) -> str:
    return urlencode([("what", what), *(("item", item) for item in items), *more.items()])


@pytest.mark.parametrize(
    "query",
    [
        "what=carrier&item=19393&item=aa&item=delta",
        "what=origin&item=LAX&item=sfo",
        "what=days&OP_CARRIER_AIRLINE_ID=19393&item=3 January&item=2015-01-04",
    ],
)
def test_the_best_is_named_in_the_order_of_the_address(pages: FlaskClient, query: str) -> None:
    twin = pages.get(f"/compare.json?{query}").get_json()
    shares = {row["name"]: row["on_time_share_of_scheduled"] for row in twin["compared"]}
    text = twin["verdict"]["text"]
    assert max(shares, key=lambda name: shares[name]) in text
    assert text.endswith("a difference cannot be told from chance.")
    lead = re.findall(r'<p class="lead">(.*?)</p>', raw(pages, f"/compare?{query}"), re.DOTALL)[0]
    assert text in html.unescape(lead)
    items = [item for name, item in parse_qsl(query) if name == "item"]
    assert [row["item"] for row in twin["compared"]] == items
    assert [line["item"] for line in table(pages, f"/compare.csv?{query}")] == items


def test_flight_numbers_are_compared_with_what_their_reports_say(
    pages: FlaskClient, world: World
) -> None:
    used = {(f["OP_CARRIER_AIRLINE_ID"], f["OP_CARRIER_FL_NUM"]) for f in world.transactions}
    numbers = sorted(used)[:3]
    items = [f"{CARRIER[carrier].code}{number}" for carrier, number in numbers]
    twin = pages.get(f"/compare.json?{address('flight', items, {})}").get_json()["compared"]
    for row, (carrier, number) in zip(twin, numbers, strict=True):
        is_meant = where(OP_CARRIER_AIRLINE_ID=carrier, OP_CARRIER_FL_NUM=number)
        expected = averages_of([flight for flight in world.transactions if is_meant(flight)])
        assert all(row[name] == pytest.approx(expected[name]) for name in expected.keys() & row)


@each_of(
    ("query", "reason"),
    [
        ("what=carrier&item=AA", "2 to 6 different items"),
        ("what=carrier&item=AA&item=19805", "2 to 6 different items"),
        ("what=carrier&item=AA&item=Nobody", "“Nobody” is not understood; write it as in "),
        (f"what=carrier&item=Nobody&{'&'.join(f'item={n}' for n in range(9))}", "these are 10"),
        ("what=carrier&item=AA&item=a", "“a” is not understood; write it as in "),
        ("what=origin&item=LAX&item=Gotham", "not understood; write it as in "),
        ("what=route&item=LAX-SFO&item=LAX", "not understood; write it as in "),
        ("what=days&item=never&item=4 January", "write it as in January 2015 or 1 to 7 January"),
        ("what=origin&item=LAX&item=SFO&ORIGIN=JFK", "it is what is compared"),
        (
            "what=planets&item=LAX&item=SFO",
            "must be one of carrier (Carriers), origin (Departure airports)",
        ),
        ("what=origin&item=LAX&item=SFO&sort=name", "must be one of flights"),
        ("what=origin&item=LAX&item=SFO&foo=1", "unknown parameter foo"),
    ],
)
def test_what_cannot_be_compared_is_refused(pages: FlaskClient, query: str, reason: str) -> None:
    page, twin = (pages.get(f"/compare{form}?{query}") for form in ("", ".json"))
    assert (page.status_code, twin.status_code) == (400, 400)
    assert reason[1:] in html.unescape(page.text)


@pytest.mark.parametrize(
    "query",
    [
        "what=origin&item=ORD&item=Chicago",
        "what=route&item=LAX-ORD&item=LAX-Chicago",
        "what=days&item=January 2015&item=3 January 2015",
        "what=days&item=1 to 3 January 2015&item=3 to 5 January 2015",
        "what=flight&item=AA1&item=1",
    ],
)
def test_chance_is_not_judged_where_flights_are_in_both(pages: FlaskClient, query: str) -> None:
    """The interval of a difference holds for independent flights."""
    page = pages.get(f"/compare?{query}")
    assert page.status_code == 200
    assert "have flights in common, so the difference cannot be compared with chance." in page.text
    twin = pages.get(f"/compare.json?{query}").get_json()
    assert twin["verdict"] is None
    assert len(twin["compared"]) == 2
    for sort, direction in (("average_delay", "ascending"), ("flights", "descending")):
        head = pages.get(f"/compare?{query}&sort={sort}").text.partition("aria-sort=")[2]
        assert head.startswith(f'"{direction}"')


def test_every_unknown_item_is_named_once(pages: FlaskClient) -> None:
    query = "what=carrier&item=AA&item=19393&item=99998&item=99999&ORIGIN=LAZ"
    page = pages.get(f"/compare?{query}").text
    for unknown in ("carrier 99998", "carrier 99999", "airport LAZ"):
        assert page.count(f"No flight in the ledger has the {unknown}.") == 1
    later = "&item=3 March 2098&item=4 January 2015&item=3 March 2099"
    days = pages.get(f"/compare?what=days{later}").text
    assert days.count("and none later.") == 1
    assert "Did you mean" not in days  # a link with INITIAL_DATE would be refused


def test_a_time_that_the_ledger_has_in_part_is_marked(pages: FlaskClient, world: World) -> None:
    days = sorted(flight["FL_DATE"] for flight in world.transactions)
    page = pages.get("/compare?what=days&item=January 2015&item=3 January 2015").text
    assert f"<small> ({short_interval(days[0], days[-1])})</small>" in page
    assert page.count("<small> (") == 1


def test_the_measure_is_chosen_in_the_head_of_the_table(pages: FlaskClient) -> None:
    page = html.unescape(pages.get("/compare?what=origin&item=LAX&item=SFO").text)
    (leads_to,) = re.findall(r'<a href="([^"]+)">Mean delay', page)
    assert parse_qs(urlsplit(leads_to).query)["item"] == ["LAX", "SFO"]
    twin = pages.get(leads_to.replace("?", ".json?")).get_json()
    means = {row["average_delay"]: row["name"] for row in twin["compared"]}
    best = means[min(means)]
    assert twin["verdict"]["text"].startswith(f"{best} has the lowest mean arrival delay")


@pytest.mark.parametrize(
    "query",
    [
        "what=origin&item=Chicago&item=LAX",
        "what=destination&item=San+Francisco&item=LAX&item=ORD",
        "what=route&item=Los+Angeles+to+Chicago&item=LAX-SFO",
    ],
)
def test_cities_and_airports_are_compared_and_narrow_nothing_down(
    pages: FlaskClient, query: str
) -> None:
    page = html.unescape(raw(pages, f"/compare?{query}"))
    assert not {"ORIGIN", "DEST"} & pages.get(f"/compare.json?{query}").get_json()["query"].keys()
    assert '<label class="beside">' not in page
    links = [link for link in re.findall(r'href="(/compare\?[^"]*)"', page) if "item=" in link]
    assert len(links) > 5
    for link in dict.fromkeys(links):
        assert pages.get(link).status_code == 200, link
    (lead,) = re.findall(r'<p class="lead">(.*?)</p>', page, re.DOTALL)
    assert re.search(r"These are flights,? (of )?\d", lead)


@pytest.mark.parametrize(
    "query", ["what=origin&item=LAX&item=SFO", "what=flight&item=UA6&item=WN9"]
)
def test_what_flew_on_enough_days_is_compared_with_chance(
    pages: FlaskClient, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    monkeypatch.setattr(group_rows, "FEW_ARRIVALS", 20)
    verdict = pages.get(f"/compare.json?{query}").get_json()["verdict"]
    low, high = verdict["interval"]
    assert -1 <= low < high <= 1
    assert "with 95\xa0% confidence" in verdict["text"]


@pytest.mark.parametrize(
    ("page", "table_id"),
    [
        ("/rankings?INITIAL_DATE=2015-01-02&FINAL_DATE=2015-01-08", "ranking"),
        ("/rankings?by=route", "few"),
        ("/airports/LAX", "carriers"),
        ("/airports/LAX", "destinations"),
        ("/airports/LAX", "origins"),
        ("/route?ORIGIN=ATL&DEST_CITY_NAME=Chicago,+IL", "carriers"),
        ("/route?ORIGIN_CITY_NAME=Salt+Lake+City,+UT&DEST_CITY_NAME=Chicago,+IL", "pairs"),
        ("/route?ORIGIN_CITY_NAME=Salt+Lake+City,+UT&DEST_CITY_NAME=Chicago,+IL&as_of=20", "pairs"),
    ],
)
def test_rows_of_tables_are_ticked_and_compared(
    pages: FlaskClient, page: str, table_id: str
) -> None:
    """The first two rows of a table have the same flights where they are compared."""
    source = html.unescape(pages.get(page).text)
    rows = source.partition(f'<caption id="{table_id}"')[2].partition("</table>")[0]
    items = re.findall(rf'value="([^"]+)" form="{table_id}-form"', rows)[:2]
    form = source.partition(f'id="{table_id}-form"')[2].partition("</form>")[0]
    kept = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form))
    what = kept.pop("what")
    twin = pages.get(f"/compare.json?{address(what, items, kept)}").get_json()["compared"]
    counts = re.findall(r'<td class="n">([\d,]+)</td>\s*<td class="n">[^<]*\smin', rows)[:2]
    assert [f"{row['flights']:,}" for row in twin] == counts
    assert len(counts) == 2
