"""What tests need that run real nodes."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

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


def post(url: str, flight: Mapping[str, object]) -> tuple[int, Any]:
    """Post a flight. Returns the status and the body. Raises OSError if nobody answers."""
    body = json.dumps(flight).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())
