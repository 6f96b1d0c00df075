"""The follower: up to the tip in steps of any size, or a new index if the old one is not ours."""

import os
import resource
import shutil
import sys
from collections.abc import Callable, Iterable
from contextlib import closing, nullcontext, suppress
from errno import EPERM
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.base import files
from backend.base.errors import Damage, DamagedBlock, TryLater, WriteFailed
from backend.chain.flight import Flight
from backend.index import follower as module
from backend.index import index_file
from backend.index.checkpoint_note import SUFFIX as NOTE
from backend.index.index_file import index_path
from backend.index.queries import IndexReader
from backend.index.writer import IndexWriter, SealedBlock, sealed_block
from backend.questions.values import FlightCounter
from backend.storage import block_store
from backend.storage.block_store import BlockStore
from tests.effort import examples
from tests.index.worlds import (
    SMALL,
    assert_as_rebuilt,
    chains,
    count_of,
    dump,
    execute,
    follow,
    following,
    in_use,
    make_chain,
    opened,
    page_of,
    plain_flight,
    position_of,
    settle,
)
from tests.storage.chains import blocks_folder, flip_in_block

HERE_TO_TAMPA = FlightCounter("Washington, DC", "Tampa, FL", "1900-01-01", "2199-12-31")


def sealed(folder: Path, heights: Iterable[int]) -> list[SealedBlock]:
    with closing(BlockStore(folder)) as store:
        return [sealed_block(store.block(height)) for height in heights]


def height_of_index(folder: Path) -> int:
    position = position_of(folder)
    return -1 if position is None else position.height


def names_in(folder: Path) -> set[str]:
    """All names in the folder of the index but those of notes."""
    names = {path.name for path in index_path(folder).parent.iterdir()}
    return {name for name in names if not name.endswith(NOTE)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Genesis and four blocks, not indexed yet."""
    make_chain(tmp_path, SMALL)
    return tmp_path


# --- following -------------------------------------------------------------------------------


@given(
    contents=chains,
    steps=st.lists(st.integers(0, 3), max_size=4),
    blocks_at_once=st.sampled_from((1, 2, 32)),
    hand_over=st.booleans(),
)
@settings(max_examples=examples(12))
def test_steps_of_any_size_give_the_index_that_a_rebuild_gives(
    contents: list[list[Flight]], steps: list[int], blocks_at_once: int, hand_over: bool
) -> None:
    """hand_over: blocks are given to the follower by whoever appended them."""
    with (
        TemporaryDirectory() as name,
        mock.patch.object(module, "BLOCKS_AT_ONCE", blocks_at_once),
        following(Path(name)) as (follower, store),
    ):
        folder, left = Path(name), list(contents)
        make_chain(folder, [])
        follower.follow()
        for step in [*steps, len(left)]:
            blocks = make_chain(folder, left[:step])
            del left[:step]
            if hand_over and blocks:
                follower.apply([sealed_block(block) for block in blocks])
            else:
                follower.follow()
            assert height_of_index(folder) == store.height()
        followed = dump(folder)
        follower.rebuild()
        assert dump(folder) == followed
        assert len(followed["flight"]) == sum(map(len, contents))


def test_blocks_handed_over_before_anything_was_followed_are_read_from_the_disk(
    folder: Path,
) -> None:
    with following(folder) as (follower, _):
        follower.apply(sealed(folder, [4]))
    assert height_of_index(folder) == 4
    assert_as_rebuilt(folder)


def test_an_index_behind_lacks_the_blocks_of_one_call_at_most_and_none_in_the_end(
    folder: Path,
) -> None:
    with following(folder) as (follower, store):
        follower.follow()
        with follower.behind():
            for number in range(1, 6):
                before = store.height()
                flights = [plain_flight(OP_CARRIER_FL_NUM=number)] * 100 * number
                blocks = make_chain(folder, [flights, []])
                follower.apply([sealed_block(block) for block in blocks])
                assert height_of_index(folder) in {before, before + 2}
        assert height_of_index(folder) == store.height()
    assert_as_rebuilt(folder)


def test_progress_counts_blocks_from_none_up_to_the_end(folder: Path) -> None:
    calls: list[tuple[int, int]] = []
    with mock.patch.object(module, "BLOCKS_AT_ONCE", 2), following(folder) as (follower, _):
        follower.follow(lambda done, to_do: calls.append((done, to_do)))
        make_chain(folder, [[], []])
        follower.follow(lambda done, to_do: calls.append((done, to_do)))
    assert calls == [(0, 5), (2, 5), (5, 5), (0, 2), (2, 2)]


def test_a_run_that_ends_early_because_it_is_large_is_read_on(folder: Path) -> None:
    with mock.patch.object(block_store, "MAX_RUN_BYTES", 2000):
        follow(folder)
    assert_as_rebuilt(folder, flights=6)


@pytest.mark.parametrize("name", ["a b ü", "100%41;b&c=d", "a?b#c"])
def test_the_name_of_the_folder_does_not_matter(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    make_chain(folder, SMALL)
    follow(folder)
    follow(folder)
    assert names_in(folder) == {"index-1.sqlite", "index.sqlite"}, "made anew without need"
    count, as_of = count_of(IndexReader(folder), HERE_TO_TAMPA)
    assert (count, as_of.height) == (5, 4)


# --- what is refused -------------------------------------------------------------------------

OUT_OF_ORDER: dict[str, Callable[[list[SealedBlock], list[SealedBlock]], list[SealedBlock]]] = {
    "the tip again": lambda ours, theirs: [ours[2]],
    "an older block": lambda ours, theirs: [ours[1]],
    "genesis again": lambda ours, theirs: [ours[0]],
    "a gap": lambda ours, theirs: [ours[4]],
    "the same block twice": lambda ours, theirs: [ours[3], ours[3]],
    "a good block, then a gap": lambda ours, theirs: [ours[3], ours[5]],
    "the wrong way round": lambda ours, theirs: [ours[4], ours[3]],
    "the next block of another chain": lambda ours, theirs: [theirs[3]],
    "a good block, then one of another chain": lambda ours, theirs: [ours[3], theirs[4]],
}


@pytest.mark.parametrize("case", OUT_OF_ORDER)
def test_blocks_that_do_not_follow_are_refused_and_change_nothing(
    tmp_path: Path, case: str
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    contents = [[plain_flight(OP_CARRIER_FL_NUM=i + 1)] for i in range(5)]
    make_chain(ours, contents)
    make_chain(theirs, contents, genesis_ms=77)
    blocks = sealed(ours, range(6))
    chosen = OUT_OF_ORDER[case](blocks, sealed(theirs, range(6)))
    (ours / "index").mkdir()
    with closing(IndexWriter(index_path(ours))) as writer:
        writer.apply(blocks[:3])
        before = dump(ours)
        with pytest.raises(Damage, match=r"the index stands at block \d; \d does not follow"):
            writer.apply(chosen)
        assert dump(ours) == before
        writer.apply(blocks[3:])  # it goes on as if nothing had been
    assert height_of_index(ours) == 5
    assert_as_rebuilt(ours)


def test_a_block_that_cannot_be_taken_in_whole_is_not_taken_in_at_all(indexed: Path) -> None:
    """A row is in the way of its last flight; the city of its first one is new."""
    make_chain(indexed, [[plain_flight(ORIGIN_CITY_NAME="Reno, NV"), plain_flight()]])
    execute(
        indexed,
        "INSERT INTO flight SELECT route, day, 7, number, carrier, dep_time, dep_delay,"
        " arr_time, arr_delay, cancelled, air_time, later FROM flight WHERE id = 0",
    )
    before = dump(indexed)
    with (
        closing(IndexWriter(index_path(indexed))) as writer,
        pytest.raises(Exception, match="UNIQUE"),
    ):
        writer.apply(sealed(indexed, [5]))
    assert dump(indexed) == before


def test_a_writer_that_is_interrupted_at_any_line_takes_in_nothing_and_can_be_closed(
    indexed: Path,
) -> None:
    """Closing brings the log into the file, which SQLite refuses within a transaction."""
    make_chain(indexed, [[plain_flight()]])
    before, blocks, lines = dump(indexed), sealed(indexed, [5]), set[int]()

    def interrupt(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code is not IndexWriter.apply.__code__:
            return None
        if event == "line" and frame.f_lineno not in lines:
            lines.add(frame.f_lineno)
            raise KeyboardInterrupt
        return interrupt

    is_done = False
    while not is_done:
        with closing(IndexWriter(index_path(indexed))) as writer, suppress(KeyboardInterrupt):
            assert dump(indexed) == before
            before_it = sys.gettrace()
            sys.settrace(interrupt)
            try:
                writer.apply(blocks)
                is_done = True
            finally:
                sys.settrace(before_it)
    assert len(lines) > 8
    assert height_of_index(indexed) == 5


def test_a_power_cut_in_the_middle_of_a_checkpoint_can_be_mended(indexed: Path) -> None:
    """Else a page may be old while the position is new, and nobody can tell: answers are wrong."""
    off = 0
    with following(indexed) as (follower, _):
        for begin in (follower.follow, follower.rebuild):
            begin()
            assert follower._writer is not None
            assert follower._writer._connection.execute("PRAGMA synchronous").get > off


def test_a_new_index_is_whole_and_synced_before_it_is_used(
    indexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[object] = []
    notes: list[str] = []
    sync, use = files.sync, index_file.use

    def syncing(descriptor: int, path: Path) -> None:
        sync(descriptor, path)
        if NOTE in path.name:
            notes.append(path.name)
        else:
            events.append((path.name, names_in(indexed)))

    def using(path: Path) -> None:
        events.append("used")
        use(path)

    monkeypatch.setattr(files, "sync", syncing)
    monkeypatch.setattr(index_file, "use", using)
    with following(indexed) as (follower, _):
        follower.rebuild()
    without_a_log = {"index-1.sqlite", "index-2.sqlite", "index.sqlite"}
    assert events == [("index-2.sqlite", without_a_log), "used"]
    assert notes, "a power cut may lose the note, and readers would refuse the index"


def test_a_damaged_block_leaves_readers_the_old_index(indexed: Path) -> None:
    reader = IndexReader(indexed)
    before = count_of(reader, HERE_TO_TAMPA)
    flip_in_block(indexed, 3)
    with following(indexed) as (follower, _), pytest.raises(DamagedBlock):
        follower.rebuild()
    assert count_of(reader, HERE_TO_TAMPA) == before
    assert count_of(IndexReader(indexed), HERE_TO_TAMPA) == before


# --- what is made anew -----------------------------------------------------------------------


Spoil = Callable[[Path], object]


def running(statement: str) -> Spoil:
    """Change rows behind everybody's back."""
    return lambda folder: execute(folder, statement)


def with_blocks(contents: list[list[Flight]], genesis_ms: int | None = None) -> Spoil:
    """Put another chain in the place of the one that the index is of."""

    def spoil(folder: Path) -> None:
        shutil.rmtree(blocks_folder(folder))
        make_chain(folder, contents, genesis_ms=genesis_ms)

    return spoil


def damage_table(folder: Path, table: str) -> None:
    """Overwrite the root page of a table, as a disk would."""
    offset, size = page_of(folder, table)
    with index_path(folder).open("r+b") as stream:
        stream.seek(offset)
        stream.write(b"\xff" * size)
    settle(folder)


FILE_SPOILED: dict[str, Spoil] = {
    "no folder": lambda folder: shutil.rmtree(index_path(folder).parent),
    "no file": lambda folder: in_use(folder).unlink(),
    "no link": lambda folder: index_path(folder).unlink(),
    "garbage": lambda folder: index_path(folder).write_bytes(
        b"these are no rows of a table\n" * 400
    ),
    "an empty file": lambda folder: index_path(folder).write_bytes(b""),
    "one page": lambda folder: os.truncate(index_path(folder), 4096),
    "another schema": running("UPDATE position SET schema_version = schema_version + 1"),
    "no position": running("DELETE FROM position"),
    "no table": running("DROP TABLE position"),
    "a damaged position": lambda folder: damage_table(folder, "position"),
}
NOT_OF_THE_CHAIN: dict[str, tuple[Spoil, str]] = {  # and what is said of it
    "another hash": (
        running(f"UPDATE position SET tip_hash = '{'0' * 64}'"),
        "on another branch: its block 4",
    ),
    "another genesis": (
        running(f"UPDATE position SET genesis_hash = '{'0' * 64}'"),
        "of another chain: its block 0",
    ),
    "above all": (
        running(f"UPDATE position SET height = {2**62}"),
        "and the chain ends at 4",
    ),
    "another chain": (with_blocks(SMALL, genesis_ms=77), "of another chain"),
    "a shorter chain": (with_blocks(SMALL[:2]), "stands at block 4, and the chain ends at 2"),
    "another branch": (with_blocks([*SMALL[:3], [], [], []]), "on another branch"),
    "another branch of the same length": (
        with_blocks([*SMALL[:3], [plain_flight(OP_CARRIER_FL_NUM=4)]]),
        "on another branch",
    ),
}
SPOILED: dict[str, Spoil] = {
    **FILE_SPOILED,
    "a negative height": running("UPDATE position SET height = -1"),
    "damaged cities": lambda folder: damage_table(folder, "city"),
}


@pytest.mark.parametrize("spoil", SPOILED)
def test_an_index_that_does_not_belong_to_the_chain_is_made_anew(indexed: Path, spoil: str) -> None:
    SPOILED[spoil](indexed)
    follow(indexed)
    followed = dump(indexed)
    with closing(BlockStore(indexed)) as store:
        tip = store.tip()
    assert tip is not None
    (position,) = followed["position"]
    assert position[3:] == (tip[0], tip[1].hash.hex(), tip[1].next_transaction)
    assert names_in(indexed) == {index_path(indexed).name, in_use(indexed).name}
    assert_as_rebuilt(indexed, flights=tip[1].next_transaction)


@pytest.mark.parametrize("table", ["flight", "number_total"])
def test_an_index_behind_that_turns_out_to_be_damaged_is_made_anew_with_all_blocks(
    indexed: Path, table: str
) -> None:
    """The first call's blocks cannot be taken in; the second's are there when this is found."""
    with following(indexed) as (follower, store):
        follower.follow()
        damage_table(indexed, table)
        with follower.behind():
            for _ in range(2):
                blocks = make_chain(indexed, [[plain_flight()]])
                follower.apply([sealed_block(block) for block in blocks])
        assert height_of_index(indexed) == store.height()
        assert follower.rebuild_count == 1
    assert_as_rebuilt(indexed, flights=8)


@pytest.mark.parametrize("spoilt", ["x''", "x'81a16101'", "5"])
def test_a_distribution_that_is_none_makes_the_index_anew(indexed: Path, spoilt: str) -> None:
    execute(indexed, f"UPDATE carrier_delays SET counts = {spoilt}")
    make_chain(indexed, [[plain_flight()]])
    follow(indexed)
    assert_as_rebuilt(indexed, flights=7)


LOGS = ("-wal", "-shm", "-journal")


def test_remains_of_an_earlier_rebuild_do_no_harm(indexed: Path) -> None:
    before = dump(indexed)
    for suffix in ("", *LOGS):
        (indexed / "index" / f"index-2.sqlite{suffix}").write_bytes(b"half" * 3000)
    (indexed / "index" / "index.sqlite.tmp").symlink_to("index-2.sqlite")
    follow(indexed)
    assert in_use(indexed).name == "index-1.sqlite"
    with following(indexed) as (follower, _):
        follower.rebuild()
    assert dump(indexed) == before
    assert in_use(indexed).name == "index-2.sqlite", "what was never complete is gone"
    assert names_in(indexed) == {"index-2.sqlite", "index.sqlite"}


@pytest.mark.parametrize("real", [False, True])
def test_remains_beside_a_missing_index_do_no_harm(indexed: Path, real: bool) -> None:
    """real: the log and its index of a writer that was killed, instead of garbage."""
    before, path = dump(indexed), in_use(indexed)
    remains = {f"{path.name}{suffix}": b"half" * 3000 for suffix in LOGS}
    if real:
        make_chain(indexed, [[plain_flight()]])
        with following(indexed) as (follower, _):
            follower.follow()
            remains = {name: (path.parent / name).read_bytes() for name in names_in(indexed)}
        assert remains.keys() == {f"{path.name}{suffix}" for suffix in ("", "-wal", "-shm")} | {
            "index.sqlite"
        }
        before = dump(indexed)
    path.unlink()
    for name, data in remains.items():
        if name.startswith(f"{path.name}-"):
            (path.parent / name).write_bytes(data)
    follow(indexed)
    assert dump(indexed) == before


def test_what_a_failed_rebuild_left_takes_no_room_beside_the_next(indexed: Path) -> None:
    """The disk may have been full because of it."""
    before, listings = names_in(indexed), list[set[str]]()

    def refuse(done: int, to_do: int) -> None:
        if done:
            raise WriteFailed("no space left")

    with following(indexed) as (follower, _):
        with pytest.raises(WriteFailed):
            follower.rebuild(refuse)
        assert names_in(indexed) == before
        follower.rebuild(lambda done, to_do: listings.append(names_in(indexed)))
    _, names = listings
    assert len([name for name in names if name.endswith(".sqlite")]) == 3  # old, new, the link


# --- what is not made anew -------------------------------------------------------------------


def no_room(writer: IndexWriter, folder: Path) -> None:
    pages = writer._connection.execute("PRAGMA page_count").get
    writer._connection.execute(f"PRAGMA max_page_count = {pages}")


def locked(writer: IndexWriter, folder: Path) -> None:
    """Somebody writes without the writer lock."""
    writer._connection.execute("PRAGMA busy_timeout = 0")


@pytest.mark.parametrize("is_behind", [False, True])
@pytest.mark.parametrize(
    ("trouble", "words"),
    [(no_room, "full; free some space"), (locked, "locked")],
    ids=["no room", "locked"],
)
def test_an_index_that_cannot_be_written_stays_as_it_is(
    indexed: Path, trouble: Callable[[IndexWriter, Path], None], words: str, is_behind: bool
) -> None:
    before = dump(indexed)
    rows = [plain_flight(ORIGIN_CITY_NAME=f"City {i:03d}" * 9) for i in range(300)]
    with following(indexed) as (follower, _):
        follower.follow()
        assert follower._writer is not None
        trouble(follower._writer, indexed)
        blocks = make_chain(indexed, [rows])
        with closing(opened(indexed)) as other:
            if trouble is locked:
                other.execute("BEGIN IMMEDIATE")
            with (
                pytest.raises(WriteFailed, match=f"the index cannot be written: .*{words}"),
                follower.behind() if is_behind else nullcontext(),
            ):
                follower.apply([sealed_block(block) for block in blocks])
        assert dump(indexed) == before
        follower.follow()
        assert height_of_index(indexed) == 5
    assert in_use(indexed).name == "index-1.sqlite"
    assert_as_rebuilt(indexed)


def test_an_index_that_cannot_be_looked_at_is_for_later(indexed: Path) -> None:
    """There is no descriptor left."""
    path, limits = in_use(indexed), resource.getrlimit(resource.RLIMIT_NOFILE)
    with following(indexed) as (follower, _):
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
        try:
            with pytest.raises(TryLater, match="cannot be read"):
                follower.follow()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    follow(indexed)
    assert in_use(indexed) == path


# --- others at work --------------------------------------------------------------------------


def test_a_follower_goes_on_with_an_index_that_another_process_made_anew(indexed: Path) -> None:
    with following(indexed) as (follower, store):
        follower.follow()
        with following(indexed) as (other, _):
            other.rebuild()
        make_chain(indexed, [[plain_flight()]])
        follower.follow()
        assert height_of_index(indexed) == store.height() == 5
        blocks = make_chain(indexed, [[plain_flight()]])
        follower.apply([sealed_block(block) for block in blocks])
        assert height_of_index(indexed) == 6
    assert_as_rebuilt(indexed)


def test_a_disk_without_symbolic_links_is_called_that_before_blocks_are_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = mock.Mock(side_effect=PermissionError(EPERM, "Operation not permitted"))
    monkeypatch.setattr(Path, "symlink_to", refused)
    monkeypatch.setattr(module, "_build", mock.Mock(side_effect=AssertionError))
    with pytest.raises(WriteFailed, match="FAT, exFAT and shares of SMB lack; use ext4"):
        follow(folder)
