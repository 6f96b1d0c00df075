"""`GET /cheats`: what comes of attempts to cheat, on a throw-away chain that is made for them."""

from backend.api.json_answers import encode, made_once
from backend.api.operation import PROOFS, Operation, in_json
from backend.api.routes import Lane, Row

CHEATS = Operation(
    "cheats",
    PROOFS,
    "Show attempts to cheat, and the checks that notice them",
    {200: in_json("The attempts, in order.", "Cheats")},
    has_etag=True,
)


def rows() -> list[Row]:
    """Return the route for the attempts, which are made when it is first asked."""

    def tried() -> bytes:
        from backend.trust.cheating import try_all  # which loads all that writes blocks

        return encode({"cheats": [outcome._asdict() for outcome in try_all()]})

    return [Row("GET", "/cheats", CHEATS, made_once(tried), Lane.BATCH)]
