"""`GET /cheats`: what comes of attempts to cheat, on a throw-away chain that is made for them."""

from threading import Lock

from flask import Response

from backend.api.json_answers import encode, versioned
from backend.api.operation import PROOFS, Operation, in_json
from backend.api.routes import Lane, Row
from backend.questions.parameters import Given
from backend.serving.environs import Environ

CHEATS = Operation(
    "cheats",
    PROOFS,
    "Show attempts to cheat, and the checks that notice them",
    {200: in_json("The attempts, in order.", "Cheats")},
    has_etag=True,
)


def rows() -> list[Row]:
    """Return the route for the attempts, which are made when it is first asked."""
    lock = Lock()
    bodies: list[bytes] = []

    def outcomes() -> bytes:
        with lock:  # so that those who ask first, at once, do not each let all be tried
            if not bodies:
                from backend.trust.cheating import try_all  # which loads all that writes blocks

                bodies.append(encode({"cheats": [outcome._asdict() for outcome in try_all()]}))
            return bodies[0]

    def cheats(environ: Environ, _: Given) -> Response:
        return versioned(environ, outcomes())

    return [Row("GET", "/cheats", CHEATS, cheats, Lane.BATCH)]
