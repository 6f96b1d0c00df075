"""Files of SQLite that are made anew."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from backend.storage.checked_sqlite import new_file


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
