"""Runs clients in the ledger's own process, so that the lab can measure requests without HTTP.

    python -m loadtests.in_process.customers INTERACTIONS ROWS FACTS

INTERACTIONS holds JSON lines, each with one interaction of a customer: `{"customer": 0, "kind":
"…", "steps": [{"kind": "…", "method": "GET", "path": "/tip", "body": ""}, …]}`. Each customer is a
thread that does its interactions in turn, without a pause; all customers share one `Ledger` and
begin together. A step calls the method of `Ledger` that its path stands for: parameters and bodies
are parsed and checked as over HTTP; answers are not written as JSON, and none are cached. The miner
of the folder must be running.

ROWS gets a line of CSV for each step: customer, interaction and step (counted from 0), the kinds of
both, sent_s and done_s (CLOCK_MONOTONIC), succeeded (1 or 0). After a step that fails, the customer
goes on with the next interaction. FACTS gets JSON with cpu_s, the processor time of the whole
measurement. SIGTERM ends it after the current interactions; what was measured until then is
written.
"""

import csv
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
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

COLUMNS = (
    *("customer", "interaction", "step", "interaction_kind", "step_kind"),
    *("sent_s", "done_s", "succeeded"),
)
READY_WITHIN_S = 60.0
LOOK_EVERY_S = 0.01
USAGE = "usage: python -m loadtests.in_process.customers INTERACTIONS ROWS FACTS"


class Step(msgspec.Struct):
    """A request as HTTP would carry it."""

    kind: str
    method: str
    path: str
    body: str = ""


class Interaction(msgspec.Struct):
    """Steps that a customer does one after the other."""

    customer: int
    kind: str
    steps: list[Step]


_interaction = msgspec.json.Decoder(Interaction).decode


@dataclass(frozen=True, slots=True)
class Row:
    """The result of a step, in the order of COLUMNS."""

    customer: int
    interaction: int
    step: int
    interaction_kind: str
    step_kind: str
    sent_s: float
    done_s: float
    succeeded: int

    def cells(self) -> list[object]:
        """The cells of the line of CSV."""
        times = (f"{self.sent_s:.6f}", f"{self.done_s:.6f}")
        kinds = (self.interaction_kind, self.step_kind)
        return [self.customer, self.interaction, self.step, *kinds, *times, self.succeeded]


Parameters = Mapping[str, str]
Call = Callable[[Ledger, Parameters, bytes], object]


def _tip(ledger: Ledger, _parameters: Parameters, _body: bytes) -> object:
    return ledger.tip()


def _filter(ledger: Ledger, parameters: Parameters, _body: bytes) -> object:
    return ledger.answers.filter_transactions(*asked(FilterTransactions, parameters))


def _average(ledger: Ledger, parameters: Parameters, _body: bytes) -> object:
    return ledger.answers.average_delays(*asked(AverageDelays, parameters))


def _count(ledger: Ledger, parameters: Parameters, _body: bytes) -> object:
    return ledger.answers.flight_counter(*asked(FlightCounter, parameters))


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
    ("GET", "/tip"): _tip,
    ("GET", "/filter_transactions"): _filter,
    ("GET", "/average_delays"): _average,
    ("GET", "/flight_counter"): _count,
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
    """Does its interactions in a thread. rows: the results of its steps."""

    def __init__(
        self, ledger: Ledger, own: Sequence[Interaction], together: Barrier, stop: Event
    ) -> None:
        super().__init__(name=f"customer {own[0].customer}")
        self._ledger, self._own, self._together, self._ending = ledger, own, together, stop
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
                succeeded = True
            except FlightchainError:
                succeeded = False
            done_s = time.monotonic()
            place = (interaction.customer, number, at, interaction.kind, step.kind)
            self.rows.append(Row(*place, sent_s, done_s, int(succeeded)))
            if not succeeded:
                return


def interactions_in(path: Path) -> list[list[Interaction]]:
    """The interactions of each customer in the file at `path`. Raises OSError, ValueError."""
    found: dict[int, list[Interaction]] = defaultdict(list)
    for line in path.read_bytes().splitlines():
        interaction = _interaction(line)
        found[interaction.customer].append(interaction)
    if not found:
        raise ValueError(f"{path} holds no interactions")
    return [found[customer] for customer in sorted(found)]


def measured(ledger: Ledger, sequences: Sequence[Sequence[Interaction]], stop: Event) -> list[Row]:
    """Let all customers run. Returns their rows in the order in which steps ended.

    Raises the error of a customer that failed.
    """
    together = Barrier(len(sequences))
    customers = [Customer(ledger, own, together, stop) for own in sequences]
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
    if len(arguments) != 3:
        raise ValueError(USAGE)
    source, target, facts = map(Path, arguments)
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, frame: stop.set())
    sys.setswitchinterval(SWITCH_INTERVAL_S)  # as in the service
    sequences = interactions_in(source)
    with closing(Ledger(from_environment(os.environ), print)) as ledger:
        wait_until_ready(ledger)
        before_s = time.process_time()
        rows = measured(ledger, sequences, stop)
        facts.write_bytes(msgspec.json.encode({"cpu_s": time.process_time() - before_s}))
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(row.cells() for row in rows)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (ValueError, OSError, FlightchainError) as problem:
        sys.exit(f"error: {problem}")
