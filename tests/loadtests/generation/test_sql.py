"""Statements to a real MariaDB, timed."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from loadtests.generation import sql
from loadtests.generation.asking import asker_to
from loadtests.generation.client import Answer, received_by
from loadtests.generation.run import Generator
from loadtests.generation.schedule import Request, arrivals
from loadtests.generation.sql import SqlClient, SqlOrigin
from loadtests.processes import free_port
from loadtests.servers.mariadb import PATH, Database, mariadb
from tests.loadtests.servers.conftest import FLIGHTS, written


@pytest.mark.parametrize("url", ["mariadb://127.0.0.1:1", "http://lab@127.0.0.1", "mariadb://lab@"])
def test_a_url_needs_user_and_host(url: str) -> None:
    with pytest.raises(ValueError, match="it must be like mariadb://lab@127"):
        SqlOrigin(url)


def test_whom_nobody_can_ask_is_refused() -> None:
    with pytest.raises(ValueError, match="must begin with http, https, mariadb"):
        asker_to("ftp://127.0.0.1")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    folder = tmp_path_factory.mktemp("mariadb")
    with mariadb(folder, folder / "log", workers=3) as running:
        running.load(written(folder))
        yield running


def ask(database: Database, statement: str, timeout_s: float = 30.0) -> Answer:
    answers: list[Answer] = []
    client = SqlClient(SqlOrigin(database.url), timeout_s=timeout_s)
    client.ask(PATH, answers.append, statement)
    (answer,) = answers
    assert answer.sent_s <= answer.done_s
    return answer


def test_rows_and_writes_are_answered_with_200_and_errors_with_500(database: Database) -> None:
    rows = ask(database, "SELECT * FROM flights")
    assert (rows.status, rows.problem, rows.method) == (200, "", "SQL")
    assert rows.body_bytes > 50 * FLIGHTS
    assert ask(database, "SELECT * FROM flights LIMIT 0").status == 200
    insert = (
        "INSERT INTO flights SELECT NULL, YEAR, DAY_OF_WEEK, FL_DATE, OP_CARRIER_AIRLINE_ID, 7777, "
        "ORIGIN_AIRPORT_ID, ORIGIN, ORIGIN_CITY_NAME, ORIGIN_STATE_NM, DEST_AIRPORT_ID, DEST, "
        "DEST_CITY_NAME, DEST_STATE_NM, DEP_TIME, DEP_DELAY, ARR_TIME, ARR_DELAY, CANCELLED, "
        "AIR_TIME FROM flights WHERE TRANSACTION_ID = 5"
    )
    assert ask(database, insert).status == 200
    count = "SELECT COUNT(*) FROM flights.flights WHERE OP_CARRIER_FL_NUM = 7777"
    assert database.ask(count) == [(1,)]  # it is there for others, too
    wrong = ask(database, "SELECT nothing")
    assert wrong.status == 500
    assert "Unknown column" in wrong.problem


def test_what_does_not_come_is_given_up_and_who_is_not_there_is_no_answer(
    database: Database,
) -> None:
    late = ask(database, "SELECT SLEEP(2)", timeout_s=0.2)
    assert (late.status, late.problem) == (0, "no whole answer within 0.2 s")
    nobody = Database(0, free_port(), Path())
    assert ask(nobody, "SELECT 1").status == 0


def test_an_answer_that_is_cut_off_is_none(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = count()

    def cut_off(wire: Any, most: int) -> tuple[bytes, float]:
        return received_by(wire, 50) if next(pieces) < 3 else (b"", 0.0)

    monkeypatch.setattr(sql, "received_by", cut_off)
    cut = ask(database, "SELECT * FROM flights")
    assert (cut.status, cut.body_bytes) == (0, 150)
    assert "Lost connection" in cut.problem


def test_locust_sends_statements_as_it_sends_requests(database: Database, tmp_path: Path) -> None:
    slow = Request("slow", PATH, body="SELECT SLEEP(0.05), 'one'', two'")
    calibration = Generator(tmp_path).calibrate(database, {"slow": [slow]}, "alone", requests=3)
    assert 0.05 <= calibration.mean_s < 5
    times_s = [0.01 * place for place in range(6)]
    record = Generator(tmp_path).open(database, arrivals(times_s, [slow] * 6), "open")
    assert [row.status for row in record.rows] == [200] * 6
    assert all(row.open_response_s >= 0.05 for row in record.rows)
    assert record.rows[0].sent_s < record.rows[-1].done_s
