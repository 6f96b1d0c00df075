"""A small chain whose answers and blocks are proved."""

from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient

from tests.api.worlds import World, client_of, world_in


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world_in(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def client(world: World) -> Iterator[FlaskClient]:
    with client_of(world.settings) as found:
        yield found
