"""The newest block of an imported chain is damaged: nobody forgets it, and everybody says so.

What was imported is in no mempool, so a block that is left out would be gone.
"""

from pathlib import Path

import pytest

from backend.base.settings import Settings
from backend.sources.generated import Generated
from tests.api.processes import living, until
from tests.api.worlds import GOOD
from tests.flights import import_flights, transactions_in
from tests.storage.chains import contents, flip_in_block
from tests.test_cli import call

pytestmark = pytest.mark.slow

FILE_BYTES = 30_000
FLIGHTS = 2500
TIP = 3
WHAT_TO_DO = "restore the chain from a backup"


def test_a_service_with_a_damaged_tip_is_not_ready_and_says_why(tmp_path: Path) -> None:
    folder = tmp_path / "chain"
    settings = Settings(dir=str(folder), block_file_bytes=FILE_BYTES)
    import_flights(settings, Generated(FLIGHTS, flights_per_day=1000))
    flip_in_block(folder, TIP)
    before = contents(folder)
    with living(folder, FLIGHTCHAIN_BLOCK_FILE_BYTES=FILE_BYTES) as service:
        until(lambda: "starting it again in 1 s" in service.said())
        ready = service.get("/health/ready")
        assert ready.status_code == 503
        reasons = [reason for reason in ready.json()["reasons"] if "checksum" in reason]
        assert reasons == [f"block {TIP} is damaged: its checksum is wrong; {WHAT_TO_DO}"]
        assert service.json("/blocks/2")["block"]["height"] == 2
        receipt = service.post(GOOD)  # it waits for the chain to be whole again
        assert (receipt.status_code, receipt.json()["TRANSACTION_ID"]) == (202, FLIGHTS)
    assert f"error: block {TIP} is damaged" in service.said()
    assert contents(folder) == before
    assert transactions_in(folder) == FLIGHTS
    message = call(folder, "verify").stderr
    assert f"block {TIP} is damaged" in message
