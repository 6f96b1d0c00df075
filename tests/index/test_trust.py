"""Which index is believed: one of this chain, whole and of one moment. Others are refused."""

import shutil
from itertools import cycle
from pathlib import Path

import pytest

from backend.base.errors import TryLater
from backend.index import checkpoint_note
from backend.index.checkpoint_note import SUFFIX, note_of
from backend.index.damage_mark import damage_of, mark
from backend.index.index_file import index_path
from backend.index.queries import IndexReader
from backend.index.table_checks import inconsistency
from tests.index.test_follower import FILE_SPOILED, NOT_OF_THE_CHAIN, Spoil, damage_table, running
from tests.index.test_queries import ALL_YEARS, ASKS, AVERAGE, COUNTER, ONE_LEG
from tests.index.worlds import (
    assert_as_rebuilt,
    count_of,
    execute,
    follow,
    following,
    in_use,
    make_chain,
    of_earlier_schema,
    plain_flight,
    settle,
    totals_of,
)


def is_mended(folder: Path) -> None:
    """The miner's next session makes the index anew, and takes the mark away."""
    follow(folder)
    assert in_use(folder).name == "index-2.sqlite"
    assert damage_of(in_use(folder)) is None
    assert not (index_path(folder).parent / "damaged").exists()
    assert IndexReader(folder).position().height >= 0
    assert_as_rebuilt(folder)


# --- the chain -------------------------------------------------------------------------------


@pytest.mark.parametrize(("spoil", "ask"), list(zip(NOT_OF_THE_CHAIN, cycle(ASKS), strict=False)))
def test_an_index_that_stands_at_no_block_of_the_chain_answers_nothing_and_is_made_anew(
    indexed: Path, spoil: str, ask: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.index.queries.RECENT_S", 0.0)
    change, reason = NOT_OF_THE_CHAIN[spoil]
    reader = IndexReader(indexed)
    reader.legs(ONE_LEG)
    state = reader.recent_state()
    change(indexed)
    for refused in (
        lambda: ASKS[ask](IndexReader(indexed)),
        reader.position,
        reader.recent_state,
        lambda: reader.records_of([plain_flight()]),
    ):
        with pytest.raises(TryLater, match=reason):
            refused()
    assert reason in (damage_of(in_use(indexed)) or "")
    is_mended(indexed)
    assert reader.recent_state() != state, "answers that were kept are kept on"


def test_the_position_is_compared_again_when_it_moves(indexed: Path) -> None:
    reader = IndexReader(indexed)
    count_of(reader, COUNTER)
    execute(indexed, f"UPDATE position SET height = 3, tip_hash = '{'0' * 64}'")
    for _ in range(2):
        with pytest.raises(TryLater, match="on another branch: its block 3"):
            count_of(reader, COUNTER)


# --- the file --------------------------------------------------------------------------------


def cut_short(folder: Path) -> None:
    path = in_use(folder)
    with path.open("r+b") as stream:
        stream.truncate(path.stat().st_size - 100)
    settle(folder)


def without_checksums(folder: Path) -> None:
    """The byte that says how much of each page is kept for checksums."""
    with in_use(folder).open("r+b") as stream:
        stream.seek(20)
        stream.write(b"\0")
    settle(folder)


WRONG: tuple[tuple[Spoil, str], ...] = (
    (lambda folder: damage_table(folder, "flight"), "legs"),
    (lambda folder: damage_table(folder, "position"), "position"),
    (lambda folder: damage_table(folder, "route_total"), "route_count"),
    (lambda folder: damage_table(folder, "carrier_delays"), "delays"),
    (lambda folder: damage_table(folder, "ranking"), "airports"),
    (FILE_SPOILED["no table"], "position"),
    (FILE_SPOILED["another schema"], "legs"),
    (running("DELETE FROM place WHERE place = 1"), "legs"),
    (running("UPDATE carrier_total SET period = period + 9999999 WHERE span = 0"), "days"),
    (running("UPDATE flight SET dep_time = 9999"), "legs"),
    (running("UPDATE route SET dest = 999 + route"), "destinations of an airport"),
    (running("UPDATE ranking SET item = 999 + item"), "flights by destination"),
    (cut_short, "position"),
    (without_checksums, "position"),
)


@pytest.mark.parametrize(("spoil", "ask"), WRONG)
def test_an_index_that_is_wrong_is_refused_by_all_readers_and_made_anew(
    indexed: Path, spoil: Spoil, ask: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.index.connections._LOOK_AGAIN_S", 0.0)
    reports: list[str] = []
    reader, other = IndexReader(indexed, report=reports.append), IndexReader(indexed)
    spoil(indexed)
    with pytest.raises(TryLater, match=r"the index is wrong \(.+\); the miner or `.* reindex`"):
        ASKS[ask](reader)
    for any_reader in (reader, other, IndexReader(indexed)):
        with pytest.raises(TryLater, match="ask with engine=scan"):
            any_reader.legs(ONE_LEG)
    assert len(reports) == 1
    assert str(in_use(indexed)) in reports[0]
    is_mended(indexed)
    assert len(reader.legs(ONE_LEG)[0]) == len(other.legs(ONE_LEG)[0]) == 4


@pytest.mark.parametrize("is_read_only", [False, True])
def test_an_index_of_an_earlier_release_is_not_called_wrong(
    indexed: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_read_only: bool,
) -> None:
    monkeypatch.setattr("backend.index.connections._LOOK_AGAIN_S", 0.0)
    of_earlier_schema(indexed)
    reports: list[str] = []
    if is_read_only:
        monkeypatch.setattr("backend.index.damage_mark.mark", lambda path, reason: False)
    for reader in (IndexReader(indexed, report=reports.append), IndexReader(indexed)):
        with pytest.raises(
            TryLater, match=r"^the index: it was made by an earlier release; the mi"
        ):
            reader.legs(ONE_LEG)
    assert reports == [f"the index {in_use(indexed)}: it was made by an earlier release"]
    if is_read_only:
        return
    is_mended(indexed)


def test_a_question_that_cannot_be_encoded_is_no_damage(indexed: Path) -> None:
    reader = IndexReader(indexed)
    with pytest.raises(UnicodeEncodeError):
        count_of(reader, type(COUNTER)("\ud800", "Tampa, FL", *ALL_YEARS))
    assert damage_of(in_use(indexed)) is None
    assert count_of(reader, COUNTER)[0] == 5


def test_a_mark_of_another_file_says_nothing(indexed: Path) -> None:
    mark(in_use(indexed).with_name("index-9.sqlite"), "it was wrong")
    assert count_of(IndexReader(indexed), COUNTER)[0] == 5
    follow(indexed)
    assert in_use(indexed).name == "index-1.sqlite"


def test_an_index_that_was_replaced_is_known_by_its_next_block(
    indexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All answers have a block 20 ms after it was indexed, and not only when it is looked again."""
    monkeypatch.setattr("backend.index.queries.RECENT_S", 0.0)
    reader = IndexReader(indexed)
    assert count_of(reader, COUNTER)[0] == 5
    with following(indexed) as (follower, _):
        follower.follow()
        follower.rebuild()
        make_chain(indexed, [[plain_flight()]])
        follower.follow()
        tip_hash = IndexReader(indexed).position().tip_hash
        assert reader.recent_state().tip_hash == tip_hash
        assert count_of(reader, COUNTER)[0] == 6


# --- one moment ------------------------------------------------------------------------------


def test_a_consistent_copy_is_trusted_when_the_follower_has_seen_it(
    indexed: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(indexed, tmp_path / "copy", symlinks=True))
    with pytest.raises(TryLater, match=r"changed since its writer closed it.* reindex`"):
        totals_of(IndexReader(copy), AVERAGE)
    assert damage_of(in_use(copy)) is None
    reports: list[str] = []
    with following(copy, reports.append) as (follower, _):
        follower.follow()
    assert reports == [
        "the index was changed since it was written, as by a copy; it is checked first"
    ]
    assert in_use(copy).name == "index-1.sqlite", "it was made anew without need"
    assert totals_of(IndexReader(copy), AVERAGE)[0].flights == 6


def test_a_note_that_is_lost_or_spoilt_is_written_again(indexed: Path) -> None:
    note = in_use(indexed).with_name(in_use(indexed).name + SUFFIX)
    for data in (None, b"", b"17 {}", note.read_bytes()[:-1], note.read_bytes()[1:]):
        note.unlink()
        if data is not None:
            note.write_bytes(data)
        with pytest.raises(TryLater, match="changed since its writer closed it"):
            IndexReader(indexed).position()
        follow(indexed)
        assert IndexReader(indexed).position().height == 4
    assert in_use(indexed).name == "index-1.sqlite"


# One of each kind; tests/index/test_table_checks.py tries every row and column of each table.
TWO_MOMENTS = {
    "a flight is lacking": "DELETE FROM flight WHERE id = 1",
    "a total of a number is old": "UPDATE number_total SET flights = flights - 1",
    "a ranking is old": "UPDATE ranking SET flights = flights - 1 WHERE kind = 1 AND span = 2",
    "a city is lacking": "DELETE FROM city WHERE city = 1",
    "a distribution is old": "UPDATE carrier_delays SET counts = x'810501' WHERE span = 0",
    "the position is new": "UPDATE position SET transactions = transactions + 1",
}


@pytest.mark.parametrize("case", TWO_MOMENTS)
def test_an_index_of_two_moments_is_inconsistent_and_rebuilt(
    indexed: Path, tmp_path: Path, case: str
) -> None:
    assert inconsistency(indexed) == ""
    execute(indexed, TWO_MOMENTS[case])
    assert inconsistency(indexed) != ""
    copy = Path(shutil.copytree(indexed, tmp_path / "copy", symlinks=True))
    with pytest.raises(TryLater):
        IndexReader(copy).legs(ONE_LEG)
    is_mended(copy)


def test_a_reader_that_comes_while_the_log_is_brought_in_waits_for_nothing(
    indexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, in the middle and after it, each time with a new connection."""
    answers: list[int] = []

    def asking(name: str) -> None:
        real = getattr(checkpoint_note, name)

        def call(path: Path, height: int) -> None:
            answers.append(count_of(IndexReader(indexed), COUNTER)[0])
            real(path, height)
            answers.append(count_of(IndexReader(indexed), COUNTER)[0])

        monkeypatch.setattr(f"backend.index.writer.{name}", call)

    asking("note_moving")
    asking("note_settled")
    with following(indexed) as (follower, _):
        follower.follow()
        make_chain(indexed, [[plain_flight()]])
        follower.follow()
    assert answers == [6] * 4
    note = note_of(in_use(indexed))
    assert note is not None
    assert (note.height, note.is_moving) == (5, False)
