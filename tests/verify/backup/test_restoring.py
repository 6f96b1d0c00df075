"""Restoring: the ledger is as it was, or there is none and the reason is named."""

import os
import shutil
import time
from collections.abc import Callable
from contextlib import closing, nullcontext
from errno import EPERM
from pathlib import Path
from unittest import mock

import apsw
import pytest
from click.testing import CliRunner

from backend.base import files
from backend.base.clock import now_ms
from backend.base.errors import BackupRefused, Damage, DamagedMempool, TryLater, WriteFailed
from backend.base.files import LOCK_PATIENCE_S, FileLock
from backend.base.settings import Settings
from backend.base.words import COMMAND
from backend.cli.commands import main
from backend.index import follower
from backend.ledger.ledger import Ledger
from backend.mempool import FOLDER as MEMPOOL_FOLDER
from backend.mempool import Mempool
from backend.mempool.idempotency_keys import IdempotencyKey
from backend.questions.values import AverageDelays, FilterTransactions, FlightCounter, asked
from backend.sealing.sealer import Sealer
from backend.storage import layout
from backend.verify.audit import verify
from backend.verify.backup import manifest as manifests
from backend.verify.backup import restore
from backend.verify.backup.making import SPARE_BYTES
from backend.verify.backup.restoring import LOCK_NAMES
from tests.effort import tries
from tests.flights import flights, on_disk
from tests.folders import unchanged
from tests.mempool.spoiling import spoil, store_path
from tests.storage.chains import (
    blocks_folder,
    contents,
    flip,
    flip_in_block,
    table_path,
)
from tests.submitting import accept_in
from tests.verify.backup.house import (
    House,
    copied,
    everything_in,
    pending_of,
    unless_killed_at,
)

pytestmark = pytest.mark.slow

KEY = IdempotencyKey("once", "ab" * 32)


def answers(settings: Settings, height: int) -> list[object]:
    """Ask the three questions about what the ledger held at a height."""
    flight = on_disk(settings.folder).flights[100]
    day, carrier, number = flight[2], flight[3], flight[4]
    days = {"INITIAL_DATE": "1987-01-01", "FINAL_DATE": "2030-01-01", "as_of": str(height)}
    cities = {"ORIGIN_CITY_NAME": str(flight[7]), "DEST_CITY_NAME": str(flight[11])}
    of_day = {"OP_CARRIER_FL_NUM": str(number), "FL_DATE": str(day), "as_of": str(height)}
    of_carrier = {"OP_CARRIER_AIRLINE_ID": str(carrier), **days, "group_by": "day"}
    with closing(Ledger(settings, print)) as ledger:
        return [
            ledger.answers.answer(*asked(FilterTransactions, of_day)),
            ledger.answers.answer(*asked(AverageDelays, of_carrier)),
            ledger.answers.answer(*asked(FlightCounter, {**cities, **days})),
        ]


def test_a_restored_ledger_is_the_one_that_was_backed_up(house: House) -> None:
    manifest = house.restore()
    restored = house.elsewhere(house.restored)
    assert manifest == house.manifest()
    assert verify(house.restored).index == "the index agrees with every block"
    assert contents(house.restored) == contents(house.folder)
    assert pending_of(restored) == pending_of(house.settings)
    assert answers(restored, 5) == answers(house.settings, 5)
    assert answers(restored, 2) == answers(house.settings, 2)
    tokens = house.restored / "tokens.json"
    assert tokens.read_bytes() == (house.folder / "tokens.json").read_bytes()
    assert tokens.stat().st_mode & 0o777 == 0o600
    assert not (house.restored / layout.RESTORING_FOLDER).exists()


def test_the_loss_of_pending_flights_is_noticed_before_the_first_post(house: House) -> None:
    house.restore()
    shutil.rmtree(house.restored / MEMPOOL_FOLDER)
    with pytest.raises(DamagedMempool, match="405 to 411 were acknowledged and are missing"):
        verify(house.restored)


def test_pending_flights_keep_their_ids_and_are_mined(house: House) -> None:
    house.restore()
    restored = House(house.restored.parent)
    restored.settings = house.elsewhere(house.restored)
    before = everything_in(house.settings)
    assert restored.accept(flights(1, 900)) == len(before)
    restored.seal()
    assert restored.said == []
    assert on_disk(house.restored).flights == [*before, *flights(1, 900)]
    assert verify(house.restored).index == "the index agrees with every block"


def test_a_key_that_was_used_before_the_backup_is_known_after_the_restore(house: House) -> None:
    """In its record, or among the keys whose records are removed."""
    first = pending_of(house.settings)[0][0]
    house.restore()
    for folder in (house.restored, house.root / "later"):
        if folder != house.restored:
            house.seal()
            house.add(3, 300)
            house.add(3, 400)  # now the record is removed
            with closing(Sealer(house.settings, print)) as sealer:
                assert list(sealer.mempool.snapshot()[1]) == [KEY.text]
            house.back_up()
            house.restore(folder)
        with closing(Mempool(house.elsewhere(folder), lambda: 10**6, print)) as mempool:
            again = accept_in(mempool, flights(7, 100), now_ms(), key=KEY)
        assert (again.first_transaction, again.is_repeat) == (first, True)


def test_it_can_be_restored_from_a_medium_that_only_reads(house: House) -> None:
    for path in [house.backup, *house.backup.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        house.restore()
    finally:
        for path in [house.backup, *house.backup.rglob("*")]:
            path.chmod(0o755)
    assert verify(house.restored).height == 5


def test_a_backup_that_is_renewed_meanwhile_is_restored_as_it_was(house: House) -> None:
    settings, before = house.elsewhere(house.restored), everything_in(house.settings)

    def renew(done: int, _: int) -> None:
        house.accept(flights(1, 900 + done))
        house.back_up()

    restore(settings, house.backup, watched=lambda _: nullcontext(renew), report=print)
    assert everything_in(settings) == before
    assert house.manifest().pending > len(pending_of(settings))


def test_it_can_be_restored_into_the_folder_of_a_new_clone(house: House) -> None:
    house.restored.mkdir()
    (house.restored / "README.md").touch()  # as in chain_data
    (house.restored / "lost+found").mkdir()  # as on a disk of its own
    house.restore()
    assert verify(house.restored).height == 5


def test_a_backup_of_the_restored_ledger_goes_on_with_the_same_backup(house: House) -> None:
    house.restore()
    moved = House(house.root)
    moved.settings, moved.folder = house.elsewhere(house.restored), house.restored
    moved.add(3, 300)
    assert moved.back_up().new_blocks == 1
    assert verify(house.backup).height == 6


# --- lost flights ----------------------------------------------------------------------------


def lose_pending(house: House) -> str:
    """Damage the pending flights; returns the reason not to be ready once this is repaired."""
    with closing(Sealer(house.settings, print)) as sealer:
        newest = sealer.mempool.snapshot()[0][-1]
    spoil(house.folder, newest.first)
    with closing(Sealer(house.settings, print)) as sealer:
        sealer.mempool.repair()
        (reason,) = sealer.mempool.not_ready()
    return reason


def test_lost_flights_are_still_named_in_a_restored_ledger(house: House) -> None:
    reason = lose_pending(house)
    assert "7 acknowledged flights are lost, transactions 405 to 411" in reason
    note = house.folder / MEMPOOL_FOLDER / "perhaps-acknowledged-3.bin"
    note.write_bytes(b"damaged")
    for _ in range(2):  # what is there already stays, too
        house.back_up()
    house.restore()
    restored = house.restored / MEMPOOL_FOLDER
    assert (restored / note.name).read_bytes() == b"damaged"
    with closing(Sealer(house.elsewhere(house.restored), print)) as sealer:
        reasons = sealer.mempool.not_ready()
    assert reasons == [reason.replace(str(house.folder), str(house.restored))]
    assert reasons[0] in verify(house.restored).mempool


def test_lost_flights_that_were_posted_again_are_not_named_by_the_next_backup(
    house: House,
) -> None:
    lose_pending(house)
    house.back_up()
    for path in (house.folder / MEMPOOL_FOLDER).glob("lost-*"):
        path.rename(house.root / path.name)
    house.back_up()
    assert not list((house.backup / MEMPOOL_FOLDER).glob("lost-*"))


def test_flights_that_were_lost_later_are_whole_in_the_older_backup(house: House) -> None:
    """The next run was killed when it had copied what is left of them."""
    before = everything_in(house.settings)
    lose_pending(house)
    for nth in range(1, 1000):
        done, _ = unless_killed_at(nth, house.back_up)
        if done or list((house.backup / MEMPOOL_FOLDER).glob("lost-*.bin")):
            break
    assert done is None
    house.restore()
    assert everything_in(house.elsewhere(house.restored)) == before
    assert "lost" not in verify(house.restored).mempool


# --- refused ---------------------------------------------------------------------------------


def assert_refused(house: House, reason: str) -> None:
    """Nothing is restored, and nothing stays that could be taken for a ledger."""
    with pytest.raises(BackupRefused, match=reason):
        house.restore()
    if house.restored.exists():
        left = {path.name for path in house.restored.iterdir()}
        assert left <= set(LOCK_NAMES)


def spots(path: Path) -> range:
    return range(0, path.stat().st_size, max(1, path.stat().st_size // 12))


def test_a_flipped_bit_in_a_block_is_named(house: House) -> None:
    for height in range(6):
        flip_in_block(house.backup, height)
        assert_refused(
            house, f"block {height} is damaged: .*make a new backup of it in another folder"
        )
        flip_in_block(house.backup, height)


def test_a_flipped_bit_in_the_table_of_heights_is_named(house: House) -> None:
    path = table_path(house.backup)
    for at in spots(path):
        flip(path, at)
        found = f"entry of block {at // layout.ENTRY_BYTES} in {path} is damaged"
        assert_refused(house, f"{found}.*from a copy of the folder")
        flip(path, at)


def test_a_flipped_bit_in_a_pending_flight_is_found(house: House) -> None:
    path = store_path(house.backup)
    for at in spots(path):
        flip(path, at)
        assert_refused(house, f"the backup in {house.backup} is not restored: .*{path.name}")
        flip(path, at)


def without_a_byte(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


@pytest.mark.parametrize("spoil", [Path.unlink, without_a_byte])
@pytest.mark.parametrize("kind", ["blocks/blocks-*", "blocks/heights.dat", "mempool/*.sqlite"])
def test_a_file_that_is_missing_or_too_short_is_found(
    house: House, spoil: Callable[[Path], None], kind: str
) -> None:
    for path in house.backup.glob(kind):
        data = path.read_bytes()
        spoil(path)
        assert_refused(house, str(house.backup))
        path.write_bytes(data)
    house.restore()


SPOILT = [
    ("mempool/mempool.sqlite", b"", "has 0 bytes instead of"),
    ("mempool/mempool.sqlite", b"", "blocks can still be used: remove that file and backup.json"),
    ("backup.json", b"?", "if its ledger is lost, remove that file from a copy of the folder"),
    ("backup.json", b'{"format":1,"is_complete":false,"genesis_hash":""}', "is not complete"),
]


@pytest.mark.parametrize(("name", "data", "reason"), SPOILT)
def test_verify_finds_what_a_restore_would_refuse(
    house: House, name: str, data: bytes, reason: str
) -> None:
    runner = CliRunner(env={"FLIGHTCHAIN_DIR": str(house.backup)})
    assert runner.invoke(main, ["verify"]).exit_code == 0
    (house.backup / name).write_bytes(data)
    if not data:
        (house.backup / name).unlink()
    assert_refused(house, reason)
    done = runner.invoke(main, ["verify"])
    assert done.exit_code == 1
    assert reason in done.stderr
    assert runner.invoke(main, ["verify", "--chain-only"]).exit_code == 0


@pytest.mark.parametrize("name", ["tokens.json", "log.successions"])
def test_a_damaged_file_is_named_where_it_can_be_seen_to(house: House, name: str) -> None:
    (house.backup / name).write_bytes(b"?")
    assert_refused(house, f"not restored: {house.backup / name} is ")


def test_a_manifest_of_another_chain_is_named(house: House) -> None:
    other = House(house.root / "other")
    other.add(10, 0)
    other.back_up()
    shutil.copy(other.backup / manifests.NAME, house.backup)
    assert_refused(house, "names the blocks .* the table of heights")


def test_a_manifest_of_a_format_to_come_is_named(house: House) -> None:
    path = house.backup / manifests.NAME
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    assert_refused(house, "has format 2; this release reads format 1")


def test_a_folder_without_a_backup_is_named(house: House) -> None:
    (house.backup / manifests.NAME).unlink()
    assert_refused(house, "holds no backup: backup.json is missing; if only that file was lost, ")
    copy = house.root / "copy"
    shutil.copytree(house.backup, copy)
    assert verify(copy).height == 5
    assert everything_in(house.elsewhere(copy)) == everything_in(house.settings)


def test_a_ledger_that_is_there_is_left_alone(house: House) -> None:
    house.restore()
    before = contents(house.restored)
    with pytest.raises(BackupRefused, match=r"it holds .*blocks, .*move all of that aside$"):
        house.restore()
    assert contents(house.restored) == before


@pytest.mark.parametrize("name", ["mempool", "acknowledged.dat", "tokens.json"])
def test_what_is_left_of_another_ledger_is_named(house: House, name: str) -> None:
    house.restored.mkdir()
    (house.restored / name).touch()
    with pytest.raises(BackupRefused, match=f"it holds {name}; "):
        house.restore()


@pytest.mark.parametrize("name", LOCK_NAMES)
def test_who_is_at_work_there_is_neither_disturbed_nor_waited_for(house: House, name: str) -> None:
    house.restored.mkdir()
    started_s = time.monotonic()
    with (
        FileLock(house.restored / name),
        pytest.raises(BackupRefused, match=f"{name} is locked by .* stop it, or wait"),
    ):
        house.restore()
    assert time.monotonic() - started_s < LOCK_PATIENCE_S


def test_a_full_disk_is_named_before_anything_is_copied(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "free_bytes", lambda folder: 1000)
    with pytest.raises(WriteFailed, match="has 1,000 bytes free, "):
        house.restore()
    monkeypatch.undo()
    house.restore()


def test_a_disk_that_cannot_hold_an_index_is_named_before_anything_is_copied(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = mock.Mock(side_effect=PermissionError(EPERM, "Operation not permitted"))
    with monkeypatch.context() as patched:
        patched.setattr(Path, "symlink_to", refused)
        with pytest.raises(WriteFailed, match=r"a ledger needs symbolic links.*; use ext4$"):
            house.restore()
    assert list((house.restored / layout.RESTORING_FOLDER).iterdir()) == []
    house.restore()


def test_room_for_the_index_is_asked_for_as_well(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted: list[int] = []
    monkeypatch.setattr(files, "require_room", lambda folder, bytes_: wanted.append(bytes_))
    house.restore()
    files_there = [path for path in house.restored.rglob("*") if path.is_file()]
    assert wanted > [sum(path.stat().st_size for path in files_there) + SPARE_BYTES]


def test_a_ledger_that_lacks_only_its_index_is_said_to_be_restored(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object) -> None:
        raise apsw.FullError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(follower, "_build", full)
        with pytest.raises(WriteFailed, match=r"flights are restored.*full; .* reindex`") as error:
            house.restore()
    size = 64 * 2**20 + 70 * house.manifest().transactions
    assert f"the index, which takes up to {size:,} bytes, is not made" in str(error.value)
    with pytest.raises(BackupRefused, match=r"it holds .*blocks, .*made the index, .* reindex`"):
        house.restore()
    restored = House(house.restored.parent)
    restored.settings = house.elsewhere(house.restored)
    restored.seal()
    assert verify(house.restored).index == "the index agrees with every block"


# --- interrupted -----------------------------------------------------------------------------


def test_a_restore_may_be_killed_anywhere(house: House) -> None:
    """There is the whole ledger or none; no miner begins another one; the next restore works."""
    before = everything_in(house.settings)
    for nth in range(1, 1000, tries(5, exploring=1)):
        shutil.rmtree(house.restored, ignore_errors=True)
        restored, calls = unless_killed_at(nth, house.restore)
        if restored is not None:
            break
        settings = house.elsewhere(house.restored)
        if not blocks_folder(house.restored).exists():
            if (house.restored / layout.RESTORING_FOLDER).exists():
                with (
                    closing(Sealer(settings, print)) as miner,
                    pytest.raises(Damage, match="or that was interrupted; wait"),
                    miner.writing(wait=False),
                ):
                    raise AssertionError("another chain was begun")
            house.restore()
        assert everything_in(settings) == before
    assert len(calls) > 20


@pytest.fixture(scope="module")
def killed(original: House, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A restore that was killed when it had moved mempool and tokens, and not yet the blocks."""
    house = copied(original, tmp_path_factory.mktemp("killed"))
    for nth in range(1, 1000):
        shutil.rmtree(house.restored, ignore_errors=True)
        unless_killed_at(nth, house.restore)
        if (house.restored / "tokens.json").exists():
            break
    assert (house.restored / layout.RESTORING_FOLDER).exists()
    assert not blocks_folder(house.restored).exists()
    return house.restored


@pytest.fixture
def interrupted(house: House, killed: Path) -> Settings:
    """That restore, to be changed."""
    shutil.copytree(killed, house.restored, symlinks=True)
    return house.elsewhere(house.restored)


@pytest.mark.parametrize("when", ["at its beginning", "at its end"])
def test_nothing_is_accepted_where_a_restore_was_killed(
    house: House, interrupted: Settings, when: str
) -> None:
    if when == "at its beginning":
        shutil.rmtree(interrupted.folder)
        (interrupted.folder / layout.RESTORING_FOLDER).mkdir(parents=True)
    with (
        closing(Mempool(interrupted, lambda: 0, print)) as mempool,
        pytest.raises(TryLater, match="or that was interrupted; wait"),
    ):
        accept_in(mempool, flights(3, 900), now_ms())
    house.restore()
    assert everything_in(interrupted) == everything_in(house.settings)


COMMANDS = [
    *("import --generate 10", "mine", "mine --once", "reindex"),
    *("token add me", "token remove me"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_leaves_anything_where_a_restore_was_killed_or_in_a_backup(
    house: House, interrupted: Settings, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    folders = (
        (interrupted.folder, "restore it again"),
        (house.backup, "remove backup.json\n"),
    )
    for folder, words in folders:
        monkeypatch.setenv("FLIGHTCHAIN_DIR", str(folder))
        with unchanged(folder):
            done = CliRunner().invoke(main, command.split())
        assert done.exit_code == 1
        assert words in done.stderr
    house.back_up()


@pytest.mark.parametrize("options", [[], ["--only-http"]])
def test_a_backup_is_not_served(
    house: House, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.setenv("FLIGHTCHAIN_DIR", str(house.backup))
    done = CliRunner().invoke(main, ["serve", *options])
    assert (done.exit_code, "restore" in done.stderr) == (1, True)


def test_a_backup_without_tokens_is_not_said_to_take_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLIGHTCHAIN_DIR", str(tmp_path))
    said = CliRunner().invoke(main, ["token", "list"]).stderr
    (tmp_path / layout.BACKUP_NAME).touch()
    in_backup = CliRunner().invoke(main, ["token", "list"]).stderr
    assert said == in_backup.rstrip("\n") + f"; create one with: {COMMAND} token add NAME\n"


def test_a_copy_of_a_backup_in_which_a_service_has_gone_on_is_a_ledger(tmp_path: Path) -> None:
    (tmp_path / layout.BACKUP_NAME).touch()
    with pytest.raises(Damage, match="is a backup"):
        layout.require_ledger(tmp_path)
    (tmp_path / layout.MARK_NAME).touch()
    layout.require_ledger(tmp_path)


def test_what_other_releases_left_where_a_restore_was_killed_keeps_no_restore_from_it(
    house: House, interrupted: Settings
) -> None:
    for name in ("clock.json", "miner.json", "scrub.json", "clock.json.123.tmp", "fetched.json"):
        (interrupted.folder / name).write_text("{}")
    (interrupted.folder / "index").mkdir()
    house.restore()
    assert everything_in(interrupted) == everything_in(house.settings)


@pytest.mark.parametrize("name", ["log.key", "log.vkey", "checkpoint"])
def test_what_a_log_left_where_a_restore_was_killed_is_not_removed(
    house: House, interrupted: Settings, name: str
) -> None:
    (interrupted.folder / name).touch()
    with pytest.raises(BackupRefused, match=rf"it holds .*\b{name}\b"):
        house.restore()


def test_flights_that_were_accepted_where_a_restore_was_killed_are_not_removed(
    house: House, interrupted: Settings
) -> None:
    stage = interrupted.folder / layout.RESTORING_FOLDER
    aside = stage.rename(house.root / "aside")
    mined = house.manifest().transactions
    with closing(Mempool(interrupted, lambda: mined, print)) as mempool:
        accept_in(mempool, flights(3, 900), now_ms())
    aside.rename(stage)
    words = r"it holds acknowledged\.dat, mempool, restor"
    with unchanged(interrupted.folder, (".lock",)), pytest.raises(BackupRefused, match=words):
        house.restore()
