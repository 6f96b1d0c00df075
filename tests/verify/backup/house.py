"""A ledger in a folder, as a process that writes to it has it, and its backup beside it."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from backend.base import files
from backend.base.clock import now_ms
from backend.base.progress import Progress
from backend.base.settings import Settings
from backend.chain.flight import Flight
from backend.mempool import Offer
from backend.mempool.idempotency_keys import IdempotencyKey
from backend.sealing.sealer import Sealer
from backend.sources.generated import Generated
from backend.sources.source import validated
from backend.storage import tokens
from backend.verify.backup import Made, back_up, restore
from backend.verify.backup.manifest import Manifest, read
from tests.dying import killed_at, watched
from tests.flights import flights, on_disk
from tests.index.worlds import settle

FILE_BYTES = 4000
MINED = 400


Done = TypeVar("Done")


class House:
    """folder: of the ledger. backup: where its backup goes. restored: where that is restored."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "chain"
        self.backup = root / "backup"
        self.restored = root / "restored"
        self.said: list[str] = []
        self.settings = Settings(
            dir=str(self.folder), block_file_bytes=FILE_BYTES, difficulty_bits=0
        )

    def fill(self, count: int, seed: int = 1) -> None:
        """Mine flights that differ, so that they fill files."""
        for batch in validated(Generated(count, seed, flights_per_day=150)):
            self.accept(list(zip(*batch, strict=True)))
        self.seal()

    def accept(self, some: list[Flight], key: IdempotencyKey | None = None) -> int:
        """Accept flights; returns the id of the first."""
        with closing(Sealer(self.settings, self.said.append)) as sealer:
            (accepted,) = sealer.mempool.accept_all([Offer(some, key)], now_ms())
            assert not isinstance(accepted, Exception)
            return accepted.first_transaction

    def seal(self) -> None:
        with closing(Sealer(self.settings, self.said.append)) as sealer:
            with sealer.writing(wait=True):
                sealer.seal_pending()
            sealer.trim()

    def add(self, count: int, start: int) -> None:
        """Mine a block with `count` flights, whose serials begin at `start`."""
        self.accept(flights(count, start))
        self.seal()

    def back_up(self, *, folder: Path | None = None) -> Made:
        return back_up(
            self.settings,
            folder or self.backup,
            report=self.said.append,
            progress=lambda done, to_do: None,
        )

    def restore(self, folder: Path | None = None) -> Manifest:
        settings = self.elsewhere(folder or self.restored)
        return restore(settings, self.backup, watched=unwatched, report=self.said.append)

    def elsewhere(self, folder: Path) -> Settings:
        return replace(self.settings, dir=str(folder))

    def manifest(self) -> Manifest:
        manifest = read(self.backup)
        assert manifest is not None
        return manifest


@contextmanager
def unwatched(what: str) -> Iterator[Progress]:
    assert what
    yield lambda done, to_do: None


def filled(root: Path) -> House:
    """Fill a house: four blocks that fill files, a small one, seven pending flights with a key."""
    house = House(root)
    for seed in range(1, 5):
        house.fill(MINED // 4, seed)
    house.add(5, 0)
    house.accept(flights(7, 100), IdempotencyKey("once", "ab" * 32))
    tokens.Tokens(house.folder).add("me")
    return house


def copied(house: House, root: Path) -> House:
    """Copy the house to another place."""
    shutil.copytree(house.root, root, symlinks=True, dirs_exist_ok=True)
    copy = House(root)
    settle(copy.folder)
    return copy


def pending_of(settings: Settings) -> list[tuple[int, Flight]]:
    with closing(Sealer(settings, print)) as sealer:
        parts = sealer.mempool.pending(10**6)
    return [(p.first_transaction + i, f) for p in parts for i, f in enumerate(p.flights)]


def everything_in(settings: Settings) -> list[Flight]:
    """Returns all flights by their ids, mined or pending."""
    contents = on_disk(settings.folder).flights
    return contents + [f for i, f in pending_of(settings) if i >= len(contents)]


CALLS = ("write_at", "sync", "sync_folder", "cut", "rename", "remove", "make_folder")


def unless_killed_at(nth: int, work: Callable[[], Done]) -> tuple[Done | None, list[str]]:
    """What `work` returns, None if it dies before the `nth` call that changes a file; the calls."""
    done = None
    with killed_at(nth, files, CALLS) as calls:
        done = work()
    return done, calls


def happening_at(nth: int, action: Callable[[], None]) -> AbstractContextManager[list[str]]:
    """Let something happen before the `nth` call that changes a file. Gives the calls."""

    def act_at_nth(calls: list[str]) -> None:
        if len(calls) + 1 == nth:
            calls.append("something else")  # whose own calls count, and let nothing happen
            action()

    return watched(files, CALLS, act_at_nth)
