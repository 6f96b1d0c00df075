"""What a witness keeps: the newest checkpoint, since when it is known, and all that contradicts."""

import time
from pathlib import Path
from threading import Event, Thread

import pytest

from backend.base.errors import Damage, WriterBusy
from backend.trust.log import notes
from backend.trust.log.checkpoints import Checkpoint
from backend.trust.log.secret_keys import SecretKey
from backend.trust.log.tree import HistoryTree
from backend.trust.witness import witness as witness_module
from backend.trust.witness.witness import Forked, NotSigned, RolledBack, Unproved, Witness
from tests.trust.witness.logs import signed


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake_clock = Clock()
    monkeypatch.setattr(witness_module, "time", fake_clock)
    return fake_clock


def unproved(_old: int, _size: int) -> list[bytes]:
    return []


def evidence(tmp_path: Path) -> dict[str, list[str]]:
    """Read the files that show what a log has contradicted, by their suffix."""
    files: dict[str, list[str]] = {}
    for path in sorted((tmp_path / "witness").iterdir()):
        if path.suffix in {".fork", ".unproved", ".rollback"}:
            files.setdefault(path.suffix, []).append(path.read_text())
    return files


def test_a_checkpoint_of_another_log_than_that_of_the_key_is_not_cosigned(
    log: SecretKey, witness: Witness
) -> None:
    note = log.note(str(Checkpoint("elsewhere", 7, bytes(32))))
    with pytest.raises(NotSigned, match="the checkpoint of elsewhere is not signed by"):
        witness.cosign(str(note).encode(), log.verifier, unproved)
    assert witness.size_of("elsewhere") == 0


def test_a_slow_proof_keeps_no_other_checkpoint_waiting(
    log: SecretKey, tree: HistoryTree, witness: Witness
) -> None:
    origin = log.verifier.name
    witness.cosign(signed(log, 3, tree.root(3)), log.verifier, tree.consistency_proof)
    is_asked, may_go_on = Event(), Event()
    olds: list[int] = []

    def slow(old: int, size: int) -> list[bytes]:
        olds.append(old)
        is_asked.set()
        assert may_go_on.wait(60)
        return tree.consistency_proof(old, size)

    thread = Thread(target=witness.cosign, args=(signed(log, 7, tree.root(7)), log.verifier, slow))
    thread.start()
    try:
        assert is_asked.wait(60)
        started = time.monotonic()
        witness.cosign(signed(log, 5, tree.root(5)), log.verifier, tree.consistency_proof)
        assert time.monotonic() - started < 30
    finally:
        may_go_on.set()
        thread.join()
    assert olds == [3, 5]  # what was kept meanwhile has to be extended, too
    kept = witness.memory.note(origin)
    assert kept is not None
    assert "\n7\n" in kept.text


def test_two_forks_that_are_proved_at_once_are_not_both_cosigned(
    log: SecretKey, tree: HistoryTree, witness: Witness
) -> None:
    """The second is compared with what was kept while its proof was fetched."""
    witness.cosign(signed(log, 3, tree.root(3)), log.verifier, tree.consistency_proof)

    def meanwhile(old: int, size: int) -> list[bytes]:
        if old == 3:
            witness.cosign(signed(log, 7, tree.root(7)), log.verifier, tree.consistency_proof)
        return tree.consistency_proof(old, size)

    with pytest.raises(RolledBack, match="had 7 blocks, and shows 5 now"):
        witness.cosign(signed(log, 5, tree.root(5)), log.verifier, meanwhile)


def test_who_is_overtaken_again_and_again_gives_up(
    log: SecretKey, tree: HistoryTree, witness: Witness
) -> None:
    def overtaken(old: int, size: int) -> list[bytes]:
        path = next((witness.folder).glob("*.note"))
        path.write_bytes(bytes(witness_note(old + 1)))
        return tree.consistency_proof(old, size)

    def witness_note(size: int) -> bytes:
        note = notes.parse(signed(log, size, tree.root(size)))
        mine = witness.key.cosignature(note.text, 1)
        return str(notes.Note(note.text, (*note.signatures, mine))).encode()

    witness.cosign(signed(log, 1, tree.root(1)), log.verifier, tree.consistency_proof)
    with pytest.raises(WriterBusy):
        witness.cosign(signed(log, 7, tree.root(7)), log.verifier, overtaken)


def test_all_that_contradicts_is_kept(
    log: SecretKey, tree: HistoryTree, witness: Witness, tmp_path: Path
) -> None:
    kept = witness.cosign(signed(log, 5, tree.root(5)), log.verifier, tree.consistency_proof)
    contradictions = [
        (signed(log, 5, b"\x01" * 32), Forked, ".fork"),
        (signed(log, 5, b"\x02" * 32), Forked, ".fork"),
        (signed(log, 7, b"\x03" * 32), Unproved, ".unproved"),
        (signed(log, 6, b"\x04" * 32), Unproved, ".unproved"),
        (signed(log, 4, tree.root(4)), RolledBack, ".rollback"),
    ]
    for _ in range(2):
        for note, error, _suffix in contradictions:
            with pytest.raises(error, match="both are in"):
                witness.cosign(note, log.verifier, unproved)
    files = evidence(tmp_path)
    assert {suffix: len(texts) for suffix, texts in files.items()} == {
        ".fork": 2,
        ".unproved": 2,
        ".rollback": 1,
    }
    for note, _error, suffix in contradictions:
        (text,) = [text for text in files[suffix] if note.decode() in text]
        assert text.startswith(kept.text)


def test_what_contradicts_is_kept_up_to_a_bound(
    log: SecretKey,
    tree: HistoryTree,
    witness: Witness,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(witness_module, "MOST_CONTRADICTIONS", 3)
    witness.cosign(signed(log, 5, tree.root(5)), log.verifier, tree.consistency_proof)
    for at in range(6):
        with pytest.raises(Unproved):
            witness.cosign(signed(log, 7, bytes([at]) * 32), log.verifier, unproved)
    with pytest.raises(Forked):
        witness.cosign(signed(log, 5, bytes(32)), log.verifier, unproved)
    files = evidence(tmp_path)
    assert (len(files[".unproved"]), len(files[".fork"])) == (3, 1)


def test_a_log_is_silent_whatever_it_writes_below_the_same_tree(
    log: SecretKey, tree: HistoryTree, witness: Witness, clock: Clock
) -> None:
    origin, first = log.verifier.name, int(clock.now)
    for more in ("", "one\n", "two\n"):
        note = signed(log, 5, tree.root(5), more)
        again = witness.cosign(note, log.verifier, tree.consistency_proof)
        assert again.text == notes.parse(note).text
        assert witness.grew_at(origin) == first
        clock.now += 3600
    witness.cosign(signed(log, 7, tree.root(7)), log.verifier, tree.consistency_proof)
    assert witness.grew_at(origin) == int(clock.now)


def test_a_damaged_note_is_told_with_what_becomes_of_it(
    log: SecretKey, tree: HistoryTree, witness: Witness
) -> None:
    without_ours = signed(log, 5, tree.root(5))
    witness.cosign(without_ours, log.verifier, tree.consistency_proof)
    (path,) = witness.folder.glob("*.note")
    for note in (b"x", without_ours):
        path.write_bytes(note)
        with pytest.raises(Damage, match=r"an older copy.* forgets") as caught:
            witness.cosign(signed(log, 7, tree.root(7)), log.verifier, tree.consistency_proof)
        assert str(path) in str(caught.value)
