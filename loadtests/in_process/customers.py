"""Runs clients in the ledger's own process, so that the lab can measure requests without HTTP.

    python -m loadtests.in_process.customers RUN INTERACTIONS ROWS FACTS

INTERACTIONS are those of `loadtests.generation.interactions`. Each customer is a thread that does
its interactions in turn, without a pause; all customers share one `Ledger` and begin together. A
step calls the method of `Ledger` that its path stands for: parameters and bodies are parsed and
checked as over HTTP; answers are not written as JSON, and none are cached. The miner of the folder
must be running.

ROWS gets a raw row of the run RUN for each step (`loadtests.generation.rows`), with times on
CLOCK_MONOTONIC and the status 200, or 500 for what HTTP would have refused. After a step that
fails, the customer goes on with the next interaction. FACTS gets JSON with cpu_s, the processor
time of the whole measurement. SIGTERM ends it after the current interactions; what was measured
until then is written.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import chain, count
from pathlib import Path
from threading import Barrier, Event
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from backend.base.errors import FlightchainError
from backend.base.settings import from_environment
from backend.chain.flight import flight_of
from backend.ledger.ledger import Ledger
from backend.mempool import Offer
from backend.questions.values import NAMES, asked
from backend.serving.worker import SWITCH_INTERVAL_S
from backend.sources.posted_batch import batch_of
from loadtests.generation.interactions import Interaction, Sequences, Step, load, step_index
from loadtests.generation.rows import Row, row_file

DONE, REFUSED = 200, 500
READY_WITHIN_S = 60.0
LOOK_EVERY_S = 0.01

Parameters = Mapping[str, str]
Call = Callable[[Ledger, Parameters, bytes], object]


def _add(ledger: Ledger, parameters: Parameters, body: bytes) -> object:
    _require_sync(parameters)
    offer = Offer([flight_of(msgspec.json.decode(body))])
    return ledger.submitter.receipt(offer, ledger.submitter.accept(offer))


def _add_batch(ledger: Ledger, parameters: Parameters, body: bytes) -> object:
    _require_sync(parameters)
    batch = batch_of(body, "ndjson", ledger.settings.mempool_transactions)
    if batch.errors:
        raise batch.errors[0]
    return ledger.submitter.add_batch(batch.flights)


def _require_sync(parameters: Parameters) -> None:
    if parameters != {"mode": "sync"}:
        raise ValueError(f"flights are added with mode=sync here, not {dict(parameters)}")


def _ask(ledger: Ledger, parameters: Parameters, _: bytes, *, kind: type[Any]) -> object:
    return ledger.answers.answer(*asked(kind, parameters))


CALLS: Mapping[tuple[str, str], Call] = {
    ("GET", "/tip"): lambda ledger, _, __: ledger.tip(),
    **{("GET", f"/{name}"): partial(_ask, kind=kind) for kind, name in NAMES.items()},
    ("POST", "/transactions"): _add,
    ("POST", "/transactions/batch"): _add_batch,
}


def do(ledger: Ledger, step: Step) -> None:
    """Do one step. Raises FlightchainError if HTTP would refuse it, ValueError if it is unknown."""
    route, _, query = step.path.partition("?")
    call = CALLS.get((step.method, route))
    if call is None:
        raise ValueError(f"{step.method} {route} is none of {sorted(CALLS)}")
    parameters = dict(parse_qsl(query, keep_blank_values=True))
    call(ledger, parameters, step.body.encode())


def interact(
    ledger: Ledger, run: str, customer: int, number: int, interaction: Interaction
) -> Iterator[Row]:
    """Do the steps of a customer's interaction until one fails. Yields their rows."""
    for at, step in enumerate(interaction.steps):
        sent_s = time.monotonic()
        try:
            do(ledger, step)
            status = DONE
        except FlightchainError:
            status = REFUSED
        times_s = sent_s, sent_s, None, time.monotonic(), None
        index, kind = step_index(customer, number, at), interaction.row_kind(step)
        yield Row(run, index, kind, *times_s, status, "")
        if status != DONE:
            return


def measured(ledger: Ledger, run: str, sequences: Sequences, stop: Event) -> list[Row]:
    """Let all customers run, each in a thread, until all is done or `stop` is set.

    Returns their rows in the order in which steps ended. Raises the error of a customer that
    failed, by which all others end.
    """
    together = Barrier(len(sequences))

    def rows_of(customer: int, own: Sequence[Interaction]) -> list[Row]:
        together.wait()
        rows = list[Row]()
        try:
            for number, interaction in enumerate(own):
                if stop.is_set():
                    break
                rows += interact(ledger, run, customer, number, interaction)
        except BaseException:
            stop.set()
            raise
        return rows

    with ThreadPoolExecutor(len(sequences)) as threads:
        done = list(threads.map(rows_of, count(), sequences))
    return sorted(chain.from_iterable(done), key=lambda row: row.done_s)


def wait_until_ready(ledger: Ledger) -> None:
    """Wait until there are a chain, an index and a miner. Raises TimeoutError."""
    deadline_s = time.monotonic() + READY_WITHIN_S
    while reasons := ledger.not_ready():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"not ready within {READY_WITHIN_S:g} s: {'; '.join(reasons)}")
        time.sleep(LOOK_EVERY_S)


def main(run: str, *paths: str) -> None:
    source, target, facts = map(Path, paths)
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, frame: stop.set())
    sys.setswitchinterval(SWITCH_INTERVAL_S)  # as in the service
    sequences = load(source)
    with closing(Ledger(from_environment(os.environ), print)) as ledger:
        wait_until_ready(ledger)
        before_s = time.process_time()
        rows = measured(ledger, run, sequences, stop)
        facts.write_text(json.dumps({"cpu_s": time.process_time() - before_s}), encoding="utf-8")
    with closing(row_file(target)) as file:
        file.add(*rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
