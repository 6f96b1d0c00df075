"""What every route that accepts flights shares: who may, how long it waits, what it answers.

Writing has three modes, which differ in what the answer promises:

    sync    durable: on the disk and synced (the default)
    async   accepted, with ids; synced within half a second, unless the power fails before
    commit  mined: in a block and in the index; or durable, if that takes longer than the wait
"""

from collections.abc import Callable
from typing import Any

from flask import Response

from backend.api.answers import answer
from backend.api.conditions import Environ
from backend.api.operation import JSON, Answer, Media
from backend.api.problems import InvalidFlights
from backend.api.reading import json_object
from backend.api.schemas import FLIGHT_EXAMPLE, ref
from backend.api.waiting import CommitWaiters
from backend.chain.flight import Flight, examine
from backend.ledger import Ledger
from backend.parameters import Choice
from backend.tokens import Tokens, are_needed

Json = dict[str, Any]

MODE = Choice(
    "mode",
    "What the answer promises: `sync`, it is on the disk; `commit`, it is in a block, or on the "
    "disk if that takes too long; `async`, it has its id and is synced within half a second.",
    "commit",
    default="sync",
    choices=("sync", "async", "commit"),
)
ONE_FLIGHT = {JSON: Media(ref("Flight"), FLIGHT_EXAMPLE)}


def accepted(schema: str, mined: str, pending: str) -> dict[int, Answer]:
    """What `Writing.accept` answers: 201 and 202."""
    content = {JSON: Media(ref(schema))}
    return {
        201: Answer(mined, content, headers=("Location",)),
        202: Answer(pending, content, headers=("Location",)),
    }


def sent_flight(environ: Environ) -> tuple[Flight, bytes]:
    """The flight in the body of a request, and the body.

    Raises as `json_object`, and InvalidFlights with everything that is wrong with it.
    """
    record, data = json_object(environ)
    flight, problems = examine(record)
    if problems:
        raise InvalidFlights(problems)
    return flight, data


class Writing:
    """The way into `ledger`."""

    def __init__(self, ledger: Ledger) -> None:
        self._waiters = CommitWaiters(ledger.settings)
        self._tokens = Tokens(ledger.settings.folder)
        self._needs_token = are_needed(ledger.settings)

    def require_token(self, environ: Environ) -> None:
        """Raise NotAllowed unless this request may write."""
        if self._needs_token:
            self._tokens.owner_of(environ.get("HTTP_AUTHORIZATION"))

    def accept(self, mode: str, add: Callable[..., Json], **more: Any) -> Response:
        """The answer to flights that `add` gives to the ledger; more: further members of it."""
        with self._waiters.wait_s(mode == "commit") as wait_s:
            receipt = add(wait_s=wait_s, durable=mode != "async")
        response = answer({**receipt, **more}, 201 if receipt["state"] == "mined" else 202)
        first = receipt.get("TRANSACTION_ID", receipt.get("first_transaction"))
        response.headers["Location"] = f"/transactions/{first}"
        return response
