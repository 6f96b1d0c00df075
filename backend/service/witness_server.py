"""Lets a witness answer over HTTP (C2SP tlog-witness): `POST /add-checkpoint`, and `GET /key`.

It is served by the front that both ports of a ledger have, so that nobody who sends a byte a second
keeps others waiting: threads see a request only when all of it is there.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Request, Response

from backend.base.errors import FlightchainError
from backend.base.words import printable
from backend.serving import gunicorn_app
from backend.serving.environs import Environ
from backend.serving.front import Front, Headers, Route, Site, Wsgi
from backend.serving.lanes import INLINE, Threads
from backend.trust.log import checkpoints
from backend.trust.log.notes import NoteError, VerifierKey, decoded
from backend.trust.witness.witness import (
    Forked,
    NotCosigned,
    NotSigned,
    OtherSize,
    RolledBack,
    Unproved,
    Witness,
)

MOST_BYTES = 64 * 1024
MOST_HASHES = 63  # in a proof (C2SP tlog-witness)
SIZE_TYPE = "text/x.tlog.size"
RETRY_AFTER_S = 5
LANE, THREADS, MOST_WAITING = "witness", 4, 100

STATUS: Mapping[type[NotCosigned], int] = {
    NotSigned: 403,
    RolledBack: 400,
    Forked: 409,
    Unproved: 422,
}


def run_witness(witness: Witness, logs: Sequence[VerifierKey], host: str, port: int) -> None:
    """Serve until this process is told to stop. logs: the keys of the logs that it cosigns."""
    site = WitnessSite(witness, logs)
    options = {"bind": gunicorn_app.bind_address(host, port), "workers": 1}
    gunicorn_app.run(lambda: Front(site), options)


class WitnessSite(Site):
    """The site of a witness that cosigns the logs with these keys."""

    max_body_bytes = max_body_bytes_in_memory = MOST_BYTES

    def __init__(self, witness: Witness, logs: Sequence[VerifierKey]) -> None:
        self.lanes: Mapping[Any, Threads] = {LANE: Threads(LANE, THREADS, MOST_WAITING)}
        self._witness = witness
        self._logs = {key.name: key for key in logs}

    def route(self, environ: Environ) -> Route:
        """Answer the key at once; what is to be cosigned waits for a thread and the disk."""
        is_read = environ["REQUEST_METHOD"] != "POST"
        return Route(INLINE if is_read else LANE, self._answer)

    def _answer(self, environ: Environ, start_response: Any) -> Any:
        request = Request(environ)
        request.max_content_length = MOST_BYTES
        try:
            response = answer(self._witness, self._logs, request)
        except HTTPException as error:
            response = Response(f"{error.description}\n", error.code)
        return response(environ, start_response)

    def failed(self, error: Exception, environ: Environ) -> Wsgi:
        environ["wsgi.errors"].write(f"{printable(str(error))}\n")
        return Response("this witness has no room for the request; try again later\n", 503)

    def full(self, lane: str) -> Wsgi:  # noqa: ARG002
        busy = "too many requests are waiting already; try again later\n"
        return Response(busy, 503, {"Retry-After": str(RETRY_AFTER_S)})

    def reject(
        self,
        client: object,  # noqa: ARG002
        status: int,  # noqa: ARG002
        detail: str,
        **more: object,  # noqa: ARG002
    ) -> tuple[Headers, bytes]:
        return [("Content-Type", "text/plain; charset=utf-8")], f"{detail}\n".encode()


def answer(witness: Witness, logs: Mapping[str, VerifierKey], request: Request) -> Response:
    """Return the answer to a request; what is wrong with it is told in a line of text.

    What is wrong with this witness is told to its owner alone, on its standard error.
    """
    match request.method, request.path:
        case "GET", "/key":
            return Response(f"{witness.key.verifier}\n")
        case "POST", "/add-checkpoint":
            try:
                return _cosigned(witness, logs, request.get_data())
            except FlightchainError as error:
                request.environ["wsgi.errors"].write(f"{printable(str(error))}\n")
                return Response(
                    "this witness does not work at the moment; its owner must look into it\n", 503
                )
    return Response("unknown address; allowed: POST /add-checkpoint and GET /key\n", 404)


def _cosigned(witness: Witness, logs: Mapping[str, VerifierKey], body: bytes) -> Response:
    try:
        old, proof, note = _parts(body)
        log = logs.get(checkpoints.in_note(note)[1].origin)
        if log is None:
            return Response("this witness does not know this log\n", 404)
        signed = witness.cosign(note, log, lambda _old, _size: proof, old)
    except NoteError as error:
        return Response(f"{error}\n", 400)
    except OtherSize as error:
        return Response(f"{error.size}\n", 409, content_type=SIZE_TYPE)
    except NotCosigned as error:
        return Response(f"{error.reason}\n", STATUS[type(error)])
    return Response("".join(f"{signature}\n" for signature in signed.signatures))


def _parts(body: bytes) -> tuple[int, list[bytes], bytes]:
    """Return the size that the log takes as known, the proof, and the note. Raises NoteError."""
    head, separator, note = body.partition(b"\n\n")
    first, *hashes = head.decode("ascii", errors="replace").split("\n")
    word, _, written = first.partition(" ")
    size = checkpoints.size_in(written)
    if not separator or word != "old" or size is None or len(hashes) > MOST_HASHES:
        raise NoteError("the body must be: old SIZE, hashes, an empty line, and a checkpoint")
    proof = [decoded(hash_, "a hash of the proof") for hash_ in hashes]
    if any(len(hash_) != checkpoints.HASH_BYTES for hash_ in proof):
        raise NoteError(f"a hash of the proof must have {checkpoints.HASH_BYTES} bytes")
    return size, proof, note
