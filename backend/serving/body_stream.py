"""Takes an answer piece by piece from the iterator that makes it, as WSGI applications do."""

from collections.abc import Iterable, Iterator
from threading import Lock

PIECE_BYTES = 256 * 1024  # how much of a longer answer is in memory at a time


class BodyStream:
    """The part of an answer that has not been taken. is_taken: nothing is left.

    One thread at a time takes pieces. Meanwhile another may call `close`.
    """

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces: Iterable[bytes] | None = pieces
        self._iterator: Iterator[bytes] = iter(pieces)
        self._broken: ConnectionResetError | None = None
        self._taking = Lock()
        self._is_closing = False
        self.is_taken = False

    def piece(self) -> bytes:
        """Return the next piece of the answer: at least `PIECE_BYTES`, or all that is left.

        Raises ConnectionResetError where the answer breaks off, after all bytes before that.
        """
        try:
            with self._taking:
                return b"" if self._is_closing else self._piece()
        finally:
            if self._is_closing:
                self.close()

    def whole(self) -> bytes:
        """Return all that is left of the answer. Raises as `piece`."""
        pieces = []
        while not self.is_taken:
            pieces.append(self.piece())
        return b"".join(pieces)

    def _piece(self) -> bytes:
        if self._broken:
            raise self._broken
        collected: list[bytes] = []
        size = 0
        try:
            for piece in self._iterator:
                collected.append(piece)
                size += len(piece)
                if size >= PIECE_BYTES:
                    return b"".join(collected)
            self.is_taken = True
        except ConnectionResetError as error:
            self._broken = error
        return collected[0] if len(collected) == 1 else b"".join(collected)

    def close(self) -> None:
        """Close the source of the answer, once no piece is being taken from it."""
        self._is_closing = True
        if self._taking.acquire(blocking=False):
            try:
                pieces, self._pieces = self._pieces, None
                if close := getattr(pieces, "close", None):
                    close()
            finally:
                self._taking.release()
