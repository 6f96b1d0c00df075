"""Keys on the disk: made whole or not at all, by one process, for their owner alone."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from backend.base import files
from backend.base.errors import Damage, WriteFailed
from backend.trust.log import KEY_NAME, VERIFIER_NAME
from backend.trust.log.secret_keys import LOG, WITNESS, KeyFiles, exposure, secret_key
from backend.trust.witness.witness import Witness
from tests.trust.log.test_signing import sealed, signed

NAME = "example.org/key"


@pytest.mark.parametrize("kept", [LOG, WITNESS])
def test_a_power_cut_between_the_two_files_of_a_key_is_put_right(
    tmp_path: Path, kept: KeyFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(path: Path, data: bytes, mode: int = 0o644) -> None:
        if path.name == kept.public:
            raise WriteFailed("the power was cut")
        written(path, data, mode)

    written = files.write_new
    monkeypatch.setattr(files, "write_new", cut)
    with pytest.raises(WriteFailed):
        secret_key(tmp_path, kept, NAME)
    monkeypatch.undo()
    key = secret_key(tmp_path, kept, "another name")
    assert key.verifier.name == NAME
    assert (tmp_path / kept.public).read_text() == f"{key.verifier}\n"


def test_a_log_signs_again_although_its_public_key_is_missing(tmp_path: Path) -> None:
    sealed(tmp_path, 0)
    before = (tmp_path / VERIFIER_NAME).read_bytes()
    (tmp_path / VERIFIER_NAME).unlink()
    assert sealed(tmp_path, 1) == []
    assert signed(tmp_path).size == 3
    assert (tmp_path / VERIFIER_NAME).read_bytes() == before


def test_no_other_key_is_made_while_a_public_key_stands_alone(tmp_path: Path) -> None:
    key = secret_key(tmp_path, LOG, NAME)
    (tmp_path / KEY_NAME).unlink()
    with pytest.raises(Damage, match=r"log\.key is missing"):
        secret_key(tmp_path, LOG, NAME)
    (tmp_path / KEY_NAME).write_text(str(key))
    (tmp_path / VERIFIER_NAME).write_text("x")
    with pytest.raises(Damage, match=r"log\.vkey is damaged"):
        secret_key(tmp_path, LOG, NAME)


def test_a_key_of_a_witness_signs_no_log(tmp_path: Path) -> None:
    key = secret_key(tmp_path, WITNESS, NAME)
    (tmp_path / KEY_NAME).write_text(str(key))
    (tmp_path / VERIFIER_NAME).write_text(f"{key.verifier}\n")
    with pytest.raises(Damage, match=r"log\.key is damaged"):
        secret_key(tmp_path, LOG, NAME)


def test_two_first_starts_at_once_make_one_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(path: Path, data: bytes, mode: int = 0o644) -> None:
        time.sleep(0.05)
        written(path, data, mode)

    written = files.write_new
    monkeypatch.setattr(files, "write_new", slow)
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(Witness, tmp_path / "w", NAME) for _ in range(4)]
        keys = {str(future.result().key.verifier) for future in futures}
    assert keys == {(tmp_path / "w" / "witness.vkey").read_text().strip()}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666, 0o620])
def test_a_key_that_is_open_to_others_is_told_once(tmp_path: Path, mode: int) -> None:
    assert exposure(tmp_path, LOG) is None
    assert sealed(tmp_path, 0) == []
    assert exposure(tmp_path, LOG) is None
    path = tmp_path / KEY_NAME
    path.chmod(mode)
    (line,) = sealed(tmp_path, 1)
    assert f"{path} is open to others" in line
    assert f"mode {mode:o}" in line
    assert "umask=077" in line  # for disks on which chmod has no effect
    assert signed(tmp_path).size == 3
    path.chmod(0o600)
    assert sealed(tmp_path, 2) == []
