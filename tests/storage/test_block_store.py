import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.base import files
from backend.base.errors import Damage, DamagedBlock, NotFound
from backend.storage import block_store
from backend.storage.block_store import BlockStore
from backend.storage.layout import ENTRY_BYTES, place_from
from tests.descriptors import open_files
from tests.storage.chains import (
    A_FILE_EACH,
    Sample,
    all_are_pending,
    block_file,
    damage_named,
    flip,
    make_chain,
    recovered,
    refusing,
    restore,
    table_path,
)
from tests.submitting import run_together


def test_a_folder_that_is_not_there_holds_no_blocks(tmp_path: Path) -> None:
    store = BlockStore(tmp_path / "nowhere")
    assert store.height() == -1
    assert store.tip() is None
    assert store.places(0, 5) == []
    assert store.frames(0, 5) == []
    assert store.place_of_transaction(0) is None
    for ask in (store.place, store.block):
        with pytest.raises(NotFound, match="block 0 does not exist; there are no blocks"):
            ask(0)
    store.close()
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    "height", [-1, -(2**40), -(10**30), 6, 7, 2**40, 2**57, 2**58, 2**60, 2**63, 2**64, 10**30]
)
def test_asking_beyond_either_end_finds_nothing(
    tmp_path: Path, sample: Sample, height: int
) -> None:
    restore(tmp_path, sample.files(sample.data, sample.table))
    store = BlockStore(tmp_path)
    for ask in (store.block, store.frame, store.place):
        with pytest.raises(NotFound, match=f"block {height} does not exist; the newest is block 5"):
            ask(height)
    assert store.places(height, 3) == []
    assert store.frames(height, 3) == []


@pytest.mark.parametrize("block_file_bytes", [A_FILE_EACH, 2000, 10**6])
@given(first=st.integers(0, 12), count=st.integers(1, 14))
def test_a_run_is_the_blocks_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, block_file_bytes: int, first: int, count: int
) -> None:
    folder = tmp_path_factory.getbasetemp() / f"runs-{block_file_bytes}"
    if not folder.exists():
        make_chain(folder, [1, 0, 3] * 3, block_file_bytes=block_file_bytes)
    store = BlockStore(folder)
    expected = range(first, min(first + count, 10))
    run = store.frames(first, count)
    assert [place for place, _ in run] == [store.place(height) for height in expected]
    for height, (place, frame) in zip(expected, run, strict=True):
        data = block_file(folder, place.file).read_bytes()
        assert frame == data[place.offset : place.end]
        assert store.block(height).header.height == height
        assert store.frame(height) == (place, frame)


def test_a_run_stops_at_its_limit_of_bytes_but_gives_at_least_one_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_chain(tmp_path, [1] * 9)
    store = BlockStore(tmp_path)
    lengths = [place.length for place in store.places(0, 10)]
    for limit in (1, sum(lengths[2:5]), sum(lengths[2:5]) - 1, sum(lengths)):
        monkeypatch.setattr(block_store, "MAX_RUN_BYTES", limit)
        run = store.frames(2, 8)
        total = sum(len(frame) for _, frame in run)
        assert run
        assert len(run) == 1 or total <= limit
        assert len(run) == 8 or total + lengths[2 + len(run)] > limit


@pytest.mark.parametrize(
    "counts", [[], [0], [3, 0], [0, 0, 5, 0, 0], [*[1] * 30, 40, *[0] * 9, 1], [2, 0, 0, 2, 1]]
)
def test_a_transaction_is_found_in_its_block(tmp_path: Path, counts: list[int]) -> None:
    make_chain(tmp_path, counts)
    store = BlockStore(tmp_path)
    owners = [height + 1 for height, count in enumerate(counts) for _ in range(count)]
    places = [store.place_of_transaction(number) for number in range(len(owners))]
    assert places == [(height, store.place(height)) for height in owners]
    for number in (-1, len(owners), 2**63):
        assert store.place_of_transaction(number) is None


def test_no_more_files_are_open_than_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_chain(tmp_path, [1] * 9, block_file_bytes=A_FILE_EACH)
    monkeypatch.setattr(block_store, "MAX_OPEN_FILES", 3)
    before = len(open_files())
    store = BlockStore(tmp_path)
    for height in [*range(10), *range(9, -1, -1)]:
        assert store.block(height).header.height == height
        assert len(open_files()) - before <= 3 + 1  # and the table
    store.close()
    assert len(open_files()) == before


def test_a_table_made_again_is_opened_again(tmp_path: Path) -> None:
    make_chain(tmp_path, [1, 1])
    store = BlockStore(tmp_path)
    before = store.places(0, 9)
    table_path(tmp_path).unlink()
    assert store.height() == -1
    assert store.places(0, 9) == []
    recovered(tmp_path)
    assert store.places(0, 9) == before
    make_chain(tmp_path, [1])
    assert store.block(3).header.height == 3


@pytest.mark.parametrize("is_truncated", [True, False])
def test_a_block_file_made_again_is_opened_again(tmp_path: Path, is_truncated: bool) -> None:
    make_chain(tmp_path, [1] * 4, block_file_bytes=A_FILE_EACH)
    store = BlockStore(tmp_path)
    assert store.block(4).header.transaction_count == 1
    if is_truncated:
        os.truncate(block_file(tmp_path, 4), 100)
    else:  # as in a copy of the folder that was made too early
        block_file(tmp_path, 4).unlink()
        os.truncate(table_path(tmp_path), 4 * ENTRY_BYTES)
    assert recovered(tmp_path, are_pending=all_are_pending)[0].height == 3
    make_chain(tmp_path, [2], block_file_bytes=A_FILE_EACH)
    assert store.block(4).header.transaction_count == 2


def test_a_store_that_nobody_has_any_more_leaves_nothing_open(tmp_path: Path) -> None:
    make_chain(tmp_path, [1] * 3, block_file_bytes=A_FILE_EACH)
    before = open_files()
    store = BlockStore(tmp_path)
    for height in range(4):
        assert store.block(height).header.height == height
    assert len(open_files()) == len(before) + 5
    del store
    assert open_files() == before


def test_part_of_an_entry_is_not_a_block(tmp_path: Path, sample: Sample) -> None:
    for size in range(len(sample.table) + 1):
        restore(tmp_path, sample.files(sample.data, sample.table[:size]))
        store = BlockStore(tmp_path)
        assert store.height() == size // 64 - 1
        assert len(store.places(0, 9)) == size // 64
        store.close()


def test_a_damaged_entry_is_named_and_the_others_are_read(tmp_path: Path, sample: Sample) -> None:
    restore(tmp_path, sample.files(sample.data, sample.table))
    store = BlockStore(tmp_path)
    for at in range(0, len(sample.table), 5):
        height = at // 64
        flip(table_path(tmp_path), at)
        with pytest.raises(Damage, match=f"entry of block {height} in .*heights.dat is damaged"):
            store.block(height)
        for other in {0, height - 1, height + 1} & set(range(6)) - {height}:
            assert store.block(other) == sample.blocks[other]
        flip(table_path(tmp_path), at)


def test_a_file_shorter_than_the_table_says_damages_the_blocks_it_lacks(
    tmp_path: Path, sample: Sample
) -> None:
    restore(tmp_path, sample.files(sample.data, sample.table))
    store = BlockStore(tmp_path)
    for size in range(len(sample.data), -1, -17):
        os.truncate(block_file(tmp_path), size)
        for height in range(6):
            if sample.starts[height + 1] <= size:
                assert store.block(height) == sample.blocks[height]
            else:
                with pytest.raises(DamagedBlock, match=f"block {height} is damaged"):
                    store.block(height)


@pytest.mark.parametrize(
    "change", [{"offset": 2**40}, {"offset": 2**63}, {"offset": 2**64 - 1}, {"length": 0}], ids=str
)
def test_an_entry_that_points_nowhere_damages_its_block_and_no_other(
    tmp_path: Path, sample: Sample, change: dict[str, Any]
) -> None:
    """Its checksum is right."""
    place = place_from(sample.entries(2, 3))
    assert place is not None
    table = sample.entries(0, 2) + place._replace(**change).packed() + sample.entries(3, 6)
    restore(tmp_path, sample.files(sample.data, table))
    store = BlockStore(tmp_path)
    with damage_named(2):
        store.block(2)
    for other in (0, 1, 3, 4, 5):
        assert store.block(other) == sample.blocks[other]


def test_damage_names_the_block_that_was_asked_for(tmp_path: Path) -> None:
    """Not the first one of the file that is missing."""
    make_chain(tmp_path, [1] * 12, block_file_bytes=3000)
    store = BlockStore(tmp_path)
    assert [place.file for place in store.places(5, 3)] == [5, 5, 5]
    block_file(tmp_path, 5).unlink()
    for height in (5, 7):
        with damage_named(height, "is missing"):
            store.block(height)
    with damage_named(5):
        store.frames(3, 9)


@pytest.mark.parametrize("call", ["open", "pread"])
def test_a_block_that_the_disk_cannot_read_is_damaged(tmp_path: Path, call: str) -> None:
    make_chain(tmp_path, [1] * 3, block_file_bytes=A_FILE_EACH)
    store = BlockStore(tmp_path)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, call, refusing("blocks-0000000002.dat", getattr(os, call)))
        for ask in (store.block, store.frame, lambda height: store.frames(height - 1, 3)):
            with damage_named(2, r"cannot read .*Input/output error"):
                ask(2)
        for height in (0, 1, 3):
            assert store.block(height).header.height == height
    assert store.block(2).header.height == 2


@pytest.mark.parametrize("call", ["open", "pread"])
def test_a_table_that_the_disk_cannot_read_is_damage(tmp_path: Path, call: str) -> None:
    make_chain(tmp_path, [1] * 3)
    store = BlockStore(tmp_path)
    asks: list[Callable[[], object]] = [
        lambda: store.block(2),
        lambda: store.places(0, 2),
        lambda: store.frames(0, 2),
        store.tip,
        lambda: store.place_of_transaction(1),
    ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, call, refusing("heights.dat", getattr(os, call)))
        for ask in asks:
            with pytest.raises(Damage, match=r"cannot read .*heights.dat.*Input/output error"):
                ask()
    assert store.block(2).header.height == 2


def test_a_chain_cut_amid_a_read_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between asking how high the chain is and reading the table."""
    make_chain(tmp_path, [1] * 3)
    store = BlockStore(tmp_path)
    whole = table_path(tmp_path).read_bytes()
    table = store._table

    def table_after_the_cut(*inode: int) -> object:
        files.write_new(table_path(tmp_path), whole[:-64])
        return table()

    def before_the_cut(ask: Callable[[], object]) -> object:
        files.write_new(table_path(tmp_path), whole)
        return ask()

    monkeypatch.setattr(store, "_table", table_after_the_cut)
    for ask in (store.block, store.frame, store.place):
        with pytest.raises(NotFound):
            before_the_cut(lambda ask=ask: ask(3))  # type: ignore[misc]
    with pytest.raises(NotFound):
        before_the_cut(store.tip)
    assert before_the_cut(lambda: store.places(2, 2)) == store.places(2, 1)


def test_threads_that_share_few_descriptors_read_on_while_files_are_exchanged_and_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that one thread forgets stays open while another reads it."""
    make_chain(tmp_path, [1] * 30, block_file_bytes=A_FILE_EACH)
    monkeypatch.setattr(block_store, "MAX_OPEN_FILES", 2)
    store, data = BlockStore(tmp_path), table_path(tmp_path).read_bytes()
    end = time.monotonic() + 0.6

    def read(seed: int) -> None:
        chance = random.Random(seed)
        while time.monotonic() < end:
            what = chance.randrange(200)
            if what == 0:
                new = table_path(tmp_path).with_name(f"new-{threading.get_ident()}")
                new.write_bytes(data)
                new.replace(table_path(tmp_path))
            elif what == 1:
                store.close()
            else:
                height = chance.randrange(31)
                assert store.block(height).header.height == height

    run_together(4, read)


def test_a_block_is_found_by_its_hash_wherever_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_store, "SEARCHED_AT_ONCE", 20)
    make_chain(tmp_path, [0] * 49, difficulty_bits=4)
    store = BlockStore(tmp_path)
    hashes = [place.hash.hex() for place in store.places(0, 50)]
    for height in (0, 1, 9, 10, 29, 30, 49):
        for length in (64, 63, 12):
            assert list(store.heights_of_hash(hashes[height][:length])) == [height]
    for digits in {text[:length] for text in hashes for length in (2, 3)}:
        alike = [height for height, text in enumerate(hashes) if text.startswith(digits)]
        assert list(store.heights_of_hash(digits)) == alike[::-1]  # of several, newest first


def test_bytes_of_two_fields_are_no_hash(tmp_path: Path) -> None:
    make_chain(tmp_path, [1] * 5)
    table = (tmp_path / "blocks" / "heights.dat").read_bytes()
    store = BlockStore(tmp_path)
    for start in range(2, len(table) - 32, 2):
        digits = table[start : start + 32].hex()
        assert list(store.heights_of_hash(digits)) == ([start // 64] if start % 64 == 0 else [])
    seven = store.place(2)._replace(hash=b"\x07" * 32).packed()
    table_path(tmp_path).write_bytes(table[:128] + seven + table[192:])
    assert list(store.heights_of_hash("070707")) == [2]
    assert list(BlockStore(tmp_path / "nothing").heights_of_hash("00" * 32)) == []
