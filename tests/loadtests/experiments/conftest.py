"""Chains of the same flights are imported once, and copied for every experiment after the first."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadtests import chains
from loadtests.chains import Chain, Source
from loadtests.experiments.client_server import systems
from loadtests.experiments.open_workload import servers
from loadtests.lab import generator_check, ledgers
from tests.api.worlds import copy_chain

RECORD = "imported.json"  # tells that the chain beside it is whole
IMPORTING = (systems, servers, ledgers)


@pytest.fixture(scope="session", autouse=True)
def imported_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let `imported` find a chain where it is to be made, if another test has imported it."""
    folder = tmp_path_factory.mktemp("imported")
    kept: dict[Source, Path] = {}

    def imported(source: Source, home: Path, log: Path | None) -> Chain:
        if source in kept and not home.exists():
            home.mkdir(parents=True)
            copy_chain(kept[source] / "chain", home / "chain")
            shutil.copy(kept[source] / RECORD, home / RECORD)
        found = chains.imported(source, home, log)
        if source not in kept:
            kept[source] = folder / str(len(kept))
            copy_chain(home / "chain", kept[source] / "chain")
            shutil.copy(home / RECORD, kept[source] / RECORD)
        return found

    with pytest.MonkeyPatch.context() as patch:
        for module in IMPORTING:
            patch.setattr(module, "imported", imported)
        yield


@pytest.fixture(scope="session", autouse=True)
def unchecked_generator() -> Iterator[None]:
    """The load generator is not checked before each experiment; `lab/test_generator_check` is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generator_check, "check", lambda run: None)
        yield
