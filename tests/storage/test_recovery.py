"""Every way in which the end of the files may look, and what must become of it."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from backend.base.errors import DamagedBlock
from backend.base.words import counted
from backend.storage.genesis import genesis_in
from backend.storage.layout import ENTRY_BYTES, TABLE_NAME, block_file_name, place_from
from tests.cases import each_of
from tests.effort import tries
from tests.storage.chains import (
    A_FILE_EACH,
    ArePending,
    Sample,
    a_step,
    all_are_pending,
    append_blocks,
    audited,
    block_file,
    contents,
    flip,
    make_chain,
    next_block,
    recovered,
    restore,
    some_bytes_of,
    table_path,
    writer_for,
    writing,
)

pytestmark = pytest.mark.slow

FILE = block_file_name(0)
REMADE = "the table of heights was missing or damaged, and was rebuilt"
MINED_AGAIN = " and is left out; its transactions are mined again"
WHAT_TO_DO = "; nothing was changed; restore the chain from a backup"


def added(first: int, last: int) -> str:
    return f"blocks {first} to {last} were added to the table of heights"


def aside(file: int, offset: int) -> str:
    """The name under which a torn end is kept, unless that is taken."""
    return f"torn-blocks-{file:010d}-{offset}-1.bin"


def set_aside(first: int) -> str:
    name = block_file_name(first)
    return f"{name} holds no committed block and is now {aside(first, 0)}"


def is_cut(message: str, size: int, offset: int) -> bool:
    """Whether a message says that `size` bytes were cut off the first file at `offset`."""
    return message.startswith(
        f"cut {counted(size, 'byte')} off {FILE}, because no committed block stands there ("
    ) and message.endswith(f"); these bytes are now in {aside(0, offset)}")


def assert_stops(
    folder: Path,
    height: int,
    what: str = "is damaged",
    *,
    are_pending: ArePending | None = all_are_pending,
) -> None:
    """The writer refuses, names block `height`, and leaves every byte as it was."""
    before = contents(folder)
    with pytest.raises(DamagedBlock, match=what) as caught:
        recovered(folder, are_pending=are_pending)
    assert caught.value.height == height
    assert str(caught.value).endswith(WHAT_TO_DO)
    assert contents(folder) == before


def assert_recovers(
    folder: Path, sample: Sample, blocks: int, torn: bytes, *, goes_on: bool = True
) -> list[str]:
    """The writer keeps `blocks` blocks and puts `torn` aside; if `goes_on`, the next one can be
    appended.

    Returns what was reported. The bytes are compared with those of a chain that was audited.
    """
    messages: list[str] = []
    with closing(writer_for(folder, messages, are_pending=all_are_pending)) as writer:
        writer.acquire(wait=False)
        kept = sample.files(sample.data[: sample.starts[blocks]], sample.entries(0, blocks))
        if torn:
            kept[aside(0, sample.starts[blocks])] = torn
        assert contents(folder) == kept
        assert writer.state == sample.states[blocks - 1]
        if not goes_on:
            pass
        elif blocks < len(sample.blocks):
            writer.append(sample.blocks[blocks])
        else:
            writer.append(next_block(writer.state, 1))
        writer.commit()
        after = writer.state
    if not goes_on:
        assert contents(folder) == kept
    elif blocks < len(sample.blocks):
        assert block_file(folder).read_bytes() == sample.data[: sample.starts[blocks + 1]]
        assert table_path(folder).read_bytes() == sample.entries(0, blocks + 1)
    else:
        assert audited(folder) == after
    return messages


def assert_reported(messages: list[str], sample: Sample, named: int | None, size: int) -> None:
    """The messages are those for a file cut at `size` whose first `named` blocks the table had."""
    blocks = sum(end <= size for end in sample.starts[1:])
    known = 0 if named is None else min(named, blocks)
    assert named == 0 or (REMADE in messages) == (named is None)
    left = iter(message for message in messages if message != REMADE)
    if named is not None and named > blocks:
        torn = next(left)
        assert torn.startswith(f"block {blocks} was torn (")
        assert torn.endswith(f"){MINED_AGAIN}")
        assert (f"({FILE} ends before it)" in torn) == (size == sample.starts[blocks])
    if size > sample.starts[blocks]:
        assert is_cut(next(left), size - sample.starts[blocks], sample.starts[blocks])
    assert list(left) == ([added(known, blocks - 1)] if blocks > known else [])


@pytest.mark.parametrize("named", [6, 5, 4, None, 2, 0])
def test_a_file_cut_at_any_byte_of_the_last_two_blocks(
    tmp_path: Path, sample: Sample, named: int | None
) -> None:
    edges = {start + near for start in sample.starts for near in (-1, 0, 1, 3, 4, 19, 20, 21)}
    for size in range(sample.starts[4], len(sample.data) + 1):
        if size % a_step() and size not in edges:
            continue
        blocks = sum(end <= size for end in sample.starts[1:])
        data, torn = sample.data[:size], sample.data[sample.starts[blocks] : size]
        zeros = bytes(size % 3 * 50)  # sectors of the table that never reached the disk
        table = None if named is None else sample.entries(0, named) + zeros
        restore(tmp_path, sample.files(data, table))
        if named is not None and named > blocks + 1:
            assert_stops(tmp_path, named - 2, "it is below the tip")
            continue
        if not named and torn:
            assert_stops(tmp_path, blocks, "without a table of heights it is unknown")
            continue
        if named is not None and named > blocks:
            what = "the mempool no longer holds its transactions"
            assert_stops(tmp_path, blocks, what, are_pending=None)
        goes_on = size % 4 == 0 or size - 1 in sample.starts or size + 1 in sample.starts
        messages = assert_recovers(tmp_path, sample, blocks, torn, goes_on=goes_on)
        assert_reported(messages, sample, named, size)


@pytest.mark.parametrize("size", [0, 1, 100])
def test_a_torn_genesis_begins_the_chain_anew(tmp_path: Path, sample: Sample, size: int) -> None:
    for named in (0, 1):
        restore(tmp_path, sample.files(sample.data[:size], sample.entries(0, named)))
        state, _ = recovered(tmp_path)
        assert state == sample.states[0]
        assert audited(tmp_path) == state


@each_of("size", range(0, 6 * ENTRY_BYTES, tries(16, exploring=1)))
def test_a_table_cut_at_any_byte_is_completed(tmp_path: Path, sample: Sample, size: int) -> None:
    restore(tmp_path, sample.files(sample.data, sample.table[:size]))
    messages = assert_recovers(tmp_path, sample, 6, b"")
    assert messages[-1] == added(size // 64, 5)
    assert messages[:-1] == [] or (messages[:-1] == [REMADE] and size < ENTRY_BYTES)


def test_whole_files_are_left_alone(tmp_path: Path, sample: Sample) -> None:
    restore(tmp_path, sample.files(sample.data, sample.table))
    inode = table_path(tmp_path).stat().st_ino
    assert recovered(tmp_path) == (sample.states[-1], [])
    assert contents(tmp_path) == sample.files(sample.data, sample.table)
    assert table_path(tmp_path).stat().st_ino == inode


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def committed(sample: Sample) -> Iterator[tuple[bytes, bytes | None, int, str]]:
    """Blocks and a table (None: there is none), the damaged block, and what is said of it."""
    data, table, starts = sample.data, sample.table, sample.starts
    for at in some_bytes_of(sample, 5):  # it was synced before the table named it: it is not torn
        yield flipped(data, at), table, 5, "it was on the disk"
        yield flipped(data, at), None, 5, "it is unknown whether"
    for height in (0, 2, 4):
        for at in some_bytes_of(sample, height):
            yield flipped(data, at), None, height, "; more data follows it"
        for lost in (b"", bytes(64), bytes(6 * 64)):  # genesis alone can have been uncommitted
            yield flipped(data, starts[height] + 300), lost, height, "; more data follows it"
    for at in (3, 70, 5 * ENTRY_BYTES, 6 * ENTRY_BYTES - 1):  # its length is still that of 6 blocks
        for end in (data[:-1], data[: starts[5] + 7], flipped(data, starts[5] + 300)):
            yield end, flipped(table, at), 5, "the table of heights had 6 blocks"


def test_a_damaged_block_that_was_committed_stops_the_writer(
    tmp_path: Path, sample: Sample
) -> None:
    for data, table, height, words in committed(sample):
        restore(tmp_path, sample.files(data, table))
        assert_stops(tmp_path, height, words)


def test_a_damaged_table_still_names_blocks_that_are_missing(five_files: Path) -> None:
    flip(table_path(five_files), 70)
    for first in (4, 3):
        block_file(five_files, first).unlink()
        assert_stops(five_files, first, "the table of heights names it, but no block file has it")


def test_a_torn_end_behind_a_damaged_table_is_cut_off(tmp_path: Path, sample: Sample) -> None:
    """The length of the table tells that no block was committed there."""
    restore(tmp_path, sample.files(sample.data + GARBAGE, sample.table))
    flip(table_path(tmp_path), 70)
    remade, cut, taken_in = assert_recovers(tmp_path, sample, 6, GARBAGE)
    assert (remade, taken_in) == (REMADE, added(0, 5))
    assert is_cut(cut, len(GARBAGE), len(sample.data))


def test_a_flipped_bit_in_the_table_has_it_made_again(tmp_path: Path, sample: Sample) -> None:
    for at in range(0, len(sample.table), tries(11, exploring=1)):
        restore(tmp_path, sample.files(sample.data, sample.table))
        flip(table_path(tmp_path), at)
        messages = assert_recovers(tmp_path, sample, 6, b"", goes_on=at % 4 == 0)
        is_tail = at >= 5 * ENTRY_BYTES  # as if it had never been written
        assert messages == ([added(5, 5)] if is_tail else [REMADE, added(0, 5)])


def without(sample: Sample, height: int) -> bytes:
    return sample.data[: sample.starts[height]] + sample.data[sample.starts[height + 1] :]


def with_swapped(sample: Sample, height: int) -> bytes:
    """Block `height` and the one behind it in each other's place."""
    a, b, c = sample.starts[height : height + 3]
    return sample.data[:a] + sample.data[b:c] + sample.data[a:b] + sample.data[c:]


def with_inserted(sample: Sample, height: int, what: bytes) -> bytes:
    start = sample.starts[height]
    return sample.data[:start] + what + sample.data[start:]


GARBAGE = bytes(range(7, 107))

Change = Callable[[Sample], bytes]

# what was done, how, the block named with the table intact (None: it goes on), and without a table
STOPPING: list[tuple[str, Change, int | None, int]] = [
    ("genesis removed", lambda s: without(s, 0), 4, 0),
    ("an earlier block removed", lambda s: without(s, 2), 4, 2),
    ("the block below the tip removed", lambda s: without(s, 4), 4, 4),
    ("two earlier blocks swapped", lambda s: with_swapped(s, 2), None, 2),
    ("the last two blocks swapped", lambda s: with_swapped(s, 4), 4, 4),
    ("an earlier block twice", lambda s: with_inserted(s, 3, s.frame(2)), 4, 3),
    ("garbage before the last block", lambda s: with_inserted(s, 5, GARBAGE), 5, 5),
    ("garbage between earlier blocks", lambda s: with_inserted(s, 2, GARBAGE), 4, 2),
    ("one byte before the last block", lambda s: with_inserted(s, 5, b"F"), 5, 5),
    (
        "the last two blocks zeroed",
        lambda s: s.data[: s.starts[4]].ljust(len(s.data), b"\0"),
        4,
        4,
    ),
    (
        "the last block zeroed",
        lambda s: s.data[: s.starts[5]].ljust(len(s.data), b"\0"),
        5,
        5,
    ),
    (
        "the last sectors zeroed",
        lambda s: s.data[: len(s.data) & ~511].ljust(len(s.data), b"\0"),
        5,
        5,
    ),
    ("zeros instead of the last block's start", lambda s: zeroed(s, s.starts[5], 20), 5, 5),
]


@each_of("case", STOPPING)
def test_damage_stops_the_writer_and_is_named(
    tmp_path: Path, sample: Sample, case: tuple[str, Change, int | None, int]
) -> None:
    _, change, with_table, without_table = case
    data = change(sample)
    restore(tmp_path, sample.files(data, sample.table))
    if with_table is not None:
        assert_stops(tmp_path, with_table)
    else:  # below the tip: left to reading
        assert recovered(tmp_path) == (sample.states[-1], [])
    restore(tmp_path, sample.files(data, None))
    assert_stops(tmp_path, without_table)


# what was done, and how; all six blocks are whole and valid frames stand behind them
NEVER_COMMITTED: list[tuple[str, Change]] = [
    ("an earlier block again at the end", lambda s: s.data + s.frame(2)),
    ("genesis again at the end", lambda s: s.data + s.frame(0)),
    ("the last block twice", lambda s: s.data + s.frame(5)),
    ("the whole chain twice", lambda s: s.data + s.data),
    ("garbage at the end hides a block", lambda s: s.data + GARBAGE + s.frame(1)),
    ("a torn block before a whole one", lambda s: s.data + s.frame(5)[:300] + s.frame(5)),
    ("zeros before a whole one", lambda s: s.data + bytes(512) + s.frame(5)),
]


@each_of("case", NEVER_COMMITTED)
def test_behind_an_intact_table_nothing_was_committed(
    tmp_path: Path, sample: Sample, case: tuple[str, Change]
) -> None:
    """Blocks of one commit may reach the disk in any order: valid ones behind a gap mean nothing.
    Without a table they would be damage.
    """
    _, change = case
    data = change(sample)
    torn, start = data[sample.starts[6] :], sample.starts[6]
    for named in (6, 4):
        restore(tmp_path, sample.files(data, sample.entries(0, named)))
        cut, *rest = assert_recovers(tmp_path, sample, 6, torn)
        assert is_cut(cut, len(torn), start)
        assert rest == ([added(4, 5)] if named == 4 else [])
    restore(tmp_path, sample.files(data, None))
    assert_stops(tmp_path, 6, "; more data follows it")


@pytest.mark.parametrize("height", [4, 5])
def test_a_gap_behind_the_table_ends_the_chain_there(
    tmp_path: Path, sample: Sample, height: int
) -> None:
    """The blocks 3 to 5 were written and not committed; one of them never reached the disk."""
    start, end = sample.starts[height], sample.starts[height + 1]
    data = zeroed(sample, start, end - start)
    restore(tmp_path, sample.files(data, sample.entries(0, 3)))
    cut, *rest = assert_recovers(tmp_path, sample, height, data[start:])
    assert is_cut(cut, len(data) - start, start)
    assert rest == [added(3, height - 1)]


# what stands behind the last block
TORN: list[tuple[str, Change]] = [
    ("garbage appended", lambda s: s.data + GARBAGE),
    ("one byte appended", lambda s: s.data + b"F"),
    ("zeros appended", lambda s: s.data + bytes(3000)),
    ("the last block and half of it again", lambda s: s.data + s.frame(5)[:300]),
]


def zeroed(sample: Sample, start: int, count: int) -> bytes:
    return sample.data[:start] + bytes(count) + sample.data[start + count :]


@each_of("case", TORN)
def test_without_a_table_a_torn_end_may_have_been_a_block(
    tmp_path: Path, sample: Sample, case: tuple[str, Change]
) -> None:
    """Whoever knows better can do what the message says."""
    _, change = case
    restore(tmp_path, sample.files(change(sample), None))
    assert_stops(tmp_path, 6, f"if none did, cut {FILE} at byte {sample.starts[6]}")
    os.truncate(block_file(tmp_path), sample.starts[6])
    assert assert_recovers(tmp_path, sample, 6, b"") == [REMADE, added(0, 5)]


def test_a_torn_block_is_left_out_only_if_all_of_its_transactions_are_pending(
    tmp_path: Path, sample: Sample
) -> None:
    """Those of an import are in no mempool; those of an empty block are all there."""
    asked: list[tuple[int, int]] = []

    def are_pending(first: int, following: int) -> bool:
        asked.append((first, following))
        return False

    restore(tmp_path, sample.files(sample.data[:-1], sample.table))
    what = "the mempool no longer holds its transactions"
    assert_stops(tmp_path, 5, what, are_pending=are_pending)
    header = sample.blocks[5].header
    after = header.first_transaction + header.transaction_count
    assert asked == [(header.first_transaction, after)]
    empty = 2
    assert sample.blocks[empty].header.transaction_count == 0
    data = sample.data[: sample.starts[empty + 1] - 1]
    restore(tmp_path, sample.files(data, sample.entries(0, empty + 1)))
    assert recovered(tmp_path)[0] == sample.states[empty - 1]


def test_a_second_torn_tail_at_the_same_place_keeps_the_first(
    tmp_path: Path, sample: Sample
) -> None:
    restore(tmp_path, sample.files(sample.data, sample.table))
    tails = [b"one", b"two", b"two", b"four"]
    for tail in tails:
        with block_file(tmp_path).open("ab") as stream:
            stream.write(tail)
        state, (message,) = recovered(tmp_path)
        assert state == sample.states[-1]
        assert contents(tmp_path)[message.split()[-1]] == tail
    kept = {name: data for name, data in contents(tmp_path).items() if name.startswith("torn")}
    start = len(sample.data)
    assert kept == {
        f"torn-blocks-0000000000-{start}-{number}.bin": tail
        for number, tail in enumerate(tails, start=1)
    }


def test_a_gap_written_over_with_the_same_size_is_found_by_its_hash(
    tmp_path: Path, sample: Sample
) -> None:
    """Another block 5, as long as the one on record, on the same block 4."""
    state = sample.states[4]
    other = next_block(state, 1, later_ms=2)
    make_chain(tmp_path, [])
    restore(tmp_path, sample.files(sample.data[: sample.starts[5]], sample.entries(0, 5)))
    with writing(tmp_path) as writer:
        writer.append(other)
        writer.commit()
        after = writer.state
    assert block_file(tmp_path).stat().st_size == len(sample.data)
    table_path(tmp_path).write_bytes(sample.table)
    state, messages = recovered(tmp_path)
    assert state == after == audited(tmp_path)
    assert messages == [REMADE, added(0, 5)]


# Several files -----------------------------------------------------------------------------------


@pytest.fixture
def five_files(tmp_path: Path) -> Path:
    make_chain(tmp_path, [1] * 4, block_file_bytes=A_FILE_EACH)
    return tmp_path


def assert_goes_on(folder: Path, height: int) -> None:
    """Two more blocks can be appended after block `height`, and all rules hold."""
    with writing(folder, block_file_bytes=A_FILE_EACH) as writer:
        assert writer.state.height == height
        append_blocks(writer, [1, 2])
        after = writer.state
    assert audited(folder) == after
    assert recovered(folder, block_file_bytes=A_FILE_EACH) == (after, [])


@pytest.mark.parametrize("with_table", [True, False])
def test_an_empty_next_file_is_nothing_and_is_written_to(
    five_files: Path, with_table: bool
) -> None:
    block_file(five_files, 5).touch()
    if not with_table:
        table_path(five_files).unlink()
    state, messages = recovered(five_files)
    assert state.height == 4
    assert messages == ([] if with_table else [REMADE, added(0, 4)])
    assert_goes_on(five_files, 4)
    assert block_file(five_files, 5).stat().st_size > 0


@pytest.mark.parametrize("first", [4, 6])
def test_an_empty_file_behind_a_torn_tip_is_nothing_valid(tmp_path: Path, first: int) -> None:
    make_chain(tmp_path, [1] * 4)
    os.truncate(block_file(tmp_path), block_file(tmp_path).stat().st_size - 3)
    block_file(tmp_path, first).touch()
    assert recovered(tmp_path, are_pending=all_are_pending)[0].height == 3
    assert_goes_on(tmp_path, 3)


@pytest.mark.parametrize(("first", "torn"), [(5, b""), (6, b""), (40, b""), (5, b"FCB1 torn")])
def test_a_file_that_does_not_follow_is_set_aside(
    five_files: Path, first: int, torn: bytes
) -> None:
    """Its name was on the disk before the block files between; or it is one of another chain."""
    data = torn or block_file(five_files, 2).read_bytes()
    block_file(five_files, first).write_bytes(data)
    whole = contents(five_files)
    _, messages = recovered(five_files)
    assert messages == [set_aside(first)]
    del whole[block_file_name(first)]
    assert contents(five_files) == {**whole, aside(first, 0): data}
    assert_goes_on(five_files, 4)


@pytest.mark.parametrize("count", [2, 9])
def test_the_table_of_another_ledger_is_made_again(
    five_files: Path, tmp_path_factory: pytest.TempPathFactory, count: int
) -> None:
    whole, other = contents(five_files), tmp_path_factory.mktemp("other")
    make_chain(other, [1] * count, difficulty_bits=1)
    genesis = genesis_in(five_files)
    table_path(five_files).write_bytes(contents(other)[TABLE_NAME])
    assert genesis_in(five_files) == ""  # so that nothing is taken for this ledger's or the other's
    assert recovered(five_files)[1] == [REMADE, added(0, 4)]
    assert contents(five_files) == whole
    assert genesis_in(five_files) == genesis
    assert_goes_on(five_files, 4)


@pytest.mark.parametrize("missing", [0, 1, 2, 3, 4])
def test_a_missing_file_stops_the_writer(five_files: Path, missing: int) -> None:
    """Of the newest, nothing tells without a table that it was there."""
    block_file(five_files, missing).unlink()
    assert_stops(five_files, missing, f"its file {block_file_name(missing)} is missing")
    if missing < 4:
        table_path(five_files).unlink()
        following = block_file_name(missing + 1)
        what = f"{following} does not start with block {missing}; more data follows"
        assert_stops(five_files, missing, what)


@pytest.mark.parametrize(("file", "height"), [(0, 4), (5, 9)])
def test_an_earlier_file_that_ends_too_soon_stops_the_writer(
    tmp_path: Path, file: int, height: int
) -> None:
    make_chain(tmp_path, [1] * 12, block_file_bytes=3000)
    os.truncate(block_file(tmp_path, file), block_file(tmp_path, file).stat().st_size - 1)
    assert_stops(tmp_path, height, f"{block_file_name(file)} ends before it")


@pytest.mark.parametrize(
    ("harm", "what"),
    [(flip, "it was on the disk when the table of heights"), (os.truncate, "more data follows it")],
)
def test_a_damaged_or_torn_tip_with_a_later_file_behind_it_stops_the_writer(
    five_files: Path, harm: Callable[[Path, int], None], what: str
) -> None:
    table = table_path(five_files).read_bytes()
    table_path(five_files).write_bytes(table[: 64 * 4])
    harm(block_file(five_files, 3), 100)
    assert_stops(five_files, 3, what)


def test_a_torn_file_behind_the_table_is_set_aside_with_the_files_behind_it(
    five_files: Path,
) -> None:
    """Files are synced before later ones are made, but nothing says so to whoever finds them."""
    table = table_path(five_files).read_bytes()
    flip(block_file(five_files, 3), 100)
    torn = contents(five_files)
    restore(five_files, {**torn, TABLE_NAME: table[: 64 * 2]})
    _, messages = recovered(five_files)
    assert messages == [set_aside(3), set_aside(4), added(2, 2)]
    for first in (3, 4):
        assert not block_file(five_files, first).exists()
        assert contents(five_files)[aside(first, 0)] == torn[block_file_name(first)]
    assert_goes_on(five_files, 2)


def test_files_that_are_not_block_files_are_left_alone(five_files: Path) -> None:
    strange = {
        "blocks-5.dat": b"x",
        "blocks-0000000005.dat.tmp": b"y",
        "torn-blocks-0000000004-7.bin": b"z",
        "notes.txt": b"",
    }
    for name, data in strange.items():
        (block_file(five_files).parent / name).write_bytes(data)
    before = contents(five_files)
    _, messages = recovered(five_files)
    assert messages == []
    assert contents(five_files) == before


def test_no_block_file_is_read_in_full_but_the_newest(five_files: Path) -> None:
    os.truncate(block_file(five_files), 2**40)  # more than there is memory
    assert recovered(five_files)[1] == []


# Tables that lie, with good checksums ------------------------------------------------------------


def entry(sample: Sample, height: int, **changes: int | bytes) -> bytes:
    place = place_from(sample.entries(height, height + 1))
    assert place is not None
    return place._replace(**changes).packed()  # type: ignore[arg-type]


@each_of("shift", [1, 100, 10**6, 2**40, 2**63, None])
def test_a_tip_entry_that_points_elsewhere_is_put_right(
    tmp_path: Path, sample: Sample, shift: int | None
) -> None:
    """Beyond its block, or into another file."""
    lie = {"file": 7} if shift is None else {"offset": sample.starts[5] + shift}
    table = sample.entries(0, 5) + entry(sample, 5, **lie)
    restore(tmp_path, sample.files(sample.data, table))
    assert assert_recovers(tmp_path, sample, 6, b"")[-1] == added(5, 5)


IN_ORDER: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
# what the last entry says instead of the truth
LIES: list[dict[str, int | bytes]] = [
    {"hash": bytes(32)},
    {"offset": 0},  # that of genesis
    {"length": 734},
    {"length": 2**32 - 1},
    {"first_transaction": 14},
    {"first_transaction": 2**64 - 1},
    {"transaction_count": 0},
    {"transaction_count": 4},
]
# which entries the table holds, and what the last one says
WRONG_TABLES: list[tuple[tuple[int, ...], dict[str, int | bytes]]] = [
    *((IN_ORDER, lie) for lie in LIES),
    ((0, 1, 3, 2, 4, 5), {}),  # swapped below the tip
    ((1, 0, 2, 3, 4, 5), {}),
    ((0, 1, 2, 3, 5, 4), {}),  # the last two swapped
    ((0, 1, 2, 2), {}),  # an entry twice
    ((0, 1, 2, 3, 4, 5, 5), {}),
    ((0, 1, 1, 3, 4, 5), {}),
    ((0, 1, 2, 4, 5), {}),  # an entry lacking
    ((1, 2, 3, 4, 5), {}),
    ((0, 5), {}),
    ((5,), {}),
]


@each_of(("order", "lie"), WRONG_TABLES)
def test_a_table_that_does_not_fit_its_tip_is_made_again(
    tmp_path: Path, sample: Sample, order: tuple[int, ...], lie: dict[str, int | bytes]
) -> None:
    *below, last = order
    table = b"".join(entry(sample, height) for height in below) + entry(sample, last, **lie)
    restore(tmp_path, sample.files(sample.data, table))
    assert assert_recovers(tmp_path, sample, 6, b"") == [REMADE, added(0, 5)]


@pytest.mark.parametrize(
    "order", [(0, 1, 2, 4, 3, 5), (0, 1, 3, 2, 4, 5), (0, 1, 3, 4, 5)], ids=str
)
def test_a_torn_tip_does_not_hide_that_the_table_lies_below_it(
    tmp_path: Path, sample: Sample, order: tuple[int, ...]
) -> None:
    """Whoever leaves out the tip must look at the one below as at any other tip."""
    table = b"".join(sample.entries(height, height + 1) for height in order)
    torn = sample.data[sample.starts[5] : -1]
    restore(tmp_path, sample.files(sample.data[:-1], table))
    before = contents(tmp_path)
    try:
        assert_recovers(tmp_path, sample, 5, torn)
    except DamagedBlock:
        assert contents(tmp_path) == before
