"""The newest block of an imported chain is damaged: nobody forgets it, and everybody says so.

What was imported is in no mempool, so a block that is left out would be gone.
"""

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from backend.base.errors import Damage, TryLater
from backend.base.settings import Settings
from backend.ledger.ledger import Ledger
from backend.sources.generated import Generated
from tests.api.processes import living, until
from tests.api.worlds import GOOD
from tests.flights import flight, import_flights, transactions_in
from tests.storage.chains import contents, flip_in_block
from tests.submitting import add, sealing
from tests.test_cli import call

pytestmark = pytest.mark.slow

FILE_BYTES = 30_000
FLIGHTS = 2500
TIP = 3
WHAT_TO_DO = "restore the chain from a backup"


def settings_for(folder: Path) -> Settings:
    return Settings(dir=str(folder), block_file_bytes=FILE_BYTES)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three blocks of imported flights and their index. Not to be changed."""
    folder = tmp_path_factory.mktemp("imported") / "chain"
    import_flights(settings_for(folder), Generated(FLIGHTS, flights_per_day=1000))
    return folder


@pytest.fixture
def folder(imported: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(imported, tmp_path / "chain", symlinks=True))


def test_where_there_was_a_chain_no_other_is_begun(folder: Path) -> None:
    """An unmounted disk leaves an empty folder in the place of the blocks."""
    shutil.rmtree(folder / "blocks")
    for _ in range(2):
        with (
            pytest.raises(Damage, match="they once held 2,500 transactions: is the disk mounted"),
            sealing(settings_for(folder)),
        ):
            pass
    with closing(Ledger(settings_for(folder), print)) as ledger:
        with pytest.raises(Damage, match="is the disk mounted"):
            add(ledger.submitter, flight(1))
        missed = (
            f"there are no blocks in {folder / 'blocks'}, but they once held 2,500 transactions"
        )
        for ask in (ledger.tip, ledger.index_lag_blocks):
            with pytest.raises(TryLater, match=missed):
                ask()
        first, *others = ledger.not_ready()
        assert first.startswith(missed)
        assert [line for line in others if "blocks" in line] == []


def test_a_service_with_a_damaged_tip_is_not_ready_and_says_why(folder: Path) -> None:
    flip_in_block(folder, TIP)
    before = contents(folder)
    with living(folder, FLIGHTCHAIN_BLOCK_FILE_BYTES=FILE_BYTES) as service:
        until(lambda: "starting it again in 1 s" in service.said())
        ready = service.get("/health/ready")
        assert ready.status_code == 503
        assert f"block {TIP} is damaged: its checksum is wrong; {WHAT_TO_DO}" in ready.text
        assert service.json("/blocks/2")["block"]["height"] == 2
        receipt = service.post(GOOD)  # it waits for the chain to be whole again
        assert (receipt.status_code, receipt.json()["TRANSACTION_ID"]) == (202, FLIGHTS)
    assert f"error: block {TIP} is damaged" in service.said()
    assert contents(folder) == before
    assert transactions_in(folder) == FLIGHTS
    message = call(folder, "verify").stderr
    assert f"block {TIP} is damaged" in message
