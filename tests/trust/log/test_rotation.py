"""The log gets a new key, and whoever trusts the old one can follow, whatever breaks off."""

import json
import shutil
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from click.testing import CliRunner

from backend.base import files
from backend.base.errors import Damage, NotFound
from backend.cli.commands import main
from backend.storage.block_store import BlockStore
from backend.trust.log import notes
from backend.trust.log.log_checks import lost_since_signed
from backend.trust.log.notes import signed_at
from backend.trust.log.rotation import finish_rotation, rotate
from backend.trust.log.secret_keys import log_key
from backend.trust.log.successions import successions_in
from backend.trust.log.tree import HistoryTree
from backend.verify.audit import verify as audit
from backend.verify.folder_check import FolderCheck
from tests.api.worlds import client_of, seal, settings_for
from tests.dying import killed_at
from tests.flights import flights
from tests.submitting import sealing
from tests.trust.proofs.proofs import Judge, fetched


def verifier(folder: Path) -> str:
    return str(log_key(folder).verifier)


def test_proofs_are_verified_with_any_key_that_the_log_has_had(
    folder: Path, tmp_path: Path
) -> None:
    keys = [verifier(folder)]
    for serial in range(2):
        rotate(folder)
        keys.append(verifier(folder))
        seal(settings_for(folder), [flights(1, 100 + serial)])
    assert len({*keys}) == 3
    with client_of(settings_for(folder)) as client:
        (proof,) = fetched(client, "/transactions/0/proof")
    assert len(proof["successions"]) == 2
    for key in keys:
        assert Judge(tmp_path, key).of([proof])["verdict"] == "verified"
    proof["successions"][0] = proof["successions"][0].replace(keys[1], keys[2])
    assert "signature" in Judge(tmp_path, keys[0]).of([proof])["reason"]
    del proof["successions"][0]
    assert "not signed by that key" in Judge(tmp_path, keys[0]).of([proof])["reason"]
    audit(folder)


def test_the_newest_checkpoint_is_signed_anew_at_once(folder: Path) -> None:
    before = notes.parse((folder / "checkpoint").read_bytes())
    new = rotate(folder)
    after = notes.parse((folder / "checkpoint").read_bytes())
    assert after.text == before.text
    assert signed_at(after, new.verifier) is not None
    assert (folder / "log.key").stat().st_mode & 0o777 == 0o600
    (folder / "checkpoint").write_text(str(before))  # a copy that was put back
    with sealing(settings_for(folder), print):
        pass
    after = notes.parse((folder / "checkpoint").read_bytes())
    assert signed_at(after, new.verifier) is not None


@pytest.mark.parametrize("step", range(1, 9))
def test_a_rotation_that_breaks_off_is_finished_or_has_not_happened(
    folder: Path, monkeypatch: pytest.MonkeyPatch, step: int, tmp_path: Path
) -> None:
    old = verifier(folder)
    with killed_at(step, files, ["write_new", "rename", "replace_unsynced"]):
        rotate(folder)
    finish_rotation(folder)
    key = verifier(folder)  # the files agree
    audit(folder)  # and so does the checkpoint
    seal(settings_for(folder), [flights(1, 500)])
    with client_of(settings_for(folder)) as client:
        (proof,) = fetched(client, "/transactions/0/proof")
    for trusted in (old, key):
        assert Judge(tmp_path, trusted).of([proof])["verdict"] == "verified"
    assert not (folder / "log.key.new").exists()
    audit(folder)


def test_what_an_earlier_key_has_signed_still_counts(folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "copy", symlinks=True))
    seal(settings_for(folder), [flights(1, 100)])
    rotate(copy)
    shutil.copy(folder / "checkpoint", copy)
    with closing(BlockStore(copy)) as store:
        assert "has lost blocks" in lost_since_signed(copy, HistoryTree(store))


def test_a_rotation_that_is_under_way_is_no_damage(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(files, "replace_unsynced", Mock(side_effect=KeyboardInterrupt))
        rotate(folder)
    with closing(BlockStore(folder)) as store:
        check = FolderCheck(settings_for(folder), store, HistoryTree(store))
        assert len(check.problems()) == 1  # if nobody goes on
        rotator = SimpleNamespace(sleep=lambda _: finish_rotation(folder))
        monkeypatch.setattr("backend.verify.folder_check.time", rotator)
        assert check.problems() == []


def test_a_checkpoint_that_cannot_be_read_leaves_a_rotation_to_be_finished_later(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(files, "replace_unsynced", Mock(side_effect=KeyboardInterrupt))
        rotate(folder)
    signed = (folder / "checkpoint").rename(folder / "signed")
    (folder / "checkpoint").mkdir()
    with pytest.raises(IsADirectoryError):
        finish_rotation(folder)
    assert (folder / "log.key.new").exists()
    (folder / "checkpoint").rmdir()
    signed.rename(folder / "checkpoint")
    finish_rotation(folder)
    audit(folder)


def test_damage_to_the_notes_is_told(folder: Path) -> None:
    rotate(folder)
    path = folder / "log.successions"
    assert len(json.loads(path.read_text())) == 1
    for bad in ("", "{}", "[1]", path.read_text()[:-4]):
        path.write_text(bad)
        with pytest.raises(Damage, match="successions is damaged"):
            successions_in(folder)
        with pytest.raises(Damage, match="successions is damaged"):
            audit(folder)


def test_a_key_that_is_put_back_late_finds_the_notes_that_were_put_aside(folder: Path) -> None:
    """As after a restore, when the service has been started before the key was put back."""
    rotate(folder)
    key = (folder / "log.key").read_bytes()
    for name in ("log.key", "log.vkey", "checkpoint"):
        (folder / name).unlink()
    with sealing(settings_for(folder)):
        pass
    (folder / "log.vkey").unlink()
    (folder / "log.key").write_bytes(key)
    with sealing(settings_for(folder)):
        pass
    with pytest.raises(Damage, match=r"log\.successions\.old is one if it is there"):
        audit(folder)
    (folder / "log.successions.old").rename(folder / "log.successions")
    with sealing(settings_for(folder)):
        pass
    audit(folder)


@pytest.mark.parametrize("is_older", [False, True])
def test_notes_that_nobody_has_any_more_are_given_up_as_the_message_says(
    folder: Path, is_older: bool
) -> None:
    rotate(folder)
    notes = folder / "log.successions"
    older = notes.read_bytes()
    rotate(folder)
    (notes.write_bytes(older) if is_older else notes.unlink())
    with pytest.raises(Damage, match=r"if it exists, and remove the lines of log\.key .* FOLLOWS"):
        audit(folder)
    before = verifier(folder)
    notes.unlink(missing_ok=True)
    key = folder / "log.key"
    key.write_text(key.read_text().partition("FOLLOWS")[0])
    audit(folder)
    assert verifier(folder) == before
    rotate(folder)
    audit(folder)


def test_a_chain_without_a_key_has_nothing_to_rotate(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="the log has no key yet"):
        rotate(tmp_path)


def test_the_commands_print_keys(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLIGHTCHAIN_DIR", str(folder))
    first = CliRunner().invoke(main, ["log", "key"])
    assert (first.exit_code, first.stdout.strip()) == (0, verifier(folder))
    second = CliRunner().invoke(main, ["log", "rotate-key"])
    assert (second.exit_code, second.stdout.strip()) == (0, verifier(folder))
    assert second.stdout != first.stdout
