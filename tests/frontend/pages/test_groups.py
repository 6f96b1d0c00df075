"""Rankings, routes and airports: their order, their words, and what leads on from them."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from flask.testing import FlaskClient

from frontend import coverage
from frontend.backend_client import Backend
from frontend.coverage import Airport, Coverage, CoverageKeeper
from frontend.questions import group_queries, group_rows
from frontend.questions.figures import FEW_ARRIVALS
from frontend.questions.group_rows import SORTS, Row, months_of_year
from frontend.questions.punctuality_report import figures_of
from tests.api.worlds import Json, World
from tests.cases import each_of
from tests.frontend.fake_backend import answering
from tests.frontend.pages.reading import table, week_of
from tests.frontend.years import DAYS, Year


@pytest.fixture
def busiest(world: World) -> tuple[str, str]:
    """Return the airports of the route with the most flights."""
    routes = Counter((flight["ORIGIN"], flight["DEST"]) for flight in world.transactions)
    return routes.most_common(1)[0][0]


@each_of("by", ["carrier", "route"])
def test_groups_with_few_flights_have_no_rank_and_stand_behind_the_others(
    pages: FlaskClient, by: str
) -> None:
    twin = pages.get(f"/rankings.json?by={by}").get_json()
    assert all(row["arrived"] >= FEW_ARRIVALS for row in twin["ranked"])
    assert all(row["arrived"] < FEW_ARRIVALS for row in twin["few_flights"])
    few = [row["flights"] for row in twin["few_flights"]]
    assert few == sorted(few, reverse=True)
    lines = table(pages, f"/rankings.csv?by={by}")
    rows = [*twin["ranked"], *twin["few_flights"]]
    assert [line["name"] for line in lines] == [row["name"] for row in rows]
    ranks = range(1, 1 + len(twin["ranked"]))
    assert [line["rank"] for line in lines if line["rank"]] == [str(rank) for rank in ranks]


@each_of(
    ("sort", "value"),
    [
        ("flights", lambda row: row["flights"]),
        ("average_delay", lambda row: row["average_delay"]),
        ("on_time_share_of_arrived", lambda row: row["on_time_share_of_arrived"]),
        ("on_time_share_of_scheduled", lambda row: row["on_time_share_of_scheduled"]),
        ("cancelled", lambda row: row["cancelled"] / row["flights"]),
    ],
)
@each_of("order", ["ascending", "descending"])
def test_a_ranking_is_in_order(
    pages: FlaskClient, sort: str, value: Callable[[Json], Any], order: str
) -> None:
    twin = pages.get(f"/rankings.json?sort={sort}&order={order}").get_json()["ranked"]
    values = [value(row) for row in twin]
    assert len(values) > 1
    assert values == sorted(values, key=float, reverse=order == "descending")


@each_of(
    "address",
    [
        "/route.json?ORIGIN=LAX&DEST=SFO",
        "/airports/LAX.json?",
        "/compare.json?what=origin&item=SFO&item=LAX",
    ],
)
def test_all_figures_are_up_to_the_same_block_though_the_ledger_grows(
    pages: FlaskClient, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    days = "&INITIAL_DATE=2015-01-01&FINAL_DATE=2015-01-10"
    expected = pages.get(f"{address}{days}&as_of=20").get_json()
    asked, ask = list[str](), Backend.get

    def get(self: Backend, path: str, parameters: Any = None) -> Json:
        is_first = path == "/average_delays" and not asked
        asked.extend({path} - {"/coverage"})  # which is asked again every few seconds
        return ask(self, path, {**(parameters or {}), **({"as_of": "20"} if is_first else {})})

    monkeypatch.setattr(Backend, "get", get)
    answer = pages.get(f"{address}{days}").get_json()
    assert {**answer, "query": ""} == {**expected, "query": ""}


def test_what_is_covered_up_to_a_block_is_kept_no_longer_than_what_is_covered_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    year = Year(DAYS[:2])
    with answering(year) as url:
        keeper = CoverageKeeper(Backend(url))
        assert keeper.at("1").first_date == DAYS[0]
        year.days = DAYS[2:4]
        assert keeper.at("1").first_date == DAYS[0]
        monkeypatch.setattr(coverage, "ASK_AGAIN_S", 0.0)
        assert keeper.at("1").first_date == DAYS[2]


def test_a_code_that_moved_names_the_place_with_most_flights() -> None:
    places = (Airport("AUS", "Austin, TX", "Texas", 9), Airport("AUS", "Elsewhere", "Texas", 1))
    assert Coverage(10, None, None, (), places).airport("AUS") == places[0]


def test_many_flights_are_only_summed_up_by_hour_and_by_weekday(
    pages: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_queries, "MOST_COUNTED", 10)
    page = pages.get("/airports/ORD").text
    cells = week_of(page, "hours")
    assert cells
    assert all(hour == "All hours" or day == "All" for hour, day in cells)
    assert "late by 15 minutes or more" not in page
    carrier = week_of(pages.get("/average_delays?OP_CARRIER_AIRLINE_ID=19393").text, "hours")
    assert any(hour != "All hours" and day != "All" for hour, day in carrier)


@each_of(
    ("delays", "cancelled", "words"),
    [
        ([0, 0, 0, 100, 100], 0, "2 in 5 late by 15 minutes or more"),
        ([60, 60], 18, "1 in 10 late by 15 minutes or more, 9 in 10 cancelled"),
        ([], 3, "none arrived, all cancelled"),
        ([0] * 110 + [18] * 13, 0, "1 in 9 late by 15 minutes or more"),
        (
            [0] * 150 + [15] * 26 + [40] * 24,
            50,
            (
                "1 in 5 late by 15 minutes or more, 1 in 5 cancelled; "
                "at least 1 in 10 arrivals late by 40 minutes or more"
            ),
        ),
    ],
)
def test_the_risk_of_flights_is_a_share_of_all_of_them(
    pages: FlaskClient, world: World, delays: list[int], cancelled: int, words: str
) -> None:
    groups: Any = pages.application.jinja_env.get_template("macros/groups.html").module
    legs = [
        {**world.transactions[0], "CANCELLED": int(delay is None), "ARR_DELAY": delay}
        for delay in [*delays, *[None] * cancelled]
    ]
    figures = figures_of(legs)
    assert groups.risk(figures, figures["distribution"]).strip() == words


@each_of(("flights", "figures"), [(99, "these figures"), (100, "the delays and")])
def test_chance_plays_no_large_part_in_shares_of_many_flights(
    pages: FlaskClient, flights: int, figures: str
) -> None:
    groups: Any = pages.application.jinja_env.get_template("macros/groups.html").module
    assert f"Chance plays a large part in {figures}" in groups.chance(
        {"flights": flights, "arrived": 9}
    )


def test_the_months_of_several_years_are_added_up() -> None:
    def month(name: str, flights: int, mean: float | None) -> Row:
        arrived = flights if mean is not None else 0
        counts = {"flights": flights, "arrived": arrived, "cancelled": 0, "no_arrival": 0}
        means = {"average_delay": mean, "on_time_share_of_arrived": mean and 0.5}
        return Row(
            {"month": name}, name, "", {**counts, **means, "on_time_share_of_scheduled": 0.5}
        )

    rows = [month("2013-01", 100, 4.0), month("2014-01", 300, 8.0), month("2014-02", 5, None)]
    january, february = months_of_year(rows)
    assert (january.name, january.flights, january.figures["average_delay"]) == (
        "January",
        400,
        7.0,
    )
    assert january.cut == ""
    rows[1] = replace(rows[1], cut=" from the 5th")
    assert months_of_year(rows)[0].cut == " (2014-01 from the 5th)"
    assert (february.name, february.figures["average_delay"]) == ("February", None)
    assert february.figures["on_time_share_of_scheduled"] == 0.5
    year = [month(f"2013-{number:02}", number, 1.0) for number in range(1, 13)]
    names = {row.name: row.flights for row in months_of_year(year)}
    assert names["Winter (Dec to Feb)"] == 12 + 1 + 2
    assert sum(list(names.values())[12:]) == sum(range(1, 13))


def test_an_airports_map_has_its_largest_routes_and_its_twin_all(
    pages: FlaskClient, world: World, busiest: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontend.pages.airports.ROUTES_DRAWN", 2)
    monkeypatch.setattr("frontend.pages.airports.ROUTES_SHOWN", 1)
    page = pages.get(f"/airports/{busiest[0]}").text
    assert page.count('<path class="route ') <= 2
    dests = {e["DEST"] for e in world.transactions if e["ORIGIN"] == busiest[0]}
    assert f"The table shows 1 of {len(dests)} airports, those with the most flights;" in page
    rows = table(pages, f"/airports/{busiest[0]}.csv")
    assert [row["group_by"] for row in rows].count("destination") == len(dests) > 2


@each_of("address", ["/airports/LAX", "/route?ORIGIN=ATL&DEST_CITY_NAME=Chicago,+IL"])
def test_a_place_says_which_of_its_carriers_is_the_most_punctual(
    pages: FlaskClient, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """The search leads there with `best airline from LAX`."""
    monkeypatch.setattr(group_rows, "FEW_ARRIVALS", 1)
    lead = pages.get(address).text.partition('<p class="lead">')[2].partition("</p>")[0]
    assert "the highest share of scheduled flights on time (" in lead


@each_of(
    "address",
    ["/airports/LAX", "/route?ORIGIN=ATL&DEST=ORD", "/average_delays?OP_CARRIER_AIRLINE_ID=19393"],
)
def test_the_best_hour_is_not_said_to_be_that_of_all_scheduled_flights(
    pages: FlaskClient, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """Cancelled flights have no hour."""
    monkeypatch.setattr(group_rows, "FEW_ARRIVALS", 1)
    when = pages.get(address).text.partition("<h2>When to fly</h2>")[2].partition("</p>")[0]
    assert "the highest share on time of flights with a recorded hour (" in when
    assert "scheduled" not in when


def test_a_share_beyond_the_scale_is_an_arrow_and_no_dot(pages: FlaskClient) -> None:
    charts: Any = pages.application.jinja_env.get_template("macros/charts.html").module
    for share, mark in ((0.2, ">‹<"), (0.5, "<circle"), (0.9, "<circle"), (0.95, ">›<")):
        svg = charts.dot(share, (0.5, 0.9))
        assert [m for m in ("<circle", ">‹<", ">›<") if m in svg] == [mark]


@each_of(
    ("airport", "missing"),
    [("LAX", "flights from LAX are missing"), ("EWR", "flights to these airports are missing")],
)
def test_what_a_regional_ledger_lacks(pages: FlaskClient, airport: str, missing: str) -> None:
    macros = pages.application.jinja_env.get_template("macros/groups.html").module
    assert missing in macros.only_departures(["EWR", "JFK"], airport)  # type: ignore[attr-defined]


@each_of("sort", ["cancelled", "flights", "on_time_share_of_scheduled"])
def test_the_verdict_on_a_ranking_is_about_what_it_is_sorted_by(
    pages: FlaskClient, sort: str
) -> None:
    address = f"/rankings?by=carrier&sort={sort}"
    lead = re.findall(r'<p class="lead">(.*?)</p>', pages.get(address).text, re.DOTALL)[0]
    first = pages.get(address.replace("?", ".json?")).get_json()["ranked"][0]
    assert f"{first['name']} has the highest {SORTS[sort].noun}" in lead
    assert "delay" not in lead


@pytest.mark.parametrize(
    ("address", "source"),
    [("/airports/ORD", "CSV file"), ("/rankings?by=route&page=1", "table")],
)
def test_routes_are_on_a_map_in_the_colour_of_their_share(
    pages: FlaskClient, address: str, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontend.pages.airports.ROUTES_SHOWN", 3)
    routes = pages.get("/rankings.json?by=route").get_json()["few_flights"]
    known = {(row["ORIGIN"], row["DEST"]): row for row in routes}
    monkeypatch.setattr(group_rows, "FEW_ARRIVALS", 5)
    page = pages.get(address).text
    lines = re.findall(
        r'<path class="route l(\d)" d="[^"]+"><title>(\w+) to (\w+): ([\d.]+)\s% of (\d+) ', page
    )
    assert len(lines) > 3
    assert f"<desc>The shares are in the {source}.</desc>" in page
    for level, origin, dest, percent, count in lines:
        share = known[origin, dest]["on_time_share_of_scheduled"]
        assert (int(count), percent) == (known[origin, dest]["flights"], f"{100 * share:.1f}")
        assert int(level) == sum(share >= least for least in group_rows.ON_TIME_LEVELS)
