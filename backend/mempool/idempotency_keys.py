"""Defines idempotency keys: a client sends one with a request that it may have to send again."""

from dataclasses import dataclass

from backend.base.errors import KeyReused

KEPT_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A key, as the client chose it, and the SHA-256 (hexadecimal) of the body sent with it.

    last_release_hash: what release 1.0.0 noted for this request, if that differs.
    """

    text: str
    body_hash: str
    last_release_hash: str = ""


@dataclass(frozen=True, slots=True)
class KeyUse:
    """Says what a key was used for.

    body_hash: as in `IdempotencyKey`. first, count: the first id of its flights, and how many there
    are. timestamp: when they were accepted, UTC milliseconds.
    """

    body_hash: str
    first: int
    count: int
    timestamp: int

    @property
    def next(self) -> int:
        """The id after the last one."""
        return self.first + self.count

    def counts_for(self, key: IdempotencyKey, now_ms: int) -> bool:
        """Return whether a request with `key` repeats this one, which was made in the last day.

        Raises KeyReused if the key comes with something else.
        """
        if now_ms - self.timestamp > KEPT_MS:
            return False
        if self.body_hash not in {key.body_hash, key.last_release_hash}:
            raise KeyReused(key.text, self.first)
        return True
