"""Files of SQLite that are made anew, and those on a full disk."""

import os
import resource
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from backend.storage.checked_sqlite import Wrong, connect, in_words, new_file, require_checksums


def test_a_new_file_is_on_the_disk_before_it_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a power cut could leave an empty one there, after the old one has gone."""
    calls: list[str] = []

    def noted(name: str, real: Callable[..., object]) -> Callable[..., object]:
        def call(*given: object) -> object:
            calls.append(name)
            return real(*given)

        return call

    for name in ("fdatasync", "replace", "fsync"):
        monkeypatch.setattr(os, name, noted(name, getattr(os, name)))
    with new_file(tmp_path / "file") as connection:
        connection.execute("CREATE TABLE t (x)")
    assert calls[-3:] == ["fdatasync", "replace", "fsync"]


def test_a_new_file_is_made_without_locks(tmp_path: Path) -> None:
    """A share of SMB refuses those of SQLite, and nobody else can use the file yet."""
    with new_file(tmp_path / "file") as connection:
        connection.execute("BEGIN EXCLUSIVE; CREATE TABLE t (x)")
        inode = (tmp_path / "file.tmp").stat().st_ino
        assert f":{inode} " not in Path("/proc/locks").read_text("ascii")
        connection.execute("COMMIT")


def test_a_file_of_which_the_last_page_is_cut_short_is_not_taken_for_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with new_file(path) as connection:
        connection.execute("CREATE TABLE t (x)")
    os.truncate(path, path.stat().st_size - 1)
    with closing(connect(path)) as connection, pytest.raises(Wrong, match="is cut short"):
        require_checksums(connection)


def test_who_may_not_read_for_want_of_room_is_told_to_free_some(tmp_path: Path) -> None:
    """Readers of a file with a write-ahead log share a file that the first of them makes."""
    with new_file(tmp_path / "file") as connection:
        connection.execute("CREATE TABLE t (x)")
    connect(tmp_path / "file").execute("PRAGMA journal_mode = WAL").fetchall()
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, usual[1]))
    try:
        with pytest.raises(apsw.Error) as caught:
            connect(tmp_path / "file").execute("SELECT * FROM t").fetchall()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert "free some space" in in_words(caught.value)
