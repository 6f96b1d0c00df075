"""A service with pages whose processes are stopped: it tells, and replaces them by itself."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection

import pytest

from tests.api.processes import STOPS_WITHIN_S, Service, free_port, is_answered, serving, until

pytestmark = pytest.mark.slow

WORKER_WITHIN_S = 24.0  # of silence, until another one answers


@pytest.fixture(scope="module")
def with_pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, str]]:
    """A service with its pages, and their address."""
    port = free_port()
    folder = tmp_path_factory.mktemp("pages") / "chain"
    with serving(
        folder, "--frontend", FLIGHTCHAIN_FRONTEND_PORT=port, FLIGHTCHAIN_MINE_INTERVAL_S=3
    ) as service:
        pages = f"http://127.0.0.1:{port}"
        until(lambda: is_answered(pages))
        yield service, pages


def test_a_stopped_miner_is_told_within_5_s_of_its_time_and_replaced_within_10(
    with_pages: tuple[Service, str],
) -> None:
    service, _ = with_pages
    miner, before = service.miner(), service.sealed()
    due = service.json("/tip")["next_block_at"] / 1000
    os.kill(miner, signal.SIGSTOP)
    until(lambda: not service.answers())
    assert time.time() < due + 5.5
    assert f"process {miner}" in service.get("/health/ready").json()["detail"]
    assert service.post().status_code == 202
    until(lambda: service.miner() not in {0, miner})
    assert time.time() < due + 10.5
    assert "the miner hangs: " in service.said()
    until(service.answers)
    assert service.sealed() == before + 1


@pytest.mark.long
def test_stopped_workers_are_replaced_and_the_others_answer_meanwhile(
    with_pages: tuple[Service, str],
) -> None:
    """One of the two of the service, and the one of the pages."""
    service, pages = with_pages
    (of_pages,) = page_workers(service)
    stopped, other = service.booted()
    for pid in (of_pages, stopped):
        os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    answered = 0
    while {stopped, of_pages} & service.processes().keys():
        assert time.monotonic() - began < WORKER_WITHIN_S
        answered += answers(service)
        time.sleep(0.25)
    until(lambda: len(service.booted()) == 2)
    assert answered > 10
    assert other in service.workers()
    until(lambda: is_answered(pages))
    assert time.monotonic() - began < WORKER_WITHIN_S
    assert "hangs" not in service.said()  # gunicorn has replaced them


def page_workers(service: Service) -> list[int]:
    """The processes of the frontend besides its master."""
    return [pid for pid in service.role("frontend") if pid != service.child("frontend")]


def answers(service: Service) -> bool:
    """Whether a new connection is answered at once: the stopped worker may have taken it."""
    with closing(HTTPConnection("127.0.0.1", service.port, timeout=0.5)) as connection:
        try:
            connection.request("GET", "/health/live")
            return connection.getresponse().status == 200
        except OSError:
            return False


def test_a_stopped_web_server_and_a_stopped_frontend_are_replaced(
    with_pages: tuple[Service, str],
) -> None:
    service, pages = with_pages
    web, frontend = service.web_master(), service.child("frontend")
    (worker,) = page_workers(service)
    for pid in (web, frontend, worker):
        os.kill(pid, signal.SIGSTOP)
    until(lambda: service.web_master() not in {0, web})
    until(lambda: service.child("frontend") not in {0, frontend})
    until(service.answers)
    until(lambda: is_answered(pages))
    assert "the web server hangs: it was stopped" in service.said()
    assert "the frontend hangs: it was stopped" in service.said()
    assert worker not in service.processes()  # or it would keep the port
    assert service.post().status_code == 202


def test_the_frontend_is_a_third_child_that_is_started_again_and_ends_first(
    with_pages: tuple[Service, str],
) -> None:
    service, pages = with_pages
    until(lambda: f"open {pages}\nFlightchain answers at {service.url}\n" in service.said())
    killed = service.child("frontend")
    os.kill(killed, signal.SIGKILL)
    until(lambda: service.child("frontend") not in {0, killed})
    assert "the frontend ended with status -9" in service.said()
    until(lambda: is_answered(pages))
    assert service.stop(within_s=STOPS_WITHIN_S) == 0
    assert service.processes() == {}
    assert "did not stop" not in service.said()
    assert "Traceback" not in service.said()
