"""What was verified before is compared by its bytes, and no change of them is missed."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from backend.base import files
from backend.base.errors import Damage, FlightchainError, WriteFailed
from backend.cli.commands import verify as command
from backend.index.index_file import index_path
from backend.storage.layout import ENTRY_BYTES
from backend.verify import repeated
from backend.verify.audit import Verified, verify
from backend.verify.repeated import MEMORY, NAME, Again, IndexMemory, verify_again
from tests.api.processes import backend
from tests.api.worlds import generated, seal, settings_for
from tests.index.worlds import execute
from tests.storage.chains import block_file, flip, table_path

FLIGHTS = generated(60)
TIP = 3


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chain that was verified. Not to be changed."""
    folder = tmp_path_factory.mktemp("made") / "chain"
    seal(settings_for(folder), [FLIGHTS[:20], [], FLIGHTS[20:30]])
    again(folder, since=None)
    return folder


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "chain", symlinks=True))


def again(folder: Path, since: int | None = TIP, *, chain_only: bool = False) -> Again:
    """Verify, and set `checked` to the heights of the blocks that were checked."""
    checked.clear()
    return verify_again(
        folder, lambda done, _: checked.append(done - 1), 1, since, chain_only=chain_only
    )


checked: list[int] = []


@pytest.mark.parametrize("chain_only", [False, True])
def test_only_what_came_after_is_checked(folder: Path, chain_only: bool) -> None:
    first = again(folder, chain_only=chain_only)
    assert (checked, first.note, first.verified.height) == ([], "", TIP)
    again(folder, since=1, chain_only=chain_only)
    assert checked == [2, 3]
    seal(settings_for(folder), [FLIGHTS[30:40]])
    grown = again(folder, chain_only=True)
    assert (checked, grown.verified.height, grown.verified.transactions) == ([4], 4, 40)
    again(folder, since=4, chain_only=True)
    assert checked == []


def test_flipped_bytes_of_blocks_below_are_found(folder: Path) -> None:
    for path in (block_file(folder), table_path(folder)):
        size = path.stat().st_size
        for at in (*range(0, size, max(1, size // 5)), size - 1):
            flip(path, at)
            with pytest.raises(Damage):
                again(folder, chain_only=True)
            flip(path, at)
    assert again(folder, chain_only=True).note == ""
    assert checked == []


def test_bytes_that_changed_without_harm_have_everything_checked(folder: Path) -> None:
    seal(settings_for(folder), [FLIGHTS[30:40]])  # the index is another one now
    report = again(folder)
    assert "the index has other bytes than on " in report.note
    assert checked == [0, 1, 2, 3, 4]
    assert again(folder, since=4).note == ""
    assert checked == []


def test_a_damaged_index_is_found_and_left_out_if_nobody_wants_it(folder: Path) -> None:
    execute(folder, "UPDATE flight SET dep_delay = 77 WHERE id = 3")
    assert again(folder, chain_only=True).note == ""
    with pytest.raises(Damage, match="the index is wrong"):
        again(folder)
    index_path(folder).unlink()
    assert "does not exist yet" in again(folder).verified.index


def test_an_index_of_another_branch_is_not_taken_for_verified(folder: Path, tmp_path: Path) -> None:
    branch = Path(shutil.copytree(folder, tmp_path / "branch", symlinks=True))
    seal(settings_for(branch), [FLIGHTS[30:40]])
    again(branch, since=None)
    seal(settings_for(folder), [FLIGHTS[40:50]])
    shutil.copy(branch / NAME, folder / NAME)
    put_index(branch, folder)
    again(folder, since=None, chain_only=True)
    with pytest.raises(Damage, match="the index is wrong"):
        again(folder, since=4)


@pytest.mark.parametrize("chain_only", [False, True])
def test_an_index_that_is_behind_is_not_taken_for_one_that_holds_all(
    folder: Path, template: Path, chain_only: bool
) -> None:
    seal(settings_for(folder), [FLIGHTS[30:40]])
    put_index(template, folder)
    behind = "the index agrees up to block 3; the miner will add the rest"
    assert again(folder, since=None).verified.index == behind
    report = again(folder, since=4)
    assert report.note == "the index was not verified before, so everything is checked"
    assert (report.verified.index, checked) == (behind, [0, 1, 2, 3, 4])
    shutil.copy(template / NAME, folder / NAME)
    assert again(folder, since=3, chain_only=chain_only).note == (
        "" if chain_only else "the index ends at block 3, so everything is checked"
    )
    assert again(folder, since=4).verified.index == behind


def test_the_blocks_alone_are_verified_and_what_is_known_of_the_index_stays(folder: Path) -> None:
    before = MEMORY.read(folder)
    assert before is not None
    assert before.index is not None
    path = folder / NAME
    earlier = path.read_bytes().replace(before.time.encode(), b"2026-01-02T03:04:05+00:00")
    path.write_bytes(earlier)
    for since in (None, TIP):
        again(folder, since=since, chain_only=True)
        now = MEMORY.read(folder)
        assert now is not None
        assert now.index == IndexMemory(before.index.hash, TIP, "2026-01-02T03:04:05+00:00")
        assert now.time >= before.time
    execute(folder, "UPDATE flight SET dep_delay = 77 WHERE id = 3")
    with pytest.raises(Damage, match="the index is wrong"):
        again(folder)


def test_a_part_of_the_index_that_goes_while_the_other_is_read_is_no_problem(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever closes the index last removes its log, for instance a service that is stopped."""
    index = index_path(folder).resolve()
    log = index.with_name(f"{index.name}-wal")
    log.write_bytes(b"something")
    real = repeated._hash_of

    def hash_of(path: Path, end: int) -> str:
        if path == index:
            log.unlink(missing_ok=True)
        return real(path, end)

    monkeypatch.setattr(repeated, "_hash_of", hash_of)
    assert again(folder, since=None).verified.height == TIP


def test_an_index_that_is_written_while_it_is_verified_is_not_remembered(
    folder: Path, template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the wrong one that was there at first would be taken for the one that was verified."""
    execute(folder, "UPDATE flight SET dep_delay = 77 WHERE id = 3")

    def verify_another(*arguments: Any, **options: Any) -> Verified:
        put_index(template, folder)
        return verify(*arguments, **options)

    monkeypatch.setattr(repeated, "verify", verify_another)
    again(folder, since=None)
    memory = MEMORY.read(folder)
    assert memory is not None
    assert memory.index is None


def put_index(source: Path, folder: Path) -> None:
    """Let a chain have the index of another."""
    shutil.rmtree(folder / "index")
    shutil.copytree(source / "index", folder / "index", symlinks=True)


def test_a_chain_that_was_replaced_or_put_back_is_refused(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    seal(settings_for(other), [FLIGHTS[40:]] * TIP)
    shutil.copy(folder / NAME, other / NAME)
    with pytest.raises(Damage, match=r"block 3 is .*, but was .*: the chain was replaced"):
        again(other)
    with table_path(folder).open("r+b") as table:
        table.truncate(TIP * ENTRY_BYTES)
    with pytest.raises(Damage, match=r"block 3 is missing, but was"):
        again(folder, since=1)


def test_what_was_not_verified_before_is_refused(folder: Path) -> None:
    with pytest.raises(FlightchainError, match=r"up to 4 were not verified .* --since 3"):
        again(folder, since=4)
    for content in (b"{", b'{"height": 3}', b'{"tip_hash": "\xff"', b'{"a":' * 5000, None):
        (folder / NAME).unlink()
        if content:
            (folder / NAME).write_bytes(content)
        with pytest.raises(FlightchainError, match="nothing was verified before"):
            again(folder)
        (folder / NAME).touch()


def test_nothing_bad_is_remembered_and_a_medium_that_can_only_be_read_is_verified(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = MEMORY.read(folder)
    flip(block_file(folder), 300)
    for since in (TIP, None):
        with pytest.raises(Damage):
            again(folder, since=since)
    assert MEMORY.read(folder) == before
    flip(block_file(folder), 300)
    monkeypatch.setattr(files, "replace_unsynced", _refuse)
    report = again(folder, since=None)
    assert report.verified.height == TIP
    assert report.forgotten == f"cannot write {folder / NAME}: Read-only file system"
    assert MEMORY.read(folder) == before
    assert (
        f"this check was not noted, so --since cannot build on it: {report.forgotten}"
        in call(folder)[1]
    )


def _refuse(path: Path, _: bytes) -> None:
    raise WriteFailed(f"cannot write {path}: {os.strerror(30)}")


@pytest.mark.parametrize(
    "name", ["blocks/blocks-0000000000.dat", "index/index.sqlite", "verified.json"]
)
def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(folder: Path, name: str) -> None:
    path = (folder / name).resolve()
    path.unlink()
    os.mkfifo(path)
    words = f"{path} is not a file"
    with path.open("r+b", buffering=0):  # so that it does not end
        for arguments in (["--since", "last", "--chain-only"], ["--chain-only"], []):
            is_named = name.startswith("blocks" if arguments else ("blocks", "index"))
            done = backend(folder, "verify", "--processes", "1", *arguments)
            assert (done.returncode, words in done.stderr) == (int(is_named), is_named)


def call(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Returns status, stderr and stdout of the command."""
    given = ["--processes", "1", *arguments]
    done = CliRunner().invoke(command, given, obj=settings_for(folder))
    return done.exit_code, done.stderr, done.stdout


def test_the_command_begins_with_the_last_that_was_verified(folder: Path) -> None:
    time = json.loads((folder / NAME).read_bytes())["time"]
    status, output, answer = call(folder, "--since", "last")
    assert (
        f"; up to block 3 their bytes are those of {time}; the bytes of the index are those of "
        f"{time}" in output
    )
    assert (status, json.loads(answer)["height"]) == (0, TIP)
    (folder / NAME).unlink()
    assert "the index agrees with every block" in call(folder, "--since", "last")[1]
    assert "nothing else was checked" in call(folder, "--chain-only")[1]
    assert call(folder, "--since", "first")[0] == 2
