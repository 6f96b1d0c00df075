"""Proofs for `scripts/verify.py`: of a transaction, of answers, of the chain, and of consistency.

`backend.trust.proofs` tells their form. Proofs of answers and of the chain are streams.
`GET /cheats` shows what comes of attempts to cheat, on a throw-away chain that is made for them.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
from flask import Response

from backend.api.evidence_zip import evidence
from backend.api.flight_lines import NDJSON
from backend.api.json_answers import encode, made_once, versioned
from backend.api.operation import PROOFS, Answer, Media, Operation, in_json
from backend.api.routes import Lane, Row
from backend.api.streaming import Streams
from backend.api.transaction_routes import TRANSACTION_ID
from backend.base.errors import InvalidQuery
from backend.ledger.ledger import Ledger
from backend.questions.parameters import AS_OF, Choice, Given, Number
from backend.questions.values import (
    NAMES,
    PROVABLE,
    AverageDelays,
    FilterTransactions,
    FlightCounter,
    Options,
    asked_for,
    provable,
)
from backend.serving.environs import Environ

TIP = Number(
    "tip",
    "Height of the last block that the proof covers; by default the last signed block.",
    "300",
)
OLD_SIZE = Number(
    "from", "Number of blocks in the older tree; at most `to`.", "300", required=True, least=1
)
SIZE = Number(
    "to", "Number of blocks in the newer tree; by default all signed blocks.", "338", least=1
)

PROVE_TRANSACTION = Operation(
    "prove_transaction",
    PROOFS,
    "Prove that a transaction is in the ledger",
    {200: in_json("The proof.", "TransactionProof")},
    parameters=(TIP,),
    in_path=(TRANSACTION_ID,),
    errors=(404,),
    has_etag=True,
)
PROVE_CONSISTENCY = Operation(
    "prove_consistency",
    PROOFS,
    "Prove that the ledger has only grown",
    {200: in_json("The proof.", "ConsistencyProof")},
    parameters=(OLD_SIZE, SIZE),
    errors=(404,),
    has_etag=True,
)
ZIP = "application/zip"
FORM = Choice(
    "format",
    "Send the proof alone, or a zip file with answer, flights, proof, key, checkpoint and "
    "verify.py.",
    "ndjson",
    default=NDJSON.name,
    choices=(NDJSON.name, "zip"),
)
_LINES = {NDJSON.mimetype: Media({"type": "string"})}
_IN_LINES = Answer(
    "The proof, with a line for each block.", _LINES, headers=("Content-Disposition",)
)
_FILES = {**_LINES, ZIP: Media({"type": "string", "format": "binary"})}
_IN_FILES = replace(_IN_LINES, content=_FILES)
PROVE_CHAIN = Operation(
    "prove_chain",
    PROOFS,
    "Prove the whole chain: all blocks, so that everything can be checked",
    {200: _IN_LINES},
    parameters=(AS_OF,),
    errors=(404,),
)
CHEATS = Operation(
    "cheats",
    PROOFS,
    "Show attempts to cheat, and the checks that notice them",
    {200: in_json("The attempts, in order.", "Cheats")},
    has_etag=True,
)

_SUMMARIES: dict[type[Any], str] = {
    FilterTransactions: "Prove what happened to a flight",
    AverageDelays: "Prove how late a carrier was",
    FlightCounter: "Prove how many flights went from city A to city B",
}


def rows(ledger: Ledger, streams: Streams) -> list[Row]:
    """Return the routes for proofs from `ledger`."""
    prover = ledger.prover

    def transaction(environ: Environ, given: Given, transaction_id: str) -> Response:
        tip = TIP.find(given)
        proof = prover.transaction(TRANSACTION_ID.parse(transaction_id), tip)
        return versioned(environ, encode(proof))

    def consistency(environ: Environ, given: Given) -> Response:
        old_size, size = OLD_SIZE.of(given), SIZE.find(given)
        if size is not None and old_size > size:
            raise InvalidQuery(OLD_SIZE.name, str(old_size), f"must be at most `to`, {size}")
        return versioned(environ, encode(prover.consistency(old_size, size)))

    def chain(environ: Environ, given: Given) -> Response:
        anchor = prover.anchor(AS_OF.find(given))
        return _streamed(streams, environ, prover.chain(anchor), PROVE_CHAIN.name)

    return [
        Row(
            "GET",
            "/transactions/<id:transaction_id>/proof",
            PROVE_TRANSACTION,
            transaction,
            Lane.READ,
        ),
        Row("GET", "/proofs/consistency", PROVE_CONSISTENCY, consistency, Lane.READ),
        Row("GET", "/proofs/chain", PROVE_CHAIN, chain, Lane.EXPORT),
        *(_row_of_answer(ledger, streams, kind) for kind in _SUMMARIES),
        Row("GET", "/cheats", CHEATS, made_once(_tried), Lane.BATCH),
    ]


def _row_of_answer(ledger: Ledger, streams: Streams, kind: type[Any]) -> Row:
    name = NAMES[kind]
    operation = Operation(
        f"prove_{name}",
        PROOFS,
        _SUMMARIES[kind],
        {200: _IN_FILES},
        parameters=(*PROVABLE[kind].values(), AS_OF, FORM),
        errors=(404,),
    )

    def proof(environ: Environ, given: Given) -> Response:
        form = FORM.of(given)
        asked = {name: text for name, text in given.items() if name != FORM.name}
        question, options = provable(kind, asked)
        anchor = ledger.prover.anchor(options.as_of)
        options = Options(as_of=anchor.size - 1)
        answer = ledger.answers.answer(question, options)
        question = kind(**{name: answer.query[name] for name in asked_for(question)})
        # The proof has the question, and up to which block it counts, in its own form.
        claim = msgspec.to_builtins(answer)
        del claim["as_of"], claim["query"]
        lines = ledger.prover.answer(question, claim, anchor)
        if form == NDJSON.name:
            return _streamed(streams, environ, lines, operation.name)
        pieces = evidence(ledger, question, answer, anchor, _written(lines))
        return streams.response(environ, pieces, ZIP, f"{operation.name}.zip", is_packed=True)

    return Row("GET", f"/{name}/proof", operation, proof, Lane.EXPORT)


def _streamed(streams: Streams, environ: Environ, lines: Iterator[Any], name: str) -> Response:
    return streams.response(environ, _written(lines), NDJSON.mimetype, f"{name}.ndjson")


def _written(lines: Iterator[Any]) -> Iterator[bytes]:
    return (encode(line) + b"\n" for line in lines)


def _tried() -> bytes:
    """Return what comes of the attempts, which are made when it is first asked."""
    from backend.trust.cheating import try_all  # which loads all that writes blocks

    return encode({"cheats": [outcome._asdict() for outcome in try_all()]})
