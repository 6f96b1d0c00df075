"""Mempools on one folder, as several processes have them, and what is asked of them."""

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from backend.base.settings import Settings
from backend.chain.flight import Flight
from backend.mempool import FOLDER, Accepted, Mempool
from backend.mempool.database import FILE_NAME
from backend.mempool.lost_files import lost_in
from backend.mempool.watermark import Mark, Watermark
from tests.descriptors import descriptors_of

WAIT_S = 30
T = 1_700_000_000_000  # acceptance times, UTC milliseconds


class Chain:
    """As much of a chain as a mempool sees: how many transactions the blocks hold."""

    def __init__(self, transactions: int = 0) -> None:
        self.transactions = transactions

    def __call__(self) -> int:
        return self.transactions


class House:
    """A folder with a chain, and as many mempools on it as are asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.chain = Chain()
        self.messages: list[str] = []
        self._opened: list[Mempool | House] = []

    def mempool(self, chain: Callable[[], int] | None = None, **chosen: float) -> Mempool:
        """Open one more mempool on the folder, as another process does."""
        settings = Settings(dir=str(self.folder), **chosen)  # type: ignore[arg-type]
        opened = Mempool(settings, chain or self.chain, self.messages.append)
        self._opened.append(opened)
        return opened

    def copied(self) -> "House":
        """Copy the folder as a power cut may leave it now; the copy is closed with this."""
        number = len(self._opened)
        copy = House(self.folder.with_name(f"{self.folder.name}-copy-{number}"))
        shutil.copytree(self.folder, copy.folder)
        self._opened.append(copy)
        return copy

    def close(self) -> None:
        for opened in self._opened:
            opened.close()

    @property
    def path(self) -> Path:
        """Path of the one file."""
        return self.folder / FOLDER / FILE_NAME

    @property
    def log(self) -> Path:
        """Path of SQLite's write-ahead log."""
        return self.path.with_name(f"{FILE_NAME}-wal")

    def settle(self) -> bytes:
        """Let all that was written be in the one file, as a clean end leaves it. Returns it."""
        for opened in self._opened:
            opened.close()
        self._opened.clear()
        return self.path.read_bytes()

    def records(self) -> list[int]:
        """Returns the first ids of the records on disk."""
        with closing(self.mempool()) as mempool:
            return [record.first for record in mempool.snapshot()[0]]

    def mark(self) -> Mark | None:
        """Read which flights are noted as acknowledged."""
        with closing(Watermark(self.folder, lambda: "")) as mark:
            return mark.read()

    def lost(self) -> dict[tuple[int, int], bytes]:
        """Returns what is kept of lost flights, by their first id and number."""
        losses = lost_in(self.folder / FOLDER)
        return {(loss.first, loss.flights): loss.path.read_bytes() for loss in losses}

    def descriptors(self) -> list[str]:
        """Returns the files in the folder that this process has open."""
        return [n for n in descriptors_of().values() if n.startswith(str(self.folder / FOLDER))]


def listed(parts: list[Accepted]) -> list[tuple[int, Flight]]:
    """Returns id and flight of everything in `parts`."""
    return [(part.first_transaction + i, f) for part in parts for i, f in enumerate(part.flights)]


def everything(mempool: Mempool) -> list[tuple[int, Flight]]:
    return listed(mempool.pending(10**9))


def numbered(many: list[Flight], first: int = 0) -> list[tuple[int, Flight]]:
    return list(enumerate(many, first))
