"""What tests need that run real nodes."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
import requests

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


def post(url: str, flight: Mapping[str, object]) -> tuple[int, Any]:
    """Post a flight. Returns the status and the body. Raises OSError if nobody answers."""
    answer = requests.post(url, json=flight, timeout=5)
    return answer.status_code, json.loads(answer.content)
