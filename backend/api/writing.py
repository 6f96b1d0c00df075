"""Reads a posted flight, and holds what all routes that accept flights share.

Writing has three modes, which differ in what the answer promises:

    sync    durable: on the disk and synced (the default)
    async   accepted, with ids; synced within half a second, unless the power fails before
    commit  mined: in a block and in the index; or durable, if that takes longer than the wait
"""

from collections.abc import Callable, Sequence
from functools import partial
from threading import BoundedSemaphore
from typing import Any

from flask import Response
from werkzeug.exceptions import ClientDisconnected

from backend.api.json_answers import answer
from backend.api.operation import JSON, Answer, Media
from backend.api.problems import InvalidFlights
from backend.api.reading import given_in, idempotency_key, json_object
from backend.api.routes import Lane, Post
from backend.api.schemas import FLIGHT_EXAMPLE
from backend.base.settings import most_commit_waiters
from backend.chain.flight import Flight, examine
from backend.chain.json_objects import Json
from backend.ledger.ledger import Ledger
from backend.mempool import Accepted, Offer, Refused
from backend.questions.answer_types import ref
from backend.questions.parameters import Choice, Given
from backend.serving.environs import ABANDONED, Environ
from backend.storage.tokens import Tokens, are_needed

MODE = Choice(
    "mode",
    "What the answer promises. `sync`: the flight is on the disk. `commit`: it is in a block, or "
    "on the disk if that takes too long. `async`: it has its id, and is synced within 0.5 s.",
    "commit",
    default="sync",
    choices=("sync", "async", "commit"),
)
AUTHORIZATION = "HTTP_AUTHORIZATION"
ONE_FLIGHT = {JSON: Media(ref("Flight"), FLIGHT_EXAMPLE)}


DRY_RUN = Choice(
    "dry_run",
    "If `true`, nothing is accepted; the answer says what would happen.",
    "true",
    default="false",
    choices=("false", "true"),
)


def accepted(receipt: str, tried: str, what: str, mined: str, pending: str) -> dict[int, Answer]:
    """Return the answers to posted flights: 200 if nothing is accepted, else 201 or 202.

    receipt, tried: the types of their bodies. 200 is described as either of them, because clients
    that openapi-generator makes read every good answer as that with the lowest status.
    """
    content = {JSON: Media(ref(receipt))}
    return {
        200: Answer(what, {JSON: Media({"oneOf": [ref(tried), ref(receipt)]})}),
        201: Answer(mined, content, headers=("Location",)),
        202: Answer(pending, content, headers=("Location",)),
    }


def sent_flight(environ: Environ) -> tuple[Flight, bytes]:
    """Return the flight in the body of a request, and the body.

    Raises as `json_object`, and InvalidFlights with everything that is wrong with the flight.
    """
    record, data = json_object(environ)
    flight, problems = examine(record)
    if problems:
        raise InvalidFlights(problems)
    return flight, data


class Writing:
    """Accepts flights into `ledger`, and answers as their mode promises."""

    def __init__(self, ledger: Ledger) -> None:
        self._submitter = ledger.submitter
        self._blocks = ledger.cached_blocks
        self._commit_wait_s = ledger.settings.commit_wait_s
        self._places = BoundedSemaphore(most_commit_waiters(ledger.settings))
        self._tokens = Tokens(ledger.settings.folder)
        self._needs_token = are_needed(ledger.settings)

    def require_token(self, environ: Environ, *, is_dry: bool = False) -> None:
        """Raise NotAllowed unless this request may write.

        is_dry: whether it writes nothing; then it needs no token, but a wrong one is refused.
        """
        if self._needs_token and not (is_dry and self.is_stranger(environ)):
            self._tokens.owner_of(environ.get(AUTHORIZATION))

    def is_stranger(self, environ: Environ) -> bool:
        """Return whether a token is needed, and this request has none."""
        return self._needs_token and AUTHORIZATION not in environ

    def pause(self, environ: Environ) -> None:
        """Let short requests go first, in the midst of long work.

        Raises ClientDisconnected if nobody waits for the answer any more.
        """
        if environ.get(ABANDONED):
            raise ClientDisconnected
        self._blocks.yield_to_short_requests()

    def lane_of(self, usual: Lane) -> Callable[[Environ, Given], Lane]:
        """Return a function that chooses a post's lane; waits for blocks hold up no other posts.

        usual: the lane of a post that is durable when it is answered. Batches that are only tried,
        by those who may not write, wait where scans do, and no batch of others waits for them.
        """

        def lane(environ: Environ, given: Given) -> Lane:
            mode, dry_run = given.get(MODE.name, "sync"), given.get(DRY_RUN.name, "false")
            if mode == "commit" and dry_run == "false":
                return Lane.COMMIT
            if usual == Lane.GROUPED:  # what is written together is not asked whether it is dry
                return usual if (mode, dry_run) == ("sync", "false") else Lane.THREAD
            return Lane.SCAN if dry_run == "true" and self.is_stranger(environ) else usual

        return lane

    def prepare(self, environ: Environ) -> Post:
        """Return the post of one flight.

        Raises NotAllowed, InvalidQuery, and what `sent_flight` and `idempotency_key` raise.
        """
        self.require_token(environ)
        mode = MODE.of(given_in(environ))
        flight, data = sent_flight(environ)
        offer = Offer([flight], idempotency_key(environ, data), durable=mode != "async")
        return Post(
            offer,
            lambda accepted: self.answer(mode, partial(self._submitter.receipt, offer, accepted)),
        )

    def accept(self, post: Post) -> Response:
        """Accept a post by itself, and answer it. Raises the error if it is not accepted."""
        (outcome,) = self.accept_all([post])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def accept_all(self, posts: Sequence[Post]) -> list[Response | Exception]:
        """Accept posts, which share one sync. Returns an answer or an error for each of them."""
        try:
            outcomes = self._submitter.accept_all([post.offer for post in posts])
        except Exception as error:  # noqa: BLE001  every post gets the error
            return [error] * len(posts)
        return [_answer(*pair) for pair in zip(posts, outcomes, strict=True)]

    def answer(self, mode: str, receipt: Callable[..., Json], **more: Any) -> Response:
        """Return the answer for accepted flights, after a wait if `mode` asks for one.

        A request that comes when enough others wait is answered at once, so that waits never keep
        other requests from their answers. receipt: makes the answer's members, and waits. more:
        further members of the answer.
        """
        waits = mode == "commit" and self._places.acquire(blocking=False)
        try:
            wait_s = self._commit_wait_s if waits else 0.0
            members = receipt(wait_s=wait_s, durable=mode != "async")
        finally:
            if waits:
                self._places.release()
        if "state" not in members:  # all flights were in the ledger
            return answer({"dry_run": False, **members, **more})
        first = members.get("TRANSACTION_ID", members.get("first_transaction"))
        status = 201 if members["state"] == "mined" else 202
        location = members.get("receipt", f"/transactions/{first}")
        return answer({**members, **more}, status, ("Location", location))


def _answer(post: Post, outcome: Accepted | Refused) -> Response | Exception:
    if isinstance(outcome, Exception):
        return outcome
    try:
        return post.answer(outcome)
    except Exception as error:  # noqa: BLE001  the others of its group are answered all the same
        return error
