"""What makes bytes durable gives everything back when the disk refuses; locks lock no more."""

import errno
import fcntl
import mmap
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from backend.base import files
from backend.base.errors import WriteFailed, WriterBusy
from tests.descriptors import descriptors_of


def refusing(error: int) -> Callable[..., Any]:
    def call(*arguments: object, **options: object) -> None:
        raise OSError(error, os.strerror(error))

    return call


def test_a_failed_sync_of_the_folder_leaks_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = descriptors_of()
    monkeypatch.setattr(os, "fsync", refusing(errno.EIO))
    with pytest.raises(WriteFailed, match=r"cannot sync .*: Input/output error; check that its"):
        files.open_for_writing(tmp_path / "blocks-0000000000.dat")
    assert descriptors_of().items() <= before.items()  # others' garbage may be closed meanwhile


@pytest.mark.parametrize("call", ["pwrite", "fdatasync", "replace", "fsync"])
def test_a_file_that_cannot_be_written_leaves_the_old_one_and_no_temporary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "heights.dat"
    before = descriptors_of()
    for old in (None, b"old"):
        if old is not None:
            path.write_bytes(old)
        with monkeypatch.context() as patched:
            patched.setattr(os, call, refusing(errno.ENOSPC))
            with pytest.raises(WriteFailed, match="No space left on device; free some space"):
                files.write_new(path, b"new")
        if call in ("pwrite", "fdatasync"):
            assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == (
                {} if old is None else {path.name: old}
            )
        path.unlink(missing_ok=True)
    assert descriptors_of().items() <= before.items()  # others' garbage may be closed meanwhile


def test_a_new_file_replaces_the_old_one_whole(tmp_path: Path) -> None:
    path = tmp_path / "heights.dat"
    for data in (b"", b"a long one" * 1000, b"short"):
        path.with_name(f"{path.name}.tmp").write_bytes(b"what a crash has left of it")
        files.write_new(path, data)
        assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {path.name: data}


def test_a_short_write_is_carried_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: real(fd, data[:3], at))
    files.write_new(tmp_path / "x", bytes(range(100)))
    assert (tmp_path / "x").read_bytes() == bytes(range(100))


def test_releasing_frees_the_lock_although_a_forked_child_lives(tmp_path: Path) -> None:
    lock = files.FileLock(tmp_path / "lock")
    lock.acquire(wait=False)
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    try:
        lock.release()
        assert not files.is_locked(tmp_path / "lock")
        with files.FileLock(tmp_path / "lock") as other:
            assert other.is_held
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@contextmanager
def asking(path: Path) -> Iterator[int]:
    """The moment in which somebody asks whether `path` is locked; the descriptor they do it by."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield descriptor
    finally:
        os.close(descriptor)


def test_asking_whether_it_is_locked_does_not_make_a_writer_busy(tmp_path: Path) -> None:
    with asking(tmp_path / "lock") as descriptor:
        lock = files.FileLock(tmp_path / "lock")
        answered = threading.Timer(0.05, fcntl.flock, (descriptor, fcntl.LOCK_UN))
        answered.start()
        lock.acquire(wait=False)
        assert lock.is_held
        lock.release()
        answered.join()


def test_those_who_ask_do_not_see_each_other(tmp_path: Path) -> None:
    with asking(tmp_path / "lock"):
        assert not files.is_locked(tmp_path / "lock")


def test_a_lock_that_is_really_held_is_busy_soon(tmp_path: Path) -> None:
    start = time.monotonic()
    with files.FileLock(tmp_path / "lock"), pytest.raises(WriterBusy):
        files.FileLock(tmp_path / "lock").acquire(wait=False)
    assert time.monotonic() - start < files.LOCK_PATIENCE_S


def test_no_folder_is_made_where_a_disk_is_to_be_mounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written there would be hidden when the disk is mounted."""
    lines = ["/ ext4", "none swap", f"{tmp_path} none bind", f"{tmp_path}/disk ext4 nofail 0 2"]
    table = "".join(f"UUID=1 {line}\n" for line in lines) + f"#UUID=2 {tmp_path} exfat\n"
    (tmp_path / "fstab").write_text(table, encoding="utf-8")
    monkeypatch.setattr(files, "FSTAB", tmp_path / "fstab")
    (tmp_path / "disk").mkdir()
    for name in ("disk/chain/blocks", "disk/blocks"):
        with pytest.raises(WriteFailed, match=f"at {tmp_path}/disk; mount its disk"):
            files.make_folder(tmp_path / name)
    assert list((tmp_path / "disk").iterdir()) == []
    files.make_folder(tmp_path / "disk2/chain")
    monkeypatch.setattr(os.path, "ismount", lambda place: True)
    files.make_folder(tmp_path / "disk/chain")


def test_a_share_of_smb_says_in_its_own_way_that_a_lock_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lock").touch()
    monkeypatch.setattr(fcntl, "flock", refusing(errno.EACCES))
    assert files.is_locked(tmp_path / "lock")
    with pytest.raises(WriterBusy, match="is locked by another process; wait for it"):
        files.FileLock(tmp_path / "lock", remedy="wait for it").acquire(wait=False)


def test_asking_does_not_make_the_lock_file(tmp_path: Path) -> None:
    assert not files.is_locked(tmp_path / "lock")
    assert list(tmp_path.iterdir()) == []


# --- how long it is waited for ---------------------------------------------------------------


def test_who_waits_for_a_lock_is_told_who_has_it_when_the_time_is_over(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with files.FileLock(path):
        started = time.monotonic()
        with pytest.raises(
            WriterBusy, match=f"{path} is locked by this process \\(PID {os.getpid()}\\)"
        ):
            files.FileLock(path).acquire(wait=True, within_s=0.2)
        assert 0.2 <= time.monotonic() - started < files.LOCK_PATIENCE_S
    files.FileLock(path).acquire(wait=False)


def test_who_waits_gets_the_lock_soon_after_it_is_free(tmp_path: Path) -> None:
    held, waiting = files.FileLock(tmp_path / "lock"), files.FileLock(tmp_path / "lock")
    got: list[float] = []

    def wait() -> None:
        waiting.acquire(wait=True)
        got.append(time.monotonic())

    held.acquire(wait=False)
    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.1)
    freed = time.monotonic()
    held.release()
    thread.join()
    waiting.release()
    assert got[0] - freed < 0.5


def test_nobody_else_can_open_a_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with files.FileLock(path):
        assert path.stat().st_mode & 0o777 == 0o600


# --- a sync that failed --------------------------------------------------------------------------


def test_what_is_written_again_is_forgotten_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ext4 had found places for the lost bytes, and noted that these hold nothing yet.

    As long as the kernel remembers the places, bytes are written there, and the note stays. Then
    zeros are read after a power cut.
    """
    page, calls = mmap.PAGESIZE, list[tuple[str, int]]()
    path, data = tmp_path / "file", os.urandom(3 * page - 9)
    path.write_bytes(data)
    pwrite = os.pwrite

    def forget(descriptor: int, offset: int, length: int, advice: int) -> None:
        assert length >= len(data[offset : offset + page])
        assert advice == os.POSIX_FADV_DONTNEED
        calls.append(("forget", offset))

    def write(descriptor: int, part: bytes, offset: int) -> int:
        assert part == data[offset : offset + len(part)]
        calls.append(("write", offset))
        return pwrite(descriptor, part, offset)

    monkeypatch.setattr(os, "posix_fadvise", forget)
    monkeypatch.setattr(os, "pwrite", write)
    monkeypatch.setattr(files, "PIECE_BYTES", page)
    descriptor = files.open_for_writing(path)
    files.write_again(descriptor, path, page + 5)
    os.close(descriptor)
    assert calls == [("forget", page), ("write", page), ("forget", 2 * page), ("write", 2 * page)]
    assert path.read_bytes() == data


# --- small files that are not synced -------------------------------------------------------------


def test_a_small_file_is_replaced_beside_what_another_process_writes(tmp_path: Path) -> None:
    path, other = tmp_path / "small", tmp_path / "small.1.tmp"
    other.write_bytes(b"of process 1")
    for data in (b"one", b"another"):
        files.replace_unsynced(path, data)
        assert path.read_bytes() == data
    assert other.read_bytes() == b"of process 1"
    assert set(tmp_path.iterdir()) == {path, other}


def test_threads_replace_a_small_file_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, replace, both = tmp_path / "small", Path.replace, threading.Barrier(2, timeout=30)

    def replace_together(temporary: Path, target: Path) -> Path:
        both.wait()
        return replace(temporary, target)

    monkeypatch.setattr(Path, "replace", replace_together)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(partial(files.replace_unsynced, path), (b"one", b"another")))
    assert path.read_bytes() in {b"one", b"another"}
    assert list(tmp_path.iterdir()) == [path]


def test_a_small_file_that_cannot_be_replaced_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    path = tmp_path / "small"
    path.mkdir()
    with pytest.raises(WriteFailed, match=f"cannot write {path}: Is a directory"):
        files.replace_unsynced(path, b"one")
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_system_without_locks_is_named_with_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "flock", refusing(errno.ENOLCK))
    with pytest.raises(WriteFailed, match=r"cannot lock .*/a\.lock: .*with locks, such as ext4"):
        files.FileLock(tmp_path / "a.lock").acquire(wait=False)
