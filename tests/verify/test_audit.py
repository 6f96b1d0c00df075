"""`verify` against a decaying disk and an attacker who knows the format.

The attacker recomputes whatever can be recomputed: checksums, hashes, roots, links, the table of
heights. What is left for `verify` to find is named in each case.
"""

import multiprocessing
import os
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from backend.base.errors import Damage, DamagedBlock, FlightchainError, RuleViolation
from backend.chain.flight import Flight
from backend.index.index_file import index_path
from backend.storage.block_store import BlockStore
from backend.storage.codec import compress, frame_of
from backend.storage.layout import Place
from backend.verify import chain_check
from backend.verify.audit import verify
from backend.verify.chain_check import (
    Checked,
    Stretch,
    checked,
    joined,
    stretches_of,
)
from tests.index.tampering import (
    blocks_in,
    frame,
    places_in,
    relinked,
    with_change,
    write_blocks,
    write_table,
)
from tests.index.worlds import (
    execute,
    follow,
    make_chain,
    of_earlier_schema,
    plain_flight,
)
from tests.storage.chains import block_file, blocks_folder, damage_named, flip, flip_in_block

CONTENTS: list[list[Flight]] = [
    [plain_flight(OP_CARRIER_FL_NUM=n + 1) for n in range(4)],
    [],
    [plain_flight(FL_DATE="2009-02-28"), plain_flight(ORIGIN_CITY_NAME="東京", ORIGIN="NRT")],
    [plain_flight(CANCELLED=1, ARR_TIME=None, ARR_DELAY=None, AIR_TIME=None, DEP_DELAY=None)],
    [plain_flight(DEST_AIRPORT_ID=None), plain_flight(ARR_DELAY=15, FL_DATE="2008-01-31")],
]
TIP = len(CONTENTS)
TRANSACTIONS = sum(map(len, CONTENTS))


@pytest.fixture(autouse=True)
def short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the few blocks here in several stretches that must meet."""
    monkeypatch.setattr(chain_check, "BLOCKS_AT_ONCE", 2)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Genesis and five blocks in one file, with their index. Not to be changed."""
    folder = tmp_path_factory.mktemp("good")
    make_chain(folder, CONTENTS)
    follow(folder)
    return folder


@pytest.fixture
def folder(good: Path, tmp_path: Path) -> Path:
    """A copy of the good chain, to be tampered with."""
    return Path(shutil.copytree(good, tmp_path / "chain", symlinks=True))


def height_named(folder: Path) -> int:
    """Returns the height of the block that `verify` finds to be wrong."""
    with pytest.raises((DamagedBlock, RuleViolation)) as caught:
        verify(folder)
    assert isinstance(caught.value, DamagedBlock | RuleViolation)
    return caught.value.height


# --- good chains -----------------------------------------------------------------------------


def test_a_good_chain_and_its_index_pass(good: Path) -> None:
    calls: list[tuple[int, int]] = []
    report = verify(good, lambda done, to_do: calls.append((done, to_do)))
    tip = blocks_in(good)[-1]
    assert (report.height, report.transactions, report.tip_hash) == (TIP, TRANSACTIONS, tip.hash)
    assert report.index == "the index agrees with every block"
    assert calls == [(done, TIP + 1) for done in range(1, TIP + 2)]


@pytest.mark.parametrize("block_file_bytes", [1, 1500, 3000])
def test_a_chain_in_several_files_passes(tmp_path: Path, block_file_bytes: int) -> None:
    make_chain(tmp_path, CONTENTS * 2, block_file_bytes=block_file_bytes)
    follow(tmp_path)
    assert len(list(blocks_folder(tmp_path).glob("*.dat"))) > 3
    assert verify(tmp_path).transactions == 2 * TRANSACTIONS


def test_of_several_damaged_blocks_the_lowest_is_named(folder: Path) -> None:
    """The next stretch cannot begin, because its header below is damaged."""
    for height in (3, 2):
        flip_in_block(folder, height)
    assert height_named(folder) == 2


def test_without_a_chain_there_is_nothing_to_verify(tmp_path: Path) -> None:
    with pytest.raises(Damage, match="holds no chain"):
        verify(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_index_that_is_not_there_or_behind_is_no_damage(folder: Path) -> None:
    make_chain(folder, [[plain_flight()], []])
    assert f"up to block {TIP}" in verify(folder).index
    shutil.rmtree(index_path(folder).parent)
    assert verify(folder).index.startswith("the index does not exist yet")


def test_an_index_of_an_earlier_release_is_no_damage(folder: Path) -> None:
    of_earlier_schema(folder)
    words = "the index is not checked: it was made by an earlier release; the miner rebuilds it"
    assert verify(folder).index == words
    follow(folder)
    assert verify(folder).index == "the index agrees with every block"


def test_an_index_that_says_that_it_has_no_checksums_is_damage(folder: Path) -> None:
    with index_path(folder).open("r+b") as stream:
        stream.seek(20)
        stream.write(b"\0")  # one bit less than 8
    with pytest.raises(Damage, match=r"its pages have no checksums; run `.* reindex`"):
        verify(folder)


def test_an_index_of_another_schema_is_to_be_made_anew(folder: Path) -> None:
    execute(folder, "UPDATE position SET schema_version = schema_version + 1")
    with pytest.raises(Damage, match=r"version \d+ of the schema, not \d+; run `.* reindex`"):
        verify(folder)


def test_a_wrong_index_is_spoken_of_only_after_the_whole_chain(folder: Path) -> None:
    execute(folder, "UPDATE flight SET carrier = carrier + 1 WHERE id = 0")
    calls: list[int] = []
    with pytest.raises(Damage, match="the index is wrong: it has carrier"):
        verify(folder, lambda done, to_do: calls.append(done))
    assert calls == list(range(1, TIP + 2))
    flip_in_block(folder, TIP)
    with damage_named(TIP):
        verify(folder)


@pytest.mark.parametrize("table", ["route_slot", "number_total", "ranking"])
def test_several_processes_share_the_tables_of_the_index(folder: Path, table: str) -> None:
    assert verify(folder, processes=2).index == "the index agrees with every block"
    execute(folder, f"UPDATE {table} SET flights = flights + 1")
    with pytest.raises(Damage, match=f"the index is wrong: table {table} has or lacks"):
        verify(folder, processes=2)


def test_blocks_sealed_meanwhile_are_not_looked_at(folder: Path) -> None:
    totals: list[int] = []

    def seal(done: int, to_do: int) -> None:
        if done == 1:
            make_chain(folder, [[plain_flight()]])
        totals.append(to_do)

    assert verify(folder, seal).height == TIP
    assert set(totals) == {TIP + 1}
    assert verify(folder).height == TIP + 1


# --- a decaying disk -------------------------------------------------------------------------


def test_a_flipped_bit_in_a_block_names_the_block(folder: Path) -> None:
    for height, place in enumerate(places_in(folder)):
        for at in (place.offset, place.end - 1):
            flip(block_file(folder), at)
            assert height_named(folder) == height
            flip(block_file(folder), at)
    assert verify(folder).height == TIP


def test_bytes_behind_the_last_block_of_a_full_file_name_that_block(tmp_path: Path) -> None:
    make_chain(tmp_path, CONTENTS, block_file_bytes=1)
    with block_file(tmp_path, 2).open("ab") as stream:
        stream.write(b"more")
    with damage_named(2, "4 bytes"):
        verify(tmp_path)


# --- an attacker in the block files ------------------------------------------------------------


def test_a_block_sealed_again_is_found_at_the_link_of_the_next(folder: Path) -> None:
    """And not in the index, the only witness of what it was: that would have to be made anew."""
    write_blocks(folder, with_change(folder, 3, 1, "ARR_DELAY", -60))
    with pytest.raises(RuleViolation) as caught:
        verify(folder)
    assert (caught.value.height, caught.value.rule) == (4, "R3")


def test_a_block_sealed_again_is_found_at_the_table_if_that_was_forgotten(folder: Path) -> None:
    places = places_in(folder)
    write_blocks(folder, with_change(folder, TIP, 1, "ARR_DELAY", -60))
    write_table(folder, [*places[:-1], places_in(folder)[-1]._replace(hash=places[-1].hash)])
    with damage_named(TIP, "table of heights"):
        verify(folder)


def test_a_history_sealed_again_is_found_in_the_index_down_to_the_field(folder: Path) -> None:
    blocks = with_change(folder, 3, 1, "ARR_DELAY", -60)
    write_blocks(folder, relinked(blocks, 3))
    transaction = blocks[3].header.first_transaction + 1
    expected = f"arr_delay 5 instead of -60 for transaction {transaction} of block 3"
    with pytest.raises(Damage, match=expected):
        verify(folder)


def test_a_history_sealed_again_with_its_index_has_another_tip(folder: Path, good: Path) -> None:
    """Only somebody who kept the old tip hash can tell; `verify` gives it for that."""
    write_blocks(folder, relinked(with_change(folder, 3, 1, "ARR_DELAY", -60), 3))
    follow(folder)
    assert verify(folder).tip_hash != verify(good).tip_hash


@pytest.mark.parametrize(("height", "other"), [(1, 2), (3, 4), (2, TIP)])
@pytest.mark.parametrize("with_table", [False, True])
def test_swapped_blocks_name_the_first_of_them(
    folder: Path, height: int, other: int, with_table: bool
) -> None:
    blocks, places = blocks_in(folder), places_in(folder)
    blocks[height], blocks[other] = blocks[other], blocks[height]
    write_blocks(folder, blocks)
    if not with_table:
        swapped = places_in(folder)
        write_table(
            folder,
            [place._replace(hash=old.hash) for place, old in zip(swapped, places, strict=True)],
        )
    assert height_named(folder) == height


def test_the_newest_blocks_taken_off_are_missed_by_the_index(folder: Path) -> None:
    write_blocks(folder, blocks_in(folder)[:-1])
    with pytest.raises(Damage, match=rf"has {TIP} blocks, but .*index\.sqlite has {TIP + 1}"):
        verify(folder)


TABLE_CHANGES: dict[str, Callable[[Place], Place]] = {
    "hash": lambda place: place._replace(hash=bytes(32)),
    "offset after": lambda place: place._replace(offset=place.offset + 1),
    "offset before": lambda place: place._replace(offset=place.offset - 1),
    "offset beyond the file": lambda place: place._replace(offset=2**40),
    "length short": lambda place: place._replace(length=place.length - 1),
    "length nothing": lambda place: place._replace(length=0),
    "length long": lambda place: place._replace(length=place.length + 1),
    "first_transaction": lambda p: p._replace(first_transaction=p.first_transaction + 1),
    "transaction_count": lambda p: p._replace(transaction_count=p.transaction_count + 1),
}


@pytest.mark.parametrize("height", [3, TIP])
@pytest.mark.parametrize("change", TABLE_CHANGES)
def test_a_changed_entry_of_the_table_names_the_block(
    folder: Path, change: str, height: int
) -> None:
    places = places_in(folder)
    places[height] = TABLE_CHANGES[change](places[height])
    write_table(folder, places)
    assert height_named(folder) == height


@pytest.mark.parametrize("file", [1, 3, 99])
def test_an_entry_with_another_file_names_that_file(folder: Path, file: int) -> None:
    places = places_in(folder)
    places[3] = places[3]._replace(file=file)
    write_table(folder, places)
    with pytest.raises(DamagedBlock, match=block_file(folder, file).name):
        verify(folder)


@pytest.mark.parametrize("height", [2, TIP])
def test_bytes_hidden_behind_a_frame_are_found(folder: Path, height: int) -> None:
    blocks = blocks_in(folder)
    frames = [frame(block) for block in blocks]
    frames[height] += b"hidden"
    write_blocks(folder, blocks, frames)
    assert height_named(folder) == height


def test_a_header_that_is_not_canonical_names_the_block(folder: Path) -> None:
    """The same header with a space in it: another hash, put in order everywhere."""
    blocks = blocks_in(folder)
    spaced = blocks[TIP].header_bytes.replace(b",", b", ", 1)
    frames = [frame(block) for block in blocks]
    frames[TIP] = frame_of(spaced, blocks[TIP].body, compress(blocks[TIP].body))
    write_blocks(folder, blocks, frames)
    with damage_named(TIP, "canonical"):
        verify(folder)


# --- several processes -------------------------------------------------------------------------


@pytest.mark.parametrize("processes", [2, 3, 5])
def test_several_processes_find_the_same(good: Path, processes: int) -> None:
    calls: list[tuple[int, int]] = []
    report = verify(good, lambda done, to_do: calls.append((done, to_do)), processes)
    assert report == verify(good)
    assert calls == [(done, TIP + 1) for done in range(1, TIP + 2)]


@pytest.mark.parametrize(("first", "other"), [(0, TIP), (3, TIP), (0, 1)])
def test_several_processes_name_the_first_of_two_damaged_blocks(
    folder: Path, first: int, other: int
) -> None:
    for height in (first, other):
        flip_in_block(folder, height)
    with damage_named(first):
        verify(folder, processes=3)


def die(_: Stretch) -> Checked:
    """End as a process does when memory runs out."""
    os._exit(1)


def test_a_process_that_dies_is_an_error_and_none_is_left(good: Path) -> None:
    with closing(BlockStore(good)) as store:
        stretches = list(stretches_of(store, TIP))
    with (
        pytest.raises(FlightchainError, match=r"died.*--processes 1"),
        chain_check.mapping(2) as mapped,
    ):
        joined(stretches, mapped(die, stretches), TIP, lambda done, to_do: None)
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize(
    "changed", [{"timestamp": 5}, {"transactions": 5}, {"tip_hash": "0" * 64}, {"height": 0}]
)
def test_stretches_that_do_not_meet_name_the_block_where_they_should(
    good: Path, changed: dict[str, Any]
) -> None:
    """As when a disk gives other bytes each time that it is read."""
    with closing(BlockStore(good)) as store:
        stretches = list(stretches_of(store, TIP))
        below = stretches[1].below
        assert below is not None
        stretches[1] = replace(stretches[1], below=replace(below, **changed))
        with damage_named(1, "two readings"):
            joined(stretches, map(partial(checked, good, None), stretches), TIP, print)


def test_blocks_that_could_not_be_read_at_first_are_not_passed_over(good: Path) -> None:
    with closing(BlockStore(good)) as store:
        stretches = list(stretches_of(store, TIP))[:-1]
        with damage_named(4, "two readings"):
            joined(stretches, map(partial(checked, good, None), stretches), TIP, print)
