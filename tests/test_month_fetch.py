"""Who runs the service has it fetch a month of BTS, from a page or by REST, and sees how far."""

import errno
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import requests

from backend.base.errors import WriteFailed
from backend.base.files import FileLock
from backend.base.words import COMMAND
from backend.ledger.bts_months import Month
from backend.ledger.month_fetch import ENDED, MonthFetch, MonthFetcher
from backend.storage.tokens import Tokens
from tests import bts_server as server
from tests.api.processes import WITHIN_S, Service, free_port, serving, until
from tests.bts_server import Bts
from tests.flights import transactions_in
from tests.sources.samples import zipped

JANUARY, FEBRUARY, MARCH = (Month(2008, number) for number in (1, 2, 3))


@pytest.fixture(scope="module")
def bts() -> Iterator[Bts]:
    with server.bts_server() as running:
        yield running


@pytest.fixture(scope="module")
def pages() -> str:
    return f"http://127.0.0.1:{free_port()}"


@pytest.fixture(scope="module")
def service(bts: Bts, pages: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with its pages, which may take months from the server; the last test kills it."""
    more: dict[str, Any] = {"FLIGHTCHAIN_BTS_URL": bts.url, "FLIGHTCHAIN_MIN_FREE_BYTES": 0}
    more["FLIGHTCHAIN_FRONTEND_PORT"] = pages.rpartition(":")[2]
    with serving(tmp_path_factory.mktemp("months") / "chain", "--frontend", **more) as running:
        until(lambda: f"open {pages}" in running.said())
        yield running


@pytest.mark.slow
def test_a_month_is_fetched_once_and_everything_that_keeps_it_away_is_said(
    bts: Bts, service: Service
) -> None:
    token, goes_on = Tokens(service.folder).add("operator"), Event()

    def fetch(month: str, token: str = token) -> requests.Response:
        headers = {"Authorization": f"Bearer {token}"}
        return requests.post(
            f"{service.url}/months?MONTH={month}", headers=headers, timeout=WITHIN_S
        )

    def ended() -> tuple[str, str]:
        until(lambda: service.json("/months")["state"] != "running")
        fetch = service.json("/months")
        return fetch["state"], fetch["message"]

    def slow(handler: server._Handler, content: bytes) -> None:
        goes_on.wait(WITHIN_S)
        handler.send_rest(content)

    assert service.json("/months") == {"state": "idle", "month": None, "message": ""}
    assert fetch("2008-01", "wrong").status_code == 401
    for wrong in ("2008", "2008-13", "latest", "2008-01..2008-02"):
        refused = fetch(wrong).json()
        reason = refused["detail"].removeprefix(f"MONTH {wrong!r}: ")
        assert (refused["field"], reason) == ("MONTH", "must be a month such as 2008-01")
    assert "the first published month" in fetch("1987-09").text
    assert bts.asked == []
    bts.publish(JANUARY)
    bts.faults.append(slow)
    assert fetch("2008-01").json()["state"] == "running"
    busy = fetch("2008-02")
    assert (busy.status_code, busy.headers["Retry-After"]) == (503, "60")
    assert busy.json()["detail"] == "a month is being fetched already; wait until it is done"
    assert service.json("/months")["month"] == "2008-01"
    goes_on.set()
    assert ended()[0] == "done"
    assert transactions_in(service.folder) == 3
    fetch("2008-01")
    assert ended() == ("done", "2008-01 is in the ledger already")
    assert "being fetched" not in service.said()  # a client may ask as often as it likes
    fetch("2008-02")
    state, message = ended()
    assert (state, "2008-02 is not published, or not yet" in message) == ("failed", True)
    bts.publish(FEBRUARY)
    bts.faults.append(server.login_page)
    fetch("2008-02")
    state, message = ended()
    assert (state, "html" in message.lower()) == ("failed", True)
    bad = server.month_text(FEBRUARY).replace("IAD", "nowhere")
    bts.files[FEBRUARY.file_name] = zipped(bad.encode())
    fetch("2008-02")
    state, message = ended()
    assert (state, "line 2: ORIGIN 'nowhere': must be" in message) == ("failed", True)
    assert f"leave them out: `{COMMAND} import bts:2008-02 --skip-bad`" in message
    assert "correct" not in message
    assert transactions_in(service.folder) == 3


@pytest.mark.slow
def test_a_page_has_a_month_fetched_which_is_stopped_with_the_service(
    bts: Bts, pages: str, service: Service
) -> None:
    token, goes_on = Tokens(service.folder).add("reader of pages"), Event()
    content = bts.publish(MARCH)

    def send(**more: str) -> requests.Response:
        form = {"YEAR": "2008", "MONTH": "03", **more}
        return requests.post(f"{pages}/months", form, headers={"Origin": pages}, timeout=WITHIN_S)

    bts.faults.append(server.stalled(goes_on))
    assert "A month of BTS" in requests.get(f"{pages}/months", timeout=WITHIN_S).text
    refused = send()
    assert (refused.status_code, "Please enter yours" in refused.text) == (401, True)
    shown = send(TOKEN=token).text
    assert re.search(r'data-refresh="/months/state"[^>]*data-say="Adding 2008-03"', shown)
    assert "The file is being downloaded." in shown
    part = service.folder / f"{MARCH.file_name}.part"
    until(lambda: part.exists() and part.stat().st_size == 200)
    service.stop(signal.SIGKILL)
    until(lambda: not service.role("import", "bts:2008-03"))
    goes_on.set()
    assert content.startswith(part.read_bytes())
    until(lambda: MonthFetcher(service.folder).look().state == "failed")
    assert "fetch the month again" in MonthFetcher(service.folder).look().message


def test_a_fetch_that_cannot_begin_is_not_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def exhausted(thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    fetch = MonthFetcher(tmp_path)
    monkeypatch.setattr(sys, "executable", "/bin/true")
    for place, name, fault, error in (
        (os, "truncate", refuse, WriteFailed),
        (os, "write", refuse, WriteFailed),
        (Thread, "start", exhausted, RuntimeError),
    ):
        with monkeypatch.context() as broken, pytest.raises(error):
            broken.setattr(place, name, fault)
            fetch.start(JANUARY)
        assert fetch.look().state != "running"
    fetch.start(JANUARY)
    until(lambda: fetch.look().state == "done")


@pytest.mark.parametrize("lines", ["", "checking: 3%\n"])
def test_a_fetch_that_was_killed_says_so(tmp_path: Path, lines: str) -> None:
    (tmp_path / "months.log").write_text(f"2008-01\n{lines}{ENDED}-9\n")
    status = MonthFetcher(tmp_path).look()
    assert (status.state, "it was interrupted; fetch the month again" in status.message) == (
        "failed",
        True,
    )


def test_the_last_message_of_a_fetch_that_goes_on_is_shown(tmp_path: Path) -> None:
    (tmp_path / "months.log").write_text("2008-01\nchecking: 3%\nimporting: 9%\n")
    with FileLock(tmp_path / "months.log"):
        assert MonthFetcher(tmp_path).look() == MonthFetch("running", "2008-01", "importing: 9%")


def test_a_command_that_cannot_be_started_ends_the_fetch_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch = MonthFetcher(tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    fetch.start(JANUARY)
    until(lambda: fetch.look().state == "failed")
    assert fetch.look().message == f"cannot start {tmp_path / 'none'}: No such file or directory"
