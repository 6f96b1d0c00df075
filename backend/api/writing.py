"""What every route that accepts flights shares: who may, how long it waits, what it answers.

Writing has three modes, which differ in what the answer promises:

    sync    durable: on the disk and synced (the default)
    async   accepted, with ids; synced within half a second, unless the power fails before
    commit  mined: in a block and in the index; or durable, if that takes longer than the wait
"""

from collections.abc import Callable
from typing import Any

from flask import Response, request

from backend.api.answers import answer
from backend.api.reading import one_of
from backend.api.waiting import CommitWaiters
from backend.ledger import Ledger
from backend.tokens import Tokens, are_needed

MODES = ("sync", "async", "commit")

Json = dict[str, Any]


def mode_of(given: dict[str, str]) -> str:
    """The mode asked for. Raises InvalidQuery."""
    return one_of("mode", given, *MODES)


class Writing:
    """The way into `ledger`."""

    def __init__(self, ledger: Ledger) -> None:
        self._waiters = CommitWaiters(ledger.settings)
        self._tokens = Tokens(ledger.settings.folder)
        self._needs_token = are_needed(ledger.settings)

    def require_token(self) -> None:
        """Raise NotAllowed unless this request may write."""
        if self._needs_token:
            self._tokens.owner_of(request.headers.get("Authorization"))

    def accept(self, mode: str, add: Callable[..., Json], **more: Any) -> Response:
        """The answer to flights that `add` gives to the ledger; more: further members of it."""
        with self._waiters.wait_s(mode == "commit") as wait_s:
            receipt = add(wait_s=wait_s, durable=mode != "async")
        response = answer({**receipt, **more}, 201 if receipt["state"] == "mined" else 202)
        first = receipt.get("TRANSACTION_ID", receipt.get("first_transaction"))
        response.headers["Location"] = f"/transactions/{first}"
        return response
