"""`GET /log/…`: the chain as a transparency log, for tools that read C2SP tlog-tiles."""

from flask import Response

from backend.api.conditions import IMMUTABLE, SETTLED
from backend.api.json_answers import answer, versioned
from backend.api.operation import PROOFS, Answer, Media, Operation, in_json
from backend.api.routes import Lane, Row
from backend.base.errors import NotFound
from backend.ledger.ledger import Ledger
from backend.questions.parameters import Given, Text
from backend.serving.environs import Environ
from backend.trust.log import tiles

TEXT, BYTES = "text/plain", "application/octet-stream"
_TEXT = {TEXT: Media({"type": "string"})}
_BYTES = {BYTES: Media({"type": "string", "format": "binary"})}

TILE_NAME = Text(
    "TILE",
    "Level and index of a tile, as C2SP tlog-tiles writes them: 256 hashes, or at the level "
    "`entries` the hashes of 256 blocks; `.p/WIDTH` follows while it is not full.",
    "0/000.p/1",
)

CHECKPOINT = Operation(
    "log_checkpoint",
    PROOFS,
    "Show the signed root of the log",
    {200: Answer("Origin, number of blocks, root, and the signature of the log.", _TEXT)},
    errors=(404,),
    has_etag=True,
)
KEY = Operation(
    "log_key",
    PROOFS,
    "Show the key that verifies checkpoints",
    {200: Answer("The verifier key: its name, its id, and the Ed25519 key.", _TEXT)},
    errors=(404,),
    has_etag=True,
)
WITNESSES = Operation(
    "log_witnesses",
    PROOFS,
    "Show who has cosigned the newest checkpoint",
    {200: in_json("The witnesses, and the times at which they cosigned.", "Witnesses")},
    errors=(404,),
)
TILE = Operation(
    "log_tile",
    PROOFS,
    "Get a tile of the log's tree, or a bundle of its entries",
    {200: Answer("Hashes of 32 bytes; or entries, each after its length in two bytes.", _BYTES)},
    in_path=(TILE_NAME,),
    errors=(404,),
    has_etag=True,
)


def rows(ledger: Ledger) -> list[Row]:
    """Return the routes for the log of `ledger`."""

    def checkpoint(environ: Environ, _: Given) -> Response:
        return _text(environ, ledger.prover.checkpoint())

    def key(environ: Environ, _: Given) -> Response:
        return _text(environ, ledger.prover.verifier_key())

    def witnesses(*_: object) -> Response:
        return answer(ledger.prover.cosigners())

    def tile(environ: Environ, _: Given, tile: str) -> Response:
        place = tiles.parse(tile)
        if place is None:
            raise NotFound(f"{tile!r} is not the name of a tile; C2SP tlog-tiles defines the names")
        keep = IMMUTABLE if place.is_full else SETTLED
        return versioned(environ, ledger.tile(place), keep, mimetype=BYTES)

    return [
        Row("GET", "/log/checkpoint", CHECKPOINT, checkpoint),
        Row("GET", "/log/key", KEY, key),
        Row("GET", "/log/witnesses", WITNESSES, witnesses),
        Row("GET", "/log/tile/<path:tile>", TILE, tile, Lane.READ),
    ]


def _text(environ: Environ, body: bytes) -> Response:
    return versioned(environ, body, mimetype=f"{TEXT}; charset=utf-8")
