"""People read the index with SQL of their own: rightly, while it grows, and without harm."""

import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests

from backend.chain.fields import FIELD_NAMES
from backend.index.index_file import index_path
from backend.verify.audit import verify
from tests.api.processes import ROOT, ending, free_port, is_answered, ran, until
from tests.api.worlds import averages_of, generated, seal, settings_for
from tests.faults.disks import read_only
from tests.flights import on_disk
from tests.index.sql_reader import Reader

FLIGHTS = generated(600)
UNNUMBERED = [(*f[:5], None, *f[6:9], None, *f[10:]) for f in FLIGHTS[:200]]  # the airports


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    seal(settings_for(tmp_path), [UNNUMBERED, [], FLIGHTS[200:300]])
    return tmp_path


@pytest.fixture
def reader(folder: Path) -> Iterator[Reader]:
    reader = Reader(folder)
    yield reader
    if reader.process.returncode is None:
        reader.close()


def test_the_views_say_what_the_blocks_say(folder: Path, reader: Reader) -> None:
    held = on_disk(folder)
    names = ", ".join(FIELD_NAMES)
    rows = reader.ask(f"SELECT {names} FROM flights ORDER BY TRANSACTION_ID")
    assert [tuple(row) for row in rows] == held.flights
    rows = reader.ask("SELECT timestamp, BLOCK_HEIGHT FROM flights ORDER BY TRANSACTION_ID")
    heights = [1] * 200 + [3] * 100
    assert rows == [list(row) for row in zip(held.timestamps, heights, strict=True)]
    flights = [dict(zip(FIELD_NAMES, flight, strict=True)) for flight in held.flights]
    for view, field in (("days", "FL_DATE"), ("carriers", "OP_CARRIER_AIRLINE_ID")):
        rows = reader.ask(
            f"SELECT {field}, flights, cancelled, average_delay FROM {view} ORDER BY 1"
        )
        assert rows == _counted(flights, field)
    ends = [flight[end] for flight in flights for end in ("ORIGIN", "DEST")]
    rows = reader.ask("SELECT code, flights FROM airports")
    assert dict(rows) == {code: ends.count(code) for code in ends}
    numbers = {f["ORIGIN"]: f["ORIGIN_AIRPORT_ID"] for f in flights[200:]}
    assert numbers.items() <= dict(reader.ask("SELECT code, airport_id FROM airports")).items()
    ((code, name),) = reader.ask(
        "SELECT code, name FROM carriers WHERE OP_CARRIER_AIRLINE_ID = 19393"
    )
    assert (code, name) == ("WN", "Southwest Airlines")


def _counted(flights: list[dict[str, Any]], field: str) -> list[list[Any]]:
    groups: dict[Any, list[dict[str, Any]]] = {}
    for flight in flights:
        groups.setdefault(flight[field], []).append(flight)
    names = ("flights", "cancelled", "average_delay")
    averages = {key: averages_of(group) for key, group in sorted(groups.items())}
    return [[key, *(figures[name] for name in names)] for key, figures in averages.items()]


def test_the_join_of_the_page_counts_a_flight_once_where_a_code_has_two_cities(
    folder: Path, reader: Reader
) -> None:
    moved = (*FLIGHTS[200][:7], "Elsewhere, KY", *FLIGHTS[200][8:])
    seal(settings_for(folder), [[moved]])
    page = (ROOT / "docs" / "how-to" / "sql.md").read_text(encoding="utf-8")
    (joined,) = re.findall(r"`(JOIN airports .*?)`", page)
    assert reader.ask(f"SELECT count(*) FROM flights {joined}") == [[301]]
    by_code = "SELECT count(*) FROM flights JOIN airports ON code = ORIGIN"
    assert reader.ask(by_code) > [[301]]


@pytest.mark.parametrize(
    ("condition", "searched"),
    [
        ("DAY_NUMBER = 14000", "flight_by_number (day=?)"),
        ("DAY_NUMBER = 14000 AND OP_CARRIER_FL_NUM = 1", "flight_by_number (day=? AND number=?)"),
        ("ORIGIN = 'LAX'", "PRIMARY KEY (route=?)"),
        ("ORIGIN_CITY_NAME = 'Los Angeles, CA'", "PRIMARY KEY (route=?)"),
    ],
)
def test_flights_of_a_day_or_an_origin_are_looked_up_in_the_index(
    reader: Reader, condition: str, searched: str
) -> None:
    plan = reader.ask(f"EXPLAIN QUERY PLAN SELECT * FROM flights WHERE {condition}")
    assert any(searched in row[3] for row in plan)
    assert not [row for row in plan if row[3].startswith("SCAN flight")]


def test_others_read_while_the_index_grows_and_leave_it_as_it_is(
    folder: Path, reader: Reader
) -> None:
    file = index_path(folder).resolve()
    count = "SELECT (SELECT count(*) FROM flights), (SELECT transactions FROM position)"
    for start in range(300, 600, 100):
        assert reader.ask(count) == [[start, start]]
        seal(settings_for(folder), [FLIGHTS[start : start + 100]])
    assert reader.ask("SELECT sum(flights) FROM days") == [[600]]
    reader.close()
    assert verify(folder).index == "the index agrees with every block"
    assert index_path(folder).resolve() == file


def test_datasette_makes_pages_and_json_of_the_views_while_the_index_grows(folder: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "sql.md").read_text(encoding="utf-8")
    command = re.findall(r"datasette chain_data(/\S+) (.*)", page, re.MULTILINE)
    ((path, options),) = command
    program, port = Path(sys.executable).with_name("datasette"), str(free_port())
    asked = [program, f"{folder}{path}", *options.split(), "--port", port]
    url = f"http://127.0.0.1:{port}/index"

    def got(address: str) -> requests.Response:
        return requests.get(url + address, timeout=30)

    with (
        ending(subprocess.Popen(asked, stderr=subprocess.DEVNULL)),
        ThreadPoolExecutor(1) as writer,
    ):
        until(lambda: is_answered(url))
        for start in range(300, 600, 100):
            written = writer.submit(seal, settings_for(folder), [FLIGHTS[start : start + 100]])
            rows = sorted(got("/flights.json?_size=max").json()["rows"])
            assert len(rows) in {start, start + 100}
            assert [row[1 : 1 + len(FIELD_NAMES)] for row in rows] == [
                list(flight) for flight in on_disk(folder).flights[: len(rows)]
            ]
            written.result()
        assert "Southwest Airlines" in got("/carriers").text
        assert ">Chicago, IL</a>" in got("/place?_size=max").text
    assert verify(folder).index == "the index agrees with every block"


@pytest.mark.slow
def test_an_index_beside_which_nobody_may_write_is_asked_as_a_copy(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("medium")
    page = (ROOT / "docs" / "how-to" / "sql.md").read_text(encoding="utf-8")
    (copying,) = re.findall(r"`(cp .*?)`", page)
    with read_only(folder, root / "chain_data") as point:
        with pytest.raises(sqlite3.OperationalError) as refused:
            _flights_in(index_path(point))
        assert f"*{refused.value}*" in page
        done = ran("sh", "-c", copying, cwd=root)
        assert (done.returncode, done.stderr) == (0, "")
    assert _flights_in(root / copying.split()[-1] / "index.sqlite") == 300


def _flights_in(path: Path) -> int:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        ((count,),) = connection.execute("SELECT count(*) FROM flights")
        return int(count)
