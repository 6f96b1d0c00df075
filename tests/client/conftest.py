"""Services and clients for the tests of the client and of scripts/bulk_post."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

import flightchain_client
from backend.sealing.miner import Miner
from flightchain_client import Client
from tests.api.processes import Reached, Service, backend, serving
from tests.api.worlds import client_of, new_chain
from tests.client.samples import BEFORE, mined
from tests.conftest import is_slow
from tests.http_servers import served_in_a_thread
from tests.submitting import at_work


@contextmanager
def serving_here(folder: Path) -> Iterator[Reached]:
    """A service and a miner in threads of this process."""
    settings = new_chain(folder, mine_interval_s=0.05)
    with (
        client_of(settings) as asker,
        served_in_a_thread(asker.application) as url,
        at_work(Miner(settings, lambda line: None)),  # standard output may be a report
    ):
        yield Reached(folder, url)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service for the slow tests that look only at what they add themselves."""
    with serving(tmp_path_factory.mktemp("shared") / "chain") as service:
        yield service


@pytest.fixture(scope="module")
def shared_here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reached]:
    """The same for the quick tests, without processes."""
    with serving_here(tmp_path_factory.mktemp("here") / "chain") as service:
        yield service


@pytest.fixture
def empty_ledger(request: pytest.FixtureRequest, folder: Path) -> Iterator[Reached]:
    """A service for a test that says which ids and heights come first."""
    with (serving if is_slow(request.node) else serving_here)(folder) as service:
        yield service


@pytest.fixture
def service(request: pytest.FixtureRequest) -> Reached:
    """The shared service, or for a test that is `on_an_empty_ledger` one of its own.

    It has processes for a slow test: those that send files need them.
    """
    if "empty_ledger" in request.fixturenames:
        name = "empty_ledger"
    else:
        name = "shared" if is_slow(request.node) else "shared_here"
    service: Reached = request.getfixturevalue(name)
    BEFORE[service.folder] = 0
    BEFORE[service.folder] = len(mined(service))
    return service


@pytest.fixture
def first(service: Service) -> int:
    """The id that the next flight gets; none is pending."""
    return BEFORE[service.folder]


@pytest.fixture
def client(service: Reached) -> Iterator[Client]:
    with Client(service.url) as client:
        yield client


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of clients in seconds. They are over at once, and all else takes no time."""
    pauses: list[float] = []
    clock = SimpleNamespace(sleep=pauses.append, monotonic=lambda: sum(pauses))
    monkeypatch.setattr(flightchain_client, "time", clock)
    return pauses


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, str]]:
    """A service that needs a token and mines nothing, and a token of it."""
    folder = tmp_path_factory.mktemp("guarded") / "chain"
    token = backend(folder, "token", "add", "me").stdout.split()[-1]
    more = {"FLIGHTCHAIN_REQUIRE_TOKEN": 1, "FLIGHTCHAIN_MINE_INTERVAL_S": 3600}
    with serving(folder, **more) as service:
        yield service, token
