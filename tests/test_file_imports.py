"""A file is sent to the service in parts, checked whole, and added; whatever happens meanwhile."""

import csv
import gzip
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest
import requests
from click.testing import CliRunner

from backend.base import files
from backend.base.errors import InvalidQuery, NotFound, TryLater, WriteFailed
from backend.chain.fields import FIELD_NAMES
from backend.cli.sent_file import sent_file
from backend.ledger import file_imports
from backend.ledger.file_imports import FileImports
from backend.storage.tokens import Tokens
from tests.api.processes import WITHIN_S, Service, serving, until
from tests.api.worlds import client_of, generated, new_chain, problem, seal, settings_for
from tests.flights import changed, csv_of, transactions_in

PART = 60_000
AT_WORK = {"checking", "adding"}
CSV = {"Content-Type": "text/csv"}
Json = dict[str, Any]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("files") / "chain"
    limits = {"FLIGHTCHAIN_MIN_FREE_BYTES": 0, "FLIGHTCHAIN_MAX_BODY_BYTES": 2**16}
    with serving(folder, **limits) as running:
        yield running


class Sender:
    """A program that sends a file to a service."""

    def __init__(self, service: Service, name: str, body: bytes, token: str = "") -> None:
        self._url = service.url
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        begun = self.post("/imports", NAME=name, SIZE=len(body))
        assert begun.status_code == 201, begun.text
        self.path = begun.headers["Location"]
        for start in range(0, len(body), PART):
            sent = self.post(self.path, body[start : start + PART], OFFSET=start)
            assert sent.status_code == 200, sent.text

    def post(self, path: str, body: bytes = b"", **parameters: Any) -> requests.Response:
        return requests.post(
            self._url + path, body, params=parameters, headers=self._headers, timeout=9
        )

    def now(self) -> Json:
        state: Json = requests.get(self._url + self.path, timeout=WITHIN_S).json()
        return state

    def settled(self) -> Json:
        until(lambda: self.now()["state"] not in AT_WORK)
        return self.now()

    def done(self, step: str, **parameters: Any) -> Json:
        """Have the service check or add the file, and wait for the outcome."""
        begun = self.post(f"{self.path}/{step}", **parameters)
        assert begun.status_code == 202, begun.text
        return self.settled()


def flights_of(carrier: int, count: int) -> str:
    return csv_of([changed(flight, OP_CARRIER_AIRLINE_ID=carrier) for flight in generated(count)])


def flights_found(service: Service, carrier: int) -> int:
    days = "INITIAL_DATE=2013-01-01&FINAL_DATE=2030-01-01"
    answer = service.json(f"/average_delays?OP_CARRIER_AIRLINE_ID={carrier}&{days}")
    return int(answer["flights"])


# --- what becomes of a file ----------------------------------------------------------------------


def test_a_packed_file_is_checked_whole_and_then_added(service: Service) -> None:
    text = flights_of(19_001, 1500)
    sender = Sender(service, "flights.csv.gz", gzip.compress(text.encode()))
    before = transactions_in(service.folder)
    checked = sender.done("check")
    assert (checked["state"], checked["fraction"]) == ("checked", 1.0)
    assert checked["report"]["accepted"] == 1500
    assert checked["report"]["understood"]["kind"] == "the 19 fields"
    assert transactions_in(service.folder) == before
    added = sender.done("add")["added"]
    assert (added["flights"], added["already_there"], added["left_out"]) == (1500, 0, 0)
    assert added["last_transaction"] - added["first_transaction"] == 1499
    assert flights_found(service, 19_001) == 1500
    again = Sender(service, "flights.csv.gz", gzip.compress(text.encode())).done("check")["report"]
    assert (again["accepted"], again["already_there"]) == (0, 1500)
    assert again["duplicate_of"] == [added["first_transaction"]]
    assert requests.delete(service.url + sender.path, timeout=WITHIN_S).status_code == 204


def test_bad_rows_are_left_out_only_if_that_is_asked(service: Service) -> None:
    text = flights_of(19_002, 60) + flights_of(19_002, 61).splitlines()[-1].replace("2015", "x", 1)
    sender = Sender(service, "f.csv", text.encode())
    report = sender.done("check")["report"]
    assert (report["accepted"], report["rejected"]) == (60, 1)
    assert [(row["row"], row["field"]) for row in report["errors"]] == [(62, "YEAR")]
    refused = sender.post(f"{sender.path}/add").json()
    assert (refused["field"], refused["value"]) == ("on_error", "reject")
    assert "1 row is bad" in refused["detail"]
    added = sender.done("add", on_error="skip")["added"]
    assert (added["flights"], added["left_out"]) == (60, 1)
    again = sender.post(f"{sender.path}/add", on_error="skip")
    assert (again.status_code, again.json()["added"]) == (202, added)
    assert "must be receiving or checked" in sender.post(f"{sender.path}/check").text


def test_a_file_with_wrong_days_in_most_rows_is_refused(tmp_path: Path) -> None:
    """2019-03-04 of 3 April: its weekday is that of 4 March by chance."""
    days = [date(2019, 3, number) for number in range(1, 29)]
    rows = [
        (2019, day.isoweekday(), f"{day:%Y-%d-%m}", *flight[3:])
        for day, flight in zip(days, generated(28), strict=True)
    ]
    body, imports = csv_of(rows).encode(), FileImports(new_chain(tmp_path, min_free_bytes=0))
    import_id = imports.append(imports.begin("f.csv", len(body)).IMPORT_ID, 0, body).IMPORT_ID
    CliRunner().invoke(sent_file, [import_id], obj=settings_for(tmp_path))
    sent = imports.of(import_id)
    message = (
        "It has wrong days in most rows, so the others may be right by chance; correct the days"
    )
    assert (sent.state, sent.message, sent.report) == ("refused", message, None)


def test_where_an_airport_is_follows_from_the_ledger(tmp_path: Path) -> None:
    place = {"ORIGIN": "QQQ", "ORIGIN_CITY_NAME": "Quay, VA", "ORIGIN_STATE_NM": "Virginia"}
    flights = [changed(flight, **place) for flight in generated(2)]
    seal(settings_for(tmp_path), [flights[:1]])
    left_out = {FIELD_NAMES.index("ORIGIN_CITY_NAME"), FIELD_NAMES.index("ORIGIN_STATE_NM")}
    rows = list(csv.reader(csv_of(flights).splitlines()))
    shorter = [[cell for at, cell in enumerate(row) if at not in left_out] for row in rows]
    body = "\n".join(",".join(f'"{cell}"' for cell in row) for row in shorter).encode()
    imports = FileImports(settings_for(tmp_path, min_free_bytes=0))
    import_id = imports.append(imports.begin("f.csv", len(body)).IMPORT_ID, 0, body).IMPORT_ID
    CliRunner().invoke(sent_file, [import_id], obj=settings_for(tmp_path))
    report = imports.of(import_id).report
    assert report is not None
    assert (report["accepted"], report["already_there"], report["rejected"]) == (1, 1, 0)


def test_a_check_knows_the_flights_that_are_pending(tmp_path: Path) -> None:
    settings, body = new_chain(tmp_path, min_free_bytes=0), flights_of(7, 30).encode()
    pending = [changed(flight, OP_CARRIER_AIRLINE_ID=7) for flight in generated(20)]
    late = changed(pending[0], ARR_DELAY=777)
    with client_of(settings) as client:
        client.post("/transactions/batch", data=csv_of([late, *pending[1:]]), headers=CSV)
    imports = FileImports(settings)
    import_id = imports.append(imports.begin("f.csv", len(body)).IMPORT_ID, 0, body).IMPORT_ID
    CliRunner().invoke(sent_file, [import_id], obj=settings)
    report = imports.of(import_id).report
    assert report is not None
    assert (report["accepted"], report["already_there"], report["conflicts"]) == (10, 19, 1)
    checked = imports.of(import_id)
    imports.note(msgspec.structs.replace(checked, report={**report, "rejected": 1}))
    CliRunner().invoke(sent_file, [import_id, "--add"], obj=settings)
    assert "is read differently than when it was checked" in imports.of(import_id).message
    imports.note(checked)
    CliRunner().invoke(sent_file, [import_id, "--add"], obj=settings)
    added = imports.of(import_id).added
    assert added is not None
    assert (added.flights, added.already_there, added.conflicts) == (10, 19, 1)
    assert not imports.path(import_id).exists()  # nobody needs it any more


def test_who_sent_a_file_knows_what_was_added_before_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaking(settings: object, sources: object, watcher: Any) -> None:
        watcher.on_progress(Mock(imported=5, fraction=0.5))
        raise WriteFailed("the disk is full")

    monkeypatch.setattr("backend.sealing.importer.import_all", breaking)
    settings, body = new_chain(tmp_path, min_free_bytes=0), flights_of(7, 9).encode()
    imports = FileImports(settings)
    import_id = imports.append(imports.begin("f.csv", len(body)).IMPORT_ID, 0, body).IMPORT_ID
    CliRunner().invoke(sent_file, [import_id, "--add"], obj=settings)
    said = "the disk is full; 5 flights were added before that; check it again to add the rest"
    assert (imports.of(import_id).state, imports.of(import_id).message) == ("stopped", said)


def test_a_file_is_not_refused_for_what_is_wrong_with_the_ledger(tmp_path: Path) -> None:
    seal(settings_for(tmp_path), [generated(30)])
    imports, body = FileImports(settings_for(tmp_path, min_free_bytes=0)), flights_of(7, 3).encode()
    import_id = imports.append(imports.begin("f.csv", len(body)).IMPORT_ID, 0, body).IMPORT_ID

    def outcome(**more: Any) -> file_imports.FileImport:
        CliRunner().invoke(sent_file, [import_id], obj=settings_for(tmp_path, **more))
        return imports.of(import_id)

    full = outcome(min_free_bytes=2**60)
    assert (full.state, "free some space, and try again" in full.message) == ("stopped", True)
    shutil.rmtree(tmp_path / "index")
    unindexed = outcome(min_free_bytes=0)
    assert (unindexed.state, "index" in unindexed.message) == ("stopped", True)


def test_only_one_file_is_worked_on_at_a_time(service: Service) -> None:
    first = Sender(service, "a.csv", flights_of(19_004, 3000).encode())
    second = Sender(service, "b.csv", flights_of(19_005, 10).encode())
    first.post(f"{first.path}/check")
    busy = second.post(f"{second.path}/check")
    assert (busy.status_code, busy.headers["Retry-After"]) == (503, "5")
    assert busy.json()["detail"].startswith("another file is being checked")
    assert first.settled()["state"] == "checked"
    assert second.done("check")["state"] == "checked"
    assert "another file" not in service.said()  # as often as a client asks


@pytest.mark.slow
def test_a_file_that_is_stopped_in_its_midst_is_checked_again(service: Service) -> None:
    sender = Sender(service, "f.csv", flights_of(19_006, 5000).encode())
    import_id = sender.path.rpartition("/")[2]
    os.kill(stopped_at_work(service, sender), signal.SIGKILL)
    status = sender.settled()
    assert (status["state"], "check the file again" in status["message"]) == ("stopped", True)
    assert sender.done("check")["report"]["accepted"] == 5000
    sender.post(f"{sender.path}/add")
    until(lambda: service.role("sent-file", import_id, "--add") != [])
    until(lambda: sender.now()["fraction"] > 0)
    for process in service.role("sent-file", import_id, "--add"):
        os.kill(process, signal.SIGKILL)
    assert sender.settled()["state"] in {"stopped", "added"}
    if sender.now()["state"] == "stopped":
        report = sender.done("check")["report"]
        assert report["accepted"] + report["already_there"] == 5000
        sender.done("add")
    assert flights_found(service, 19_006) == 5000


@pytest.mark.slow
def test_a_file_is_removed_when_that_is_asked_but_not_while_it_is_read(service: Service) -> None:
    sender = Sender(service, "f.csv", flights_of(19_008, 3000).encode())
    process = stopped_at_work(service, sender)
    refused = requests.delete(service.url + sender.path, timeout=WITHIN_S)
    assert (refused.status_code, refused.json()["field"]) == (400, "IMPORT_ID")
    again = sender.post(f"{sender.path}/check")  # its answer was lost
    assert (again.status_code, again.json()["state"]) == (202, "checking")
    assert sender.post(f"{sender.path}/check", dates="day-first").status_code == 400
    os.kill(process, signal.SIGCONT)
    assert sender.settled()["state"] == "checked"
    removed = requests.delete(service.url + sender.path, timeout=WITHIN_S)
    assert (removed.status_code, removed.headers["Cache-Control"]) == (204, "no-store")
    assert requests.get(service.url + sender.path, timeout=WITHIN_S).status_code == 404
    assert list(service.folder.glob(f"import-{sender.path.rpartition('/')[2]}*")) == []


def stopped_at_work(service: Service, sender: Sender) -> int:
    """Have a file checked, and stop the process in its midst; its number."""
    while True:
        sender.settled()
        sender.post(f"{sender.path}/check")
        until(lambda: service.role("sent-file", sender.path.rpartition("/")[2]) != [])
        for process in service.role("sent-file", sender.path.rpartition("/")[2])[:1]:
            os.kill(process, signal.SIGSTOP)
            if sender.now()["state"] == "checking":
                return process
            os.kill(process, signal.SIGCONT)


@pytest.mark.slow
def test_a_token_is_needed_and_the_work_ends_with_the_service(tmp_path: Path) -> None:
    folder = tmp_path / "chain"
    token = Tokens(folder).add("me")
    settings = {"FLIGHTCHAIN_REQUIRE_TOKEN": 1, "FLIGHTCHAIN_MIN_FREE_BYTES": 0}
    with serving(folder, **settings) as running:
        nobody = requests.post(f"{running.url}/imports?NAME=a&SIZE=1", timeout=WITHIN_S)
        assert nobody.status_code == 401
        sender = Sender(running, "f.csv", flights_of(19_007, 3000).encode(), token)
        for action in ("?OFFSET=0", "/check", "/add"):
            path = f"{running.url}{sender.path}{action}"
            assert requests.post(path, timeout=WITHIN_S).status_code == 401
        assert requests.delete(running.url + sender.path, timeout=WITHIN_S).status_code == 401
        import_id = sender.path.rpartition("/")[2]
        process = stopped_at_work(running, sender)
        running.stop(signal.SIGKILL)
        until(lambda: not running.role("serve", "--only-http"))
        os.kill(process, signal.SIGCONT)
        until(lambda: not running.role("sent-file", import_id))
    assert FileImports(settings_for(folder)).of(import_id).state == "stopped"


def test_of_requests_that_come_together_one_begins_a_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imports, begun = FileImports(settings_for(tmp_path, min_free_bytes=0)), []

    class Adding:
        def __init__(self, _: str, import_id: str, *__: str) -> None:
            begun.append(import_id)
            self._sent = imports.of(import_id)

        def wait(self) -> None:
            self._sent.state = "added"
            imports.note(self._sent)
            imports.remove_content(self._sent.IMPORT_ID)

    monkeypatch.setattr(file_imports, "started", Adding)
    for _ in range(100):
        begun.clear()
        sent = imports.append(imports.begin("a.csv", 1).IMPORT_ID, 0, b"x")
        sent.state = "checked"
        imports.note(sent)
        with ThreadPoolExecutor() as pool:
            pool.map(partial(imports.add, skips=False), [sent.IMPORT_ID] * 2)
        until(partial(lambda path: not path.exists(), imports.path(sent.IMPORT_ID)))
        assert begun == [sent.IMPORT_ID]
        assert imports.of(sent.IMPORT_ID).state == "added"


# --- what cannot be ------------------------------------------------------------------------------


def test_a_check_that_cannot_be_started_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imports = FileImports(settings_for(tmp_path))
    sent = imports.append(imports.begin("a.csv", 1).IMPORT_ID, 0, b"x")
    monkeypatch.setattr(sys, "executable", none := str(tmp_path / "none"))
    imports.check(sent.IMPORT_ID, "")
    until(lambda: imports.of(sent.IMPORT_ID).state == "stopped")
    reason = f"cannot start {none}: No such file or directory"
    assert imports.of(sent.IMPORT_ID).message == f"{reason}; check the file again"


def test_parts_leave_no_gap_and_end_with_the_file(tmp_path: Path) -> None:
    imports = FileImports(settings_for(tmp_path, min_free_bytes=0))
    sent = imports.begin("a.csv", 10).IMPORT_ID
    for offset, part in ((1, b"x"), (0, b"x" * 11)):
        with pytest.raises(InvalidQuery, match="the file has 0 of 10 bytes"):
            imports.append(sent, offset, part)
    for offset, part in ((0, b"0123"), (0, b"0123"), (4, b"456789"), (2, b"2345")):
        imports.append(sent, offset, part)
    assert imports.path(sent).read_bytes() == b"0123456789"
    assert imports.of(sent).received == 10
    with pytest.raises(InvalidQuery, match="is receiving, and must be checked for this"):
        imports.add(sent, skips=False)
    short = imports.begin("b.csv", 10).IMPORT_ID
    with pytest.raises(InvalidQuery, match="has received 0 of 10 bytes; send the rest first"):
        imports.check(short, "")


def test_a_part_that_comes_after_the_check_or_the_end_of_its_file_is_not_written(
    tmp_path: Path,
) -> None:
    imports = FileImports(settings_for(tmp_path, min_free_bytes=0))
    late = imports.append(imports.begin("a.csv", 2).IMPORT_ID, 0, b"ab")
    imports.note(msgspec.structs.replace(late, state="checked"))
    with pytest.raises(InvalidQuery, match="the file is checked, and must be receiving"):
        imports.append(late.IMPORT_ID, 0, b"xy")
    assert imports.path(late.IMPORT_ID).read_bytes() == b"ab"
    imports.remove(late.IMPORT_ID)
    with pytest.raises(NotFound):
        imports.append(late.IMPORT_ID, 0, b"ab")
    assert not imports.path(late.IMPORT_ID).exists()


@pytest.mark.parametrize("import_id", ["", "0" * 32, "../tokens", "0" * 31 + "\n", "é"])
def test_a_file_that_nobody_sent_is_not_found(tmp_path: Path, import_id: str) -> None:
    with pytest.raises(NotFound, match="there is no file"):
        FileImports(settings_for(tmp_path)).of(import_id)


@pytest.mark.parametrize("name", ["", "x" * 256])
def test_a_name_has_some_characters_and_not_too_many(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidQuery, match="must have 1 to 255 characters"):
        FileImports(settings_for(tmp_path)).begin(name, 1)


def test_a_disk_without_room_takes_no_file_and_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TryLater, match="free some space"):
        FileImports(settings_for(tmp_path)).begin("a.csv", 2**60)
    assert list(tmp_path.iterdir()) == []
    imports = FileImports(settings_for(tmp_path, min_free_bytes=0))
    sent = imports.begin("a.csv", 1).IMPORT_ID
    with pytest.raises(TryLater, match="free some space"):
        FileImports(settings_for(tmp_path, min_free_bytes=2**60)).append(sent, 0, b"x")
    monkeypatch.setattr(files, "write_at", Mock(side_effect=WriteFailed("cannot write it")))
    with pytest.raises(TryLater, match="cannot write it"):  # the process need not end for that
        imports.append(sent, 0, b"x")


def test_files_that_nobody_has_touched_for_a_day_are_removed(tmp_path: Path) -> None:
    imports = FileImports(settings_for(tmp_path, min_free_bytes=0))
    old, young, at_work, slow = (imports.begin(name, 1).IMPORT_ID for name in "abcs")
    left = tmp_path / f"import-{'1' * 32}.json.7.tmp"
    left.write_text("")
    of_slow = tmp_path / f"import-{slow}.json"  # of which a part has just come
    for path in (imports.path(young), of_slow, *tmp_path.glob(f"import-{old}*"), left):
        os.utime(path, times=(time.time() - file_imports.KEPT_S - 9,) * 2)
    imports.begin("d", 1)
    assert imports.of(young).name == "b"
    assert imports.of(at_work).name == "c"
    assert imports.of(slow).name == "s"
    assert not list(tmp_path.glob(f"import-{old}*"))
    assert not left.exists()


def test_whoever_sends_many_files_has_the_folder_looked_through_once_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imports = FileImports(settings_for(tmp_path, min_free_bytes=0))
    for name in "abc":
        imports.begin(name, 1)
    looks, glob = list[str](), Path.glob

    def look(folder: Path, pattern: str) -> Iterator[Path]:
        looks.append(pattern)
        return glob(folder, pattern)

    monkeypatch.setattr(Path, "glob", look)
    imports.begin("d", 1)
    assert looks == ["import-*"]


def test_a_file_is_kept_for_a_day_when_the_clock_has_leapt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imports = FileImports(settings_for(tmp_path, min_free_bytes=0))
    import_id, day_s = imports.begin("a", 1).IMPORT_ID, file_imports.KEPT_S
    now, uptime_s = time.time(), time.clock_gettime(time.CLOCK_BOOTTIME)
    monkeypatch.setattr(time, "time", lambda: now + 2 * day_s)
    imports.begin("b", 1)
    assert imports.of(import_id).name == "a"
    monkeypatch.setattr(time, "time", lambda: now + 3 * day_s + 60)
    monkeypatch.setattr(time, "clock_gettime", lambda _: uptime_s + day_s + 60)
    imports.begin("c", 1)
    with pytest.raises(NotFound):
        imports.of(import_id)


OWN = {"Origin": "http://LOCALHOST"}
FOREIGN = [
    {"Origin": "http://evil.example"},
    {"Origin": "http://localhost:8000"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
    {**OWN, "Sec-Fetch-Site": "same-site"},
]


def test_a_page_elsewhere_cannot_make_a_browser_announce_files(tmp_path: Path) -> None:
    announcement = "/imports?NAME=a&SIZE=1"
    with client_of(new_chain(tmp_path, min_free_bytes=0)) as client:
        for headers in FOREIGN:
            form = client.post(announcement, headers=headers, data="x", content_type="text/plain")
            problem(form, 400, field="Origin")
        assert not list(tmp_path.glob("import-*"))
        for headers in ({}, OWN, {"Sec-Fetch-Site": "none", "Origin": "null"}):
            assert client.post(announcement, headers=headers).status_code == 201
