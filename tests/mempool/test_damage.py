"""Damage is repaired by who accepts or seals: what is lost is named, and no id is given twice."""

import shutil
from contextlib import closing
from pathlib import Path
from unittest import mock

import pytest

from backend.base import files
from backend.base.errors import DamagedMempool, TryLater, WriteFailed
from backend.base.files import FileLock
from backend.chain.placeholder import VOID
from backend.mempool import FOLDER, check_mempool, database
from backend.mempool.database import FILE_NAME, NEW_NAME
from backend.mempool.idempotency_keys import IdempotencyKey
from backend.mempool.records import FLIGHTS_A_RECORD, Record, Unsound
from backend.mempool.watermark import Mark, Watermark
from backend.storage.layout import MARK_NAME
from tests.dying import killed_at
from tests.flights import flight, flights
from tests.mempool.house import House, T, everything, numbered
from tests.mempool.spoiling import spoil
from tests.storage.chains import flip
from tests.submitting import accept_in

ALL = numbered(flights(4))
NEW = flight(9)
GENESIS, OTHER = "ab" * 32, "cd" * 32


def batches_written(house: House) -> bytes:
    """Write batches of one, one and two flights; returns the file with them."""
    mempool = house.mempool()
    for first, count in ((0, 1), (1, 1), (2, 2)):
        accept_in(mempool, flights(count, first), T)
    return house.settle()


# --- lost flights ------------------------------------------------------------------------------


@pytest.mark.parametrize("spoiled", [[0], [1], [2], [0, 2], [0, 1, 2]])
def test_a_spoiled_record_costs_its_flights_and_no_others(house: House, spoiled: list[int]) -> None:
    batches_written(house)
    spoil(house.folder, *spoiled)
    reader, writer = house.mempool(), house.mempool()
    with pytest.raises(TryLater, match=r"sqlite .* not agree with its checksum.*; .* repairs it"):
        reader.pending_count()
    assert accept_in(writer, [NEW], T).first_transaction == len(ALL)
    lost = {i for first in spoiled for i in ((2, 3) if first == 2 else (first,))}
    expected = [(i, VOID if i in lost else f) for i, f in ALL]
    assert everything(reader) == everything(writer) == [*expected, (len(ALL), NEW)]
    named = {i for first, count in house.lost() for i in range(first, first + count)}
    assert named == lost
    reasons = " ".join(reader.not_ready())
    for first, count in house.lost():
        assert f"transactions {first} to {first + count - 1}" in reasons


def test_it_is_not_ready_until_somebody_has_looked_at_what_was_lost(house: House) -> None:
    batches_written(house)
    spoil(house.folder, 1)
    mempool = house.mempool()
    mempool.repair()
    assert "transactions 1 to 1" in mempool.not_ready()[0]
    (house.folder / FOLDER / "lost-1-1.bin").unlink()
    assert mempool.not_ready() == []


def test_a_key_of_lost_flights_may_be_used_again_in_every_process(house: House) -> None:
    key = IdempotencyKey("k", "00")
    first, other = house.mempool(), house.mempool()
    accept_in(first, [flight(0)], T, key=key)
    accept_in(other, [flight(1)], T)
    spoil(house.folder, 0)
    first.repair()
    assert accept_in(other, [flight(0)], T, key=key).first_transaction == 2
    assert accept_in(first, [flight(0)], T, key=key).is_repeat


def test_a_key_of_a_batch_that_is_lost_in_part_may_be_used_again(house: House) -> None:
    key, count = IdempotencyKey("k", "00"), FLIGHTS_A_RECORD + 1
    mempool = house.mempool()
    accept_in(mempool, flights(count), T, key=key)
    spoil(house.folder, FLIGHTS_A_RECORD)
    mempool.repair()
    assert list(house.lost()) == [(FLIGHTS_A_RECORD, 1)]
    again = accept_in(mempool, flights(count), T, key=key)
    assert (again.first_transaction, again.is_repeat) == (count, False)


def test_a_key_whose_ids_may_be_given_again_is_forgotten(house: House) -> None:
    """Nobody knows of the last flight any more but its key."""
    key = IdempotencyKey("k", "00")
    accept_in(house.mempool(), [flight(0)], T)
    accept_in(house.mempool(), [flight(1)], T, key=key)
    spoil(house.folder, 1)
    (house.folder / MARK_NAME).unlink()
    mempool = house.mempool()
    assert accept_in(mempool, [NEW], T).first_transaction == 1
    assert "it is unknown whether more was acknowledged" in house.messages[0]
    assert not accept_in(mempool, [flight(1)], T, key=key).is_repeat


def test_an_older_copy_is_noticed_and_what_it_lacks_is_named(house: House) -> None:
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T)
    older = house.settle()
    accept_in(house.mempool(), flights(3, 1), T)
    house.settle()
    house.path.write_bytes(older)
    reader = house.mempool()
    with pytest.raises(TryLater, match="transactions 1 to 3 were acknowledged and are missing"):
        reader.pending_count()
    assert accept_in(house.mempool(), [NEW], T).first_transaction == len(ALL)
    assert list(house.lost()) == [(1, 3)]
    assert everything(reader) == [(0, flight(0)), *((i, VOID) for i in (1, 2, 3)), (4, NEW)]


def test_a_folder_that_is_removed_while_a_process_has_it_open_is_made_again(house: House) -> None:
    mempool = house.mempool()
    accept_in(mempool, flights(2), T)
    shutil.rmtree(house.folder / FOLDER)
    assert accept_in(mempool, [NEW], T).first_transaction == 2
    assert everything(house.mempool()) == [(0, VOID), (1, VOID), (2, NEW)]
    assert list(house.lost()) == [(0, 2)]


def test_damage_where_all_is_mined_costs_a_message(house: House) -> None:
    batches_written(house)
    house.chain.transactions = len(ALL)
    house.path.write_bytes(b"")
    mempool = house.mempool()
    assert accept_in(mempool, [NEW], T).first_transaction == len(ALL)
    assert everything(mempool) == [(len(ALL), NEW)]
    assert house.lost() == {}
    (message,) = house.messages
    assert "blocks hold the missing flights; idempotency keys" in message


def test_damage_across_the_tip_costs_only_what_is_not_mined(house: House) -> None:
    batches_written(house)
    spoil(house.folder, 1, 2)
    house.chain.transactions = 3
    house.mempool().repair()
    assert list(house.lost()) == [(3, 1)]


def test_the_end_of_the_log_that_sqlite_drops_in_silence_is_named(house: House) -> None:
    mempool = house.mempool()
    for number in range(30):
        accept_in(mempool, [flight(number)], T)
    copy = house.copied()
    flip(copy.log, copy.log.stat().st_size // 2)
    assert accept_in(copy.mempool(), [NEW], T).first_transaction == 30
    ((first, count),) = copy.lost()
    assert 0 < first < first + count == 30
    assert everything(copy.mempool())[:first] == numbered(flights(first))


# --- what is refused ---------------------------------------------------------------------------


def test_a_chain_that_lost_blocks_is_named_and_nothing_is_made_void(house: House) -> None:
    house.chain.transactions = 10
    mempool = house.mempool()
    accept_in(mempool, flights(2), T)
    house.chain.transactions = 8
    for asked in (mempool, house.mempool()):
        for ask in (asked.pending_count, asked.oldest_pending_at, asked.repair):
            with pytest.raises(DamagedMempool, match=r"ends at transaction 7, .* held 10 .* copy"):
                ask()
        with pytest.raises(DamagedMempool, match="lost blocks"):
            asked.pending(10)
        with pytest.raises(DamagedMempool, match="lost blocks"):
            accept_in(asked, [NEW], T)
        assert any("lost blocks" in reason for reason in asked.not_ready())
    with pytest.raises(DamagedMempool, match="lost blocks"):
        check_mempool(house.folder, house.chain)
    house.chain.transactions = 10  # the copy has them
    assert everything(mempool) == everything(house.mempool()) == numbered(flights(2), 10)


def test_a_chain_that_lost_blocks_is_named_though_the_mempool_is_gone(house: House) -> None:
    house.chain.transactions = 10
    accept_in(house.mempool(), flights(2), T)
    (house.folder / FOLDER).rename(house.folder / "taken")
    house.chain.transactions = 8
    with pytest.raises(DamagedMempool, match="lost blocks"):
        accept_in(house.mempool(), [NEW], T)


def test_an_imported_chain_that_is_gone_is_named_by_the_mark_alone(house: House) -> None:
    house.chain.transactions = 10
    house.mempool().trim(10)
    house.chain.transactions = 0
    with pytest.raises(DamagedMempool, match="they once held 10 transactions"):
        house.mempool().pending_count()
    house.mempool().accept_loss()
    assert list(house.lost()) == [(0, 10)]
    assert everything(house.mempool()) == [(i, VOID) for i in range(10)]


@pytest.mark.parametrize("part", [FOLDER, MARK_NAME])
def test_what_belongs_to_another_ledger_is_refused_and_not_changed(
    house: House, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = [OTHER]
    monkeypatch.setattr("backend.storage.genesis.Genesis.__call__", lambda self: named[0])
    theirs = House(house.folder / "theirs")
    theirs.folder.mkdir()
    accept_in(theirs.mempool(), flights(6, 100), T)
    theirs.close()
    named[0] = GENESIS
    batches_written(house)
    if part == FOLDER:
        shutil.rmtree(house.folder / FOLDER)
        shutil.copytree(theirs.folder / FOLDER, house.folder / FOLDER)
    else:
        shutil.copy(theirs.folder / MARK_NAME, house.folder)
    before = {path: path.read_bytes() for path in house.folder.rglob("*.dat")}
    before |= {house.path: house.path.read_bytes()}
    mempool = house.mempool()
    name = "mempool.sqlite" if part == FOLDER else MARK_NAME
    words = rf"{name} belongs to another ledger: its block 0 is {OTHER}, this ledger's is {GENESIS}"
    for ask in (mempool.pending_count, mempool.repair, lambda: mempool.pending(9)):
        with pytest.raises(DamagedMempool, match=words):
            ask()
    with pytest.raises(DamagedMempool, match=words):
        accept_in(mempool, [NEW], T)
    assert any(
        "Nothing is accepted or mined: put this ledger's own" in r for r in mempool.not_ready()
    )
    assert {path: path.read_bytes() for path in before} == before
    assert house.lost() == {}


def test_a_file_of_another_format_is_refused_and_not_changed(house: House) -> None:
    batches_written(house)
    with closing(database.connected(house.path)) as connection:
        connection.execute("PRAGMA user_version = 1").fetchall()
    before = house.path.read_bytes()
    mempool = house.mempool()
    for ask in (mempool.pending_count, mempool.repair, lambda: accept_in(mempool, [NEW], T)):
        with pytest.raises(DamagedMempool, match="has format 1, but this release reads format 2"):
            ask()
    assert house.path.read_bytes() == before
    assert house.lost() == {}


def test_a_file_that_is_a_link_is_refused_and_not_changed(house: House) -> None:
    """SQLite would have its log where the link leads, and we would sync another one."""
    batches_written(house)
    elsewhere = house.folder / "elsewhere.sqlite"
    house.path.rename(elsewhere)
    house.path.symlink_to(elsewhere)
    mempool = house.mempool()
    for _ in range(2):
        for ask in (mempool.pending_count, mempool.repair, lambda: accept_in(mempool, [NEW], T)):
            with pytest.raises(DamagedMempool, match=r"mempool\.sqlite is a link"):
                ask()
        elsewhere.unlink(missing_ok=True)  # its disk is away
    assert house.path.is_symlink()
    assert house.lost() == {}


def test_a_file_that_was_made_before_block_0_gets_its_name(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches_written(house)
    monkeypatch.setattr("backend.storage.genesis.Genesis.__call__", lambda self: GENESIS)
    accept_in(house.mempool(), [NEW], T)
    house.settle()
    with Path(house.path).open("rb") as stream:
        assert GENESIS.encode() in stream.read()
    monkeypatch.setattr("backend.storage.genesis.Genesis.__call__", lambda self: OTHER)
    with pytest.raises(DamagedMempool, match="belongs to another ledger"):
        house.mempool().pending_count()


@pytest.mark.parametrize("is_emptied", [False, True], ids=["first log", "later log"])
def test_a_file_or_a_log_of_another_ledger_is_refused_beside_ours(
    house: House,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    is_emptied: bool,
) -> None:
    """Nothing but the name of the ledger in the log tells: its records are as they were written."""
    other = House(tmp_path_factory.mktemp("other"))
    logs = {}
    for ledger, genesis, count in ((house, GENESIS, 5), (other, OTHER, 20)):
        monkeypatch.setattr("backend.storage.genesis.Genesis.__call__", lambda self, g=genesis: g)
        mempool = ledger.mempool()
        for number in range(count):
            accept_in(mempool, [flight(count + number)], T)
            if number == 1 and is_emptied:
                mempool._store.empty_log()
        logs[genesis] = ledger.log.read_bytes()
        ledger.close()
    monkeypatch.setattr("backend.storage.genesis.Genesis.__call__", lambda self: GENESIS)
    theirs = other.path.read_bytes()  # which our log lies upon, where nothing tells but the file
    for file, log in ((house.path.read_bytes(), logs[OTHER]), (theirs, logs[GENESIS])):
        house.path.write_bytes(file)
        house.log.write_bytes(log)
        house.log.with_name(f"{FILE_NAME}-shm").unlink(missing_ok=True)
        for ask in (house.mempool().pending_count, house.mempool().repair):
            with pytest.raises(DamagedMempool, match="belongs to another ledger"):
                ask()
        assert (house.path.read_bytes(), house.log.read_bytes()) == (file, log)
        house.close()
    other.close()


# --- a log without its file --------------------------------------------------------------------


@pytest.mark.parametrize("has_mark", [True, False])
def test_a_log_whose_file_is_gone_is_kept_and_never_read_into_a_new_file(
    house: House, has_mark: bool
) -> None:
    accept_in(house.mempool(), flights(10), T)
    copy = house.copied()
    copy.chain.transactions = 4
    kept = copy.log.read_bytes()
    copy.path.unlink()
    if not has_mark:
        (copy.folder / MARK_NAME).unlink()
    with pytest.raises(DamagedMempool, match="is missing"):
        check_mempool(copy.folder, copy.chain)
    mempool = copy.mempool()
    assert accept_in(mempool, [NEW], T).first_transaction == (10 if has_mark else 4)
    assert everything(mempool)[-1] == (10 if has_mark else 4, NEW)
    assert (copy.folder / FOLDER / "damaged-1.sqlite-wal").read_bytes() == kept
    assert any("damaged-1.sqlite" in line for line in copy.messages)


def test_a_log_that_was_kept_is_not_overwritten_by_the_next(house: House) -> None:
    kept = set()
    for number in range(3):
        accept_in(house.mempool(), [flight(number)], T)
        house.close()
        log = f"log {number}".encode()
        house.log.write_bytes(log)
        house.path.unlink()
        house.mempool().repair()
        kept.add(log)
        logs = (house.folder / FOLDER).glob("damaged-*-wal")
        assert {path.read_bytes() for path in logs} == kept


# --- dying meanwhile ---------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["write_new", "remove", "rename", "sync", "sync_folder"])
def test_whoever_dies_while_rebuilding_leaves_it_to_the_next(house: House, call: str) -> None:
    batches_written(house)
    spoil(house.folder, 1)
    is_done, nth = False, 0
    while not is_done:
        nth += 1
        copy = house.copied()
        with killed_at(nth, files, [call]):
            copy.mempool().repair()
            is_done = True
        copy.close()
        if (copy.folder / FOLDER / NEW_NAME).exists():
            with pytest.raises(TryLater, match="is being rebuilt; the next process"):
                copy.mempool().pending_count()
        assert accept_in(copy.mempool(), [NEW], T).first_transaction == len(ALL)
        expected = [(i, VOID if i == 1 else f) for i, f in ALL]
        assert everything(copy.mempool()) == [*expected, (len(ALL), NEW)]
        assert list(copy.lost()) == [(1, 1)]
        assert not (copy.folder / FOLDER / NEW_NAME).exists()
        copy.close()


def test_a_full_disk_puts_off_the_repair_and_changes_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches_written(house)
    spoil(house.folder, 1)
    before = house.path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(files, "free_bytes", lambda folder: len(before))
        for ask in (house.mempool().repair, lambda: house.mempool().pending(9)):
            with pytest.raises(TryLater, match="too little room"):
                ask()
        patch.undo()
        patch.setattr(files, "rename", mock.Mock(side_effect=WriteFailed("no space left")))
        with pytest.raises(WriteFailed, match="no space left"):
            house.mempool().repair()
    assert house.path.read_bytes() == before
    house.mempool().repair()
    assert list(house.lost()) == [(1, 1)]


def test_a_mark_that_is_damaged_just_before_it_is_raised_is_named(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches_written(house)
    mempool = house.mempool()
    real = files.sync

    def sync(descriptor: int, path: Path) -> None:
        (house.folder / MARK_NAME).write_bytes(b"?")
        real(descriptor, path)

    monkeypatch.setattr(files, "sync", sync)
    accept_in(mempool, [NEW], T)
    (message,) = house.messages
    assert message.startswith("acknowledged.dat was missing or damaged and was rebuilt")


def test_a_process_that_has_the_old_file_open_writes_to_the_new_one(house: House) -> None:
    first, other = house.mempool(), house.mempool()
    for number, mempool in enumerate((first, other, first)):
        accept_in(mempool, [flight(number)], T)
    spoil(house.folder, 1)
    first.repair()
    assert accept_in(other, [flight(3)], T).first_transaction == 3
    assert accept_in(first, [flight(4)], T).first_transaction == 4
    other.close()  # the last one on the old file
    assert [i for i, _ in everything(house.mempool())] == list(range(5))


# --- how far is acknowledged -------------------------------------------------------------------


@pytest.mark.parametrize(
    "how", ["missing", "removed while open", "damaged", "empty", "cut short", "too long"]
)
def test_a_lost_mark_alone_is_made_anew_and_said(house: House, how: str) -> None:
    batches_written(house)
    path = house.folder / MARK_NAME
    data = path.read_bytes()
    mempool = house.mempool()
    if how == "removed while open":
        mempool.pending_count()
    if how in {"missing", "removed while open"}:
        path.unlink()
    else:
        spoiled = {"damaged": b"?" + data[1:], "cut short": data[:-1], "too long": 2 * data}
        path.write_bytes(spoiled.get(how, b""))
    assert accept_in(mempool, [NEW], T).first_transaction == len(ALL)
    assert everything(mempool) == [*ALL, (len(ALL), NEW)]
    (message,) = house.messages
    assert message.startswith("acknowledged.dat was missing or damaged and was rebuilt")
    assert house.mark() == Mark(len(ALL) + 1, 0)


def test_the_mark_follows_the_sync_and_never_goes_back(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T)
    noted: list[int] = []
    real = files.sync

    def sync(descriptor: int, path: Path) -> None:
        mark = house.mark()
        assert mark is not None
        noted.append(mark.next)  # before the sync is over, nothing of it is noted
        real(descriptor, path)

    monkeypatch.setattr(files, "sync", sync)
    accept_in(mempool, flights(3, 1), T)
    assert noted == [1]
    assert house.mark() == Mark(4, 0)
    mark = Watermark(house.folder, lambda: "")
    mark.note(Mark(2, 0))
    mark.close()
    assert house.mark() == Mark(4, 0)


def test_a_mark_that_is_raised_while_the_chain_is_away_still_names_its_ledger(house: House) -> None:
    def naming(genesis: str) -> Watermark:
        return Watermark(house.folder, lambda: genesis)

    ours, nobody, other = naming(GENESIS), naming(""), naming(OTHER)
    with closing(ours), closing(nobody), closing(other):
        ours.note(Mark(1))
        nobody.note(Mark(2))
        assert ours.read() == Mark(2, genesis=GENESIS)
        with pytest.raises(DamagedMempool, match="belongs to another ledger"):
            other.read()


def test_a_mark_is_not_written_while_another_process_writes_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LOCK_PATIENCE_S", 0.0)
    with closing(Watermark(house.folder, lambda: "")) as ours:
        ours.note(Mark(1))
        with FileLock(house.folder / MARK_NAME), pytest.raises(WriteFailed, match="is locked by"):
            ours.note(Mark(2))
        assert ours.read() == Mark(1)


@pytest.mark.parametrize("content", [b"[[", b'[["\xb0"]]', b"[[1.5]]", b"[[],[]]"])
def test_flights_that_nobody_wrote_are_unsound(content: bytes) -> None:
    with pytest.raises(Unsound, match="the record of transaction 7 lacks flights"):
        Record(7, 1, 0, 0, content, b"").decoded()
