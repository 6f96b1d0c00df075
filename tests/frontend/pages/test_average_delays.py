"""The page of delays: its numbers are those of the flights, however many carriers."""

import csv
import io
import re
from statistics import median
from typing import Any

import pytest
from flask.testing import FlaskClient

from frontend.words import minutes, number, share
from tests.api.worlds import World, averages_of
from tests.frontend.pages.reading import slot_rows, small_source
from tests.frontend.years import CARRIERS, Year

BUSY, OTHER, QUIET = 19393, 19805, 19690
FIRST, LAST = "2015-01-02", "2015-01-05"


def address(*carriers: object, form: str = "", **more: str) -> str:
    chosen = "&".join(f"OP_CARRIER_AIRLINE_ID={carrier}" for carrier in carriers)
    rest = "".join(f"&{name}={value}" for name, value in more.items())
    return f"/average_delays{form}?{chosen}{rest}"


def over_days(*carriers: object, form: str = "") -> str:
    return address(*carriers, form=form, INITIAL_DATE=FIRST, FINAL_DATE=LAST)


def flights_of(world: World, carrier: int, first: str = FIRST, last: str = LAST) -> list[Any]:
    return [
        each
        for each in world.transactions
        if each["OP_CARRIER_AIRLINE_ID"] == carrier and first <= each["FL_DATE"] <= last
    ]


def text_of(pages: FlaskClient, path: str, status: int = 200) -> str:
    answer = pages.get(path)
    assert answer.status_code == status
    return answer.get_data(as_text=True)


def facts_of(page: str) -> dict[str, str]:
    return dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page))


def test_one_carrier_in_numbers(pages: FlaskClient, world: World) -> None:
    page = text_of(pages, over_days(BUSY))
    flights = flights_of(world, BUSY)
    averages = averages_of(flights)
    delays = [each["ARR_DELAY"] for each in flights if each["ARR_DELAY"] is not None]
    assert f'<p class="figure-large">{minutes(averages["average_delay"], 1)}</p>' in page
    facts = facts_of(page)
    assert facts.pop("90th percentile") == minutes(sorted(delays)[-(-len(delays) * 9 // 10) - 1])
    assert facts == {
        "Median": minutes(median(delays), 1),
        "On time, of arrived": share(averages["on_time_share_of_arrived"]),
        "On time, of scheduled": share(averages["on_time_share_of_scheduled"]),
        "Mean departure delay": minutes(averages["average_departure_delay"], 1),
        "Scheduled": number(averages["flights"]),
        "Arrived": number(averages["arrived"]),
        "Cancelled": number(averages["cancelled"]),
        "No arrival recorded": number(averages["no_arrival"]),
    }


def test_each_day_has_a_row(pages: FlaskClient, world: World) -> None:
    page = text_of(pages, over_days(BUSY))
    table = slot_rows(page)
    found = re.findall(r'<th scope="row">(.*?)</th>(.*)', table)
    assert [name for name, _ in found] == [
        "Fri 2 Jan 2015", "Sat 3 Jan 2015", "Sun 4 Jan 2015", "Mon 5 Jan 2015",
    ]  # fmt: skip
    for place, (_, cells) in enumerate(found):
        averages = averages_of(flights_of(world, BUSY, *[f"2015-01-0{2 + place}"] * 2))
        assert cells.split("<td>")[1:] == [
            number(averages["average_delay"], 1),
            share(averages["on_time_share_of_arrived"]),
            *(number(averages[name]) for name in ("flights", "arrived", "cancelled", "no_arrival")),
        ]


def test_the_histogram_counts_every_arrival_once(pages: FlaskClient, world: World) -> None:
    page = text_of(pages, over_days(BUSY, OTHER))
    table = page[page.index('id="each-bin"') :].partition("</table>")[0]
    rows = re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', table)
    cells = [re.findall(r">([\d,]+)</td>", row) for _, row in rows]
    for column, carrier in enumerate((BUSY, OTHER)):
        delays = [f["ARR_DELAY"] for f in flights_of(world, carrier) if f["ARR_DELAY"] is not None]
        assert sum(int(row[column]) for row in cells) == len(delays)
        place = [name for name, _ in rows].index("0 to 14 min")
        assert int(cells[place][column]) == sum(0 <= delay < 15 for delay in delays)


def test_bars_are_late_from_15_minutes_on(pages: FlaskClient) -> None:
    page = text_of(pages, over_days(BUSY))
    found = re.findall(r'<rect class="bar (\w+)"[^>]*><title>(−?\d+)', page)
    assert {kind for kind, _ in found} == {"on_time", "late"}
    for kind, low in found:
        assert (kind == "late") == (int(low.replace("−", "-")) >= 15)


def test_several_carriers_stand_side_by_side(pages: FlaskClient, world: World) -> None:
    page = text_of(pages, over_days(BUSY, OTHER, BUSY))
    table = page[page.index('id="summary"') :].partition("</table>")[0]
    rows = re.findall(r'<th scope="row">.*?</th>(.*?)</tr>', table, re.DOTALL)
    assert len(rows) == 2
    for carrier, row in zip((BUSY, OTHER), rows, strict=True):
        averages = averages_of(flights_of(world, carrier))
        assert number(averages["average_delay"], 1) in row
        assert share(averages["on_time_share_of_arrived"]) in row
        assert share(averages["on_time_share_of_scheduled"]) in row
    names = re.findall(r'<text class="name s(\d)".*?>(\w+)</text>', page)
    assert names == [("1", "WN"), ("2", "AA")]


def test_without_days_it_is_about_all_of_them(pages: FlaskClient, world: World) -> None:
    found = pages.get(address(BUSY, form=".json")).get_json()["carriers"]
    flights = [each for each in world.transactions if each["OP_CARRIER_AIRLINE_ID"] == BUSY]
    assert found[0]["flights"] == len(flights)


def test_few_flights_are_warned_of(pages: FlaskClient, world: World) -> None:
    assert 0 < averages_of(flights_of(world, QUIET))["arrived"] < 100
    assert "Few flights." in text_of(pages, over_days(QUIET))
    many = averages_of(each for each in world.transactions if each["OP_CARRIER_AIRLINE_ID"] == BUSY)
    assert many["arrived"] >= 100
    assert "Few flights." not in text_of(pages, address(BUSY))


def test_a_carrier_without_flights_is_said_in_words(pages: FlaskClient) -> None:
    page = text_of(pages, over_days(12345))
    assert "The ledger has no flights of Carrier 12345 on these days, nor on any other." in page
    assert "<figure" not in page


def test_nothing_asked_is_a_form(pages: FlaskClient) -> None:
    page = text_of(pages, "/average_delays")
    assert page.count('type="checkbox"') == 13
    assert "<figure" not in page
    assert 'role="alert"' not in page


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (address("abc"), ">Must be a whole number.<"),
        (address(*range(1, 8)), ">At most 6 carriers can be compared, not 7.<"),
        (address(INITIAL_DATE=FIRST), ">Please choose at least one.<"),
        (
            address(BUSY, INITIAL_DATE="2015-01-09", FINAL_DATE=FIRST),
            ">Must not be after the last day.<",
        ),
        (address(BUSY, INITIAL_DATE="yesterday"), "yesterday"),
        (address(BUSY, FL_DATE=FIRST), "unknown parameter; allowed:"),
    ],
)
def test_what_does_not_fit_is_said_beside_the_form(
    pages: FlaskClient, path: str, message: str
) -> None:
    page = text_of(pages, path, 400)
    assert message in page
    assert 'role="alert"' in page
    twin = pages.get(path.replace("delays?", "delays.json?"))
    assert twin.status_code == 400
    assert twin.headers["Content-Type"] == "application/problem+json"


def test_the_twin_for_tables_has_every_day_of_every_carrier(
    pages: FlaskClient, world: World
) -> None:
    body = pages.get(over_days(BUSY, OTHER, form=".csv")).get_data(as_text=True)
    rows = list(csv.DictReader(io.StringIO(body)))
    assert len(rows) == 8
    for row in rows:
        carrier, day = int(row.pop("OP_CARRIER_AIRLINE_ID")), row.pop("FL_DATE")
        averages = averages_of(flights_of(world, carrier, day, day))
        assert {name: float(text) if text else None for name, text in row.items()} == averages


def test_links_lead_to_other_days_of_the_same_carriers(pages: FlaskClient) -> None:
    page = text_of(pages, over_days(BUSY, OTHER))
    links = re.findall(r'<a href="(/average_delays[^"]*)"[^>]*>Last 7 days</a>', page)
    (path,) = (link.replace("&amp;", "&") for link in links)
    assert path == address(BUSY, OTHER, INITIAL_DATE="2015-01-04", FINAL_DATE="2015-01-10")
    assert 'aria-current="true">Last 7 days' in text_of(pages, path)


# --- a year


def test_all_carriers_are_asked_for_the_same_state_of_the_ledger(
    year: Year, year_pages: FlaskClient
) -> None:
    found = year_pages.get(address(*CARRIERS[:3], form=".json")).get_json()["carriers"]
    assert year.height == 103
    assert {each["as_of"]["height"] for each in found} == {101}
    year_pages.get(address(*CARRIERS[:2], as_of="55"))
    assert [each["as_of"] for each in year.asked[-2:]] == ["55", "55"]


@pytest.mark.parametrize("carriers", [1, 6])
def test_a_year_has_a_line_of_each_carrier_and_stays_small(
    year_pages: FlaskClient, carriers: int
) -> None:
    page = small_source(year_pages, address(*CARRIERS[:carriers]))
    assert len(re.findall(r'<path class="line s\d" d="M[\d.]+ [\d.]+L', page)) == carriers
    table = slot_rows(page)
    assert table.count('<th scope="row">') == 365


@pytest.mark.parametrize("carriers", [1, 2, 6])
def test_nothing_on_the_page_needs_an_inline_style(year_pages: FlaskClient, carriers: int) -> None:
    page = text_of(year_pages, address(*CARRIERS[:carriers]))
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script>", page)
