"""Accepting, sealing and mining in a test, without a service, and by several threads."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

from backend.base.settings import Settings
from backend.chain.flight import Flight
from backend.ledger.submission import Submitter
from backend.mempool import Accepted, Mempool, Offer
from backend.mempool.idempotency_keys import IdempotencyKey
from backend.sealing.miner import Miner
from backend.sealing.sealer import Sealer

WITHIN_S = 30.0


def accept_in(
    mempool: Mempool,
    flights: Sequence[Flight],
    now_ms: int,
    *,
    durable: bool = True,
    key: IdempotencyKey | None = None,
) -> Accepted:
    """Returns what `accept_all` makes of one offer; an outcome that is an error is raised."""
    (outcome,) = mempool.accept_all([Offer(flights, key, durable)], now_ms)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def add(submitter: Submitter, flight: Flight, wait_s: float = 0) -> dict[str, Any]:
    """The receipt of a flight; an outcome that is an error is raised."""
    offer = Offer([flight])
    return submitter.receipt(offer, submitter.accept(offer), wait_s=wait_s)


@contextmanager
def sealing(
    settings: Settings, report: Callable[[str], None] = print, *, accepts_loss: bool = False
) -> Iterator[Sealer]:
    """A sealer that holds the lock of the writer, and is closed in the end."""
    with (
        closing(Sealer(settings, report, accepts_loss=accepts_loss)) as sealer,
        sealer.writing(wait=False),
    ):
        yield sealer


@contextmanager
def at_work(miner: Miner) -> Iterator[None]:
    """Let a miner work in a thread of its own."""
    thread = threading.Thread(target=miner.run)
    thread.start()
    try:
        yield
    finally:
        miner.stop()
        thread.join(WITHIN_S)
        assert not thread.is_alive()


def run_together(count: int, work: Callable[[int], None]) -> None:
    """Run `work` in so many threads that begin at the same moment. Raises what any of it raises."""
    start = threading.Barrier(count)

    def run(number: int) -> None:
        start.wait(WITHIN_S)
        work(number)

    pool = ThreadPoolExecutor(count)
    for running in [pool.submit(run, number) for number in range(count)]:
        running.result(WITHIN_S)
    pool.shutdown()
