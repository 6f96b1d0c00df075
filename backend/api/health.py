"""`GET /`, which says where to begin, `/health/live` and `/health/ready`."""

from flask import Response

from backend.api.body_types import Live, Start
from backend.api.conditions import NO_STORE
from backend.api.json_answers import MIMETYPE, answer, encode
from backend.api.operation import OPERATION, Operation, in_json
from backend.api.problems import problem
from backend.api.responses import Whole
from backend.api.routes import Lane, Row
from backend.base.version import VERSION, commit
from backend.ledger.ledger import Ledger
from backend.questions.values import NAMES

RETRY_AFTER_S = 1

START = Operation(
    "start",
    OPERATION,
    "Show where to begin",
    {200: in_json("The addresses that describe all others, and the three questions.", "Start")},
)
LIVE = Operation(
    "health_live",
    OPERATION,
    "Does the service answer?",
    {200: in_json("The service answers.", "Live")},
)
READY = Operation(
    "health_ready",
    OPERATION,
    "Does everything work: chain, index, miner?",
    {200: in_json("Everything works; otherwise 503, and `reasons` says what does not.", "Status")},
)


def rows(ledger: Ledger) -> list[Row]:
    """Return the routes that say where to begin, and whether the service over `ledger` works."""
    questions = [f"/{name}" for name in NAMES.values()]
    beginning = Start("Flightchain", VERSION, "/docs", "/openapi.json", questions)
    alive = encode(Live("ok", VERSION, commit()))

    def start(*_: object) -> Response:
        return answer(beginning)

    def live(*_: object) -> Response:
        """Answer, and do nothing else: whoever starts the service polls it."""
        return Whole(alive, ("Content-Type", MIMETYPE), ("Cache-Control", NO_STORE))

    def ready(*_: object) -> Response:
        reasons = ledger.not_ready()
        if not reasons:
            return answer({"status": "ready"})
        damaged = ledger.damaged_blocks()
        retry = ("Retry-After", str(RETRY_AFTER_S))
        return problem(503, "; ".join(reasons), retry, reasons=reasons, damaged_blocks=damaged)

    return [
        Row("GET", "/", START, start),
        Row("GET", "/health/live", LIVE, live, Lane.INLINE),
        Row("GET", "/health/ready", READY, ready),
    ]
