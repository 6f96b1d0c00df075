"""`POST /months` fetches a month of BTS into the ledger, and `GET /months` says how far that is.

The one who runs the service asks for it, with a token also where others need none: it makes this
machine download something.
"""

from dataclasses import dataclass

from flask import Response

from backend.api.json_answers import answer
from backend.api.operation import ADDING, Operation, in_json
from backend.api.routes import Lane, Row
from backend.api.writing import AUTHORIZATION
from backend.base.errors import FlightchainError, InvalidQuery, InvalidSetting
from backend.ledger.bts_months import FIRST_MONTH, PATTERN, Month, month_in
from backend.ledger.ledger import Ledger
from backend.ledger.month_fetch import MonthFetcher
from backend.questions.parameters import Given, Parameter, Schema
from backend.serving.environs import Environ
from backend.storage.receipt_store import require_no_cluster
from backend.storage.tokens import Tokens


@dataclass(frozen=True)
class MonthParameter(Parameter[Month]):
    """A month of which BTS may have flights."""

    def parse(self, text: str) -> Month:
        try:
            return month_in(text)
        except InvalidSetting as error:
            raise InvalidQuery(self.name, text, error.reason) from None

    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^{PATTERN}$"}


MONTH = MonthParameter(
    "MONTH", f"The month to fetch, from {FIRST_MONTH}.", "2008-01", required=True
)
FETCH_MONTH = Operation(
    "fetch_month",
    ADDING,
    "Download and import a month of BTS",
    {202: in_json("The import has begun; `GET /months` shows the progress.", "MonthFetch")},
    parameters=(MONTH,),
    writes=True,
    always_needs_token=True,
)
SHOW_MONTH = Operation(
    "show_month",
    ADDING,
    "Show the progress of the month that was fetched last",
    {200: in_json("Its state, and the last message of its import.", "MonthFetch")},
)


def rows(ledger: Ledger) -> list[Row]:
    """Return the routes that fetch months into `ledger`."""
    folder = ledger.settings.folder
    fetch, tokens = MonthFetcher(folder), Tokens(folder)

    def begin(environ: Environ, given: Given) -> Response:
        month = MONTH.of(given)
        tokens.owner_of(environ.get(AUTHORIZATION))
        try:
            require_no_cluster(folder)
        except FlightchainError as error:
            raise InvalidQuery(MONTH.name, str(month), str(error)) from None
        return answer(fetch.start(month), 202)

    def show(*_: object) -> Response:
        return answer(fetch.look())

    return [
        Row("POST", "/months", FETCH_MONTH, begin),
        Row("GET", "/months", SHOW_MONTH, show, Lane.READ),
    ]
