"""Who writes blocks signs checkpoints, keeps the key to itself, and says when it cannot."""

import shutil
import stat
from contextlib import closing
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from backend.base.errors import Damage
from backend.chain import merkle
from backend.storage.block_store import BlockStore
from backend.trust.log import CHECKPOINT_NAME, KEY_NAME, VERIFIER_NAME, checkpoints, notes
from backend.trust.log.checkpoints import Checkpoint
from backend.trust.log.secret_keys import LOG, SecretKey, new_key
from backend.verify.audit import verify
from tests.api.worlds import settings_for
from tests.effort import tries
from tests.flights import flight
from tests.storage.chains import contents
from tests.submitting import accept_in, sealing


def sealed(folder: Path, serial: int) -> list[str]:
    """Seal a block with one flight; returns what was reported."""
    reports: list[str] = []
    with sealing(settings_for(folder), reports.append) as sealer:
        accept_in(sealer.mempool, [flight(serial)], serial)
        sealer.seal_pending()
    return reports


def signed(folder: Path) -> Checkpoint:
    """Read the checkpoint in a folder, and verify its signature."""
    key = notes.parse_key((folder / VERIFIER_NAME).read_text())
    note = notes.parse((folder / CHECKPOINT_NAME).read_bytes())
    (signature,) = note.signatures
    assert (signature.name, signature.key_id) == (key.name, key.key_id)
    Ed25519PublicKey.from_public_bytes(key.public).verify(signature.signature, note.text.encode())
    return checkpoints.parse(note.text)


def entries_in(folder: Path) -> list[bytes]:
    with closing(BlockStore(folder)) as store:
        return [place.hash for place in store.places(0, store.height() + 1)]


def test_each_block_is_followed_by_a_checkpoint_of_the_whole_chain(tmp_path: Path) -> None:
    for serial in range(3):
        assert sealed(tmp_path, serial) == []
        entries = entries_in(tmp_path)
        origin = f"flightchain/{entries[0].hex()[:16]}"
        root = merkle.root(merkle.leaf_hashes(entries))
        assert signed(tmp_path) == Checkpoint(origin, serial + 2, root)


def test_the_key_is_for_its_owner_alone_and_stays(tmp_path: Path) -> None:
    sealed(tmp_path, 0)
    path = tmp_path / KEY_NAME
    before = path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (tmp_path / CHECKPOINT_NAME).unlink()
    sealed(tmp_path, 1)
    assert path.read_bytes() == before
    assert signed(tmp_path).size == 3


@pytest.mark.parametrize("harm", [b"", b"nonsense", None])
def test_a_key_that_is_none_is_named_and_blocks_are_sealed_all_the_same(
    tmp_path: Path, harm: bytes | None
) -> None:
    sealed(tmp_path, 0)
    path = tmp_path / KEY_NAME
    data = path.read_bytes()
    path.write_bytes(data[:-9] + b"AAAA" + data[-5:] if harm is None else harm)
    reports = sealed(tmp_path, 1)
    assert [line for line in reports if "no checkpoint is signed" in line and str(path) in line]
    assert len(entries_in(tmp_path)) == 3
    assert signed(tmp_path).size == 2


def test_a_checkpoint_with_a_wrong_signature_is_signed_again_though_nothing_is_pending(
    tmp_path: Path,
) -> None:
    sealed(tmp_path, 0)
    path = tmp_path / CHECKPOINT_NAME
    whole = path.read_bytes()
    other = new_key(signed(tmp_path).origin, LOG)
    for harmed in (whole[:-9] + b"AAAA" + whole[-5:], str(other.note(str(signed(tmp_path))))):
        path.write_bytes(harmed if isinstance(harmed, bytes) else harmed.encode())
        with pytest.raises(Damage, match="restart the service"):
            verify(tmp_path)
        with sealing(settings_for(tmp_path)):
            pass
        verify(tmp_path)
        assert path.read_bytes() == whole


def test_a_checkpoint_that_somebody_else_has_signed_keeps_nobody_from_sealing(
    tmp_path: Path,
) -> None:
    sealed(tmp_path, 0)
    origin = signed(tmp_path).origin
    stranger = SecretKey(origin, b"\x01" * 32)
    longer = stranger.note(str(Checkpoint(origin, 100, bytes(32))))
    (tmp_path / CHECKPOINT_NAME).write_text(str(longer))
    assert sealed(tmp_path, 1) == []  # in particular, nobody is warned of a fork
    assert signed(tmp_path).size == 3


def test_a_chain_that_was_put_back_is_signed_over_only_if_a_person_decides_so(
    tmp_path: Path,
) -> None:
    chain, copy = tmp_path / "chain", tmp_path / "copy"
    sealed(chain, 0)
    shutil.copytree(chain, copy, symlinks=True)
    for serial in range(1, 3):
        sealed(chain, serial)
    shutil.copy(chain / CHECKPOINT_NAME, copy / CHECKPOINT_NAME)
    before = contents(copy)
    with pytest.raises(
        Damage, match=r"has 2 blocks, but .*checkpoint, .* has 4; nothing is sealed"
    ):
        sealed(copy, 3)
    assert contents(copy) == before
    of_index, line = accept_loss(copy)
    assert "named 4 blocks, but the chain now has 2, fewer: witnesses of this log will" in line
    assert "as by a copy" in of_index
    for serial in range(4, 8):
        assert sealed(copy, serial) == []
    shutil.copy(chain / CHECKPOINT_NAME, copy / CHECKPOINT_NAME)
    with pytest.raises(Damage, match="checkpoint was signed for other blocks than those in"):
        sealed(copy, 9)
    (line,) = accept_loss(copy)
    assert "named 4 blocks, but the chain now has 6, not the same ones" in line


def accept_loss(folder: Path) -> list[str]:
    """Go on with the blocks that are there; returns what was reported."""
    reports: list[str] = []
    with sealing(settings_for(folder), reports.append, accepts_loss=True):
        pass
    return reports


@pytest.mark.slow
@pytest.mark.parametrize("name", [KEY_NAME, VERIFIER_NAME, CHECKPOINT_NAME])
@pytest.mark.parametrize("harm", ["remove", "flip"])
def test_verify_names_every_damage(tmp_path: Path, name: str, harm: str) -> None:
    sealed(tmp_path, 0)
    assert "the checkpoint of 2 blocks is signed" in verify(tmp_path).mempool
    path = tmp_path / name
    data = path.read_bytes()
    if harm == "remove":
        path.unlink()
    step = tries(11, exploring=1)  # no divisor of the four letters that stand for three bytes
    for at in range(0, len(data), step) if harm == "flip" else range(1):
        if harm == "flip":
            path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(Damage, match=name.replace(".", r"\.")):
            verify(tmp_path)


def test_verify_of_a_chain_that_nothing_was_signed_of(tmp_path: Path) -> None:
    sealed(tmp_path, 0)
    for name in (KEY_NAME, VERIFIER_NAME, CHECKPOINT_NAME):
        (tmp_path / name).unlink()
    assert "no checkpoint of the log is signed yet" in verify(tmp_path).mempool
