"""`verify` against an index that was tampered with, table by table and column by column."""

import shutil
from contextlib import closing
from itertools import cycle
from pathlib import Path
from typing import Any

import apsw
import pytest

from backend.base.errors import Damage
from backend.base.settings import PROJECT
from backend.index.index_file import index_path
from backend.index.totals import COUNTS
from backend.verify.audit import verify
from tests.cases import each_of
from tests.effort import tries
from tests.index.worlds import execute, follow, make_chain, opened, page_of
from tests.storage.chains import flip
from tests.verify import test_audit

pytestmark = pytest.mark.slow

WRONG = r"^the index is wrong: .*; run `.* reindex`$"
good, folder = test_audit.good, test_audit.folder
AHEAD = r"^the chain has lost blocks: .*index\.sqlite has \d+;"


FIXED = {("position", "only")}  # SQLite allows no other value


_COLUMNS = """
    SELECT t.name, c.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
    WHERE t.type = 'table' ORDER BY t.rowid, c.cid"""


def columns_of_index() -> list[tuple[str, str]]:
    """(table, column) of everything the index holds, by its own schema."""
    schema = (PROJECT / "backend/index/schema.sql").read_text(encoding="utf-8")
    with closing(apsw.Connection(":memory:")) as connection:
        connection.execute(schema)
        columns: list[Any] = connection.execute(_COLUMNS).fetchall()
    return columns


COLUMNS = columns_of_index()
TABLES = list(dict.fromkeys(table for table, _ in COLUMNS))


# So that all columns together try every row of a table; of each column all where faults are sought.
A_STEP = tries(12, exploring=1)


@each_of(("table", "column"), [where for where in COLUMNS if where not in FIXED])
def test_a_changed_value_in_any_row_and_column_of_the_index_is_found(
    folder: Path, table: str, column: str
) -> None:
    first = COLUMNS.index((table, column)) % A_STEP
    path = index_path(folder)
    whole = path.read_bytes()
    where, rows = rows_by_key(folder, table, column)
    for value, *key in rows[min(first, len(rows) - 1) :: A_STEP]:
        change_row(folder, f"UPDATE {table} SET {column} = ? WHERE {where}", other(value), *key)
        with pytest.raises(
            Damage, match=AHEAD if (table, column) == ("position", "height") else WRONG
        ):
            verify(folder)
        path.write_bytes(whole)


def rows_by_key(folder: Path, table: str, column: str = "NULL") -> tuple[str, list[Any]]:
    """Condition on the primary key of a table, and a column and the key of each of its rows."""
    with closing(opened(folder)) as connection:
        columns: list[Any] = connection.execute(f"PRAGMA table_info({table})").fetchall()
        keys = [info[1] for info in columns if info[5]]
        listed = ", ".join(keys)
        select = f"SELECT {column}, {listed} FROM {table} ORDER BY {listed}"
        rows: list[Any] = connection.execute(select).fetchall()
    assert rows
    return " AND ".join(f"{key} = ?" for key in keys), rows


def other(value: object) -> object:
    """Another value that a table allows."""
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, bytes):
        return value[:-1] + bytes([value[-1] ^ 1])  # another last count
    return value + 1000 if isinstance(value, int) else 1000


def change_row(folder: Path, statement: str, *values: Any) -> None:
    with closing(opened(folder)) as connection:
        connection.execute(statement, values)
        assert connection.changes() == 1


SPELLINGS = {
    "a longer head": "unhex('de000' || substr(hex(counts), 2))",
    "text": "CAST(counts AS TEXT)",
    "nothing": "x''",
    "more behind it": "unhex(hex(counts) || '00')",
    "a delay of no flight": "unhex(printf('8%x', 1 + CAST(substr(hex(counts), 2, 1) AS INTEGER))"
    " || substr(hex(counts), 3) || 'CD270F00')",
}


@pytest.mark.parametrize(("spelling", "span"), list(zip(SPELLINGS, cycle((0, 1, 2)), strict=False)))
def test_a_distribution_in_another_spelling_is_found(
    folder: Path, spelling: str, span: int
) -> None:
    execute(folder, f"UPDATE carrier_delays SET counts = {SPELLINGS[spelling]} WHERE span = {span}")
    with pytest.raises(Damage, match=r"carrier_delays|not UTF-8"):
        verify(folder)


@each_of("table", [table for table in TABLES if table != "position"])
def test_a_missing_row_of_the_index_is_found(folder: Path, table: str) -> None:
    path = index_path(folder)
    whole = path.read_bytes()
    where, rows = rows_by_key(folder, table)
    for _, *key in rows[::A_STEP]:
        change_row(folder, f"DELETE FROM {table} WHERE {where}", *key)
        with pytest.raises(Damage, match=WRONG):
            verify(folder)
        path.write_bytes(whole)


EXTRA = {
    "flight": "INSERT INTO flight SELECT route, day, id + 1000, number, carrier, dep_time,"
    " dep_delay, arr_time, arr_delay, cancelled, air_time, later FROM flight LIMIT 1",
    "block": "INSERT INTO block VALUES (1000, 1000, 1000)",
    "block within another": "INSERT INTO block SELECT first_transaction + 1, height, timestamp"
    " FROM block LIMIT 1",
    "carrier_total": "INSERT INTO carrier_total VALUES (7, 0, 13881, 1, 0, 1, 1, 1, 5, 8)",
    "carrier_total of nothing": "INSERT INTO carrier_total VALUES (7, 1, 9, 0, 0, 0, 0, 0, 0, 0)",
    "carrier_total of another span": "INSERT INTO carrier_total"
    " VALUES (7, 3, 9, 1, 0, 1, 1, 1, 5, 8)",
    "route": "INSERT INTO route VALUES (1000, 2, 1, 1000)",
    "route that is there": "INSERT INTO route VALUES (1000, 1, 1, 1)",
    "route_total": "INSERT INTO route_total VALUES (1000, 2, 2008, 19393, 1, 0, 1, 1, 1, 5, 8)",
    "route_total of another carrier": "INSERT INTO route_total SELECT route, span, period,"
    f" carrier + 1, {COUNTS} FROM route_total LIMIT 1",
    "route_total of another span": "INSERT INTO route_total"
    " VALUES (1, 3, 2008, 19393, 1, 0, 1, 1, 1, 5, 8)",
    "carrier_slot": "INSERT INTO carrier_slot VALUES (19393, 0, 9, 3, 1, 0, 1, 1, 1, 5, 8)",
    "carrier_slot of nothing": "INSERT INTO carrier_slot VALUES (7, 1, 9, 3, 0, 0, 0, 0, 0, 0, 0)",
    "carrier_slot of all carriers": "INSERT INTO carrier_slot"
    " VALUES (0, 0, 9, 3, 1, 0, 1, 1, 1, 5, 8)",
    "carrier_slot of another span": "INSERT INTO carrier_slot"
    f" SELECT carrier, 2, 2008, slot, {COUNTS} FROM carrier_slot LIMIT 1",
    "carrier_slot of a weekday of a day": "INSERT INTO carrier_slot"
    f" SELECT carrier, 0, period, 24, {COUNTS} FROM carrier_slot LIMIT 1",
    "route_slot": "INSERT INTO route_slot VALUES (9, 1, 3, 19393, 1, 0, 1, 1, 1, 5, 8)",
    "route_slot of nothing": "INSERT INTO route_slot VALUES (9, 0, 3, 7, 0, 0, 0, 0, 0, 0, 0)",
    "route_slot of another slot": "INSERT INTO route_slot"
    f" SELECT month, route, 31, carrier, {COUNTS} FROM route_slot LIMIT 1",
    "ranking": "INSERT INTO ranking VALUES (2, 19393, 1, 9, 1, 1, 0, 1, 1, 1, 5, 8)",
    "ranking of nothing": "INSERT INTO ranking VALUES (0, 7, 1, 9, 1, 0, 0, 0, 0, 0, 0, 0)",
    "ranking of all carriers": "INSERT INTO ranking VALUES (1, 0, 2, 9, 1, 1, 0, 1, 1, 1, 5, 8)",
    "ranking of another kind": "INSERT INTO ranking"
    f" SELECT 3, carrier, span, period, item, {COUNTS} FROM ranking LIMIT 1",
    "ranking of another span": "INSERT INTO ranking"
    f" SELECT kind, carrier, 0, period, item, {COUNTS} FROM ranking LIMIT 1",
    "carrier_delays": "INSERT INTO carrier_delays VALUES (7, 0, 13881, x'810501')",
    "carrier_delays of nothing": "INSERT INTO carrier_delays VALUES (7, 1, 9, x'80')",
    "carrier_delays of another span": "INSERT INTO carrier_delays VALUES (7, 3, 9, x'810501')",
    "number_total": "INSERT INTO number_total VALUES (7, 19393, 1)",
    "number_total of nothing": "INSERT INTO number_total VALUES (7, 19393, 0)",
    "city": "INSERT INTO city VALUES (1000, 'Atlantis')",
    "place": "INSERT INTO place VALUES (1000, NULL, 'ZZZ', 1, 'Virginia', 1000, 0)",
    "place twice": "INSERT INTO place SELECT 1000, airport_id, code, city, state, airport, 0"
    " FROM place LIMIT 1",
}


@each_of("extra", EXTRA)
def test_an_extra_row_of_the_index_is_found(folder: Path, extra: str) -> None:
    whole = index_path(folder).read_bytes()
    execute(folder, EXTRA[extra])
    with pytest.raises(Damage, match=WRONG):
        verify(folder)
    index_path(folder).write_bytes(whole)


def test_an_index_of_another_chain_without_flights_is_found(tmp_path: Path) -> None:
    ours, other = tmp_path / "ours", tmp_path / "other"
    make_chain(ours, [[], []])
    make_chain(other, [[], []], genesis_ms=77)
    follow(other)
    shutil.copytree(index_path(other).parent, index_path(ours).parent, symlinks=True)
    with pytest.raises(Damage, match="it is of another chain"):
        verify(ours)


@pytest.mark.parametrize("data", [b"these are no rows of a table\n" * 400, b"these", b""])
def test_an_index_file_that_is_none_is_damage(folder: Path, data: bytes) -> None:
    index_path(folder).write_bytes(data)
    with pytest.raises(Damage, match=WRONG):
        verify(folder)


def test_a_flipped_bit_in_the_names_that_questions_look_up_is_found(folder: Path) -> None:
    """`flight_counter` would say 0."""
    offset, size = page_of(folder, "sqlite_autoindex_city_1")
    flip(index_path(folder), index_path(folder).read_bytes().index(b"Tampa", offset, offset + size))
    with pytest.raises(Damage, match=WRONG):
        verify(folder)
