"""Services and clients for the tests of the client and of scripts/bulk_post."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import flightchain_client
from flightchain_client import (
    Client,
)
from tests.api.processes import Service, backend, serving
from tests.client.samples import BEFORE, mined


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service for the tests that look only at what they add themselves."""
    with serving(tmp_path_factory.mktemp("shared") / "chain") as service:
        yield service


@pytest.fixture
def empty_ledger(folder: Path) -> Iterator[Service]:
    """A service for a test that says which ids and heights come first."""
    with serving(folder) as service:
        yield service


@pytest.fixture
def service(request: pytest.FixtureRequest) -> Service:
    """The shared service, or for a test that is `on_an_empty_ledger` one of its own."""
    is_alone = "empty_ledger" in request.fixturenames
    service: Service = request.getfixturevalue("empty_ledger" if is_alone else "shared")
    BEFORE[service.folder] = 0
    BEFORE[service.folder] = len(mined(service))
    return service


@pytest.fixture
def first(service: Service) -> int:
    """The id that the next flight gets; none is pending."""
    return BEFORE[service.folder]


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
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
