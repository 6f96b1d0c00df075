"""Exports: every selected flight once, in order, and never half a file that looks whole."""

import csv
import gzip
import io
import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from backend.api.streaming import CutAnswerError
from backend.index import queries
from backend.ledger.answers import Answers
from backend.questions import scan
from backend.questions.groups import GROUPS
from backend.sources import open_source
from tests.api.processes import ROOT
from tests.api.worlds import (
    GOOD,
    Json,
    World,
    asked_for,
    client_of,
    problem,
    seal,
    settings_for,
    world_in,
)
from tests.cases import each_of
from tests.flights import import_flights, on_disk
from tests.storage.chains import block_file, flip

ALL = {"INITIAL_DATE": "2015-01-01", "FINAL_DATE": "2015-12-31"}
NAMES = ["TRANSACTION_ID", "timestamp", *GOOD, "BLOCK_HEIGHT"]


def export(
    client: FlaskClient, headers: Json | None = None, *, buffered: bool = True, **more: object
) -> TestResponse:
    """An export. buffered: whether it has been read to its end, or goes on as it is read."""
    path = f"/flights?{urlencode({**ALL, **more})}"
    return client.get(path, headers=headers, buffered=buffered)


def lines_of(response: TestResponse) -> tuple[list[Json], Json]:
    """The flights of an NDJSON export, and its last line."""
    assert response.headers["Content-Type"] == "application/x-ndjson"
    *flights, end = [json.loads(line) for line in response.get_data().splitlines()]
    return flights, end


def table_of(response: TestResponse) -> tuple[list[str], list[dict[str, str]]]:
    assert response.headers["Content-Type"].startswith("text/csv")
    reader = csv.DictReader(io.StringIO(response.get_data(as_text=True), newline=""), strict=True)
    rows = list(reader)
    return list(reader.fieldnames or []), rows


def as_text(flight: Json) -> dict[str, str]:
    return {name: "" if value is None else str(value) for name, value in flight.items()}


SELECTIONS: list[Json] = [
    {},
    {"INITIAL_DATE": "2015-01-03", "FINAL_DATE": "2015-01-04"},
    {"OP_CARRIER_AIRLINE_ID": 19393},
    {"ORIGIN_CITY_NAME": "Chicago, IL"},
    {"DEST_CITY_NAME": "Atlanta, GA", "FINAL_DATE": "2015-01-05"},
    {"as_of": 4},
    {"as_of": 0},
    {"ORIGIN_CITY_NAME": "Nowhere"},
    {"ORIGIN": "ORD"},
    {"DEST": "ATL", "OP_CARRIER_AIRLINE_ID": 19393},
]


def expected(world: World, selection: Json) -> list[Json]:
    asked = {**ALL, **selection}
    return asked_for(world.below(asked.pop("as_of", None)), asked)


@each_of("selection", SELECTIONS)
def test_an_export_has_what_a_plain_loop_finds(
    client: FlaskClient, world: World, selection: Json
) -> None:
    wanted = expected(world, selection)
    flights, end = lines_of(export(client, format="ndjson", **selection))
    assert flights == wanted
    assert end == {
        "complete": True,
        "count": len(wanted),
        "as_of": world.as_of(selection.get("as_of")),
    }
    table = export(client, format="csv", **selection)
    stands = end["as_of"]
    assert table.headers["X-Flightchain-As-Of"] == f"{stands['height']} {stands['tip_hash']}"
    names, rows = table_of(table)
    assert names == NAMES
    assert rows == list(map(as_text, wanted))


@pytest.mark.slow
def test_pandas_has_times_as_text_by_the_calls_of_the_page(
    client: FlaskClient, world: World
) -> None:
    pandas = pytest.importorskip("pandas")
    page = (ROOT / "docs" / "reference" / "rest.md").read_text(encoding="utf-8")
    read_csv, read_json = re.findall(r"`(pandas\.read_\w+\(address, .*?\))`", page)
    times = [flight["DEP_TIME"] for flight in expected(world, {})]
    for call, answer in (
        (read_csv, export(client, format="csv")),
        (read_json, export(client, format="ndjson", trailer="false")),
    ):
        address = io.StringIO(answer.get_data(as_text=True))
        table = eval(call, {"pandas": pandas, "address": address})
        column = table["DEP_TIME"].astype(object)
        assert column.where(column.notna(), None).tolist() == times


def test_the_selections_select_something(world: World) -> None:
    counts = [len(expected(world, selection)) for selection in SELECTIONS]
    assert counts[0] == len(world.transactions) > 1000
    assert all(0 < count < counts[0] for count in counts[1:6] + counts[8:])
    assert counts[6:8] == [0, 0]


@each_of("limit", [1, 7, 100, 1000])
@each_of("form", ["csv", "ndjson"])
def test_pages_of_an_export_are_the_whole(
    client: FlaskClient, world: World, limit: int, form: str
) -> None:
    """With limit 1 the first five pages alone."""
    selection: Json = {"ORIGIN_CITY_NAME": "Chicago, IL"}
    wanted = expected(world, selection)[: 5 if limit == 1 else None]
    pages: list[dict[str, str]] = []
    cursor = 0
    while len(pages) < len(wanted):
        more: Json = {"cursor": cursor, "limit": limit, "format": form, "trailer": "false"}
        answer = export(client, **selection, **more)
        page = (
            table_of(answer)[1]
            if form == "csv"
            else list(map(as_text, map(json.loads, answer.get_data().splitlines())))
        )
        assert 0 < len(page) <= limit
        pages += page
        cursor = int(page[-1]["TRANSACTION_ID"]) + 1
    assert pages == list(map(as_text, wanted))
    beyond = export(client, cursor=len(world.transactions), trailer="false", format="ndjson")
    assert beyond.status_code == 200
    assert beyond.get_data() == b""


ACCEPTED = [
    (None, "ndjson"),
    ("*/*", "ndjson"),
    ("text/csv", "csv"),
    ("TEXT/CSV", "csv"),
    ("text/*", "csv"),
    ("application/*", "ndjson"),
    ("application/x-ndjson", "ndjson"),
    ("application/ndjson", "ndjson"),
    ("text/csv;q=0.5, application/x-ndjson", "ndjson"),
    ("text/csv, application/x-ndjson;q=0.5", "csv"),
    ("text/html,application/xml;q=0.9,*/*;q=0.8", "ndjson"),
    ("*/*, application/x-ndjson;q=0", "csv"),
    ("text/csv;header=absent;q=0.1, text/csv;header=present, application/ndjson;q=0.5", "csv"),
]


@each_of(("accepted", "form"), ACCEPTED)
def test_the_format_is_what_the_client_accepts(
    client: FlaskClient, accepted: str | None, form: str
) -> None:
    headers = {} if accepted is None else {"Accept": accepted}
    response = export(client, headers, as_of=1)
    assert response.headers["Content-Disposition"] == f'attachment; filename="flights.{form}"'
    assert ("csv" in response.headers["Content-Type"]) == (form == "csv")
    assert response.headers["Vary"] == "Accept, Accept-Encoding"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    other = export(client, {"Accept": "image/png"}, as_of=1, format=form)
    assert other.get_data() == response.get_data()


def test_who_has_an_export_in_one_format_is_sent_the_other(client: FlaskClient) -> None:
    kept = {"If-None-Match": export(client, {"Accept": "text/csv"}).headers["ETag"]}
    assert export(client, {"Accept": "text/csv", **kept}).status_code == 304
    assert export(client, {"Accept": "application/x-ndjson", **kept}).status_code == 200


def test_a_large_export_is_sent_in_pieces_and_a_small_one_whole(client: FlaskClient) -> None:
    assert "Content-Length" not in export(client).headers
    small = export(client, as_of=1)
    assert int(small.headers["Content-Length"]) == len(small.get_data()) > 0
    packed = export(client, {"Accept-Encoding": "gzip"}, as_of=1)
    assert int(packed.headers["Content-Length"]) == len(packed.get_data()) > 0


@each_of("more", [{}, {"as_of": 1}])
@each_of("form", ["csv", "ndjson"])
def test_a_compressed_export_says_the_same(client: FlaskClient, form: str, more: Json) -> None:
    plain = export(client, format=form, **more)
    packed = export(client, {"Accept-Encoding": "gzip"}, format=form, **more)
    assert gzip.decompress(packed.get_data()) == plain.get_data()
    assert packed.headers["ETag"] != plain.headers["ETag"]


def test_an_export_that_the_client_has_is_not_made_again(
    client: FlaskClient,
) -> None:
    known: dict[tuple[str, int], str] = {}
    heights: list[Json] = [{}, {"as_of": 3}]
    for form in ("csv", "ndjson"):
        for height in heights:
            first = export(client, format=form, **height)
            etag = first.headers["ETag"]
            kept = "public, max-age=600" if height else "no-cache"
            assert first.headers["Cache-Control"] == kept
            assert etag not in known.values()
            known[form, len(height)] = etag
            again = export(client, {"If-None-Match": etag}, format=form, **height)
            assert (again.status_code, again.get_data(), again.headers["ETag"]) == (304, b"", etag)
            assert export(client, {"If-None-Match": "*"}, format=form).status_code == 304


def test_head_of_an_export_walks_nothing(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    get = export(client, format="csv")
    monkeypatch.setattr(Answers, "flights", None)
    head = client.head(f"/flights?{urlencode({**ALL, 'format': 'csv'})}")
    assert (head.status_code, head.get_data()) == (200, b"")
    assert head.headers["ETag"] == get.headers["ETag"]
    assert head.headers["Content-Type"] == get.headers["Content-Type"]


# --- damage --------------------------------------------------------------------------------------


@pytest.fixture
def damaged(tmp_path: Path) -> Iterator[tuple[FlaskClient, World, int]]:
    """A client of a chain with a damaged block in its last quarter, and its height."""
    world = world_in(tmp_path)
    flip(block_file(tmp_path), block_file(tmp_path).stat().st_size * 7 // 8)
    with client_of(world.settings) as client:
        statuses = [client.get(f"/blocks/{height}").status_code for height in range(world.tip + 1)]
        yield client, world, statuses.index(503)


@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_an_export_breaks_off_at_a_damaged_block(
    damaged: tuple[FlaskClient, World, int], form: str, caplog: pytest.LogCaptureFixture
) -> None:
    client, world, height = damaged
    response = export(client, buffered=False, format=form)
    received = b""
    with pytest.raises(CutAnswerError), closing(response):
        for piece in response.iter_encoded():
            received += piece
    assert len(received) >= 64 * 1024
    assert b"complete" not in received
    assert f"block {height} is damaged" in caplog.text
    good = expected(world, {"as_of": height - 1})
    assert received.count(b"\n") <= len(good) + 1
    for _ in range(9):  # more than there are places for exports
        problem(export(client, format=form, ORIGIN_CITY_NAME="Nowhere"), 503)
    assert export(client, format=form, as_of=height - 1).status_code == 200


def test_exports_leave_threads_for_the_others(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_for(world.settings.folder, threads=8)
    with client_of(settings) as client:
        held = [export(client, buffered=False) for _ in range(2)]
        refused = export(client)
        assert problem(refused, 503)
        assert int(refused.headers["Retry-After"]) > 0
        assert not caplog.text  # clients could fill the disk with it
        assert export(client, as_of=999).status_code == 404
        held.pop().close()
        with closing(export(client, buffered=False)) as again:
            assert again.status_code == 200
        held.pop().close()


# --- importing it again --------------------------------------------------------------------------

STRANGE = [
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-Dash",
    "@home",
    "＝wide",
    "＋wide",
    "－wide",
    "＠wide",
    'Quo"ted, "XX"',
    "'s-Hertogenbosch",
    "São  Paulo",
    "a;b\\n",
    ",",
]


@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_what_was_exported_can_be_imported(tmp_path: Path, world: World, form: str) -> None:
    strange = [
        tuple({**GOOD, "OP_CARRIER_FL_NUM": number, "ORIGIN_CITY_NAME": name}.values())
        for number, name in enumerate(STRANGE, 1)
    ]
    settings = settings_for(tmp_path / "strange")
    seal(settings, [strange])
    for source in (settings, world.settings):
        with client_of(source) as client:
            days: Json = {"INITIAL_DATE": "2000-01-01", "FINAL_DATE": "2030-01-01"}
            data = export(client, format=form, **days).get_data()
        file = tmp_path / "exported"
        file.write_bytes(data)
        target = settings_for(tmp_path / f"target-{source.folder.name}")
        tally = import_flights(target, open_source(file))
        assert (tally.imported, tally.bad) == (len(on_disk(source.folder).flights), 0)
        assert on_disk(target.folder).flights == on_disk(source.folder).flights


def test_no_name_in_csv_looks_like_a_formula(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    seal(settings, [[tuple({**GOOD, "DEST_CITY_NAME": name}.values()) for name in STRANGE]])
    days: Json = {"INITIAL_DATE": "2000-01-01", "FINAL_DATE": "2030-01-01"}
    with client_of(settings) as client:
        _, rows = table_of(export(client, format="csv", **days))
        flights, _ = lines_of(export(client, **days))
    assert [row["DEST_CITY_NAME"].lstrip(" ") for row in rows] == STRANGE
    assert not any(row["DEST_CITY_NAME"].startswith(tuple("=+-@＝＋－＠")) for row in rows)
    assert [flight["DEST_CITY_NAME"] for flight in flights] == STRANGE


# --- answers of questions ------------------------------------------------------------------------

LEGS = "/filter_transactions?OP_CARRIER_FL_NUM={OP_CARRIER_FL_NUM}&FL_DATE={FL_DATE}"
DEPARTURES = "/departures?FL_DATE={FL_DATE}"
JANUARY = urlencode({**ALL, "FINAL_DATE": "2015-01-31"})  # as many days as departures may have
TOTALS = [f"/{question}?{JANUARY}" for question in ("average_delays", "flight_counter")]
GROUPED = [(f"{path}&group_by={by}", f"by_{by}") for path in TOTALS for by in GROUPS]


@each_of(
    ("path", "member"),
    [(LEGS, "flights"), (DEPARTURES, "flights"), *GROUPED, *((path, None) for path in TOTALS)],
)
@each_of("options", ["", "&engine=scan", "&as_of=25"])
def test_an_answer_in_lines_says_what_it_says_in_json(
    client: FlaskClient, world: World, path: str, member: str | None, options: str
) -> None:
    asked = path.format(**world.transactions[5]) + options
    wanted = client.get(asked).get_json()
    stands = wanted.pop("as_of")
    del wanted["query"]
    answers = {form: client.get(f"{asked}&format={form}") for form in ("ndjson", "csv")}
    rows, end = lines_of(answers["ndjson"])
    assert rows == (wanted[member] if member else [wanted]) != []
    assert end == {"complete": True, "count": len(rows), "as_of": stands}
    assert table_of(answers["csv"]) == (list(rows[0]), list(map(as_text, rows)))
    for form, answer in answers.items():
        assert answer.headers["X-Flightchain-As-Of"] == f"{stands['height']} {stands['tip_hash']}"
        known = {"If-None-Match": answer.headers["ETag"]}
        assert client.get(f"{asked}&format={form}", headers=known).status_code == 304


@each_of(
    ("path", "limit"),
    [
        (DEPARTURES, 7),
        (f"{TOTALS[1]}&group_by=route", 5),
    ],
)
def test_lines_of_which_more_follow_say_so_and_are_of_one_block(
    tmp_path: Path, path: str, limit: int
) -> None:
    world = world_in(tmp_path / str(limit))
    asked = path.format(**world.transactions[5])
    new = tuple(world.transactions[5][name] for name in GOOD)
    with client_of(world.settings) as client:
        whole, end = lines_of(client.get(f"{asked}&format=ndjson"))
        assert end["complete"]
        link, rows = f"{asked}&format=ndjson&limit={limit}", []
        while link:
            answer = client.get(link)
            page, end = lines_of(answer)
            rows += page
            link = answer.headers.get("Link", "").removesuffix('>; rel="next"').removeprefix("<")
            assert end["complete"] == (rows == whole) == (not link)
            assert end.get("total", len(whole)) == len(whole)
            assert end["as_of"] == world.as_of()
            assert len(rows) <= len(whole)
            if len(rows) == limit:  # the ledger grows meanwhile
                seal(world.settings, [[new]])
        assert "Link" in client.get(f"{asked}&format=csv&limit={limit}").headers


def test_both_engines_show_as_many_departures_at_most(
    client: FlaskClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for engine in (queries, scan):
        monkeypatch.setattr(engine, "MOST_DEPARTURES", 3)
    asked = f"{DEPARTURES.format(**world.transactions[5])}&as_of={world.tip}"
    for engine_name in ("index", "scan"):
        answer = client.get(f"{asked}&engine={engine_name}").get_json()
        assert len(answer["flights"]) == 3 < answer["count"]


@each_of("path", ["/average_delays", "/flight_counter"])
def test_a_question_is_answered_in_json_or_not_at_all(client: FlaskClient, path: str) -> None:
    asked = f"{path}?{urlencode(ALL)}"
    for accepted in ("", "*/*", "application/json", "application/*;q=0.1", "text/html, */*;q=0.8"):
        assert client.get(asked, headers={"Accept": accepted}).is_json
    for accepted in ("text/csv", "text/html", "application/json;q=0", "*/*, application/json;q=0"):
        answer = client.get(asked, headers={"Accept": accepted})
        assert "format=csv" in problem(answer, 406)["detail"]
    grouped = client.get(f"{asked}&group_by=day&format=csv", headers={"Accept": "text/csv"})
    assert grouped.status_code == 200
