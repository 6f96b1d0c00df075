"""A real MariaDB: what is loaded is what was exported, and nobody may do more than they need."""

from contextlib import closing
from pathlib import Path

import pymysql
import pytest

from loadtests.processes import HOST, ProgramFailed
from loadtests.servers import mariadb as module
from loadtests.servers.mariadb import DATABASE, INDEXES, MISSING, USER, Database, mariadb

from .conftest import FLIGHTS, HEADER, row, written


def value(database: Database, what: str) -> object:
    return database.ask(f"SELECT {what} FROM {DATABASE}.flights")[0][0]


def test_every_flight_is_loaded_the_one_with_number_0_too(database: Database) -> None:
    assert value(database, "COUNT(*)") == FLIGHTS
    ids = value(database, "MIN(TRANSACTION_ID)"), value(database, "MAX(TRANSACTION_ID)")
    assert ids == (0, 999)
    assert value(database, "MAX(DEST_CITY_NAME)") == 'Las "Vegas", NV'
    assert value(database, "SUM(ARR_DELAY IS NULL)") == value(database, "SUM(CANCELLED)") == 100
    arrived = [number % 7 for number in range(FLIGHTS) if number % 10]
    assert float(str(value(database, "AVG(ARR_DELAY)"))) == pytest.approx(
        sum(arrived) / len(arrived), abs=1e-4
    )


def test_a_file_whose_flights_are_not_all_different_is_refused(
    database: Database, tmp_path: Path
) -> None:
    path = written(tmp_path, 3)
    path.write_bytes(path.read_bytes() + f"{row(2)}\r\n".encode())
    with pytest.raises(ProgramFailed, match="loaded 3 of the 4 flights"):
        database.load(path)
    database.load(written(tmp_path))


def plan(database: Database, statement: str) -> str:
    return str(database.ask(f"EXPLAIN {statement}"))


def test_indexes_answer_the_questions_and_are_gone_again(database: Database) -> None:
    question = (
        f"SELECT AVG(ARR_DELAY) FROM {DATABASE}.flights WHERE OP_CARRIER_AIRLINE_ID = 19393 "
        "AND FL_DATE BETWEEN '2015-01-02' AND '2015-01-04'"
    )
    before = database.ask(question)
    assert not any(name in plan(database, question) for name in INDEXES)
    database.create_indexes()
    assert "by_carrier" in plan(database, question)
    assert "Using index" in plan(database, question)  # from the index alone
    assert database.ask(question) == before


def test_workers_are_groups_of_its_thread_pool(database: Database) -> None:
    def setting(name: str) -> str:
        return str(database.ask(f"SELECT @@{name}")[0][0])

    assert (setting("thread_handling"), setting("thread_pool_size")) == ("pool-of-threads", "3")
    database.set_workers(5)
    assert setting("thread_pool_size") == "5"
    database.set_workers(3)


def test_the_user_of_the_load_may_read_and_write_flights_and_nothing_else(
    database: Database,
) -> None:
    with closing(
        pymysql.connect(host=HOST, port=database.port, user=USER, autocommit=True)
    ) as connection:
        cursor = connection.cursor()
        for statement in (
            f"DROP TABLE {DATABASE}.flights",
            f"DELETE FROM {DATABASE}.flights",
            "SELECT * FROM mysql.global_priv",
            "CREATE DATABASE other",
            "SET GLOBAL thread_pool_size = 1",
        ):
            with pytest.raises(pymysql.MySQLError, match="denied"):
                cursor.execute(statement)
    with pytest.raises(pymysql.OperationalError, match="denied"):
        pymysql.connect(host=HOST, port=database.port, user="root")


def test_without_its_programs_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(module, "_FOLDERS", (str(tmp_path),))
    with pytest.raises(ProgramFailed) as problem, mariadb(tmp_path, tmp_path / "log", workers=3):
        pass
    assert str(problem.value) == MISSING
    assert "sudo apt install mariadb-server-core mariadb-client-core" in MISSING


def test_scripts_install_what_it_asks_for() -> None:
    script = Path(module.__file__).parents[2] / "scripts" / "lib.sh"
    text = script.read_text(encoding="utf-8")
    for package in ("mariadb-server-core", "mariadb-client-core"):
        assert f"need {package} " in text
        assert package in MISSING


def test_the_columns_are_those_of_an_export() -> None:
    assert set(module.COLUMNS) == set(HEADER.split(",")) - {"timestamp", "BLOCK_HEIGHT"}
