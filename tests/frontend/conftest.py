"""Pages over a real backend: one chain of made-up flights that nobody writes to."""

from collections.abc import Iterator

import pytest
from flask import Flask
from flask.testing import FlaskClient

from frontend.app import create_app
from frontend.settings import Settings
from tests.api.processes import Service, serving
from tests.api.worlds import World, world_in


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world_in(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="session")
def service(world: World) -> Iterator[Service]:
    with serving(world.settings.folder, FLIGHTCHAIN_MINE_INTERVAL_S=3600) as service:
        yield service


@pytest.fixture(scope="session")
def app(service: Service) -> Flask:
    """The pages over `service`, which translate each of their templates once."""
    return create_app(Settings(backend_url=service.url))


@pytest.fixture
def pages(app: Flask) -> FlaskClient:
    """A new client of the pages, without cookies."""
    return app.test_client()


@pytest.fixture(scope="session")
def lonely_app() -> Flask:
    """The pages over a backend that is away."""
    return create_app(Settings(backend_url="http://127.0.0.1:1"))


@pytest.fixture
def lonely_pages(lonely_app: Flask) -> FlaskClient:
    """A new client of pages whose backend is away."""
    return lonely_app.test_client()
