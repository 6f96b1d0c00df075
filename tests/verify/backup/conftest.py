"""A ledger that is made once, and copied for every test that changes it."""

from pathlib import Path

import pytest

from tests.verify.backup.house import House, copied, filled


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> House:
    """A ledger with a backup. Not to be changed."""
    house = filled(tmp_path_factory.mktemp("original"))
    house.back_up()
    return house


@pytest.fixture
def house(original: House, tmp_path: Path) -> House:
    """The same, to be changed."""
    return copied(original, tmp_path)
