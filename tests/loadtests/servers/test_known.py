"""The server of known service time does what it is asked, and tells of it truly."""

import threading
from itertools import pairwise
from pathlib import Path
from time import monotonic

import pytest
import requests

from loadtests.process_table import family
from loadtests.processes import ProgramFailed, Service
from loadtests.servers import known
from loadtests.servers.gunicorn import FCFS, Gunicorn, gunicorn_server
from loadtests.servers.known import Sleeper, known_server
from loadtests.servers.timing import BOOT, START, Reported, boot_id, headers, reported


def got(server: Service, path: str) -> tuple[requests.Response, Reported]:
    response = requests.get(server.url + path, timeout=30)
    return response, reported({name.lower(): text for name, text in response.headers.items()})


def test_it_serves_for_as_long_as_the_request_says_and_tells_so(tmp_path: Path) -> None:
    with known_server(FCFS, tmp_path / "log") as server:
        before_s = monotonic()
        for demand_s in (0.05, 0.0, 0.1):
            response, times = got(server, f"/?service_s={demand_s}")
            assert response.json() == {"service_s": demand_s}
            assert times.service_s is not None
            assert times.start_s is not None
            assert before_s <= times.start_s <= times.start_s + times.service_s <= monotonic()
            assert int(times.worker) in family(server.pid)
        assert monotonic() - before_s >= 0.1


def test_it_answers_with_the_status_that_the_request_says(tmp_path: Path) -> None:
    with known_server(FCFS, tmp_path / "log") as server:
        for path, status in (("/other", 404), ("/?service_s=0&status=503", 503), ("/", 200)):
            assert got(server, path)[0].status_code == status


def together(server: Service, count: int, demand_s: float) -> list[tuple[float, float]]:
    """(start, end) in the server of requests that were sent at once."""
    services: list[tuple[float, float]] = []

    def ask() -> None:
        times = got(server, f"/?service_s={demand_s}")[1]
        assert times.start_s is not None
        assert times.service_s is not None
        services.append((times.start_s, times.start_s + times.service_s))

    threads = [threading.Thread(target=ask) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(services)


def most_at_once(spans: list[tuple[float, float]]) -> int:
    return max(sum(start <= at < end for start, end in spans) for at, _ in spans)


def test_one_worker_serves_one_after_the_other(tmp_path: Path) -> None:
    with known_server(FCFS, tmp_path / "log") as server:
        spans = together(server, 4, 0.03)
    assert all(late[0] >= early[1] for early, late in pairwise(spans))


@pytest.mark.parametrize(
    "how", [Gunicorn(workers=2), Gunicorn("gthread", threads=2)], ids=["workers", "threads"]
)
def test_m_servers_serve_m_at_once(how: Gunicorn, tmp_path: Path) -> None:
    with known_server(how, tmp_path / "log") as server:
        spans = together(server, 6, 0.2)
    assert most_at_once(spans) == 2


def test_what_was_slept_too_long_is_taken_off_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0

    def sleep(asked_s: float) -> None:
        nonlocal now_s
        now_s += asked_s + 0.125

    monkeypatch.setattr(known, "sleep", sleep)
    monkeypatch.setattr(known, "monotonic", lambda: now_s)
    sleeper = Sleeper()
    ends_s = []
    for _ in range(4):
        sleeper(0.5)
        ends_s.append(now_s)
    assert ends_s == [100.625, 101.125, 101.625, 102.125]
    sleeper(0.0625)
    assert now_s == 102.125, "it owes more than that"
    sleeper(0.5)
    assert now_s == 102.6875


def test_a_clock_of_another_machine_is_not_believed() -> None:
    sent = {name.lower(): text for name, text in headers(12.5)}
    assert reported(sent).start_s == 12.5
    elsewhere = reported(sent | {BOOT.lower(): "another"})
    assert elsewhere.start_s is None
    assert elsewhere.service_s is not None
    assert reported({START.lower(): "1"}) == Reported(None, None, "")
    assert boot_id() == boot_id() != ""


@pytest.mark.parametrize(
    ("text", "service_s"),
    [
        ("total;dur=1.5", 0.0015),
        ("db;dur=7, total;dur=20", 0.02),
        ('total;desc="all";dur=3', 0.003),
        ("subtotal;dur=5", None),
        ("total", None),
        ("", None),
    ],
)
def test_the_total_of_server_timing_is_the_service_time(text: str, service_s: float | None) -> None:
    expected = None if service_s is None else pytest.approx(service_s)
    assert reported({"server-timing": text}).service_s == expected


def test_a_server_that_does_not_come_up_is_explained(tmp_path: Path) -> None:
    with (
        pytest.raises(ProgramFailed, match="no_such_module"),
        gunicorn_server("no_such_module:app", FCFS, tmp_path / "log"),
    ):
        pass
