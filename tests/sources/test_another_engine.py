"""DuckDB, which reads a file of Kaggle by itself, and the service answer the same questions."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from flask.testing import FlaskClient

from backend.chain.fields import FIELD_NAMES
from backend.sources import open_source, validated
from backend.sources.generated import Generated
from tests.api.worlds import Json, client_of, settings_for
from tests.duckdb_judge import require_agreement
from tests.flights import import_flights

FLIGHTS, SEED, QUESTIONS = 6000, 33, 34
DAYS = 12
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


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made-up flights as "Airline Delay and Cancellation Data" has them, numbers with decimals."""
    path = tmp_path_factory.mktemp("kaggle") / "2015.csv"
    with path.open("w", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow([*TITLES.values(), "Unnamed: 27"])
        source = Generated(FLIGHTS, SEED, flights_per_day=FLIGHTS // DAYS)
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
def client(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    settings = settings_for(tmp_path_factory.mktemp("ledger"))
    assert import_flights(settings, open_source(file)).imported == FLIGHTS
    with client_of(settings) as flask_client:
        yield flask_client


def test_they_agree_about_100_random_questions(file: Path, client: FlaskClient) -> None:
    database = duckdb.connect()
    database.execute("CREATE TABLE carriers (OP_CARRIER_AIRLINE_ID INTEGER, OP_CARRIER VARCHAR)")
    database.executemany("INSERT INTO carriers VALUES (?, ?)", list(CODES.items()))
    joined = "SELECT * FROM read_csv(?) JOIN carriers USING (OP_CARRIER)"
    database.execute(f"CREATE TABLE flights AS {joined}", [str(file)])

    def ask(question: str, **given: Any) -> Json:
        answer: Json = client.get(f"/{question}", query_string=given).get_json()
        return answer

    require_agreement(database, ask, QUESTIONS)
