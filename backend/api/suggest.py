"""`GET /suggest` completes what a user types; `/coverage` tells what the ledger covers."""

from flask import Response

from backend.api.conditions import REVALIDATE, tag_of, unchanged
from backend.api.json_answers import encode, versioned
from backend.api.operation import READING, Operation, in_json
from backend.api.routes import Row
from backend.index.suggestions import FIELDS
from backend.ledger.ledger import Ledger
from backend.questions.parameters import Choice, Given, Number, Text
from backend.serving.environs import Environ

FIELD = Choice("field", "What to complete.", "city", required=True, choices=tuple(FIELDS))
TYPED = Text(
    "q",
    "What has been typed, digits of a flight number; if empty, everything matches.",
    "chic",
    default="",
)
LIMIT = Number("limit", "Largest number of completions.", "5", default=10, least=1, most=50)

SUGGEST = Operation(
    "suggest",
    READING,
    "Complete what a user types, from the ledger",
    {200: in_json("Completions, best first.", "Suggestions")},
    parameters=(FIELD, TYPED, LIMIT),
    has_etag=True,
)
COVERAGE = Operation(
    "coverage",
    READING,
    "Show what the ledger covers",
    {200: in_json("Days, carriers and airports.", "Coverage")},
    has_etag=True,
)


def rows(ledger: Ledger) -> list[Row]:
    """Return the routes for completions from `ledger` and for its coverage."""

    def suggest(environ: Environ, given: Given) -> Response:
        completions = ledger.answers.suggest(FIELD.of(given), TYPED.of(given), LIMIT.of(given))
        return versioned(environ, encode(completions))

    def coverage(environ: Environ, _: Given) -> Response:
        tag = tag_of(ledger.answers.recent_state().tip_hash, "coverage", "")
        if known := unchanged(environ, tag, REVALIDATE):
            return known
        coverage = ledger.answers.coverage()
        tag = tag_of(coverage.as_of.tip_hash, "coverage", "")
        return versioned(environ, encode(coverage), tag=tag)

    return [Row("GET", "/suggest", SUGGEST, suggest), Row("GET", "/coverage", COVERAGE, coverage)]
