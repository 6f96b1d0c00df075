"""The client against a service, directly and through bad networks; a running one if it is slow."""

import json
import math
import os
import re
import socket
import sys
import textwrap
import threading
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import pytest
import requests

import flightchain_client
from backend.chain.fields import FIELD_NAMES
from backend.chain.flight import Flight, as_mapping
from flightchain_client import (
    Added,
    Client,
    FlightchainError,
    Problem,
    StillPending,
    Unreachable,
    Wait,
)
from tests.api.processes import Reached, Service, free_port, ran, serving, until
from tests.api.worlds import GOOD, Json, generated
from tests.cases import each_of
from tests.client.bad_network import through
from tests.client.samples import (
    NDJSON,
    PAGE,
    SCRIPTS,
    bulk_post,
    day_first,
    mappings,
    mined,
    on_an_empty_ledger,
    packed,
    posted,
)
from tests.flights import csv_of, csv_of_days, flights
from tests.hostile_keys import wrong_answers
from tests.http_servers import Handler, served_by

# --- asking --------------------------------------------------------------------------------------


@on_an_empty_ledger
def test_questions_and_proofs_take_and_give_python_types(
    service: Reached, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flightchain_client, "FLIGHTS_PER_PAGE", 100)
    assert list(client.flights("2015-01-01", "2015-12-31")) == []
    client.add_batch([as_mapping(flight) for flight in generated(300)], mode="commit")
    first, last = date(2015, 1, 1), date(2015, 1, 31)
    rows = [as_mapping(flight) for flight in generated(300)]
    carrier = rows[0]["OP_CARRIER_AIRLINE_ID"]
    assert isinstance(carrier, int)
    averages = client.average_delays(carrier, first, last)
    assert averages.flights == sum(row["OP_CARRIER_AIRLINE_ID"] == carrier for row in rows)
    assert averages == client.average_delays(carrier, "2015-01-01", str(last), engine="scan")
    assert averages.as_of.height == client.tip().height == 1
    assert client.average_delays(carrier, first, last, as_of=0).flights == 0
    spread = client.average_delays(carrier, first, last, distribution=True)
    bins = (spread.distribution or {})["histogram"]
    assert sum(counted["flights"] for counted in bins) == averages.arrived

    cities = (str(rows[0]["ORIGIN_CITY_NAME"]), str(rows[0]["DEST_CITY_NAME"]))
    counted = client.flight_counter(*cities, datetime(2015, 1, 1, 23, tzinfo=UTC), last)
    pairs = [(row["ORIGIN_CITY_NAME"], row["DEST_CITY_NAME"]) for row in rows]
    assert counted.count == pairs.count(cities) > 0

    origin, dest = str(rows[0]["ORIGIN"]), str(rows[0]["DEST"])
    routes = client.average_delays(
        None, first, last, origin=origin, destination=dest, group_by="carrier"
    )
    assert routes.flights == sum(group["flights"] for group in routes.groups) > 0
    (warning,) = client.flight_counter("Newark", None, first, last).warnings
    assert (warning["field"], warning["value"]) == ("ORIGIN_CITY_NAME", "Newark")
    everywhere = client.flight_counter(None, None, first, last, group_by="route")
    assert everywhere.warnings == []
    assert sum(group["count"] for group in everywhere.groups) == everywhere.count == len(rows)
    number = int(str(rows[0]["OP_CARRIER_FL_NUM"]))
    flown = client.filter_transactions(number, first, last_day=last)
    assert flown.count == sum(row["OP_CARRIER_FL_NUM"] == number for row in rows)

    legs = client.filter_transactions(number, first, carrier)
    assert legs.count == len(legs.flights) > 0
    assert legs.flights[0]["BLOCK_HEIGHT"] == 1
    assert {name: legs.flights[0][name] for name in FIELD_NAMES} == rows[0]

    the_flights_of_days_come_page_by_page(client, generated(300))
    proofs_are_accepted_by_the_verifier(service, client, tmp_path, carrier)


def test_an_answer_that_has_all_of_its_length_is_parsed_once(client: Client) -> None:
    parse = requests.Response.json
    with patch.object(requests.Response, "json", autospec=True, side_effect=parse) as parsed:
        client.tip()
    parsed.assert_called_once()


def test_blocks_and_transactions(
    client: Client, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the last page of headers is full or not."""
    monkeypatch.setattr(flightchain_client, "HEADERS_PER_PAGE", 2)
    tip = client.tip().height
    for _ in range(3):
        client.add(GOOD, mode="commit")
    heights = [header.height for header in client.blocks()]
    assert heights == [*range(tip + 3, -1, -1)]
    before = [header.height for header in client.blocks(before=tip + 3)]
    assert before == [*range(tip + 2, -1, -1)]
    block = client.block(tip + 2)
    assert block.header.hash == client.block(tip + 3).header.previous_hash
    assert [flight["TRANSACTION_ID"] for flight in block.transactions] == [first + 1]
    entry = client.transaction(first + 1)
    assert (entry.state, entry.height, entry.hash) == ("mined", tip + 2, block.header.hash)
    assert entry.transaction == block.transactions[0]
    assert client.transaction(str(first + 1)) == entry  # as a table of ids may have it


def the_flights_of_days_come_page_by_page(client: Client, posted: list[Flight]) -> None:
    first, last = date(2015, 1, 1), date(2015, 12, 31)
    flights_in = client.flights(first, last)
    received = [next(flights_in)]
    client.add(as_mapping(posted[0]), mode="commit")  # which is not there as of the first page
    received += flights_in
    assert [tuple(flight[name] for name in FIELD_NAMES) for flight in received] == posted
    assert [flight["TRANSACTION_ID"] for flight in received] == [*range(300)]
    assert {flight["BLOCK_HEIGHT"] for flight in received} == {1}
    page = client.flights(first, last, limit=150, cursor=20)
    assert [flight["TRANSACTION_ID"] for flight in page] == [*range(20, 170)]
    row = as_mapping(posted[7])
    city, carrier = str(row["ORIGIN_CITY_NAME"]), int(str(row["OP_CARRIER_AIRLINE_ID"]))
    some = list(client.flights(first, last, carrier, origin_city=city, as_of=1))
    pairs = [(flight[7], flight[3]) for flight in posted]
    assert len(some) == pairs.count((city, carrier)) > 0

    suggested = client.suggest("city", city[:4], limit=50)
    assert city in [suggestion["value"] for suggestion in suggested]
    assert client.suggest("city", city[:4], limit=1) == suggested[:1] != suggested
    covered = client.coverage()
    assert (covered["flights"], covered["as_of"]["height"]) == (301, 2)
    assert covered["first_date"] == min(str(flight[2]) for flight in posted)


def proofs_are_accepted_by_the_verifier(
    service: Reached, client: Client, tmp_path: Path, carrier: int
) -> None:
    answer = {"carrier": carrier, "first_day": "2015-01-01", "last_day": "2015-12-31"}
    proofs = {
        "kept": client.checkpoint(),
        "one.json": client.transaction_proof(7),
        "answer.ndjson": client.answer_proof("average_delays", **answer),
        "grown.json": client.growth_proof(1),
    }
    for name, content in proofs.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "key").write_bytes(service.get("/log/key").content)
    command = [sys.executable, str(SCRIPTS / "verify.py"), *list(proofs)[1:], "--key", "key"]
    done = ran(*command, cwd=tmp_path)
    verdict = done.returncode, done.stdout.split()[0], done.stdout.count("proved: ")
    assert verdict == (0, "VERIFIED", 3), done.stdout + done.stderr


# --- adding --------------------------------------------------------------------------------------


def test_a_flight_is_added_and_waited_for(client: Client, first: int) -> None:
    flight = {**GOOD, "OP_CARRIER_FL_NUM": 4711}  # which no other test adds
    tip = client.tip().height
    receipt = client.add({**flight, "FL_DATE": date.fromisoformat(GOOD["FL_DATE"])})
    assert (receipt.transaction_id, receipt.durable) == (first, True)
    entry = client.wait(receipt)
    assert (entry.state, entry.height) == ("mined", tip + 1)
    assert entry.transaction["timestamp"] == receipt.timestamp
    assert client.add(flight, mode="commit").state == "mined"
    assert client.add(flight).duplicate_of == first


def test_any_iterable_is_cut_into_batches(client: Client, service: Reached, first: int) -> None:
    reports: list[Added] = []
    added = client.add_batch(iter(mappings(250)), batch_size=100, progress=reports.append)
    assert [report.accepted for report in reports] == [100, 200, 250]
    assert added == reports[-1] == Added(250, 0, 3, (range(first, first + 250),))
    assert mined(service) == flights(250)
    assert client.add_batch([]) == Added()


@on_an_empty_ledger
def test_records_of_pandas_have_nan_for_nothing(client: Client, service: Reached) -> None:
    rows = mappings(3)
    for row in rows:
        row |= {"DEP_DELAY": 8.0, "ARR_DELAY": -14.0, "AIR_TIME": 116.0}
    rows[1] |= dict.fromkeys(["ARR_TIME", "ARR_DELAY", "AIR_TIME"], math.nan)
    assert client.add_batch(rows).accepted == 3
    assert [flight[-4:] for flight in mined(service)] == [
        ("2211", -14, 0, 116),
        (None, None, 0, None),
        ("2211", -14, 0, 116),
    ]
    with pytest.raises(Problem, match=r"DEP_DELAY|JSON"):
        client.add(rows[0] | {"DEP_DELAY": math.inf})


TABLE = csv_of(flights(25))
FILES = {"f.csv": TABLE, "f.csv.gz": TABLE, "f.zip": TABLE, "f.ndjson": NDJSON}


@pytest.mark.slow
@on_an_empty_ledger
def test_files_of_any_kind_are_added(client: Client, service: Reached, tmp_path: Path) -> None:
    paths = [packed(tmp_path / name, text) for name, text in FILES.items()]
    reports: list[Json] = []
    assert client.add_file(paths[0], dry_run=True) == Added(25, 0, 1)
    added = client.add_file(paths[0], progress=reports.append)
    assert added == Added(25, 0, 1, (range(25),))
    assert (added.state, reports[0]["received"]) == ("mined", len(TABLE))
    for path in paths:
        assert client.add_batch(str(path)) == Added(0, 0, 1, already_there=25), path
    assert mined(service) == flights(25)
    assert list(service.folder.glob("import-*")) == []
    with pytest.raises(ValueError, match="duplicates"):
        client.add_batch(paths[0], duplicates="accept")


@pytest.mark.slow
def test_a_file_that_is_none_is_refused(client: Client, tmp_path: Path) -> None:
    path = packed(tmp_path / "letter.txt", "a letter")
    with pytest.raises(Problem, match=r"^422 .*letter\.txt: .*no column of a flight"):
        client.add_file(path)
    (tmp_path / "empty.csv").touch()
    with pytest.raises(ValueError, match=r"empty\.csv is empty"):
        client.add_file(tmp_path / "empty.csv")


@pytest.mark.slow
@on_an_empty_ledger
def test_nothing_of_a_bad_file_is_added(client: Client, service: Reached, tmp_path: Path) -> None:
    path = packed(tmp_path / "bad.csv", csv_of([*flights(20), (*flights(1)[0][:6], "?")]))
    with pytest.raises(Problem, match=r"^422 bad flights: row 22: line .* has 7 cells") as caught:
        client.add_batch(path, batch_size=8)
    assert caught.value.added is None
    path = day_first(tmp_path, ["02/03/2008"] * 9)
    with pytest.raises(Problem, match="may be"):
        client.add_batch(path, batch_size=8)
    assert mined(service) == []


@pytest.mark.slow
@on_an_empty_ledger
def test_a_day_far_down_says_how_those_above_are_meant(
    client: Client, service: Reached, tmp_path: Path
) -> None:
    path = day_first(tmp_path, ["02/03/2008"] * 9 + ["14/03/2008"])
    assert client.add_batch(path, batch_size=4).accepted == 10
    assert {flight[2] for flight in mined(service)} == {"2008-03-02", "2008-03-14"}
    status, _, errors = posted("--url", service.url, path, "--batch", 4)
    assert (status, "error" in errors) == (0, False)


def test_one_flight_is_no_list_of_flights(client: Client) -> None:
    with pytest.raises(TypeError, match=r"add\(\)"):
        client.add_batch(GOOD)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Path"):
        client.add({**GOOD, "ORIGIN": Path()})
    with pytest.raises(ValueError, match="size"):
        client.add_batch([GOOD], batch_size=0)
    assert client.tip().pending == 0


@pytest.mark.slow
def test_rows_are_numbered_in_the_whole_and_what_went_before_is_told(
    client: Client, service: Reached, first: int, tmp_path: Path
) -> None:
    rows: list[Sequence[object]] = [*flights(25, 11_000)]
    rows[12] = ["?", *rows[12][1:]]
    path = tmp_path / "f.csv"
    path.write_text(csv_of(rows), encoding="utf-8")
    with pytest.raises(Problem) as caught:
        client.add_file(path)
    assert caught.value.added is None
    assert [error["row"] for error in caught.value.errors] == [14]  # the header is line 1
    assert "row 14" in str(caught.value)
    skipped = client.add_batch(path, on_error="skip")
    assert (skipped.accepted, skipped.rejected) == (24, 1)
    assert [(error["row"], error["field"]) for error in skipped.errors] == [(14, "YEAR")]
    given = mappings(7)
    given[6]["ARR_DELAY"] = "late"
    with pytest.raises(Problem) as caught:
        client.add_batch(given, batch_size=3, duplicates="accept")
    assert [error["row"] for error in caught.value.errors] == [7]
    assert caught.value.added == Added(6, 0, 2, (range(first + 24, first + 30),))
    assert "; 6 flights were added before" in str(caught.value)
    with pytest.raises(Problem) as caught:
        other = [*mappings(6), {"a": 1, "b": 2, "c": 3}]
        client.add_batch(other, batch_size=3, duplicates="accept", dry_run=True)
    assert caught.value.added == Added()
    assert "added" not in str(caught.value)
    path.write_text(csv_of_days(given[:1], ["02/03/2019"]))
    with pytest.raises(Problem) as caught:
        client.add_batch(path, dry_run=True)
    assert caught.value.readings == {"month-first": "2019-02-03", "day-first": "2019-03-02"}
    assert client.add_batch(path, dry_run=True, dates="day-first", on_error="skip").accepted == 1
    assert len(mined(service)) == 24 + 6


# --- sent again ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("paused")
def test_flights_are_added_once_whatever_becomes_of_the_answers(
    service: Reached, first: int
) -> None:
    waits: list[Wait] = []
    soon = f"{datetime.now(UTC) + timedelta(seconds=1):%a, %d %b %Y %H:%M:%S GMT}"
    spoils = ("cut", "1", "half", "", "0", "unframed", "cut", soon)
    with through(service, *spoils, on_wait=waits.append) as (client, proxy):
        added = client.add_batch(mappings(1000), batch_size=250, duplicates="accept")
    assert added == Added(1000, 0, 4, (range(first, first + 1000),))
    assert sorted(mined(service)) == sorted(flights(1000))
    assert len(proxy.seen) == 4 + 7
    assert len(set(proxy.seen)) == 4
    assert [type(wait.error).__name__ for wait in waits] == [
        "Unreachable", "Problem", "Unreachable", "Problem", "Unreachable", "Unreachable", "Problem",
    ]  # fmt: skip
    assert waits[1].wait_s == 1.0
    assert waits[3].wait_s == 0.0


@pytest.mark.slow
def test_another_run_adds_only_what_is_missing(
    service: Reached, client: Client, first: int, tmp_path: Path
) -> None:
    new = flights(60, 5000)
    path = packed(tmp_path / "f.csv", csv_of(new))
    assert client.add_batch(map(as_mapping, new[:40]), batch_size=15).accepted == 40
    again = client.add_batch(path)
    ids = (range(first + 40, first + 60),)
    assert again == Added(20, 0, 1, ids, already_there=40)
    late = {**as_mapping(new[7]), "ARR_DELAY": 77}
    other = client.add_batch([late, *map(as_mapping, new)])
    assert (other.accepted, other.already_there, other.conflicts) == (0, 60, 1)
    assert (other.transactions, other.conflicting[0]["TRANSACTION_ID"]) == ((), first + 7)
    assert other.conflicting[0]["fields"] == ["ARR_DELAY"]
    assert mined(service) == new
    until(lambda: client.coverage()["as_of"]["height"] == client.tip().height)  # the index follows
    receipt = client.add(late)
    assert (receipt.duplicate_of, receipt.conflicts_with) == (None, first + 7)


@pytest.mark.slow
@pytest.mark.usefixtures("paused")
def test_a_file_is_added_once_whatever_becomes_of_the_answers(
    service: Reached, first: int, tmp_path: Path
) -> None:
    path = packed(tmp_path / "f.csv", csv_of(flights(60, 9000)))
    spoils = ("cut", "", "half", "0", "", "cut", "", "half", "cut", "")
    with through(service, *spoils) as (client, proxy):
        assert client.add_file(path) == Added(60, 0, 1, (range(first, first + 60),))
    assert len(proxy.seen) == len(spoils)
    assert mined(service) == flights(60, 9000)


@pytest.mark.slow
@pytest.mark.usefixtures("paused")
def test_a_file_waits_until_the_service_is_done_with_those_of_others(
    service: Reached, tmp_path: Path
) -> None:
    path, seen = packed(tmp_path / "f.csv", csv_of(flights(20, 9100))), list[Added]()
    with through(service, "", "", *["5"] * 15, "cut") as (client, proxy):
        assert client.add_batch(path, progress=seen.append).accepted == 20
    assert len(proxy.seen) > 18
    assert [added.accepted for added in seen] == [20]


@pytest.mark.slow
@pytest.mark.parametrize("state", ["checking", "adding"])
def test_a_file_is_added_once_though_the_service_is_killed(
    folder: Path, tmp_path: Path, state: str
) -> None:
    path, port = packed(tmp_path / "f.csv", csv_of(generated(30_000))), free_port()
    running = [Service(folder, FLIGHTCHAIN_PORT=port).wait_until_ready()]

    def kill(answer: Json) -> None:
        if answer["state"] == state and len(running) == 1:
            if state == "adding":
                until(lambda: running[0].json("/tip")["transactions"] > 0)
            running[0].end()
            running.append(Service(folder, FLIGHTCHAIN_PORT=port))

    try:
        with Client(running[0].url) as client:
            added = client.add_file(path, progress=kill)
            assert len(running) == 2
            assert (added.accepted, added.already_there) == (30_000, 0)
            assert client.tip().transactions == 30_000
    finally:
        running[-1].end()


@pytest.mark.slow
def test_parts_are_as_long_as_the_service_takes(folder: Path, tmp_path: Path) -> None:
    path = packed(tmp_path / "f.csv", csv_of(flights(3000)))
    with serving(folder, FLIGHTCHAIN_MAX_BODY_BYTES=2**16) as service, Client(service.url) as few:
        assert few.add_file(path).accepted == 3000


def test_a_later_run_with_the_same_key_gets_the_same_ids(service: Reached, first: int) -> None:
    with through(service, "", "cut", attempts=1) as (client, _):
        with pytest.raises(Unreachable) as caught:
            client.add_batch(mappings(100, 7000), batch_size=25, key="mine")
        assert caught.value.added == Added(25, 0, 1, (range(first, first + 25),))
        assert "in the batch from row 26 on; see `added`" in caught.value.__notes__
        assert client.add_batch(mappings(100, 7000), batch_size=25, key="mine").accepted == 100
        with pytest.raises(Problem, match="Idempotency-Key"):
            client.add_batch(mappings(100, 7000), batch_size=20, key="mine")
    assert mined(service) == flights(100, 7000)


@pytest.mark.slow
def test_keys_of_hostile_clients_are_refused_or_taken_as_they_are(service: Reached) -> None:
    assert list(wrong_answers(service.port, "127.0.0.1")) == []


@pytest.mark.long
def test_a_full_mempool_and_a_restart_are_waited_for(folder: Path) -> None:
    waits: list[Wait] = []
    settings: Json = {
        "FLIGHTCHAIN_MEMPOOL_TRANSACTIONS": 100,
        "FLIGHTCHAIN_MINE_INTERVAL_S": 1,
        "FLIGHTCHAIN_PORT": free_port(),
    }
    with serving(folder, **settings) as service, Client(service.url, on_wait=waits.append) as asker:
        assert asker.add_batch(mappings(350), batch_size=70).accepted == 350
        with pytest.raises(Problem, match="batch_size"):
            asker.add_batch(mappings(101), batch_size=101)
        assert {type(wait.error) for wait in waits} == {Problem}
        assert mined(service) == flights(350)
        assert service.stop() == 0
        again: list[Service] = []
        thread = threading.Timer(0.3, lambda: again.append(Service(folder, **settings)))
        thread.start()
        try:
            assert asker.add_batch([GOOD]).accepted == 1
        finally:
            thread.join()
            again[0].end()


@pytest.mark.usefixtures("paused")
def test_a_single_flight_is_sent_again_only_with_a_key(service: Reached, first: int) -> None:
    with through(service, "cut", "cut", "1") as (client, proxy):
        with pytest.raises(Unreachable, match="may have been accepted: a key") as caught:
            client.add(GOOD)
        assert caught.value.may_have_arrived
        assert client.add(GOOD, key="k").transaction_id == first + 1
        assert proxy.seen == ["none", "k", "k", "k"]
    with through(service, "1") as (client, proxy):
        with pytest.raises(Problem, match="try again later"):
            client.add(GOOD)
        assert proxy.seen == ["none"]
    assert len(mined(service)) == 2


@pytest.mark.parametrize("limits", [{"attempts": 3}, {"give_up_after_s": 1.8}])
def test_attempts_and_time_are_bounded(service: Reached, limits: Json, paused: list[float]) -> None:
    with through(service, *["cut"] * 9, **limits) as (client, proxy):
        with pytest.raises(Unreachable) as caught:
            client.add_batch([GOOD], duplicates="accept")
        assert len(proxy.seen) == 3
    assert "given up after 3 attempts" in caught.value.__notes__[0]
    assert paused == [0.5, 1.0]
    assert len(mined(service)) == 1
    with through(service, "3600") as (client, _):
        with pytest.raises(Problem) as refused:
            client.add(GOOD, key="x")
        assert (refused.value.status, refused.value.retry_after_s) == (503, 3600)
    assert paused == [0.5, 1.0]  # nobody waits an hour


class Vanishing(Handler):
    """A service that lets a file be announced, and answers nothing more."""

    removals = 0

    def do_POST(self) -> None:
        if "NAME=" in self.path:
            self.send_response(201)
            self.end_headers()
            self.wfile.write(b'{"IMPORT_ID": "0f"}')

    def do_DELETE(self) -> None:
        Vanishing.removals += 1


def test_when_the_service_has_gone_a_file_is_given_up_once(
    tmp_path: Path, paused: list[float]
) -> None:
    (tmp_path / "f.csv").write_text("text")
    with (
        served_by(Vanishing) as url,
        Client(url, attempts=8) as client,
        pytest.raises(Unreachable),
    ):
        client.add_file(tmp_path / "f.csv")
    assert (paused, Vanishing.removals) == ([0.5, 1, 2, 4, 8, 15, 15], 1)


@pytest.mark.usefixtures("paused")
@pytest.mark.parametrize(
    ("status", "times"), [(408, 2), (429, 2), (502, 2), (503, 2), (504, 2), (404, 1), (500, 1)]
)
def test_what_means_later_is_asked_again_and_nothing_else(status: int, times: int) -> None:
    asked: list[str] = []

    class Answering(Handler):
        def do_GET(self) -> None:
            asked.append(self.requestline.split()[1])
            self.send_response(status if len(asked) == 1 else 200)
            self.end_headers()

    with served_by(Answering) as url, Client(f"{url}/") as client, suppress(Problem):
        client.checkpoint()
    assert asked == ["/log/checkpoint"] * times


def test_flights_of_a_batch_are_to_be_on_the_disk_and_none_is_to_count_twice() -> None:
    asked: list[str] = []

    class Listening(Handler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.send_response(422)
            self.end_headers()

    with served_by(Listening) as url, Client(url) as client, pytest.raises(Problem):
        client.add_batch([GOOD])
    assert asked == ["/transactions/batch?mode=sync&duplicates=skip"]


def test_a_day_that_is_over_or_that_no_calendar_has_is_no_time_to_wait_for(
    service: Reached, paused: list[float]
) -> None:
    days = [f"Fri, 01 Jan {year} 00:00:00 GMT" for year in (2021, 99999, 10**20)]
    with through(service, *days) as (client, _):
        client.add(GOOD, key="k")
    assert paused == [0, 1, 2]


# --- errors --------------------------------------------------------------------------------------


def test_nobody_there_is_said_at_once(paused: list[float]) -> None:
    with Client(f"http://127.0.0.1:{free_port()}") as client:
        with pytest.raises(Unreachable, match="is the service running") as caught:
            client.tip()
        with pytest.raises(Unreachable):
            client.add_batch([GOOD])
    assert not caught.value.may_have_arrived
    assert paused == []


def test_a_service_that_has_answered_may_be_starting_again(paused: list[float]) -> None:
    with served_by(Elsewhere) as url, Client(url, attempts=3) as client:
        with pytest.raises(FlightchainError, match="of Flightchain"):
            client.tip()
        client.base_url = f"http://127.0.0.1:{free_port()}"
        with pytest.raises(Unreachable):
            client.tip()
    assert paused == [0.5, 1.0]


def test_a_silent_service_is_given_up_later_if_a_block_is_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Client(url, timeout_s=0.2, commit_timeout_s=0.3, attempts=1) as client:
            with pytest.raises(Unreachable, match=r"within 0\.2 s; .* longer timeout") as caught:
                client.tip()
            assert caught.value.may_have_arrived
            with pytest.raises(Unreachable, match=r"within 0\.3 s"):
                client.add(GOOD, "commit")


LACKS_HTTP = "the request could not be sent: the base_url must begin with http:// or https://"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("127.0.0.1:1", LACKS_HTTP),
        ("pi.local", LACKS_HTTP),
        ("ftp://localhost", LACKS_HTTP),
        ("http://", "could not be sent"),
        ("http://[::", "could not be sent"),
    ],
)
def test_an_address_that_is_none_is_an_error_of_ours(url: str, reason: str) -> None:
    with Client(url) as client, pytest.raises(FlightchainError, match=reason):
        client.tip()


@pytest.mark.parametrize("key", ["\u20ac", "a\nb"])
def test_a_key_that_cannot_be_sent_is_an_error_of_ours(client: Client, key: str) -> None:
    with pytest.raises(FlightchainError, match="could not be sent"):
        client.add(GOOD, key=key)


def test_a_problem_has_all_that_the_service_says(client: Client, first: int) -> None:
    with pytest.raises(Problem) as caught:
        client.add({**GOOD, "ARR_DELAY": "late", "YEAR": 1066})
    problem = caught.value
    assert (problem.status, problem.title) == (422, "Unprocessable Entity")
    assert (problem.field, problem.value) == ("YEAR", 1066)
    assert [error["field"] for error in problem.errors] == ["YEAR", "ARR_DELAY"]
    assert "must be between" in str(problem)
    with pytest.raises(Problem) as caught:
        client.transaction(first + 5)
    assert caught.value.status == 404
    with pytest.raises(Problem, match="FINAL_DATE"):
        client.average_delays(1, date(2015, 2, 1), date(2015, 1, 1))


class Elsewhere(Handler):
    """Something else than Flightchain, whose list of blocks has another address."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/tip" else 301)
        if self.path != "/tip":
            self.send_header("Location", "/blocks/")
        self.end_headers()
        self.wfile.write(b"hello")


def test_what_is_no_flightchain_is_said() -> None:
    with served_by(Elsewhere) as url, Client(url) as client:
        with pytest.raises(FlightchainError, match="is the base_url that of Flightchain"):
            client.tip()
        with pytest.raises(Problem, match=r"301 .* has moved to /blocks/"):
            next(client.blocks())


@each_of(
    ("status", "detail", "message"),
    [
        (429, "try again in a second", "429 Too Many Requests: try again in a second"),
        (413, "too long", "413 Request Entity Too Large: too long; make the batches smaller"),
        (421, "x", "421 Misdirected Request: x; use a host name of the service, or add this one"),
        (400, "\x1b[2Jall is fine\n", r"400 Bad Request: \x1b[2Jall is fine\n"),
        (400, "", "400 Bad Request: the service gives no reason"),
    ],
)
def test_a_problem_of_a_proxy_has_the_title_of_its_status_and_what_to_do(
    status: int, detail: str, message: str
) -> None:
    class Refusing(Handler):
        """A proxy, such as nginx, whose problems have no title."""

        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps({"detail": detail}).encode())

    with served_by(Refusing) as url, Client(url, attempts=1) as client:
        with pytest.raises(Problem) as caught:
            client.tip()
        assert str(caught.value).startswith(message)
        client.base_url = url.replace("http:", "https:")
        with pytest.raises(Unreachable, match="cannot be connected to"):
            client.tip()


@pytest.mark.slow
def test_a_token_is_sent_even_where_a_netrc_knows_better(
    guarded: tuple[Service, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, token = guarded
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password something\n")
    monkeypatch.setenv("NETRC", str(netrc))
    with Client(service.url, token + "\n") as client:
        receipt = client.add(GOOD)
        assert receipt.transaction_id == 0
        with pytest.raises(StillPending, match="transaction 0 is not in a block"):
            client.wait(receipt, timeout_s=0.3)
    with Client(service.url) as client:
        with pytest.raises(Problem, match="token add") as caught:
            client.add(GOOD)
        assert caught.value.status == 401
    arguments = ("--generate", "1", "--threads", "2", "--transactions-per-thread", "50")
    status, report, _ = bulk_post(service, *arguments)
    assert (status, set(report["errors"])) == (1, {"401"})
    assert report["requests"] <= 2  # it does not go on
    status, report, _ = bulk_post(service, *arguments, "--token", token)
    assert (status, report["flights"]) == (0, 100)


@pytest.mark.slow
def test_who_may_not_add_a_file_knows_before_it_is_sent(
    guarded: tuple[Service, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "flights.ndjson"
    path.write_text(2 * f"{json.dumps(GOOD)}\n")
    monkeypatch.setattr("flightchain_client._SentFile._send", None)
    with Client(guarded[0].url) as client, pytest.raises(Problem) as caught:
        client.add_file(path)
    assert caught.value.status == 401


# --- examples ------------------------------------------------------------------------------------


def run_example(text: str, service: Reached, folder: Path = SCRIPTS) -> str:
    """What an example prints, run as whoever copies it would, with the address of `service`."""
    assert "http://127.0.0.1:8000" in text
    done = ran(
        *(sys.executable, "-W", "error", "-c"),
        text.replace("http://127.0.0.1:8000", service.url),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SCRIPTS)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.slow
@on_an_empty_ledger
def test_the_example_of_the_module_works(service: Reached) -> None:
    documentation = flightchain_client.__doc__
    assert documentation is not None
    example = documentation.partition("\n\n")[2].partition("\n\nA GET, and")[0]
    lines = run_example(textwrap.dedent(example), service).splitlines()
    assert lines == [
        "0 None as of block 0",
        "mined",
        "999",
        "1999",
        "2499",
        "2499 flights: (range(1, 2500),) 1 were there",
    ]
    assert len(mined(service)) == 2500


@pytest.mark.slow
@on_an_empty_ledger
def test_the_examples_of_the_documents_work(service: Reached, tmp_path: Path) -> None:
    examples = [part.partition("```")[0] for part in PAGE.split("```python\n")[1:]]
    lines = run_example("\n".join(examples), service, tmp_path).splitlines()
    assert lines[-3] == "added 1 flights, ids (range(0, 1),)"
    assert lines[-2] == "0 were there already, 0 contradict the ledger"
    counted = "0 arrived more than an hour late; [01] flights in all"  # it may be pending
    assert re.fullmatch(counted, lines[-1])
    assert (tmp_path / "july.ndjson").read_bytes().startswith(b"{")
    assert len(mined(service)) == 1


def test_headers_end_with_an_error_at_a_block_that_is_damaged(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    tip = client.tip().height
    get = client._get

    def damaged(path: str, parameters: dict[str, object]) -> dict[str, object]:
        page = get(path, parameters)
        broken = [block for block in page["blocks"] if block["height"] == tip - 1]
        page["blocks"] = [block for block in page["blocks"] if block not in broken]
        page["damaged"] = [{"height": tip - 1, "detail": f"block {tip - 1} is damaged"}]
        return dict(page)

    monkeypatch.setattr(client, "_get", damaged)
    for _ in range(2):
        client.add(GOOD, mode="commit")
    headers = client.blocks()
    assert [next(headers).height for _ in range(3)] == [tip + 2, tip + 1, tip]
    with pytest.raises(Problem, match=f"block {tip - 1} is damaged"):
        next(headers)
