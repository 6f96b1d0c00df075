"""The disk refuses, the process is killed, the power is cut: what was committed is there.

Everywhere the same invariant: committed blocks are recovered, recovered blocks were appended, and
the chain keeps all rules.
"""

import errno
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backend.base.errors import WriteFailed
from backend.chain.state import genesis
from backend.storage.block_store import BlockStore
from tests.dying import Killed
from tests.storage.chains import (
    GENESIS_MS,
    audited,
    block_file,
    blocks_folder,
    contents,
    next_block,
    recovered,
    restore,
    table_path,
    writer_for,
)
from tests.storage.crashes import Disk

pytestmark = pytest.mark.slow

FILE_BYTES = 3_000
GENESIS_HASH = genesis(GENESIS_MS, 0).hash

SEVERAL_AT_ONCE = (1, 3, 5, 2)
ONE_BY_ONE = (1,) * 11
TORN = b"FCB1 torn"


class Life:
    """One writer's life: a few commits over several block files.

    appended: hashes of all blocks handed to a writer, genesis first. committed: how many of them
    were committed for certain. before: the life that this one follows. commits: blocks in each.
    """

    def __init__(
        self,
        folder: Path,
        before: "Life | None" = None,
        commits: tuple[int, ...] = SEVERAL_AT_ONCE,
    ) -> None:
        self.commits = commits
        self.writer = writer_for(folder, block_file_bytes=FILE_BYTES)
        self.appended: list[str] = list(before.appended) if before is not None else [GENESIS_HASH]
        self.committed: int = before.committed if before is not None else 0
        self.is_acquired = False

    def run(self) -> None:
        self.writer.acquire(wait=False)
        self.is_acquired = True
        self.committed = max(self.committed, self.writer.state.height + 1)
        del self.appended[self.committed :]
        for count in self.commits:
            self.append(count)
            self.writer.commit()
            self.committed = len(self.appended)

    def append(self, count: int) -> None:
        for number in range(count):
            block = next_block(self.writer.state, number % 3)
            self.appended.append(block.hash)
            self.writer.append(block)


def hashes(folder: Path) -> list[str]:
    with closing(BlockStore(folder)) as store:
        return [place.hash.hex() for place in store.places(0, 1000)]


def assert_invariant(folder: Path, committed: list[str], appended: list[str]) -> None:
    """After recovery: committed ⊆ recovered ⊆ appended, in order; valid; and it goes on."""
    state, _ = recovered(folder, block_file_bytes=FILE_BYTES)
    digests = hashes(folder)
    assert digests[: len(committed)] == committed
    assert digests == appended[: len(digests)]
    assert audited(folder) == state


# System calls that fail ---------------------------------------------------------------------------


def failing_at(nth: int, error: int, real: Callable[..., Any]) -> Callable[..., Any]:
    """`real`, whose `nth` call and all after it fail with `error`, as a sick disk does."""
    calls = 0

    def call(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls >= nth:
            raise OSError(error, os.strerror(error))
        return real(*arguments, **options)

    return call


def short_at(nth: int, error: int, real: Callable[..., Any]) -> Callable[..., Any]:
    """`os.pwrite` that writes half at its `nth` call and then nothing: a disk that fills up."""
    calls = 0

    def call(descriptor: int, data: bytes, offset: int) -> int:
        nonlocal calls
        calls += 1
        if calls > nth:
            raise OSError(error, os.strerror(error))
        written: int = real(descriptor, data if calls < nth else data[: len(data) // 2], offset)
        return written

    return call


def leave_torn_tail(folder: Path, named: int = 8) -> None:
    """The table lacks blocks, and the last file ends in the middle of one."""
    table = table_path(folder).read_bytes()
    table_path(folder).write_bytes(table[: 64 * named])
    last = max(path.name for path in blocks_folder(folder).glob("blocks-*.dat"))
    with (blocks_folder(folder) / last).open("ab") as stream:
        stream.write(TORN)


def leave_empty_file(folder: Path) -> None:
    """The next file was made, and nothing written to it."""
    block_file(folder, 12).touch()


def leave_later_files(folder: Path) -> None:
    """Blocks that the table lacks, and files that do not follow them."""
    leave_torn_tail(folder)
    for first in (20, 30):
        block_file(folder, first).write_bytes(TORN)


# the call, its error, how it fails, what recovery has to do, and how often a life calls it at least
FAILURES = [
    ("pwrite", errno.ENOSPC, failing_at, leave_torn_tail, 15),
    ("pwrite", errno.ENOSPC, short_at, leave_torn_tail, 15),
    ("fdatasync", errno.EIO, failing_at, leave_torn_tail, 10),
    ("fsync", errno.EIO, failing_at, leave_torn_tail, 4),
    ("fsync", errno.EIO, failing_at, leave_empty_file, 2),
    ("open", errno.EMFILE, failing_at, leave_torn_tail, 10),
    ("open", errno.EMFILE, failing_at, leave_empty_file, 6),
    ("ftruncate", errno.EIO, failing_at, leave_torn_tail, 1),
    ("replace", errno.EIO, failing_at, leave_torn_tail, 2),
    ("replace", errno.EIO, failing_at, leave_later_files, 4),
]


@pytest.mark.parametrize(
    ("name", "error", "failing", "prepare", "calls"),
    FAILURES,
    ids=[f"{name}-{failing.__name__}-{to_do.__name__}" for name, _, failing, to_do, _ in FAILURES],
)
def test_whatever_call_fails_nothing_committed_is_lost(
    tmp_path: Path,
    name: str,
    error: int,
    failing: Callable[..., Any],
    prepare: Callable[[Path], None],
    calls: int,
) -> None:
    before = Life(tmp_path)
    before.run()
    before.writer.close()
    prepare(tmp_path)
    whole = contents(tmp_path)
    for nth in range(1, 100):
        restore(tmp_path, whole)
        life = Life(tmp_path, before)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(os, name, failing(nth, error, getattr(os, name)))
            is_clean = survives(life, os.strerror(error))
        life.writer.close()
        assert_invariant(tmp_path, life.appended[: life.committed], life.appended)
        if is_clean:
            break
    assert life.committed == len(life.appended) == 23
    assert nth > calls


def survives(life: Life, reason: str) -> bool:
    """Whether a life comes to its end; if not, it fails for `reason` and its writer is poisoned."""
    try:
        life.run()
    except WriteFailed as failure:
        assert reason in str(failure)
        if life.is_acquired:
            with pytest.raises(WriteFailed, match="an earlier write failed"):
                life.writer.append(next_block(life.writer.state))
        return False
    return True


def test_a_failed_genesis_is_made_by_the_next_writer(tmp_path: Path) -> None:
    for nth in range(1, 3):
        folder = tmp_path / str(nth)
        life = Life(folder)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(os, "pwrite", short_at(nth, errno.ENOSPC, os.pwrite))
            with pytest.raises(WriteFailed, match="No space left"):
                life.run()
        life.writer.close()
        assert_invariant(folder, [GENESIS_HASH], [GENESIS_HASH])


# Power cuts ---------------------------------------------------------------------------------------


Left = dict[tuple[tuple[str, bytes], ...], int]  # contents -> committed by then, at most


def remember(disk: Disk, left: Left, committed: int) -> None:
    """Add to `left` what a power cut now may leave of `disk`."""
    for files in disk.states():
        key = tuple(sorted(files.items()))
        left[key] = max(left.get(key, 0), committed)


def assert_all_recover(folder: Path, left: Left, appended: list[str]) -> None:
    for key, committed in left.items():
        restore(folder, dict(key))
        assert_invariant(folder, appended[:committed], appended)


@pytest.mark.parametrize("commits", [ONE_BY_ONE, SEVERAL_AT_ONCE, (12,)], ids=str)
def test_whatever_a_power_cut_leaves_everything_committed_is_there(
    tmp_path: Path, commits: tuple[int, ...]
) -> None:
    """Every legal content of the disk after every operation of a writer's life. Of blocks that are
    committed together, later ones may have reached it and earlier ones not.
    """
    life = Life(tmp_path / "alive", commits=commits)
    left: Left = {}
    with pytest.MonkeyPatch.context() as patched:
        watched = blocks_folder(tmp_path / "alive")
        Disk(watched, lambda disk: remember(disk, left, life.committed)).install(patched)
        life.run()
        life.writer.close()
    assert len(left) > 60
    assert_all_recover(tmp_path / "after", left, life.appended)


def test_a_power_cut_during_recovery_loses_nothing_either(tmp_path: Path) -> None:
    """Not even the torn tail: it is in its file or aside until the end."""
    folder = tmp_path / "alive"
    before = Life(folder)
    before.run()
    before.writer.close()
    leave_torn_tail(folder)
    life = Life(folder, before, commits=(1, 1))
    left: Left = {}

    def cut(disk: Disk) -> None:
        remember(disk, left, life.committed)
        for files in left:
            assert any(data.endswith(TORN) for name, data in files if ".tmp" not in name)

    with pytest.MonkeyPatch.context() as patched:
        Disk(blocks_folder(folder), cut).install(patched)
        life.run()
        life.writer.close()
    assert len(left) > 15
    assert_all_recover(tmp_path / "after", left, life.appended)


@pytest.mark.parametrize("uncommitted", [2, 7])
def test_blocks_that_recovery_took_in_survive_a_power_cut_after_it(
    tmp_path: Path, uncommitted: int
) -> None:
    """The killed writer synced nothing; whoever names its blocks must."""
    folder = tmp_path / "alive"
    before = Life(folder, commits=(1, 1))
    left: Left = {}
    with pytest.MonkeyPatch.context() as patched:
        lives = [before]
        watched = blocks_folder(folder)
        Disk(watched, lambda disk: remember(disk, left, lives[-1].committed)).install(patched)
        before.run()
        before.append(uncommitted)
        before.writer.close()
        lives.append(Life(folder, before, commits=(1,)))
        lives[-1].run()
        lives[-1].writer.close()
    assert lives[-1].committed == 3 + uncommitted + 1
    assert_all_recover(tmp_path / "after", left, lives[-1].appended)


@pytest.mark.parametrize("commits", [ONE_BY_ONE, SEVERAL_AT_ONCE], ids=str)
def test_a_power_cut_after_a_sync_that_failed_loses_nothing_that_the_next_writer_committed(
    tmp_path: Path, commits: tuple[int, ...]
) -> None:
    """The next writer finds blocks in the kernel's memory that no sync would bring to the disk."""
    for nth in range(1, 100):
        folder, left, lives = tmp_path / str(nth), Left(), list[Life]()

        def cut(disk: Disk, left: Left = left, lives: list[Life] = lives) -> None:
            if lives:
                remember(disk, left, lives[0].committed)

        failing = Life(folder, commits=commits)
        with pytest.MonkeyPatch.context() as patched:
            Disk(blocks_folder(folder), cut, fail_at=nth).install(patched)
            is_clean = survives(failing, os.strerror(errno.EIO))
            failing.writer.close()
            if is_clean:
                break
            lives.append(Life(folder, failing, commits=(1,)))
            lives[0].run()
            lives[0].writer.close()
        assert_all_recover(tmp_path / "after", left, lives[0].appended)
    assert nth > 10


@pytest.mark.parametrize("has_to_recover", [False, True])
def test_a_power_cut_after_a_kill_loses_nothing_that_the_next_writer_committed(
    tmp_path: Path, has_to_recover: bool
) -> None:
    """Killed behind any operation, also amid recovery; the next writer goes on with what the kernel
    still has, synced or not.
    """
    before: Life | None = None
    if has_to_recover:
        before = Life(tmp_path / "0", commits=(3,))
        before.run()
        before.writer.close()
        leave_torn_tail(tmp_path / "0", named=2)
        block_file(tmp_path / "0", 20).write_bytes(TORN)
    known: dict[tuple[str, ...], Left] = {}  # by what was appended; most kills leave the same
    for nth in range(1, 200):
        folder = tmp_path / str(nth)
        if before is not None:
            restore(folder, contents(tmp_path / "0"))
        killed = Life(folder, before, commits=(1,) if has_to_recover else (1, 3, 2))
        if not is_killed_and_cut(killed, folder, nth, known):
            break
    assert nth > 10
    for appended, left in known.items():
        assert_all_recover(tmp_path / "after", left, list(appended))


def is_killed_and_cut(
    killed: Life, folder: Path, nth: int, known: dict[tuple[str, ...], Left]
) -> bool:
    """Kill a writer behind its `nth` operation and cut the power at any time of the next one's
    life; false if it did not come to that.
    """
    left: Left = {}
    lives: list[Life] = []

    def cut(disk: Disk) -> None:
        if lives:
            remember(disk, left, lives[0].committed)

    with pytest.MonkeyPatch.context() as patched:
        disk = Disk(blocks_folder(folder), cut, kill_at=nth)
        disk.install(patched)
        try:
            killed.run()
        except Killed:
            pass
        else:
            return False
        finally:
            killed.writer.close()
        disk.start_again()
        lives.append(Life(folder, killed, commits=(2,)))
        lives[0].run()
        lives[0].writer.close()
    for key, committed in left.items():
        of_these = known.setdefault(tuple(lives[0].appended), {})
        of_these[key] = max(of_these.get(key, 0), committed)
    return True
