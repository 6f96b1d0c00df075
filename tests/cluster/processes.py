"""What tests need that run real nodes."""

import pytest

from backend.base.errors import FlightchainError
from backend.cluster.engine import program

SETTINGS = {
    "FLIGHTCHAIN_WORKERS": "1",
    "FLIGHTCHAIN_SCRUB_HOURS": "0",
    "FLIGHTCHAIN_MIN_FREE_BYTES": "0",
}


def need_engine() -> None:
    """Skip the test where there is no CometBFT of our version."""
    try:
        program()
    except FlightchainError as error:
        pytest.skip(str(error))
