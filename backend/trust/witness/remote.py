"""Reads a transparency log over HTTP (C2SP tlog-tiles), be it a Flightchain or another."""

import time
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from http import HTTPStatus

from backend.base.errors import FlightchainError
from backend.base.http_requests import ANSWER_WITHIN_S, NoAnswer, ask
from backend.chain import merkle
from backend.trust.log import notes
from backend.trust.log.checkpoints import HASH_BYTES
from backend.trust.log.notes import NoteError, VerifierKey
from backend.trust.log.tiles import Tile
from backend.trust.log.tree import TILE_WIDTH, range_root

LOOK_WITHIN_S = 60.0
_LEVEL_BITS = 8


class Unreachable(FlightchainError):
    """The log does not answer, or not as a log does."""


class Gone(Unreachable):
    """The log has no such file; a partial tile may be removed once its tile is full."""


class RemoteLog:
    """The log whose `checkpoint` and `tile/…` are below `url`.

    All that is read of it has to be there within `LOOK_WITHIN_S`, from now on.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._deadline = time.monotonic() + LOOK_WITHIN_S

    def checkpoint(self) -> bytes:
        """Return the newest checkpoint, a note. Raises Unreachable."""
        return self._read("checkpoint")

    def key(self) -> VerifierKey:
        """Return the key that a Flightchain gives as its own. Raises Unreachable."""
        try:
            return notes.parse_key(self._read("key").decode(errors="replace"))
        except NoteError as error:
            raise Unreachable(f"{self.url}/key is not a key: {error}") from error

    def consistency_proof(self, old_size: int, size: int) -> Sequence[bytes]:
        """Return the proof that the tree of `old_size` entries is a beginning of that of `size`.

        It is computed from tiles, which prove nothing by themselves, and is empty if there is
        nothing to prove. Raises Unreachable.
        """
        if old_size == 0:
            return []

        @lru_cache(maxsize=256)
        def tile(level: int, index: int) -> bytes:
            there = (size >> _LEVEL_BITS * level) - index * TILE_WIDTH
            return self._tile(Tile(level, index, min(TILE_WIDTH, there)))

        def hashes(level: int, first: int, count: int) -> list[bytes]:
            data, start = tile(level, first // TILE_WIDTH), first % TILE_WIDTH
            return [
                data[HASH_BYTES * at : HASH_BYTES * (at + 1)] for at in range(start, start + count)
            ]

        return merkle.consistency_path(
            old_size, size, lambda low, high: range_root(low, high, hashes)
        )

    def _tile(self, tile: Tile) -> bytes:
        """Return the hashes of a tile, or of one with more of them if that alone is left."""
        try:
            data = self._read(f"tile/{tile.name}")
        except Gone:
            if tile.width < TILE_WIDTH:
                with suppress(Gone):
                    return self._tile(Tile(tile.level, tile.index))[: tile.width * HASH_BYTES]
            raise
        if len(data) != tile.width * HASH_BYTES:
            raise Unreachable(f"{self.url}/tile/{tile.name} has {len(data)} bytes")
        return data

    def _read(self, path: str) -> bytes:
        url = f"{self.url}/{path}"
        left_s = self._deadline - time.monotonic()
        try:
            answer = ask(url, within_s=min(left_s, ANSWER_WITHIN_S))
        except NoAnswer as error:
            raise Unreachable(str(error)) from error
        if answer.status in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}:
            raise Gone(f"{url} answers with status {answer.status}")
        if answer.status != HTTPStatus.OK:
            raise Unreachable(f"{url} answers with status {answer.status}")
        return answer.body
