"""Submitter one offer in a mempool, for tests that want its outcome or its error."""

from collections.abc import Sequence

from backend.chain.flight import Flight
from backend.mempool import Accepted, Mempool, Offer
from backend.mempool.idempotency_keys import IdempotencyKey


def accept_in(
    mempool: Mempool,
    flights: Sequence[Flight],
    now_ms: int,
    *,
    durable: bool = True,
    key: IdempotencyKey | None = None,
) -> Accepted:
    """What `accept_all` makes of one offer; an outcome that is an error is raised."""
    (outcome,) = mempool.accept_all([Offer(flights, key, durable)], now_ms)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome
