"""Writing answers: JSON in UTF-8."""

from typing import Any

import msgspec
from flask import Response

_encode = msgspec.json.Encoder().encode


def answer(body: Any, status: int = 200) -> Response:
    """A JSON response."""
    return Response(_encode(body), status, mimetype="application/json")
