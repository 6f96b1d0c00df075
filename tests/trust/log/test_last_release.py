"""A folder that the last release left opens as it is, and its files get what they lack.

The code of commit ffce160 made `folder.tar.xz`: a token, blocks of 30 flights that were accepted at
1,700,000,000,000 ms, a rotation of the log's key after the second block, and pending flights.
"""

import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from backend.ledger.ledger import Ledger
from backend.trust.log.successions import successions_in
from backend.verify.audit import verify
from tests.api.worlds import settings_for
from tests.folder_harms import mined

BLOCKS, FLIGHTS_A_BLOCK, PENDING = 4, 30, 3
PACKED = Path(__file__).parent / "last_release" / "folder.tar.xz"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with tarfile.open(PACKED) as tar:
        tar.extractall(tmp_path, filter="data")
    return tmp_path / "chain"


def test_it_is_verified_asked_and_goes_on(folder: Path) -> None:
    flights = BLOCKS * FLIGHTS_A_BLOCK
    assert verify(folder).transactions == flights
    assert len((folder / "log.key").read_text().splitlines()) == 1
    of_mempool, of_index = sorted(mined(folder))
    assert "the index was rebuilt: it was made by an earlier release" in of_index
    assert "the mempool of the last release was converted" in of_mempool
    assert verify(folder).transactions == flights + PENDING
    with closing(Ledger(settings_for(folder), print)) as ledger:
        assert [line for line in ledger.not_ready() if "no miner is running" not in line] == []
        assert ledger.mined_count() == flights + PENDING
    (note,) = successions_in(folder)
    first, *followed = (folder / "log.key").read_text().splitlines()
    assert first.startswith("PRIVATE+KEY+flightchain/")
    assert [line.removeprefix("FOLLOWS+") for line in followed] == [note.split("\n")[1]]
