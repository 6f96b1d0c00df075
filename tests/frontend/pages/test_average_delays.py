"""The page of delays: its charts, its sentences, and several carriers."""

import re
from datetime import date
from urllib.parse import urlencode

import pytest
from flask.testing import FlaskClient

from frontend.filters import share
from tests.api.worlds import World
from tests.frontend.fake_backend import answering
from tests.frontend.pages.reading import (
    link,
    pages_over,
    raw,
    slot_rows,
    small_source,
    source,
    table,
    text,
)
from tests.frontend.years import CARRIERS, DAYS, Year, days_from

BUSY, OTHER, QUIET = 19393, 19805, 19690
FIRST, LAST = "2015-01-02", "2015-01-05"


def address(*carriers: object, form: str = "", **more: str) -> str:
    chosen = "&".join(f"OP_CARRIER_AIRLINE_ID={carrier}" for carrier in carriers)
    rest = "".join(f"&{name}={value}" for name, value in more.items())
    return f"/average_delays{form}?{chosen}{rest}"


def over_days(*carriers: object, form: str = "") -> str:
    return address(*carriers, form=form, INITIAL_DATE=FIRST, FINAL_DATE=LAST)


def test_cancelled_flights_count_in_the_headline(pages: FlaskClient, world: World) -> None:
    cancelled = next(flight for flight in world.transactions if flight["CANCELLED"])
    carrier, day = cancelled["OP_CARRIER_AIRLINE_ID"], cancelled["FL_DATE"]
    days = {"INITIAL_DATE": day, "FINAL_DATE": day}
    (averages,) = pages.get(address(carrier, form=".json", **days)).get_json()["carriers"]
    page = text(pages, address(carrier, **days))
    on_time = share(averages["on_time_share_of_scheduled"])
    part = share(averages["cancelled"] / averages["flights"])
    assert f"{on_time} were on time and {part} cancelled." in page


def test_bars_are_late_from_15_minutes_on(pages: FlaskClient) -> None:
    page = raw(pages, over_days(BUSY)).partition('id="spread"')[2]
    matches = re.findall(r'<rect class="bar (\w+)"[^>]*><title>(\d+)[^:]* min( early)?', page)
    assert {kind for kind, *_ in matches} == {"on_time", "late"}
    for kind, low, early in matches:
        assert (kind == "late") == (int(low) >= 15 and not early)


def test_several_carriers_are_compared_over_the_same_flights(pages: FlaskClient) -> None:
    leads_to = pages.get(f"{over_days(BUSY, OTHER, BUSY)}&ORIGIN=LAX&as_of=29")
    assert leads_to.status_code == 302
    days = f"INITIAL_DATE={FIRST}&FINAL_DATE={LAST}"
    kept = f"item={BUSY}&item={OTHER}&ORIGIN=LAX&{days}&as_of=29"
    assert leads_to.headers["Location"] == f"/compare?what=carrier&{kept}"
    compared = source(pages, f"/compare?what=carrier&item={BUSY}&item={OTHER}")
    each_day = link(compared, "Each day of these carriers as CSV")
    shown = {row["OP_CARRIER_AIRLINE_ID"] for row in table(pages, each_day)}
    assert shown == {str(BUSY), str(OTHER)}
    page = raw(pages, f"{over_days(BUSY)}&ORIGIN=LAX&as_of=29")
    form = page.partition('action="/compare"')[2].partition("</form>")[0]
    hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form)
    assert f'<option value="{OTHER}">' in form
    assert f'<option value="{BUSY}"' not in form
    chosen = raw(pages, f"/compare?{urlencode([*hidden, ('item', OTHER)])}")
    assert "Southwest Airlines (WN) or American Airlines (AA)?" in chosen


def test_few_flights_are_warned_of(pages: FlaskClient) -> None:
    for asked, are_few in ((over_days(QUIET), True), (address(BUSY), False)):
        (averages,) = pages.get(asked.replace("?", ".json?")).get_json()["carriers"]
        assert (averages["arrived"] < 100) == are_few
        assert ("Few arrivals." in raw(pages, asked)) == are_few


def test_the_csv_of_several_carriers_has_the_days_of_each(pages: FlaskClient) -> None:
    both = table(pages, over_days(BUSY, OTHER, form=".csv"))
    assert both == [
        row for carrier in (BUSY, OTHER) for row in table(pages, over_days(carrier, form=".csv"))
    ]
    assert {row["OP_CARRIER_AIRLINE_ID"] for row in both} == {str(BUSY), str(OTHER)}
    assert pages.get(address(*range(1, 8), form=".csv")).status_code == 400


# --- a year


def test_all_carriers_are_as_of_the_same_block(year: Year, year_pages: FlaskClient) -> None:
    twin = year_pages.get(address(*CARRIERS[:3], form=".json")).get_json()["carriers"]
    assert year.height == 100 + len(year.asked) > 101
    assert {row["as_of"]["height"] for row in twin} == {101}
    asked = [query for query in year.asked if "OP_CARRIER_AIRLINE_ID" in query]
    shown = {(query["OP_CARRIER_AIRLINE_ID"], query["group_by"]): query for query in asked}
    first = (str(CARRIERS[0]), "day")
    assert {query.get("as_of") for key, query in shown.items() if key != first} == {"101"}
    year_pages.get(address(*CARRIERS[:2], form=".csv", as_of="55"))
    assert [query["as_of"] for query in year.asked[-2:]] == ["55", "55"]


def test_the_outer_bins_of_a_histogram_are_open(year_pages: FlaskClient) -> None:
    page = raw(year_pages, address(CARRIERS[0]))
    bins = page[page.index('id="each-bin"') :].partition("</table>")[0]
    rows = re.findall(r'<th scope="row">(.*?)</th><td class="n">(\d+)</td>', bins)
    assert rows[0] == ("61 min early or more", "20")
    assert rows[-1] == ("180 min or more", "20")
    assert len(rows) == 18


def test_each_day_is_a_dot_and_seven_days_are_the_line(year_pages: FlaskClient) -> None:
    page = small_source(year_pages, address(CARRIERS[0]))
    assert "mean of all flights of seven days" in page
    assert "mean of a single day" in page
    chart = page[page.index('id="line"') :].partition("</figure>")[0]
    assert len(re.findall(r'<path class="line s1" d="M[\d.]+ [\d.]+L', chart)) == 1
    (dots,) = re.findall(r'<path class="day-dots s1" d="([^"]+)"', chart)
    assert dots.count("M") == 365
    assert slot_rows(page).count('<th scope="row">') == 365
    weeks = page[page.index('id="each-week"') :].partition("</table>")[0]
    assert weeks.count('<th scope="row">') == 365 - 6


@pytest.mark.parametrize(
    ("first", "last", "is_drawn"),
    [("2013-03-01", "2013-03-14", True), ("2013-03-01", "2013-03-13", False)],
)
def test_less_than_two_weeks_have_no_weekly_mean(first: str, last: str, is_drawn: bool) -> None:
    days = [day for day in DAYS if first <= day <= last]
    with answering(Year(days)) as url:
        pages = pages_over(url)
        page = raw(pages, address(CARRIERS[0]))
        rows = table(pages, address(CARRIERS[0], form=".csv"))
    assert ("seven days" in page) == is_drawn
    assert len(rows) == len(days)
    of_weeks = [row["average_delay_of_7_days"] for row in rows]
    assert [bool(text) for text in of_weeks] == [is_drawn and 3 <= n < 11 for n in range(len(days))]


def test_months_have_no_mean_of_seven_days_but_say_when_they_are_incomplete() -> None:
    days = days_from(date(2013, 1, 15), 516)
    assert days[-1] == "2014-06-14"
    with answering(Year(days)) as url:
        pages = pages_over(url)
        page = raw(pages, address(CARRIERS[0]))
        twin = pages.get(address(CARRIERS[0], form=".json")).get_json()
    cut = ["January 2013 from the 15th", "June 2014 until the 14th"]
    assert "seven days" not in page
    assert f"not all of their days are counted: {'; '.join(cut)}." in page
    assert re.findall(r'<rect class="incomplete"[^>]*><title>(.*?)</title>', page) == cut
    names = re.findall(r'<th scope="row">(.*?)</th>', slot_rows(page))
    assert (len(names), names[0], names[-1]) == (18, *cut)
    assert twin["periods"] == {
        "unit": "month",
        "incomplete": [
            {"name": cut[0], "first": "2013-01-15", "last": "2013-01-31"},
            {"name": cut[1], "first": "2014-06-01", "last": "2014-06-14"},
        ],
    }
