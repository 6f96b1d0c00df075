"""Notes about damaged blocks: all processes see them, and they go when the block is well again."""

from pathlib import Path

import pytest

from backend.base import files
from backend.base.errors import DamagedBlock, WriteFailed
from backend.storage.damage_notes import MOST_NOTES, NAME, DamageNotes, reasons


def test_a_note_is_seen_by_all_and_withdrawn_by_any_who_saw_it(tmp_path: Path) -> None:
    notes, other = DamageNotes(tmp_path), DamageNotes(tmp_path)
    assert notes.known() == {}
    notes.met(DamagedBlock(30, "its body is another"))
    notes.met(DamagedBlock(7, "it is missing"))
    assert list(other.known().items()) == [(7, "it is missing"), (30, "its body is another")]
    other.read_well(8)
    other.read_well(7)
    assert notes.known() == {30: "its body is another"}
    notes.read_well(30)
    assert other.known() == {}
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_can_be_written_the_process_keeps_them_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, _: bytes) -> None:
        raise WriteFailed(f"cannot write {path}")

    monkeypatch.setattr(files, "replace_unsynced", refuse)
    notes = DamageNotes(tmp_path)
    notes.met(DamagedBlock(3, "torn"))
    assert notes.known() == {3: "torn"}
    notes.read_well(3)
    assert notes.known() == {}


@pytest.mark.parametrize("content", [b"", b"[", b'{"x": 1}', b'{"1": 2}', b'{"1": "\xff"}'])
def test_a_file_that_is_none_counts_as_no_notes(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(content)
    notes = DamageNotes(tmp_path)
    assert notes.known() == {}
    notes.met(DamagedBlock(3, "torn"))
    assert notes.known() == {3: "torn"}


def test_reasons_name_the_first_and_count_the_others(tmp_path: Path) -> None:
    notes = DamageNotes(tmp_path)
    for height in range(MOST_NOTES + 5):
        notes.met(DamagedBlock(height, "torn"))
    messages = reasons(notes, named=[0])
    assert len(messages) == 4
    assert "block 1 is damaged: torn" in messages[0]
    assert f"{MOST_NOTES - 4} more blocks are damaged" in messages[3]
    assert reasons(notes, named=range(MOST_NOTES)) == []
