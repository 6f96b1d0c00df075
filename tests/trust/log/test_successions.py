"""The notes by which keys of the log follow each other: checked, in backups, and rebuilt."""

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from backend.base.errors import Damage
from backend.cli.commands import main
from backend.ledger.ledger import Ledger
from backend.trust.log.rotation import rotate
from backend.trust.log.secret_keys import log_key
from backend.trust.log.successions import checked_successions, successions_in
from backend.verify.audit import verify
from tests.api.worlds import client_of, seal, settings_for
from tests.effort import tries
from tests.flights import flights
from tests.trust.log.test_signing import sealed
from tests.trust.proofs.proofs import Judge, fetched

pytestmark = pytest.mark.slow

NAME = "log.successions"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a chain whose log has its third key."""
    chain = tmp_path / "chain"
    seal(settings_for(chain), [flights(3, 0)])
    for serial in (10, 20):
        rotate(chain)
        seal(settings_for(chain), [flights(3, serial)])
    return chain


def run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, env={"FLIGHTCHAIN_DIR": str(folder)})


def ready(folder: Path) -> str:
    with closing(Ledger(settings_for(folder), print)) as ledger:
        return "\n".join(ledger.not_ready())


def write(folder: Path, texts: object) -> None:
    (folder / NAME).write_text(json.dumps(texts))


def _forged(texts: list[str]) -> list[str]:
    return [texts[0], texts[1].replace(texts[1].split("\n")[2], texts[0].split("\n")[1])]


HARMS: dict[str, Callable[[list[str]], object]] = {
    "the first is missing": lambda texts: texts[1:],
    "the newest is missing": lambda texts: texts[:1],
    "all are missing": lambda texts: [],
    "in another order": lambda texts: texts[::-1],
    "forged": _forged,
    "no note": lambda texts: ["x", *texts],
    "no list": lambda texts: {},
}


@pytest.mark.parametrize("harm", HARMS)
def test_every_harm_is_named_by_verify_and_ready(folder: Path, harm: str) -> None:
    texts = successions_in(folder)
    assert len(texts) == 2
    verify(folder)
    assert NAME not in ready(folder)
    write(folder, HARMS[harm](texts))
    with pytest.raises(Damage, match=r"log\.successions .*log rebuild-successions"):
        verify(folder)
    assert f"{folder / NAME}" in ready(folder)


def test_another_order_is_noticed_without_the_key_of_the_log(folder: Path) -> None:
    write(folder, successions_in(folder)[::-1])
    with pytest.raises(Damage, match=r"lacks the note with which .* was followed"):
        checked_successions(folder, None)


def test_each_flipped_bit_is_noticed(folder: Path) -> None:
    data = (folder / NAME).read_bytes()
    for at in range(0, len(data), tries(29, exploring=1)):
        (folder / NAME).write_bytes(data[:at] + bytes([data[at] ^ 2]) + data[at + 1 :])
        with pytest.raises(Damage, match=r"log\.successions"):
            verify(folder)


def test_a_key_of_the_last_release_learns_which_key_it_followed(folder: Path) -> None:
    key = (folder / "log.key").read_text()
    first, *others = key.splitlines()
    assert [line.startswith("FOLLOWS+") for line in others] == [True, True]
    (folder / "log.key").write_text(f"{first}\n")
    texts = successions_in(folder)
    write(folder, texts[:1])
    with pytest.raises(Damage, match="does not lead to"):
        verify(folder)
    write(folder, texts)
    verify(folder)
    sealed(folder, 700)
    assert (folder / "log.key").read_text() == key
    (folder / NAME).unlink()
    with pytest.raises(Damage, match=r"log\.successions is missing or empty"):
        verify(folder)


def test_they_are_rebuilt_from_a_proof_that_somebody_kept(folder: Path, tmp_path: Path) -> None:
    first_key = successions_in(folder)[0].split("\n")[1]
    with client_of(settings_for(folder)) as client:
        (proof,) = fetched(client, "/transactions/0/proof")
    kept, no_use, newest = (tmp_path / f"{name}.json" for name in ("kept", "no-use", "newest"))
    kept.write_text(json.dumps(proof))
    no_use.write_text(json.dumps({**proof, "successions": proof["successions"][:1]}))
    newest.write_text(json.dumps({**proof, "successions": proof["successions"][1:]}))
    (folder / NAME).unlink()
    with client_of(settings_for(folder)) as client:
        (refused,) = fetched(client, "/transactions/0/proof")
    assert Judge(tmp_path, first_key).of([refused])["verdict"] == "refused"
    for wrong in (no_use, newest, folder / "log.key"):
        done = run(folder, "log", "rebuild-successions", str(wrong))
        assert done.exit_code == 1
        assert "PROOF" in done.output
        assert not (folder / NAME).exists()
    done = run(folder, "log", "rebuild-successions", str(no_use), str(kept))
    assert done.exit_code == 0, done.output
    assert "holds 2 signatures" in done.output
    verify(folder)
    with client_of(settings_for(folder)) as client:
        (proof,) = fetched(client, "/transactions/0/proof")
    assert Judge(tmp_path, first_key).of([proof])["verdict"] == "verified"


def test_an_older_copy_of_the_key_is_named_and_never_becomes_the_newest(
    folder: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.json"
    with client_of(settings_for(folder)) as client:
        kept.write_text(json.dumps(fetched(client, "/transactions/0/proof")[0]))
    older = tmp_path / "older"
    shutil.copytree(folder, older, symlinks=True)
    assert run(folder, "log", "rotate-key").exit_code == 0
    with client_of(settings_for(folder)) as client:
        kept.write_text(json.dumps(fetched(client, "/transactions/0/proof")[0]))
    for name in ("log.key", "log.vkey"):
        shutil.copy2(older / name, folder / name)
    before = (folder / NAME).read_bytes()
    is_older = (
        r"log\.key is an older copy, because .* followed its key; for that one, put back a copy"
    )
    with pytest.raises(Damage, match=is_older):
        verify(folder)
    done = run(folder, "log", "rebuild-successions", str(kept))
    assert (done.exit_code, "is an older copy" in done.output) == (1, True)
    assert (folder / NAME).read_bytes() == before


def test_a_rotation_is_refused_while_they_are_damaged(folder: Path) -> None:
    before = (folder / "log.key").read_bytes()
    (folder / NAME).unlink()
    done = run(folder, "log", "rotate-key")
    assert done.exit_code == 1
    assert NAME in done.output
    assert (folder / "log.key").read_bytes() == before


# --- backups ---------------------------------------------------------------------------------


def test_a_backup_has_them_and_a_restored_log_goes_on_with_its_key(
    folder: Path, tmp_path: Path
) -> None:
    backup, restored = tmp_path / "backup", tmp_path / "restored"
    assert run(folder, "backup", str(backup)).exit_code == 0
    assert successions_in(backup) == successions_in(folder)
    done = run(restored, "restore", str(backup))
    assert done.exit_code == 0, done.output
    assert not (restored / "log.key").exists()
    for name in ("log.key", "log.vkey"):
        shutil.copy2(folder / name, restored / name)
    assert sealed(restored, 700) == []
    verify(restored)
    assert successions_in(restored) == successions_in(folder)
    assert log_key(restored).verifier == log_key(folder).verifier
    for path in (*folder.glob("log.*"), folder / "checkpoint"):
        path.unlink()
    done = run(folder, "backup", str(backup))
    assert f"{folder / NAME} is missing, and the backup keeps its own copy" in done.output
    assert successions_in(backup) == successions_in(restored)


def test_a_restored_log_without_its_key_gets_a_new_one(folder: Path, tmp_path: Path) -> None:
    backup, restored = tmp_path / "backup", tmp_path / "restored"
    assert run(folder, "backup", str(backup)).exit_code == 0
    assert run(restored, "restore", str(backup)).exit_code == 0
    verify(restored)
    (line,) = sealed(restored, 700)
    assert "the log gets a new key" in line
    assert (restored / f"{NAME}.old").read_bytes() == (folder / NAME).read_bytes()
    verify(restored)


def test_a_backup_keeps_its_copy_if_the_ledger_has_lost_them(folder: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    assert run(folder, "backup", str(backup)).exit_code == 0
    before = (backup / NAME).read_bytes()
    (folder / NAME).unlink()
    done = run(folder, "backup", str(backup))
    assert done.exit_code == 0, done.output
    assert f"not copied: {folder / NAME} is missing or empty" in done.output
    assert (backup / NAME).read_bytes() == before
