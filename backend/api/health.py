"""`GET /health/live` and `/health/ready`."""

from flask import Blueprint, Response, request

from backend.api.answers import MIMETYPE, answer
from backend.api.conditions import NO_STORE
from backend.api.problems import problem
from backend.api.reading import only, parameters, query_string
from backend.api.whole import Whole
from backend.ledger import Ledger

RETRY_AFTER_S = 1

_ALIVE = b'{"status":"ok"}'


def blueprint(ledger: Ledger) -> Blueprint:
    """Whether the service over `ledger` lives and works."""
    routes = Blueprint("health", __name__)

    @routes.get("/health/live")
    def live() -> Response:
        """Whether the process answers. Touches nothing else: the benchmark's empty endpoint."""
        only(parameters(query_string(request)))
        response = Whole(_ALIVE, content_type=MIMETYPE)
        response.headers["Cache-Control"] = NO_STORE
        return response

    @routes.get("/health/ready")
    def ready() -> Response:
        """Whether everything works: chain, index at the tip, miner. 503 says what does not."""
        only(parameters(query_string(request)))
        reasons = ledger.not_ready()
        if not reasons:
            return answer({"status": "ready"})
        response = problem(503, "; ".join(reasons), reasons=reasons)
        response.headers["Retry-After"] = str(RETRY_AFTER_S)
        return response

    return routes
