"""`GET /suggest`."""

from flask import Blueprint, Response

from backend.api.answers import answer
from backend.api.operation import JSON, READING, Answer, Media, Operation
from backend.api.schemas import ref
from backend.ledger import Ledger
from backend.parameters import Choice, Number, Text
from backend.suggestions import FIELDS

FIELD = Choice("field", "What to complete.", "city", required=True, choices=tuple(FIELDS))
TYPED = Text("q", "What has been typed; everything matches nothing.", "chic", default="")
LIMIT = Number("limit", "At most so many.", "5", default=10, least=1, most=50)

SUGGEST = Operation(
    "suggest",
    READING,
    "Completions from the ledger",
    {200: Answer("Completions, best first.", {JSON: Media(ref("Suggestions"))})},
    parameters=(FIELD, TYPED, LIMIT),
)


def blueprint(ledger: Ledger) -> Blueprint:
    """Completions from `ledger`."""
    routes = Blueprint("suggest", __name__)

    @routes.get("/suggest")
    @SUGGEST
    def suggest() -> Response:
        """Cities, airports, carriers or flight numbers that begin with or hold `q`."""
        given = SUGGEST.given()
        return answer(ledger.suggest(FIELD.of(given), TYPED.of(given), LIMIT.of(given)))

    return routes
