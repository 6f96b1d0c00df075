"""Killed at any statement or change of names while following: what follows later equals a rebuild.

A child process counts what it does (statements of SQLite, removals, links, renames), and kills
itself at a given count, so that every kind of moment is met, and met again on the next run.
"""

import os
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import apsw
import pytest

from backend.chain.flight import Flight
from backend.index import follower as module
from backend.index.index_file import index_path
from backend.index.queries import IndexReader
from backend.questions.values import AverageDelays
from backend.storage import checked_sqlite
from tests.effort import tries
from tests.index.test_follower import height_of_index
from tests.index.worlds import (
    dump,
    follow,
    following,
    in_use,
    make_chain,
    on_each_statement,
    plain_flight,
    settle,
    totals_of,
)

pytestmark = pytest.mark.slow

TIP = 5
EVERYTHING = AverageDelays(19393, "1900-01-01", "2199-12-31")
CONTENTS: list[list[Flight]] = [
    [plain_flight(OP_CARRIER_FL_NUM=n + 1, ORIGIN_CITY_NAME=f"City {n}", FL_DATE=day)]
    for n, day in enumerate(["2008-01-03", "2008-01-31", "2008-02-29", "2008-12-31", "2009-01-01"])
]
# Every seventh moment is tried, no divisor of what repeats; all where faults are looked for.
A_STEP = 7
FIRST_MOMENTS = range(1, 1 + tries(1, exploring=A_STEP))


class Moments:
    """Counts moments, and kills this process at the one with number `fatal`."""

    def __init__(self, fatal: int) -> None:
        self.fatal, self.count = fatal, 0

    def tick(self, *_: object) -> None:
        self.count += 1
        if self.count == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self) -> None:
        """Count from now on. For a process that ends soon: nothing is put back."""
        for name in ("unlink", "replace", "rename", "symlink"):
            setattr(os, name, self._before(getattr(os, name)))
        connect = checked_sqlite.connect

        def watched(
            path: Path, flags: int = apsw.SQLITE_OPEN_READWRITE, query: str = ""
        ) -> apsw.Connection:
            connection = connect(path, flags, query)
            on_each_statement(connection, self.tick)
            return connection

        checked_sqlite.connect = watched

    def _before(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            self.tick()
            return real(*arguments, **options)

        return call


def killed_at(fatal: int, work: Callable[[], None]) -> bool:
    """Do `work` in a child that kills itself at moment `fatal`; whether it came that far."""
    return killed(Moments(fatal).watch, work, signal.SIGKILL)


def killed(prepare: Callable[[], None], work: Callable[[], None], by: signal.Signals) -> bool:
    """Do `work` in a child, which is prepared; whether that signal killed it."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            prepare()
            work()
            status = 0
        finally:
            os._exit(status)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == by:
        return True
    assert os.waitstatus_to_exitcode(status) == 0
    return False


def moments(first: int) -> Iterator[int]:
    yield from range(first, 100_000, A_STEP)


def rebuild(folder: Path) -> None:
    with following(folder) as (follower, _):
        follower.rebuild()


@pytest.fixture(autouse=True)
def small_steps() -> Iterator[None]:
    with mock.patch.object(module, "BLOCKS_AT_ONCE", 2):
        yield


@pytest.fixture
def expected(tmp_path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """What the index of the whole chain in `tmp_path` / "chain" holds."""
    make_chain(tmp_path / "chain", CONTENTS)
    follow(tmp_path / "chain")
    rows = dump(tmp_path / "chain")
    shutil.rmtree(index_path(tmp_path / "chain").parent)
    return rows


@pytest.mark.parametrize("first", FIRST_MOMENTS)
def test_killed_while_the_first_index_is_made(
    tmp_path: Path, expected: dict[str, list[tuple[Any, ...]]], first: int
) -> None:
    folder, kills = tmp_path / "chain", 0
    for fatal in moments(first):
        shutil.rmtree(index_path(folder).parent, ignore_errors=True)
        if not killed_at(fatal, lambda: follow(folder)):
            break
        kills += 1
        assert height_of_index(folder) in {-1, TIP}  # half a one is never used
        follow(folder)
        assert dump(folder) == expected
    assert kills > 10


@pytest.mark.parametrize("first", FIRST_MOMENTS)
def test_killed_while_it_follows_block_by_block(
    tmp_path: Path, expected: dict[str, list[tuple[Any, ...]]], first: int
) -> None:
    old, folder, kills = tmp_path / "old", tmp_path / "chain", 0
    make_chain(old, CONTENTS[:1])
    follow(old)
    for fatal in moments(first):
        shutil.rmtree(index_path(folder).parent, ignore_errors=True)
        shutil.copytree(index_path(old).parent, index_path(folder).parent, symlinks=True)
        settle(folder)
        if not killed_at(fatal, lambda: follow(folder)):
            break
        kills += 1
        reached = height_of_index(folder)
        assert reached in {1, 3, 5}  # two blocks are taken in together, or neither
        totals, as_of = totals_of(IndexReader(folder), EVERYTHING)
        assert totals.flights == as_of.height == reached
        follow(folder)
        assert dump(folder) == expected
    assert kills > 10


@pytest.mark.parametrize("first", FIRST_MOMENTS)
def test_killed_while_it_is_made_anew(
    tmp_path: Path, expected: dict[str, list[tuple[Any, ...]]], first: int
) -> None:
    """Readers have the old index or the new one, whatever happens."""
    folder, kills, files = tmp_path / "chain", 0, set()
    follow(folder)
    for fatal in moments(first):
        before = in_use(folder)
        if not killed_at(fatal, lambda: rebuild(folder)):
            break
        kills += 1
        files.add(in_use(folder) == before)
        assert height_of_index(folder) == TIP
        assert totals_of(IndexReader(folder), EVERYTHING)[0].flights == TIP
        follow(folder)
        assert dump(folder) == expected
    assert kills > 10
    assert files == {True, False}


@pytest.mark.parametrize("work", [follow, rebuild])
def test_killed_in_the_middle_of_a_write(
    tmp_path: Path, expected: dict[str, list[tuple[Any, ...]]], work: Callable[[Path], None]
) -> None:
    """The system kills whoever writes beyond the greatest size of a file, when it is reached."""
    old, folder, kills = tmp_path / "old", tmp_path / "chain", 0
    make_chain(old, CONTENTS[:1])
    follow(old)

    def limit(size: int) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    for size in range(3000, 10**8, 7500):
        shutil.rmtree(index_path(folder).parent, ignore_errors=True)
        shutil.copytree(index_path(old).parent, index_path(folder).parent, symlinks=True)
        settle(folder)
        if not killed(partial(limit, size), partial(work, folder), signal.SIGXFSZ):
            break
        kills += 1
        assert height_of_index(folder) in {1, 3, 5}
        follow(folder)
        assert dump(folder) == expected
    assert kills > 10
