"""A calendar of days, and a day beside a usual one."""

import re
from collections.abc import Callable
from datetime import date
from itertools import cycle
from statistics import fmean

import pytest
from flask.testing import FlaskClient

from frontend.coverage import NOTHING_KNOWN
from frontend.filters import number
from frontend.pages.days import DayReport
from frontend.question import Question
from frontend.questions import group_rows
from frontend.questions.figures import FIGURES
from frontend.questions.group_rows import NOUNS, PUNCTUALITY, Row
from tests.api.worlds import Json, World
from tests.cases import each_of
from tests.frontend.pages.reading import text
from tests.frontend.years import Year, days_from


@pytest.fixture
def day(world: World) -> str:
    """Return a day with others around it, one of them of the same weekday."""
    days = sorted({flight["FL_DATE"] for flight in world.transactions})
    return str(days[1])


@pytest.fixture
def any_day_is_ranked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have groups ranked that have but a few flights."""
    monkeypatch.setattr(group_rows, "FEW_ARRIVALS", 0)


def days_in(pages: FlaskClient, query: str = "") -> dict[str, Json]:
    """The figures of each day of the calendar."""
    rows = pages.get(f"/days.json?{query}").get_json()["day"]["by_day"]
    return {row["FL_DATE"]: row for row in rows}


@pytest.mark.usefixtures("any_day_is_ranked")
def test_tables_that_are_cut_say_so(
    pages: FlaskClient, day: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontend.pages.days.MOST_SHOWN", 2)
    twin = pages.get(f"/days/{day}.json").get_json()
    page = pages.get(f"/days/{day}").text
    for name in ("origin", "destination"):
        count = len(twin[name][f"by_{name}"])
        rows = page.partition(f'<caption id="{name}"')[2].partition("</table>")[0]
        assert rows.count('<th scope="row">') == 2
        assert f"The table shows 2 of {count} airports, those with the most flights;" in page
    assert f"The table shows 2 of {len(days_in(pages))} days, the worst;" in pages.get("/days").text


@pytest.mark.usefixtures("any_day_is_ranked")
def test_a_day_stands_beside_others_of_its_weekday(pages: FlaskClient, day: str) -> None:
    by_day = days_in(pages)
    weekday = date.fromisoformat(day).weekday()
    others = [
        figures
        for other, figures in by_day.items()
        if other != day and date.fromisoformat(other).weekday() == weekday
    ]
    usual = pages.get(f"/days/{day}.json").get_json()["usual"]
    for name in ("flights", "cancelled"):
        assert usual[name] == fmean(figures[name] for figures in others)
    for name, weight in (("on_time_share_of_scheduled", "flights"), ("average_delay", "arrived")):
        together = fmean([row[name] for row in others], [row[weight] for row in others])
        assert usual[name] == pytest.approx(together)
    page = pages.get(f"/days/{day}").text
    assert " by this share.</p>" in page
    assert f" of {len(by_day)} days of 2015" in page


@each_of(
    ("share", "others", "words"),
    [
        (0.5, [0.6, 0.7], "the worst of 3 days"),
        (0.5, [0.5, 0.5, 0.7], "one of the 3 worst of 4 days"),
        (0.6, [0.5, 0.7, 0.8], "the 2nd worst of 4 days"),
        (0.7, [0.5, 0.6, 0.8], "the 2nd best of 4 days"),
        (0.6, [0.5, 0.6, 0.8], "the 2nd worst, like 1 other day, of 4 days"),
        (1.0, [0.5, 0.7], "the best of 3 days"),
        (1.0, [0.5, 1.0], "one of the 2 best of 3 days"),
    ],
)
def test_a_day_is_not_called_the_worst_or_worse_than_its_equals(
    share: float, others: list[float], words: str
) -> None:
    place = place_among([(share, 100), *((other, 100) for other in others)])
    assert place == f"This is {words} of 2015 by this share."


def place_among(days: list[tuple[float, int]]) -> str:
    """Return what is said of the first of some days, which have a share on time and flights."""
    this, *others = ({PUNCTUALITY: share, "flights": flights} for share, flights in days)
    rows = [Row({}, "", "", other) for other in others]
    question = Question("days", {"FL_DATE": "2015-01-02"})
    return DayReport(NOTHING_KNOWN, question, {"carrier": this}, rows).place


def test_days_that_are_all_equal_or_alone_are_not_ranked() -> None:
    assert place_among([(1.0, 100)] * 3) == "Each of 3 days of 2015 has this share."
    assert place_among([(1.0, 100)]) == ""


def test_a_day_with_few_flights_has_no_place_among_the_days() -> None:
    many = [(0.5, 100), (0.6, 200)]
    assert place_among([(1.0, 1), *many]) == ""
    expected = "This is the worst of 2 days of 2015 with 100 flights or more by this share."
    assert place_among([*many, (0.0, 1)]) == expected


@pytest.mark.parametrize(
    ("sort", "painted", "best"),
    [
        ("cancelled", lambda row: 100 * row["cancelled"] / row["flights"], "2 % or less"),
        ("average_delay", lambda row: row["average_delay"], "0 min or less"),
        ("flights", lambda row: row["flights"], ""),
        (PUNCTUALITY, lambda row: 100 * row[PUNCTUALITY], "85 % or more"),
    ],
)
def test_the_calendar_paints_what_it_is_sorted_by(
    pages: FlaskClient, sort: str, painted: Callable[[Json], float], best: str
) -> None:
    page = pages.get(f"/days?sort={sort}").text
    cells = re.findall(r'<a( class="l\d")? href="/days/([0-9-]+)">.*?<small>(.*?)</small>', page)
    by_day = days_in(pages)
    shown = {day: value.removesuffix(" %") for _, day, value in cells}
    assert shown == {day: number(painted(row)) for day, row in by_day.items()}
    legend = re.findall(r'<li class="l\d">(.*?)</li>', page)
    assert [len(legend), *legend[-1:]] == ([5, best] if best else [0])
    levels = {painted(by_day[day]): level for level, day, _ in cells}
    ordered = [level for _, level in sorted(levels.items(), reverse="less" in best)]
    assert ordered == sorted(ordered)


WORST: dict[str, Callable[[Json], float]] = {
    "": lambda row: row[PUNCTUALITY],
    "sort=flights": lambda row: -row["flights"],
    "sort=average_delay": lambda row: -(row["average_delay"] or -9999.0),
    "sort=cancelled": lambda row: -row["cancelled"] / row["flights"],
}


@pytest.mark.usefixtures("any_day_is_ranked")
def test_the_calendar_names_the_worst_day_or_how_many_are_equal(
    pages: FlaskClient, world: World
) -> None:
    leads: dict[str, set[str]] = {sort: set() for sort in WORST}
    for origin in {leg["ORIGIN"] for leg in world.transactions}:
        rows = days_in(pages, f"ORIGIN={origin}")
        for sort, worst in WORST.items():
            by_day = {day: worst(row) for day, row in rows.items()}
            equal = [day for day, value in by_day.items() if value == min(by_day.values())]
            page = pages.get(f"/days?ORIGIN={origin}&{sort}").text
            lead = page.partition('<p class="lead">')[2].partition("</p>")[0]
            extreme = "busiest" if sort == "sort=flights" else "worst"
            if len(equal) == 1:
                expected = f"The {extreme} day by "
                assert f'href="/days/{equal[0]}?ORIGIN={origin}"' in lead
            elif len(equal) == len(by_day):
                expected = f"Each of the {len(equal)} days has the same "
            else:
                expected = f"The {len(equal)} {extreme} days by "
            assert lead.startswith(expected), (origin, sort)
            leads[sort].add(lead[:5])
    assert all(len(some) > 1 or sort == "sort=average_delay" for sort, some in leads.items())


@pytest.mark.usefixtures("any_day_is_ranked")
def test_a_day_alone_is_not_called_the_worst(pages: FlaskClient, day: str) -> None:
    for sort in NOUNS:
        page = pages.get(f"/days?INITIAL_DATE={day}&FINAL_DATE={day}&sort={sort}").text
        assert '<caption id="worst"' in page
        assert '<p class="lead">' not in page


def names_in(page: str, caption: str) -> list[tuple[str, bool]]:
    """The rows of a table: their names, and whether they are marked for their few flights."""
    rows = page.partition(f'<caption id="{caption}"')[2].partition("</table>")[0]
    heads = re.findall(r'<th scope="row">(.*?)</th>', rows)
    return [(re.sub("<.*?>", "", head.partition(" <small")[0]), "few" in head) for head in heads]


def test_days_with_few_flights_are_marked_and_not_ranked(
    year: Year, year_pages: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {**dict.fromkeys(FIGURES, 0), "average_delay": 1.0, PUNCTUALITY: 0.5}
    few = {**counts, "flights": 99, "arrived": 99, PUNCTUALITY: 0.0}
    blizzard = {**counts, "flights": 500, "cancelled": 500, PUNCTUALITY: 0.1}
    monkeypatch.setattr(year, "days", ["2013-03-05", "2013-03-06", "2013-03-07"])
    of_days = cycle([few, blizzard, {**counts, "flights": 100, "arrived": 100}])
    monkeypatch.setattr(year, "_day", lambda: next(of_days))
    page = year_pages.get("/days?INITIAL_DATE=2013-03-05&FINAL_DATE=2013-03-07").text
    assert "few flights</small>" not in page  # there were 500 in the blizzard
    assert names_in(page, "worst") == [
        ("Wednesday, 6 March 2013", True),
        ("Thursday, 7 March 2013", False),
        ("Tuesday, 5 March 2013", True),
    ]
    assert "Of the days with 100 flights or more, the worst day by share of" in page
    assert 'was <a href="/days/2013-03-06">Wednesday' in page
    assert ", then those with few flights</caption>" in page
    monkeypatch.setattr(year, "_day", lambda: few)
    page = year_pages.get("/days").text
    assert "No day has 100 flights or more, so none is called the worst" in page
    assert "worst" not in page.partition('id="worst"')[2].partition("</caption>")[0]
    assert "Days with few flights</caption>" in page
    assert all(is_few for _, is_few in names_in(page, "worst"))
    assert "Days with few arrivals</caption>" in year_pages.get("/days?sort=average_delay").text


@each_of(
    ("sort", "counted", "painted"),
    [(PUNCTUALITY, "flights", 3), ("average_delay", "arrivals", 0), ("cancelled", "flights", 3)],
)
def test_a_day_whose_measure_rests_on_few_flights_or_arrivals_has_no_colour(
    year: Year,
    year_pages: FlaskClient,
    monkeypatch: pytest.MonkeyPatch,
    sort: str,
    counted: str,
    painted: int,
) -> None:
    counts = {**dict.fromkeys(FIGURES, 0.5), "flights": 50, "arrived": 9, "cancelled": 41}
    monkeypatch.setattr(year, "days", ["2013-03-05", "2013-03-06", "2013-03-07"])
    monkeypatch.setattr(year, "_day", lambda: counts)
    page = year_pages.get(f"/days?sort={sort}").text
    assert len(re.findall(r'<a class="l\d" href="/days/', page)) == painted
    assert f"no colour with fewer than 10 {counted}." in page


def test_months_that_are_equally_the_worst_are_counted(
    year: Year, year_pages: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {**dict.fromkeys(FIGURES, 0), "flights": 900, "average_delay": 1.0}
    every_other = cycle([counts, {**counts, "cancelled": 100}])
    monkeypatch.setattr(year, "_day", lambda: next(every_other))
    page = year_pages.get("/days?sort=cancelled").text.replace("\xa0", " ")
    lead = page.partition('<p class="lead">')[2].partition("</p>")[0]
    assert re.search(r"^The 18\d worst days .* have 11.1 % each; the 6 worst months have", lead)


def test_a_month_of_which_only_some_days_are_counted_says_so(
    year: Year, year_pages: FlaskClient, pages: FlaskClient
) -> None:
    year.days = days_from(date(2013, 1, 10), 55)
    names = {name for name, _ in names_in(year_pages.get("/days").text, "worst-months")}
    assert {"January 2013 from the 10th", "February 2013", "March 2013 until the 5th"} < names
    by_month = year_pages.get("/average_delays?OP_CARRIER_AIRLINE_ID=19393").text
    heads = re.findall('<th scope="row">(.*?)</th>', by_month.partition("By month")[2])
    names = {re.sub("<.*?>", "", head) for head in heads}
    assert {"January from the 10th", "February", "March until the 5th"} < names
    assert [*names_in(pages.get("/days").text, "worst-months")] == [
        ("January 2015 until the 10th", False)
    ]


@pytest.mark.parametrize(
    "address",
    [
        "/average_delays?OP_CARRIER_AIRLINE_ID=19393",
        "/compare?what=carrier&item=19393&item=19805",
        "/flight_counter?ORIGIN_CITY_NAME=Chicago, IL&DEST_CITY_NAME=Atlanta, GA",
        "/airports/ATL?",
        "/days?sort=flights",
    ],
)
def test_days_that_the_ledger_covers_in_part_are_named(pages: FlaskClient, address: str) -> None:
    notice = "Of these days, the ledger covers only"
    asked = f"{address}&INITIAL_DATE={{}}&FINAL_DATE={{}}"
    longer = text(pages, asked.format("2014-12-31", "2015-12-31"))
    assert f"{notice} 1 to 10 January 2015." in longer
    for days in (("2015-01-02", "2015-01-10"), ("2016-01-01", "2016-12-31")):
        assert notice not in text(pages, asked.format(*days))


def test_a_day_with_cancelled_flights_alone_has_no_table_of_hours(
    pages: FlaskClient, world: World
) -> None:
    flown = {(f["ORIGIN"], f["FL_DATE"]) for f in world.transactions if not f["CANCELLED"]}
    all_days = {(f["ORIGIN"], f["FL_DATE"]) for f in world.transactions}
    code, day = min(all_days - flown)
    page = pages.get(f"/days/{day}?ORIGIN={code}").text
    assert "Carriers on this day</caption>" in page
    assert "Hours on this day</caption>" not in page
