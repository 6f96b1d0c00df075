"""Posts of flights, for tests."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any


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
