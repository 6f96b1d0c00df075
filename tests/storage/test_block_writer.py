import errno
import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from backend.base import files
from backend.base.errors import (
    Damage,
    NotFound,
    RuleViolation,
    WriteFailed,
    WriterBusy,
)
from backend.base.settings import Settings
from backend.chain.block import block_of
from backend.chain.merkle import frontier_of
from backend.storage import block_writer
from backend.storage.block_store import BlockStore
from backend.storage.block_writer import WRITER_LOCK_NAME, BlockWriter
from backend.storage.layout import TABLE_NAME
from tests.storage.chains import (
    A_FILE_EACH,
    NOTHING_PENDING,
    ONE_FILE,
    append_blocks,
    audited,
    block_file,
    contents,
    make_chain,
    next_block,
    recovered,
    refusing,
    table_path,
    writer_for,
    writing,
)


def test_the_chain_keeps_its_difficulty_when_the_setting_changes(tmp_path: Path) -> None:
    make_chain(tmp_path, [1], difficulty_bits=4)
    make_chain(tmp_path, [1])
    assert audited(tmp_path, difficulty_bits=4).height == 2


@pytest.mark.parametrize("block_file_bytes", [A_FILE_EACH, 1500, ONE_FILE])
@pytest.mark.parametrize("blocks", [0, 1, 2, 3, 7, 8, 21])
def test_the_state_after_opening_again_is_the_state_before(
    tmp_path: Path, blocks: int, block_file_bytes: int
) -> None:
    counts = [height % 4 for height in range(blocks)]
    before = make_chain(tmp_path, counts, block_file_bytes=block_file_bytes)
    after, messages = recovered(tmp_path, block_file_bytes=block_file_bytes)
    assert after == before == audited(tmp_path)
    assert messages == []
    assert after.height == blocks
    assert after.transactions == sum(counts)
    store = BlockStore(tmp_path)
    hashes = [place.hash for place in store.places(0, blocks + 1)]
    assert after.history == frontier_of(hashes)


def test_readers_see_nothing_before_commit(tmp_path: Path) -> None:
    make_chain(tmp_path, [1])
    store = BlockStore(tmp_path)
    with writing(tmp_path) as writer:
        for _ in range(3):
            writer.append(next_block(writer.state, 2))
            assert store.height() == 1
            assert store.frames(0, 9)[-1][0] == store.place(1)
            with pytest.raises(NotFound):
                store.block(2)
            assert store.place_of_transaction(1) is None
        writer.commit()
        assert store.height() == 4
        assert store.block(4).hash == writer.state.tip_hash
        assert store.place_of_transaction(1) == (2, store.place(2))


@pytest.mark.parametrize("together", [1, 2, 5, 12])
def test_block_files_roll_once_they_reach_their_size(tmp_path: Path, together: int) -> None:
    size = 2000
    with writing(tmp_path, block_file_bytes=size) as writer:
        for _ in range(60 // together):
            append_blocks(writer, [1] * together)
    store = BlockStore(tmp_path)
    places = store.places(0, 99)
    for below, place in pairwise(places):
        is_next_file = place.file != below.file
        assert is_next_file == (below.end >= size)
        assert place.offset == (0 if is_next_file else below.end)
    assert len({place.file for place in places}) == 21
    for height, place in enumerate(places):
        if place.offset == 0:
            assert place.file == height
    assert audited(tmp_path).height == 60


def test_a_block_that_does_not_fit_on_the_tip_is_refused_and_the_writer_goes_on(
    tmp_path: Path,
) -> None:
    with writing(tmp_path) as writer:
        good = next_block(writer.state, 1)
        for change in ({"height": 2}, {"previous_hash": "1" * 64}, {"first_transaction": 9}):
            bad = block_of(replace(good.header, **change), good.body)
            with pytest.raises(RuleViolation):
                writer.append(bad)
        writer.append(good)
        writer.commit()
    assert audited(tmp_path).tip_hash == good.hash


def test_nothing_is_written_without_the_lock(tmp_path: Path) -> None:
    make_chain(tmp_path, [1])
    with writing(tmp_path) as writer:
        writer.release()
        before = contents(tmp_path)
        for _ in range(2):
            with pytest.raises(WriteFailed, match="does not hold its lock; acquire it first"):
                writer.append(next_block(writer.state, 1))
            with pytest.raises(WriteFailed, match="does not hold its lock; acquire it first"):
                writer.commit()
        assert contents(tmp_path) == before
        writer.acquire(wait=False)  # refusing did not poison it
        append_blocks(writer, [1])
    assert audited(tmp_path).height == 2


@pytest.mark.parametrize("appended", [0, 1])
def test_a_writer_whose_lock_was_removed_writes_nothing_over_the_blocks_of_another(
    tmp_path: Path, appended: int
) -> None:
    """As when somebody takes the lock of an import for one that a dead process has left."""
    make_chain(tmp_path, [1])
    with writing(tmp_path) as writer:
        for _ in range(appended):
            writer.append(next_block(writer.state, 1))
        (tmp_path / WRITER_LOCK_NAME).unlink()
        with writing(tmp_path) as other:
            append_blocks(other, [2])
            after = other.state
        with pytest.raises(WriteFailed, match=r"writer\.lock was removed"):
            append_blocks(writer, [3])
        with pytest.raises(WriteFailed, match=r"writer\.lock was removed"):
            writer.commit()
        assert audited(tmp_path) == after
        writer.release()
        writer.acquire(wait=False)  # refusing did not poison it
        assert writer.state == after
        append_blocks(writer, [1])
    assert audited(tmp_path).height == appended + 3


@pytest.mark.parametrize("is_same", [True, False])
@pytest.mark.parametrize("uncommitted", [1, 3])
def test_released_uncommitted_blocks_are_taken_in_or_forgotten_but_never_half(
    tmp_path: Path, uncommitted: int, is_same: bool
) -> None:
    with writing(tmp_path, block_file_bytes=1500) as writer:
        states = [append_blocks(writer, [1]) and writer.state]
        for _ in range(uncommitted):
            writer.append(next_block(writer.state, 1))
            states.append(writer.state)
        writer.release()
        next_writer = writer if is_same else writer_for(tmp_path, block_file_bytes=1500)
        next_writer.acquire(wait=False)
        assert next_writer.state in states
        store = BlockStore(tmp_path)
        assert store.height() == next_writer.state.height
        append_blocks(next_writer, [2])
        after = next_writer.state
        next_writer.close()
    assert audited(tmp_path) == after


def test_a_poisoned_writer_stays_poisoned(tmp_path: Path) -> None:
    """The kernel would report the same sync as done the next time."""
    make_chain(tmp_path, [1])
    writer = writer_for(tmp_path)
    writer.acquire(wait=False)
    writer.append(next_block(writer.state, 1))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fdatasync", refusing("blocks-", os.fdatasync))
        with pytest.raises(WriteFailed, match="Input/output error"):
            writer.commit()
    for _ in range(2):
        writer.release()
        with pytest.raises(WriteFailed, match="an earlier write failed"):
            writer.acquire(wait=False)
        assert not files.is_locked(tmp_path / WRITER_LOCK_NAME)
        store = BlockStore(tmp_path)
        assert store.height() == 1
    writer.close()
    with pytest.raises(WriteFailed, match="an earlier write failed"):
        writer.acquire(wait=True)
    assert recovered(tmp_path)[0].height in (1, 2)


@pytest.mark.parametrize("what", ["heights.dat", "blocks-0000000000.dat"])
@pytest.mark.parametrize("is_first", [True, False])
def test_an_unreadable_sector_makes_no_writer(tmp_path: Path, what: str, is_first: bool) -> None:
    """Whichever file it is in, and whether the writer begins or comes back."""
    make_chain(tmp_path, [1, 1])
    writer = writer_for(tmp_path)
    if not is_first:
        writer.acquire(wait=False)
        writer.release()
        make_chain(tmp_path, [1])
    before = contents(tmp_path)
    real_open = Path.open

    def unreadable(path: Path, mode: str = "r", *rest: Any, **options: Any) -> Any:
        if path.name == what and "r" in mode:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real_open(path, mode, *rest, **options)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "pread", refusing(what, os.pread))
        patched.setattr(Path, "open", unreadable)
        with pytest.raises((WriteFailed, Damage), match="Input/output error"):
            writer.acquire(wait=False)
    assert not files.is_locked(tmp_path / WRITER_LOCK_NAME)
    assert contents(tmp_path) == before
    writer.close()
    assert recovered(tmp_path)[0] == audited(tmp_path)


def test_a_writer_that_alone_acquires_again_reads_nothing_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writing(tmp_path) as writer:
        append_blocks(writer, [1])
        before = writer.state
        writer.release()

        def unexpected(folder: Path) -> None:
            raise AssertionError(f"{folder} was recovered again")

        with monkeypatch.context() as patched:
            patched.setattr("backend.storage.block_writer.recover", unexpected)
            writer.acquire(wait=False)
            assert writer.state is before
            append_blocks(writer, [1])
            writer.release()
    assert audited(tmp_path).height == 2


def test_what_nobody_has_synced_is_on_the_disk_before_the_table_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when block files were copied into a folder that a process, which was killed, had made."""
    make_chain(tmp_path, [1] * 2, block_file_bytes=A_FILE_EACH)
    names = [name for name in contents(tmp_path) if name.startswith("blocks-")]
    table_path(tmp_path).unlink()
    synced: list[str] = []
    for name in ("fsync", "fdatasync"):
        real = getattr(os, name)

        def sync(descriptor: int, real: Callable[[int], None] = real) -> None:
            synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
            real(descriptor)

        monkeypatch.setattr(os, name, sync)
    assert recovered(tmp_path)[0].height == 2
    assert len(names) == 3
    assert {*names} <= {*synced[: synced.index(f"{TABLE_NAME}.tmp")]}
    assert tmp_path.name in synced


@pytest.mark.parametrize(("file", "block_file_bytes"), [(0, ONE_FILE), (2, A_FILE_EACH)])
def test_a_writer_notices_a_torn_block_that_another_left(
    tmp_path: Path, file: int, block_file_bytes: int
) -> None:
    messages: list[str] = []
    with writing(tmp_path, messages, block_file_bytes=block_file_bytes) as writer:
        append_blocks(writer, [1])
        writer.release()
        with block_file(tmp_path, file).open("ab") as stream:
            stream.write(b"FCB1 and then the light went out")
        writer.acquire(wait=False)
        assert len(messages) == 1
        append_blocks(writer, [1])
    assert audited(tmp_path).height == 2


def test_a_writer_notices_that_the_table_was_exchanged(tmp_path: Path) -> None:
    """What it wrote to the old one would be read by nobody."""
    table = table_path(tmp_path)
    with writing(tmp_path) as writer:
        append_blocks(writer, [1])
        writer.release()
        files.write_new(table, table.read_bytes())
        writer.acquire(wait=False)
        append_blocks(writer, [1])
    assert audited(tmp_path).height == 2


def test_two_writers_take_turns(tmp_path: Path) -> None:
    """Their locks are of the files that they have opened, so those of processes are no other."""
    with writing(tmp_path) as writer, closing(writer_for(tmp_path)) as other:
        for turn in range(3):
            with pytest.raises(WriterBusy):
                other.acquire(wait=False)
            append_blocks(writer, [1, 0, 2])
            writer.release()
            other.acquire(wait=True)
            assert other.state == writer.state
            append_blocks(other, [3])
            assert other.state.height == 4 * (turn + 1)
            other.release()
            writer.acquire(wait=True)
            assert writer.state == other.state
    assert audited(tmp_path).transactions == 18


def test_who_waits_for_another_writer_is_told_and_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_writer, "NOTICE_AFTER_S", 0.1)
    monkeypatch.setattr(block_writer, "LONGEST_WAIT_S", 0.3)
    messages: list[str] = []
    writer = BlockWriter(Settings(dir=str(tmp_path)), lambda: 0, messages.append, NOTHING_PENDING)
    with files.FileLock(tmp_path / WRITER_LOCK_NAME), pytest.raises(WriterBusy, match="process"):
        writer.acquire(wait=True)
    assert len(messages) == 1
    assert f"{WRITER_LOCK_NAME} is locked by this process" in messages[0]
