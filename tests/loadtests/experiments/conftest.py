"""Chains of the same flights are imported once, and copied for every experiment after the first."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadtests import chains
from loadtests.chains import Chain, Source
from loadtests.experiments.capacity import measuring
from loadtests.experiments.client_server import systems
from loadtests.experiments.open_workload import servers
from loadtests.lab import ledgers, two_chains

IMPORTING = (measuring, systems, servers, ledgers, two_chains)


@pytest.fixture(scope="session", autouse=True)
def imported_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let `imported` find a chain where it is to be made, if another test has imported it."""
    folder = tmp_path_factory.mktemp("imported")
    kept: dict[Source, Path] = {}

    def imported(source: Source, home: Path, log: Path | None) -> Chain:
        if source in kept:
            shutil.copytree(kept[source], home)
            return chains.imported(source, home, log)
        found = chains.imported(source, home, log)
        kept[source] = Path(shutil.copytree(home, folder / str(len(kept))))
        return found

    with pytest.MonkeyPatch.context() as patch:
        for module in IMPORTING:
            patch.setattr(module, "imported", imported)
        yield
