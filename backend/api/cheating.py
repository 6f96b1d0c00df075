"""`GET /cheats`: what comes of attempts to cheat, on a throw-away chain that is made for them."""

from functools import cache

from flask import Response

from backend.api.conditions import REVALIDATE, tag_of_content
from backend.api.json_answers import encode, versioned
from backend.api.operation import JSON, PROOFS, Answer, Media, Operation
from backend.api.routes import Lane, Row
from backend.api.schemas import ref
from serving.environs import Environ

CHEATS = Operation(
    "cheats",
    PROOFS,
    "Attempts to cheat, and what notices them",
    {200: Answer("The attempts, in order.", {JSON: Media(ref("Cheats"))})},
    has_etag=True,
)


def rows() -> list[Row]:
    """The route for the attempts, which are made when it is first asked."""

    @cache
    def outcomes() -> bytes:
        from backend.cheating.cheats import try_all  # which loads all that writes blocks

        return encode({"cheats": [one._asdict() for one in try_all()]})

    def cheats(environ: Environ) -> Response:
        """Attempts to cheat."""
        CHEATS.given(environ)
        body = outcomes()
        return versioned(environ, body, tag_of_content(body), REVALIDATE)

    return [Row("GET", "/cheats", CHEATS, cheats, Lane.BATCH)]
