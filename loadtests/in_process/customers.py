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
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from threading import Barrier, Event, Thread
from urllib.parse import parse_qsl

import msgspec

from backend.base.errors import FlightchainError
from backend.base.settings import from_environment
from backend.chain.flight import flight_of
from backend.ledger.ledger import Ledger
from backend.questions.values import AverageDelays, FilterTransactions, FlightCounter, asked
from backend.serving.worker import SWITCH_INTERVAL_S
from backend.sources.posted_batch import batch_of
from loadtests.generation.interactions import Interaction, Sequences, Step, load, step_index
from loadtests.generation.rows import Row, RowFile

DONE, REFUSED = 200, 500
READY_WITHIN_S = 60.0
LOOK_EVERY_S = 0.01
USAGE = "usage: python -m loadtests.in_process.customers RUN INTERACTIONS ROWS FACTS"

Parameters = Mapping[str, str]
Call = Callable[[Ledger, Parameters, bytes], object]


def _add(ledger: Ledger, parameters: Parameters, body: bytes) -> object:
    _require_sync(parameters)
    return ledger.submitter.add(flight_of(msgspec.json.decode(body)))


def _add_batch(ledger: Ledger, parameters: Parameters, body: bytes) -> object:
    _require_sync(parameters)
    batch = batch_of(body, "ndjson", ledger.settings.mempool_transactions)
    if batch.errors:
        raise batch.errors[0]
    return ledger.submitter.add_batch(batch.flights)


def _require_sync(parameters: Parameters) -> None:
    if parameters != {"mode": "sync"}:
        raise ValueError(f"flights are added with mode=sync here, not {dict(parameters)}")


CALLS: Mapping[tuple[str, str], Call] = {
    ("GET", "/tip"): lambda of, _, __: of.tip(),
    ("GET", "/filter_transactions"): lambda of, parameters, _: of.answers.filter_transactions(
        *asked(FilterTransactions, parameters)
    ),
    ("GET", "/average_delays"): lambda of, parameters, _: of.answers.average_delays(
        *asked(AverageDelays, parameters)
    ),
    ("GET", "/flight_counter"): lambda of, parameters, _: of.answers.flight_counter(
        *asked(FlightCounter, parameters)
    ),
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


class Customer(Thread):
    """Does its interactions in a thread. rows: of its steps."""

    def __init__(
        self,
        ledger: Ledger,
        run: str,
        number: int,
        own: Sequence[Interaction],
        together: Barrier,
        stop: Event,
    ) -> None:
        super().__init__(name=f"customer {number}")
        self._ledger, self._own, self._together, self._ending = ledger, own, together, stop
        self._run, self._number = run, number
        self.rows: list[Row] = []
        self.failure: Exception | None = None

    def run(self) -> None:
        """Do all interactions, or those before `stop` is set."""
        self._together.wait()
        try:
            for number, interaction in enumerate(self._own):
                if self._ending.is_set():
                    return
                self._interact(number, interaction)
        except Exception as failure:  # noqa: BLE001  `measured` raises it
            self.failure = failure
            self._ending.set()

    def _interact(self, number: int, interaction: Interaction) -> None:
        for at, step in enumerate(interaction.steps):
            sent_s = time.monotonic()
            try:
                do(self._ledger, step)
                status = DONE
            except FlightchainError:
                status = REFUSED
            times_s = sent_s, sent_s, None, time.monotonic(), None
            index, kind = step_index(self._number, number, at), interaction.row_kind(step)
            self.rows.append(Row(self._run, index, kind, *times_s, status, ""))
            if status != DONE:
                return


def measured(ledger: Ledger, run: str, sequences: Sequences, stop: Event) -> list[Row]:
    """Let all customers run. Returns their rows in the order in which steps ended.

    Raises the error of a customer that failed.
    """
    together = Barrier(len(sequences))
    customers = [
        Customer(ledger, run, number, own, together, stop) for number, own in enumerate(sequences)
    ]
    for customer in customers:
        customer.start()
    for customer in customers:
        customer.join()
    for customer in customers:
        if customer.failure is not None:
            raise customer.failure
    return sorted((row for one in customers for row in one.rows), key=lambda row: row.done_s)


def wait_until_ready(ledger: Ledger) -> None:
    """Wait until there are a chain, an index and a miner. Raises TimeoutError."""
    deadline_s = time.monotonic() + READY_WITHIN_S
    while reasons := ledger.not_ready():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"not ready within {READY_WITHIN_S:g} s: {'; '.join(reasons)}")
        time.sleep(LOOK_EVERY_S)


def main(arguments: Sequence[str]) -> None:
    """Measure. Raises ValueError, OSError, FlightchainError."""
    if len(arguments) != 4:
        raise ValueError(USAGE)
    run, (source, target, facts) = arguments[0], map(Path, arguments[1:])
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
    with closing(RowFile(target)) as file:
        file.write(rows)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (ValueError, OSError, FlightchainError) as problem:
        sys.exit(f"error: {problem}")
