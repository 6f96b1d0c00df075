"""Making backups: what is in them, that only what is new is copied, and what is refused."""

import os
import shutil
import stat
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backend.base import files
from backend.base.errors import (
    BackupRefused,
    Damage,
    DamagedBlock,
    DamagedMempool,
    FlightchainError,
    WriteFailed,
    WriterBusy,
)
from backend.base.files import LOCK_PATIENCE_S, FileLock
from backend.mempool import FOLDER as MEMPOOL_FOLDER
from backend.sources.generated import Generated
from backend.storage.block_store import BlockStore
from backend.storage.layout import BLOCKS_FOLDER, MARK_NAME
from backend.storage.tokens import Tokens
from backend.verify.audit import verify
from backend.verify.backup import making
from backend.verify.backup import manifest as manifests
from backend.verify.backup.accepted import accepted_now
from backend.verify.backup.manifest import LOCK_NAME
from tests.effort import tries
from tests.flights import flights, import_flights
from tests.folders import all_below, unchanged
from tests.mempool.spoiling import store_path
from tests.storage.chains import (
    block_file,
    blocks_folder,
    contents,
    flip,
    flip_in_block,
    table_path,
)
from tests.test_cli import call
from tests.trust.log.test_signing import accept_loss
from tests.verify.backup.house import (
    MINED,
    House,
    copied,
    everything_in,
    happening_at,
    pending_of,
    unless_killed_at,
)

pytestmark = pytest.mark.slow

MANY = 4_000


def test_a_backup_is_a_chain_folder_that_verifies(house: House) -> None:
    report = verify(house.backup)
    assert (report.height, report.transactions) == (5, MINED + 5)
    assert contents(house.backup) == contents(house.folder)
    assert len(contents(house.backup)) > 3  # several block files and their table
    copy = house.elsewhere(house.backup)
    assert pending_of(copy) == pending_of(house.settings)
    assert everything_in(copy) == everything_in(house.settings)
    tokens = house.backup / "tokens.json"
    assert tokens.read_bytes() == (house.folder / "tokens.json").read_bytes()
    assert stat.S_IMODE(tokens.stat().st_mode) == 0o600
    assert not (house.backup / "index").exists()


def test_verify_says_that_a_backup_is_one_and_what_to_do_about_damage(house: House) -> None:
    done = call(house.backup, "verify")
    assert done.returncode == 0
    assert "this is a backup, which has no index, no acknowledged.dat and no key" in done.stderr
    assert not [words for words in ("but", "yet", "unknown") if words in done.stderr]
    flip(block_file(house.backup), 2000)
    done = call(house.backup, "verify")
    assert done.returncode == 1
    assert "restore" not in done.stderr
    remedy = "this is a backup; if its ledger still exists, make a new one in another folder"
    assert done.stderr.endswith(f"; {remedy}\n")


def test_nothing_new_is_nothing_written(house: House) -> None:
    before = all_below(house.backup)
    done = house.back_up()
    assert (done.new_blocks, done.new_bytes) == (0, 0)
    after = all_below(house.backup)
    assert before.pop(manifests.NAME) != b""
    after.pop(manifests.NAME)
    assert after == before


def test_only_what_is_new_is_copied(tmp_path: Path) -> None:
    house = House(tmp_path)
    import_flights(house.settings, Generated(MANY, flights_per_day=1000))
    (house.backup / "lost+found").mkdir(parents=True)  # as on a disk of its own
    first = house.back_up()
    assert first.new_blocks == MANY // 1000 + 1
    size = sum(map(len, contents(house.folder).values()))
    assert size == first.new_bytes
    house.add(10, 0)
    second = house.back_up()
    assert second.new_blocks == 1
    assert second.new_bytes < size / 4  # a block of ten flights, and the mempool
    assert verify(house.backup).transactions == MANY + 10


def test_what_is_mined_before_the_mempool_is_read_is_in_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_late(*given: Any) -> Any:
        for start in (500, 600):
            house.add(3, start)  # the mempool keeps the newest record alone
        return accepted_now(*given)

    monkeypatch.setattr(making, "accepted_now", read_late)
    house.back_up()
    assert everything_in(house.elsewhere(house.backup)) == everything_in(house.settings)


def test_a_token_that_was_removed_is_not_in_the_next_backup(house: House) -> None:
    Tokens(house.folder).remove("me")
    house.back_up()
    assert Tokens(house.backup).all() == []


@pytest.mark.parametrize("is_there", [True, False])
def test_tokens_that_are_damaged_or_lost_do_not_replace_those_of_the_backup(
    house: House, is_there: bool
) -> None:
    path, copy = house.folder / "tokens.json", house.backup / "tokens.json"
    path.unlink()
    if is_there:
        path.write_bytes(b"[{")
    house.back_up()
    assert [token.name for token in Tokens(house.backup).all()] == ["me"]
    assert house.said[-1].startswith(f"not copied: {path} is ")
    assert house.said[-1].endswith(f"; the backup keeps its copy, {copy}")


def test_blocks_that_are_sealed_meanwhile_leave_no_gap(original: House, tmp_path: Path) -> None:
    """Whenever that happens: flights that go from mempool to blocks are in one of the two."""
    at_first = range(1, 6)  # mempool and blocks are looked at one after the other
    for nth in (*at_first, *range(6, 1000, tries(7, exploring=1))):
        house = copied(original, tmp_path / str(nth))
        house.add(3, 300)
        known = everything_in(house.settings)

        def go_on(house: House = house) -> None:
            for start in (400, 500, 600):
                house.add(3, start)

        with happening_at(nth, go_on) as calls:
            house.back_up()
        if "something else" not in calls:
            break
        assert everything_in(house.elsewhere(house.backup))[: len(known)] == known
        shutil.rmtree(house.root)
    assert len(calls) > 20


# --- refused ---------------------------------------------------------------------------------


def is_not_empty(house: House) -> Path:
    folder = house.root / "mine"
    folder.mkdir()
    (folder / "letter.txt").touch()
    return folder


def is_another_chain(house: House) -> Path:
    other = House(house.root / "other")
    other.add(10, 0)
    return other.folder


def is_of_another_ledger(house: House) -> Path:
    other = House(house.root / "other")
    other.add(10, 0)
    other.back_up()
    return other.backup


# where the backup shall go, and what is said
REFUSED: list[tuple[Callable[[House], Path], str]] = [
    (lambda house: house.folder, "must not be in one folder"),
    (lambda house: house.folder / "backup", "must not be in one folder"),
    (lambda house: house.folder / ".." / "chain" / "blocks", "must not be in one folder"),
    (lambda house: house.root, "must not be in one folder"),
    (lambda house: house.root / "usb" / "backup", "is the disk of the backup mounted"),
    (is_not_empty, "is not empty and holds no backup"),
    (is_another_chain, "is not empty and holds no backup"),
    (is_of_another_ledger, "is the backup of another ledger, whose block 0 is"),
]


@pytest.mark.parametrize(("place", "reason"), REFUSED)
def test_a_folder_that_does_not_fit_is_refused_and_left_alone(
    house: House, place: Callable[[House], Path], reason: str
) -> None:
    folder = place(house)
    with unchanged(house.root), pytest.raises(BackupRefused, match=reason):
        house.back_up(folder=folder)


def test_without_a_chain_there_is_nothing_to_back_up(tmp_path: Path) -> None:
    house = House(tmp_path)
    with pytest.raises(Damage, match=r"holds no chain: .*empty; is the disk mounted\?"):
        house.back_up()
    assert not house.backup.exists()


def test_a_chain_whose_table_is_missing_is_not_said_to_be_none(house: House) -> None:
    table_path(house.folder).unlink()
    with pytest.raises(Damage, match=r"heights\.dat is missing .* the miner makes it again"):
        house.back_up()


def lose_mempool(house: House) -> None:
    """Remove the mempool, and whatever tells that there was one."""
    shutil.rmtree(house.folder / MEMPOOL_FOLDER)
    (house.folder / MARK_NAME).unlink()


def rolled_back(house: House) -> None:
    """Take the chain back by a block."""
    with closing(BlockStore(house.folder)) as store:
        tip = store.place(5)
    os.truncate(table_path(house.folder), 5 * 64)
    os.truncate(block_file(house.folder, tip.file), tip.offset)
    lose_mempool(house)


def refused(house: House, words: str) -> None:
    """Refuse to back up, and change nothing of the backup."""
    with unchanged(house.backup), pytest.raises(BackupRefused, match=words):
        house.back_up()


def test_a_chain_that_has_lost_blocks_is_news(house: House) -> None:
    rolled_back(house)
    refused(house, r"holds block 5, but this chain ends at block 4: the chain has lost")


def test_a_chain_that_went_another_way_is_news(house: House) -> None:
    rolled_back(house)
    accept_loss(house.folder)
    for start in (700, 800, 900):
        house.add(3, start)
    refused(house, r"holds another block 5 than this chain, which goes to block 7: ")


def test_pending_flights_that_only_the_backup_has_are_news(house: House) -> None:
    lose_mempool(house)
    refused(house, "acknowledged flights are missing")


def test_two_at_once_are_not_made_nor_waited_for(house: House) -> None:
    started_s = time.monotonic()
    with (
        FileLock(house.backup / LOCK_NAME),
        pytest.raises(WriterBusy, match=r"another backup is .*; wait until"),
    ):
        house.back_up()
    assert time.monotonic() - started_s < LOCK_PATIENCE_S


# --- damage ----------------------------------------------------------------------------------


def test_a_damaged_block_of_the_chain_is_named_and_the_old_backup_stays(house: House) -> None:
    house.add(4, 300)
    flip_in_block(house.folder, 6)
    before = house.manifest()
    with pytest.raises(DamagedBlock, match="block 6 is damaged"):
        house.back_up()
    assert house.manifest() == before
    flip_in_block(house.folder, 6)
    assert house.restore() == before
    house.back_up()
    assert contents(house.backup) == contents(house.folder)


def flip_in_table(backup: Path) -> Path:
    flip(table_path(backup), 2 * 64 + 5)
    return table_path(backup)


def cut_table(backup: Path) -> Path:
    os.truncate(table_path(backup), 5 * 64)
    return table_path(backup)


def cut_block_file(backup: Path) -> Path:
    path = block_file(backup)
    os.truncate(path, path.stat().st_size - 1)
    return path


def remove_block_file(backup: Path) -> Path:
    block_file(backup).unlink()
    return block_file(backup)


@pytest.mark.parametrize(
    "spoil", [flip_in_table, cut_table, cut_block_file, remove_block_file], ids=lambda f: f.__name__
)
def test_a_damaged_backup_is_named_and_left_as_it_is(
    house: House, spoil: Callable[[Path], Path]
) -> None:
    house.add(3, 300)
    path = spoil(house.backup)
    refused(house, f"is damaged: {path} .*make a new backup in another folder$")
    house.back_up(folder=house.root / "another")
    assert contents(house.root / "another") == contents(house.folder)


@pytest.mark.parametrize("spoilt", ["table", "newest file", "no newest file"])
def test_what_a_killed_run_left_is_copied_again_where_it_is_damaged(
    house: House, spoilt: str
) -> None:
    manifest = (house.backup / manifests.NAME).read_bytes()
    for start in (300, 400, 500):
        house.add(100, start)
    made = house.back_up()
    (house.backup / manifests.NAME).write_bytes(manifest)
    if spoilt == "table":
        flip(table_path(house.backup), 6 * 64 + 5)
    elif spoilt == "newest file":
        os.truncate(newest_file(house.backup), 1)
    else:
        newest_file(house.backup).unlink()
    assert 0 < house.back_up().new_blocks <= made.new_blocks
    assert contents(house.backup) == contents(house.folder)


def newest_file(backup: Path) -> Path:
    return max(blocks_folder(backup).glob("blocks-*"))


def test_a_log_that_must_be_put_right_is_named_with_what_to_do(house: House) -> None:
    os.truncate(store_path(house.folder), 0)
    words = r"is damaged: .*; start the service or run `.* mine --once`, .*, then back up again"
    with pytest.raises(DamagedMempool, match=words):
        house.back_up()
    house.seal()
    house.back_up()


def test_a_backup_whose_disk_is_full_is_still_good(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.add(1000, 5000)
    before = house.manifest()
    with monkeypatch.context() as patched:
        patched.setattr(files, "free_bytes", lambda folder: 1000)
        with pytest.raises(WriteFailed) as caught:
            house.back_up()
    message = str(caught.value)
    assert f"the disk of {house.backup} has 1,000 bytes free, " in message
    assert message.endswith(f"; the backup of {before.time}, up to block 5, is still good")
    assert house.restore() == before


def test_room_for_pending_flights_is_asked_for_as_well(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted: list[int] = []
    monkeypatch.setattr(files, "require_room", lambda folder, bytes_: wanted.append(bytes_))
    done = house.back_up(folder=house.restored)
    assert wanted >= [done.new_bytes + making.SPARE_BYTES]


@pytest.mark.parametrize("part", [BLOCKS_FOLDER, MEMPOOL_FOLDER])
def test_a_disk_that_keeps_something_else_is_found(
    house: House, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    house.add(10, 5000)
    house.accept(flights(2, 6000))
    real = files.forget_cached

    def spoiling(descriptor: int) -> None:
        real(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.parent == house.backup / part:
            flip(path, path.stat().st_size - 9)

    with monkeypatch.context() as patched:
        patched.setattr(files, "forget_cached", spoiling)
        with pytest.raises(
            WriteFailed, match=r"other bytes when read back.*; the backup of .* still good"
        ):
            house.back_up()
    assert house.back_up().manifest.height == 6
    assert verify(house.backup).height == 6


# --- interrupted -----------------------------------------------------------------------------


def test_a_first_backup_may_be_killed_anywhere_and_goes_on(original: House, tmp_path: Path) -> None:
    """Whatever is left says that it is not complete; and the next run completes it."""
    house = House(tmp_path)
    shutil.copytree(original.folder, house.folder, symlinks=True)
    for nth in range(1, 1000):
        done, calls = unless_killed_at(nth, house.back_up)
        if done is not None:
            break
        with pytest.raises(FlightchainError, match=r"is not complete|holds no backup"):
            house.restore()
        assert not house.restored.exists() or not list(house.restored.glob("blocks/*"))
        if nth % 5 == 0:
            house.back_up()
            assert contents(house.backup) == contents(house.folder)
            shutil.rmtree(house.backup)
    assert len(calls) > 10
    assert verify(house.backup).height == 5


def test_a_later_backup_may_be_killed_anywhere_and_the_old_one_can_be_restored(
    house: House, tmp_path: Path
) -> None:
    old, before = house.manifest(), everything_in(house.settings)
    for start in (2000, 4000):  # segments come and go
        house.add(30, start)
    house.accept(flights(3, 300))
    after = everything_in(house.settings)
    saved = tmp_path / "saved"
    shutil.copytree(house.backup, saved)
    for nth in range(1, 1000, tries(4, exploring=1)):
        shutil.rmtree(house.backup)
        shutil.copytree(saved, house.backup)
        shutil.rmtree(house.restored, ignore_errors=True)
        done, calls = unless_killed_at(nth, house.back_up)
        restored = house.restore()
        contents = everything_in(house.elsewhere(house.restored))
        assert contents == (before if restored == old else after)
        if done is not None:
            break
        if nth % 5 == 0:
            shutil.rmtree(house.restored)
            house.back_up()
            house.restore()
            assert everything_in(house.elsewhere(house.restored)) == after
    assert len(calls) > 20
    assert done is not None
    assert done.manifest == restored != old
