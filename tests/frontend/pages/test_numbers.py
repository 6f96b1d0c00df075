"""The numbers of a page, of its .json and of its .csv are those of the service's answers.

The service is asked exactly the question in the address; that it counts right is told by
`tests/index/test_answers.py`. What a page adds up itself, and sentences, have tests of their own.
"""

import calendar
import html
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Any

from flask.testing import FlaskClient

from backend.questions.carriers import CARRIER
from frontend.filters import day as long_day
from frontend.filters import minutes, number, share
from frontend.questions.figures import FIGURES
from tests.api.processes import Service
from tests.api.worlds import Json
from tests.cases import each_of
from tests.frontend.pages.reading import WEEKDAYS, raw, rows_of, week_of

DAYS = "INITIAL_DATE=2015-01-02&FINAL_DATE=2015-01-08"
DAY = "INITIAL_DATE=2015-01-03&FINAL_DATE=2015-01-03"
THERE, BACK = (
    "ORIGIN_CITY_NAME={}&DEST_CITY_NAME={}&".format(*ends) + DAYS
    for ends in (("Salt+Lake+City,+UT", "Chicago,+IL"), ("Chicago,+IL", "Salt+Lake+City,+UT"))
)
FLIGHT = "/filter_transactions?OP_CARRIER_FL_NUM=1&FL_DATE=2015-01-03"
WN, OO = "OP_CARRIER_AIRLINE_ID=19393", "OP_CARRIER_AIRLINE_ID=20304"
WEEK = ("hour", "weekday", "month", "weekday_hour")

Asked = dict[str, str]


def delays(asked: str, *groups: str, at: str = "", options: str = "") -> Asked:
    """The question for each group, by the place of its answer in the .json."""
    of_week = {"weekday_hour": "&distribution=true"}
    return {
        at + by: f"/average_delays?{asked}&group_by={by}{options or of_week.get(by, '')}"
        for by in groups
    }


def board(asked: str, departures: str = "") -> Asked:
    hours = {"hours": f"/average_delays?{asked}&group_by=hour"}
    return hours | ({"departures": departures} if departures else {})


def compared(*asked: str) -> Asked:
    return {f"compared.{n}": f"/average_delays?{query}" for n, query in enumerate(asked)}


PAGES: list[tuple[str, Asked]] = [
    (f"/rankings?by=carrier&{DAYS}", delays(DAYS, "carrier", at="ranked.")),
    (f"/rankings?by=route&{WN}&{DAYS}", delays(f"{WN}&{DAYS}", "route", at="ranked.")),
    (
        f"/route?{THERE}",
        delays(THERE, "carrier", options="&distribution=true")
        | delays(THERE, *WEEK, "route")
        | {"back": f"/average_delays?{BACK}"},
    ),
    (
        f"/airports/LAX?{DAYS}",
        delays(f"ORIGIN=LAX&{DAYS}", "carrier", *WEEK, "destination", at="leaving.")
        | delays(f"DEST=LAX&{DAYS}", "origin", at="arriving."),
    ),
    (f"/days?ORIGIN=LAX&{DAYS}", delays(f"ORIGIN=LAX&{DAYS}", "day", "month")),
    (f"/days/2015-01-03?{WN}", delays(f"{WN}&{DAY}", "carrier", "hour", "origin", "destination")),
    *(
        (path, board(f"ORIGIN=LAX&{DAY}", path))
        for path in (f"/departures?FL_DATE=2015-01-03&ORIGIN=LAX{hour}" for hour in ("", "&hour=7"))
    ),
    (f"/departures?{THERE}", board(THERE, f"/average_delays?{THERE}&group_by=departure")),
    (f"/departures?DEST=ORD&{DAYS}", board(f"DEST=ORD&{DAYS}")),
    (
        f"/report?OP_CARRIER_FL_NUM=1&{DAYS}",
        {"": "/filter_transactions?OP_CARRIER_FL_NUM=1&FL_DATE=2015-01-02&FINAL_DATE=2015-01-08"},
    ),
    (
        f"/average_delays?{OO}&ORIGIN=LAX&{DAYS}",
        delays(
            f"{OO}&ORIGIN=LAX&{DAYS}", "day", *WEEK, at="carriers.0 ", options="&distribution=true"
        ),
    ),
    (FLIGHT, {"": FLIGHT}),
    (
        f"/flight_counter?{THERE}",
        {f" {by}": f"/flight_counter?{THERE}&group_by={by}" for by in ("day", "carrier")}
        | {"reverse_count": f"/flight_counter?{BACK}"},
    ),
    (
        f"/compare?what=destination&ORIGIN=ATL&item=MIA&item=chicago&{DAYS}",
        compared(f"ORIGIN=ATL&DEST=MIA&{DAYS}", f"ORIGIN=ATL&DEST_CITY_NAME=Chicago,+IL&{DAYS}"),
    ),
    (
        f"/compare?what=days&{WN}&item=3 January 2015&item=2 to 8 January 2015",
        compared(f"{WN}&{DAY}", f"{WN}&{DAYS}"),
    ),
]


# --- .json and .csv ------------------------------------------------------------------------------

KEYS = ("group_by", "name", "TRANSACTION_ID", "OP_CARRIER_AIRLINE_ID", "OP_CARRIER_FL_NUM",
    "ORIGIN", "DEST", "departure", "FL_DATE", "month", "DAY_OF_WEEK", "hour", "from")  # fmt: skip
"""What tells the rows of an answer apart."""


def key_of(row: Mapping[str, Any]) -> str:
    return str([str(row.get(name, "")) for name in KEYS])


def require_in(shown: Any, expected: Any) -> None:
    """Require all of `expected` in `shown`, rows in any order; joined answers show one question."""
    if isinstance(expected, dict):
        for name in expected.keys() - {"groups", "group_by"}:
            if expected[name] is not True:
                require_in(shown[name], expected[name])
    elif isinstance(expected, list):
        assert len(shown) == len(expected)
        for row, other in zip(sorted(shown, key=key_of), sorted(expected, key=key_of), strict=True):
            require_in(row, other)
    else:
        assert shown == expected


def at(twin: Json, place: str) -> Any:
    """Return the value at a place; a group behind a space chooses one of several joined answers."""
    value: Any = twin
    for name in filter(None, place.partition(" ")[0].split(".")):
        value = value[int(name)] if name.isdigit() else value[name]
    return value


def rows_in(answer: Json) -> tuple[str, list[Json]]:
    """The groups of an answer, or its flights, or all of it as one row; and what they are."""
    for name, rows in answer.items():
        if name.startswith("by_"):
            return name[3:], [{**row, "group_by": name[3:], "name": name_of(row)} for row in rows]
    flights = answer.get("flights")
    return ("flights", flights) if isinstance(flights, list) else ("", [answer])


def name_of(row: Json) -> str:
    """The name of a group on pages."""
    named = [end for end in ("ORIGIN", "DEST") if f"{end}_CITY_NAME" in row]
    ends = [f"{row[f'{end}_CITY_NAME']} ({row[end]})" for end in named]
    if ends or "departure" in row:
        return " to ".join(ends)
    if "OP_CARRIER_AIRLINE_ID" in row:
        carrier = CARRIER[row["OP_CARRIER_AIRLINE_ID"]]
        return f"{carrier.name} ({carrier.code})"
    if "FL_DATE" in row:
        return long_day(row["FL_DATE"])
    if "month" in row:
        return f"{date.fromisoformat(row['month'] + '-01'):%B %Y}"
    hour = "{0:02}:00–{0:02}:59".format(row["hour"]) if "hour" in row else ""
    weekday = calendar.day_name[row["DAY_OF_WEEK"] - 1] if "DAY_OF_WEEK" in row else ""
    return f"{weekday} {hour}".strip()


def as_text(row: Json, columns: Iterable[str]) -> dict[str, str]:
    return {n: "" if row[n] is None else str(row[n]) for n in columns if n in row}


# --- the page ------------------------------------------------------------------------------------

Groups = Mapping[str, list[Json]]


def of_group(row: Json) -> list[str]:
    """The cells of a group in a table."""
    if "count" in row:
        return [str(row["count"])]
    cancelled = share(row["cancelled"] / row["flights"] if row["flights"] else None)
    on_time = (share(row[f"on_time_share_of_{what}"]) for what in ("scheduled", "arrived"))
    return [number(row["flights"]), minutes(row["average_delay"], 1), *on_time, cancelled]


def of_slot(row: Json) -> list[str]:
    """The cells of a day in the table below a chart, behind its name."""
    day = date.fromisoformat(row["FL_DATE"])
    name = f"{day:%a} {day.day} {day:%b %Y}"
    if "count" in row:
        return [name, str(row["count"])]
    mean, arrived = number(row["average_delay"], 1), share(row["on_time_share_of_arrived"])
    counts = (number(row[name]) for name in ("flights", "arrived", "cancelled", "no_arrival"))
    return [name, mean, arrived, *counts]


TABLES = {
    **{by: by for by in ("carrier", "origin", "destination", "hour")},
    "carriers": "carrier",
    "origins": "origin",
    "destinations": "destination",
    "worst": "day",
    "worst-months": "month",
    "each-slot": "day",
    "hours": "hour",
    "pairs": "route",
    "ranking": "",
    "few": "",
    "compared": "",
}
"""Caption -> the groups that are its rows; "" for those of the only answer, or of each."""


def tables_of(page: str) -> Iterator[tuple[str, list[list[str]]]]:
    """The tables by the ids of their captions: the name and the cells of each row."""
    for part in page.split('<caption id="')[1:]:
        caption, _, body = part.partition("</table>")[0].partition('"')
        yield caption, [*map(cells_of, body.split('<th scope="row">')[1:])]


def cells_of(row: str) -> list[str]:
    head, _, cells = row.replace("\N{NO-BREAK SPACE}min", " min").partition("</th>")
    name = re.sub(r"<small.*?</small>|<[^>]+>", "", head)
    texts = [name, *re.findall(r"<td[^>]*>([^<]*)", cells)]
    return [text.strip() for text in texts if text.strip()]


def require_table(caption: str, rows: list[list[str]], groups: Groups) -> None:
    """Each row is that of a group, as far as it goes."""
    answered = groups[TABLES[caption] or next(iter(groups))]
    if caption == "compared":
        assert sorted(cells[1:] for cells in rows) == sorted(map(of_group, answered))
        return
    if caption == "each-slot":
        expected = [of_slot(row) for row in answered]
    else:
        expected = [[name_of(row), *of_group(row)] for row in answered]
    known = {cells[0]: cells for cells in expected}
    for cells in rows:
        group = known.get(cells[0], [cells[0], "0"])  # a day without flights
        assert cells[: len(group)] == group[: len(cells)], caption


def week_in(groups: Groups) -> dict[tuple[str, str], str]:
    """The cells of the table of hours and weekdays."""
    cells = {}
    for row in (row for by in ("weekday_hour", "hour", "weekday") for row in groups[by]):
        hour = f"{row['hour']:02}:00" if "hour" in row else "All hours"
        day = WEEKDAYS[row["DAY_OF_WEEK"] - 1] if "DAY_OF_WEEK" in row else "All"
        cells[hour, day] = f"{100 * row['on_time_share_of_scheduled']:.0f}"
    return cells


@each_of("more", ["", "&as_of=3&engine=scan"])
@each_of(("address", "asked"), PAGES)
def test_numbers_are_those_of_the_service(
    pages: FlaskClient, service: Service, address: str, asked: Asked, more: str
) -> None:
    path, query = address.split("?")
    twin = pages.get(f"{path}.json?{query}{more}").get_json()
    in_lines = pages.get(f"{path}.csv?{query}{more}")
    lines = rows_of(in_lines)
    groups: dict[str, list[Json]] = {}
    for place, question in asked.items():
        answer = service.get(question + more).json()
        by, rows = rows_in(answer)
        as_of = answer["as_of"]
        groups[by] = [*groups.get(by, ()), *rows]
        if place.startswith("compared"):
            answer = {name: answer[name] for name in FIGURES}
            lines = [line | {"name": ""} for line in lines]  # as people wrote it
        if place.startswith("ranked"):
            require_in([*twin["ranked"], *twin["few_flights"]], rows)
        elif place == "reverse_count":
            assert twin[place] == answer["count"]
        else:
            require_in(at(twin, place), answer)
    assert in_lines.headers["X-Flightchain-As-Of"] == " ".join(map(str, as_of.values()))
    of_days = ["day"] if path in {"/average_delays", "/flight_counter"} else []
    listed = [by for by in ("flights", "departure") if by in groups] or of_days
    in_csv = [row for by in listed or groups.keys() - {""} or [""] for row in groups[by]]
    require_in(lines, [as_text(row, lines[0].keys()) for row in in_csv] if lines else [])
    page = html.unescape(raw(pages, f"{address}{more}"))
    for caption, cells in tables_of(page):
        if caption == "hours" and "weekday_hour" in groups:
            assert week_of(page, caption) == week_in(groups)
        elif caption in TABLES:
            require_table(caption, cells, groups)
