import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from loadtests.process_table import family
from loadtests.processes import Service
from loadtests.servers.gunicorn import WORKERS, empty_asgi, flask_view
from tests.loadtests.servers.asking import ask

SERVERS = {"empty": empty_asgi, "flask": flask_view}
STARTED_WITHIN_S = 30.0


def workers_of(server: Service) -> list[int]:
    """The workers, when all have been started: the first may answer before the second is there."""
    deadline = time.monotonic() + STARTED_WITHIN_S
    while len(workers := family(server.pid)[1:]) < WORKERS and time.monotonic() < deadline:
        time.sleep(0.01)
    return workers


@pytest.fixture(scope="module", params=SERVERS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    log = tmp_path_factory.mktemp("bare") / "log.txt"
    running: AbstractContextManager[Service] = SERVERS[request.param](log)
    with running as running_server:
        yield running_server
        assert log.read_text() == ""  # before it is ended, of which gunicorn may complain


def test_a_bare_server_answers_with_a_few_bytes_from_as_many_workers_as_the_service(
    server: Service,
) -> None:
    assert ask(server, "/")[:2] == (200, {"status": "ok"})
    assert len(workers_of(server)) == WORKERS


def test_a_connection_to_a_bare_server_is_kept(server: Service) -> None:
    with server.connection() as connection:
        for _ in range(3):
            connection.request("GET", "/")
            response = connection.getresponse()
            assert (response.status, response.will_close) == (200, False)
            response.read()


def test_the_limit_is_measured_on_the_loop_that_the_service_has(tmp_path: Path) -> None:
    with empty_asgi(tmp_path / "log.txt") as server:
        loaded = [Path(f"/proc/{pid}/maps").read_text() for pid in workers_of(server)]
    assert any("uvloop" in files for files in loaded)  # one at least has answered already
