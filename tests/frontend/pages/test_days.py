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
from frontend.question import Question
from frontend.questions.days import DayReport
from frontend.questions.figures import FIGURES
from frontend.questions.group_rows import PUNCTUALITY, Row, rows_of
from tests.api.worlds import Json, World
from tests.cases import each_of
from tests.frontend.years import Year


@pytest.fixture
def day(world: World) -> str:
    """Return a day with others around it, one of them of the same weekday."""
    days = sorted({flight["FL_DATE"] for flight in world.transactions})
    return str(days[1])


def days_in(pages: FlaskClient, query: str = "") -> dict[str, Json]:
    """The figures of each day of the calendar."""
    rows = pages.get(f"/days.json?{query}").get_json()["day"]["by_day"]
    return {row["FL_DATE"]: row for row in rows}


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
        (0.5, [0.6, 0.7], "The worst of 3 days of 2015 by this share."),
        (0.5, [0.5, 0.5, 0.7], "One of the 3 worst of 4 days of 2015 by this share."),
        (0.6, [0.5, 0.7, 0.8], "2nd worst of 4 days of 2015 by this share."),
        (0.6, [0.5, 0.6, 0.8], "2nd worst, like 1 other day, of 4 days of 2015 by this share."),
        (1.0, [0.5, 0.7], "The best of 3 days of 2015 by this share."),
        (1.0, [0.5, 1.0], "One of the 2 best of 3 days of 2015 by this share."),
        (1.0, [1.0, 1.0], "Each of 3 days of 2015 has this share."),
        (1.0, [], ""),
    ],
)
def test_a_day_is_not_called_the_worst_or_worse_than_its_equals(
    share: float, others: list[float], words: str
) -> None:
    days = [Row({}, "", "", {"on_time_share_of_scheduled": other}) for other in others]
    answers = {"carrier": {"on_time_share_of_scheduled": share}}
    question = Question("days", {"FL_DATE": "2015-01-02"})
    assert DayReport(NOTHING_KNOWN, question, answers, days).place == words


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


@pytest.mark.parametrize(
    ("sort", "worst"),
    [
        ("", lambda row: row[PUNCTUALITY]),
        ("sort=flights", lambda row: -row["flights"]),
        ("sort=average_delay", lambda row: -(row["average_delay"] or -9999.0)),
        ("sort=cancelled", lambda row: -row["cancelled"] / row["flights"]),
    ],
)
def test_the_calendar_names_the_worst_day_or_how_many_are_equal(
    pages: FlaskClient, world: World, sort: str, worst: Callable[[Json], float]
) -> None:
    leads = set()
    for origin in {leg["ORIGIN"] for leg in world.transactions}:
        rows = days_in(pages, f"ORIGIN={origin}")
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
        assert lead.startswith(expected), origin
        leads.add(lead[:5])
    assert len(leads) > 1 or sort == "sort=average_delay"


def test_months_that_are_equally_the_worst_are_counted(
    year: Year, year_pages: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {**dict.fromkeys(FIGURES, 0), "flights": 9, "average_delay": 1.0}
    every_other = cycle([counts, {**counts, "cancelled": 1}])
    monkeypatch.setattr(year, "_day", lambda: next(every_other))
    page = year_pages.get("/days?sort=cancelled").text.replace("\xa0", " ")
    lead = page.partition('<p class="lead">')[2].partition("</p>")[0]
    assert re.search(r"^The 18\d worst days .* have 11.1 % each; the 6 worst months have", lead)


def test_a_month_leads_to_those_of_its_days_that_were_counted() -> None:
    counts = {**dict.fromkeys(FIGURES, 0), "flights": 1}
    months = [{"month": month, **counts} for month in ("2013-01", "2013-02", "2013-03")]
    days = {"INITIAL_DATE": "2013-01-10", "FINAL_DATE": "2013-03-05"}
    question = Question("airports/JFK", {"ORIGIN": "JFK", **days})
    rows = rows_of({"query": days, "by_month": months}, "month", NOTHING_KNOWN, question)
    assert [row.address for row in rows] == [
        f"/days?ORIGIN=JFK&INITIAL_DATE=2013-{first}&FINAL_DATE=2013-{last}"
        for first, last in (("01-10", "01-31"), ("02-01", "02-28"), ("03-01", "03-05"))
    ]
