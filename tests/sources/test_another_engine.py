"""DuckDB, which reads a file of Kaggle by itself, and the service answer the same questions."""

import csv
import random
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from flask.testing import FlaskClient

from backend.chain.fields import FIELD_NAMES
from backend.sources import open_source, validated
from backend.sources.generated import Generated
from tests.api.worlds import Json, client_of, settings_for
from tests.flights import import_flights

FLIGHTS, SEED, QUESTIONS = 6000, 33, 34
FIRST, DAYS = date(2015, 3, 1), 12
CODES = {
    19393: "WN", 19790: "DL", 19805: "AA", 19930: "AS", 19977: "UA", 20304: "OO",
    20355: "US", 20366: "EV", 20398: "MQ", 20409: "B6", 20416: "NK", 20436: "F9",
    19690: "HA", 21171: "VX",
}  # fmt: skip
TITLES = {
    "FL_DATE": "FL_DATE",
    "OP_CARRIER_AIRLINE_ID": "OP_CARRIER",
    **dict(zip(FIELD_NAMES[13:], FIELD_NAMES[13:], strict=True)),
    **{name: name for name in ("OP_CARRIER_FL_NUM", "ORIGIN", "DEST")},
}

Ask = Callable[..., list[Any]]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made-up flights as "Airline Delay and Cancellation Data" has them, numbers with decimals."""
    path = tmp_path_factory.mktemp("kaggle") / "2015.csv"
    with path.open("w", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow([*TITLES.values(), "Unnamed: 27"])
        source = Generated(FLIGHTS, SEED, FIRST, flights_per_day=FLIGHTS // DAYS)
        for batch in validated(source):
            for row in zip(*batch, strict=True):
                flight = dict(zip(FIELD_NAMES, row, strict=True))
                writer.writerow([*(_cell(name, flight[name]) for name in TITLES), ""])
    return path


def _cell(name: str, value: Any) -> str:
    if name == "OP_CARRIER_AIRLINE_ID":
        return CODES[value]
    if value is None or name in {"FL_DATE", "ORIGIN", "DEST", "OP_CARRIER_FL_NUM"}:
        return "" if value is None else str(value)
    return f"{float(value)}"


@pytest.fixture(scope="module")
def judge(file: Path) -> Ask:
    database = duckdb.connect()
    database.execute("CREATE TABLE flights AS SELECT * FROM read_csv(?)", [str(file)])

    def ask(condition: str, *values: Any, what: str = "count(*)") -> list[Any]:
        sql = f"SELECT {what} FROM flights WHERE {condition}"
        return database.execute(sql, list(values)).fetchall()

    return ask


@pytest.fixture(scope="module")
def client(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    settings = settings_for(tmp_path_factory.mktemp("ledger"))
    assert import_flights(settings, open_source(file)).imported == FLIGHTS
    with client_of(settings) as found:
        yield found


def test_they_agree_about_flights(client: FlaskClient, judge: Ask) -> None:
    chance = random.Random(SEED)
    known = judge("true", what="OP_CARRIER_FL_NUM, FL_DATE")
    for number, day in chance.sample(known, QUESTIONS):
        answer = _answer(client, "filter_transactions", OP_CARRIER_FL_NUM=number, FL_DATE=day)
        legs = [
            (CODES[leg["OP_CARRIER_AIRLINE_ID"]], leg["ORIGIN"], leg["DEST"], leg["ARR_DELAY"])
            for leg in answer["flights"]
        ]
        condition = "OP_CARRIER_FL_NUM = ? AND FL_DATE = ?"
        wanted = judge(condition, number, day, what="OP_CARRIER, ORIGIN, DEST, ARR_DELAY")
        assert sorted(map(str, legs)) == sorted(str((*leg[:3], _whole(leg[3]))) for leg in wanted)


def test_they_agree_about_delays(client: FlaskClient, judge: Ask) -> None:
    chance = random.Random(SEED)
    what = "count(*), count(ARR_DELAY), sum(CANCELLED), avg(ARR_DELAY)"
    for _ in range(QUESTIONS):
        (number, code), days = chance.choice(list(CODES.items())), _interval(chance)
        answer = _answer(client, "average_delays", OP_CARRIER_AIRLINE_ID=number, **days)
        condition = "OP_CARRIER = ? AND FL_DATE BETWEEN ? AND ?"
        ((flights, arrived, cancelled, mean),) = judge(condition, code, *days.values(), what=what)
        assert (answer["flights"], answer["arrived"]) == (flights, arrived)
        assert answer["cancelled"] == (cancelled or 0)
        assert answer["average_delay"] == (None if mean is None else pytest.approx(mean))


def test_they_agree_about_counts(client: FlaskClient, judge: Ask) -> None:
    chance = random.Random(SEED)
    routes = judge("true", what="DISTINCT ORIGIN, DEST")
    for origin, destination in chance.sample(sorted(routes), QUESTIONS):
        days = _interval(chance)
        answer = _answer(client, "flight_counter", ORIGIN=origin, DEST=destination, **days)
        condition = "ORIGIN = ? AND DEST = ? AND FL_DATE BETWEEN ? AND ?"
        ((count,),) = judge(condition, origin, destination, *days.values())
        assert answer["count"] == count


def _answer(client: FlaskClient, question: str, **given: Any) -> Json:
    answer: Json = client.get(f"/{question}", query_string=given).get_json()
    return answer


def _interval(chance: random.Random) -> dict[str, str]:
    """Days that may begin before the first flight and end after the last."""
    first = FIRST + timedelta(chance.randrange(-2, DAYS))
    last = first + timedelta(chance.randrange(DAYS))
    return {"INITIAL_DATE": first.isoformat(), "FINAL_DATE": last.isoformat()}


def _whole(minutes: float | None) -> int | None:
    return None if minutes is None else round(minutes)
