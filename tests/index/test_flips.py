"""One flipped bit anywhere in the files of an index: an answer is right, or there is none.

The bit is flipped behind the system's back, as a disk does it: the note of the writer still fits.
What is flipped are files as a killed writer left them, at every stage of bringing its log into the
file: with pages of the file that are newer than what is left of a damaged log.
"""

import os
import random
import signal
import struct
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from backend.base.errors import TryLater
from backend.index import checkpoint_note
from backend.index.checkpoint_note import Note, note_of
from backend.index.damage_mark import damage_of
from backend.index.queries import IndexReader
from backend.index.writer import IndexWriter, sealed_block
from backend.questions.groups import EVERYTHING, Shown
from backend.questions.values import (
    AverageDelays,
    Departures,
    FilterTransactions,
    FlightCounter,
    Options,
)
from backend.storage.block_store import BlockStore
from tests.effort import tries
from tests.index.test_crashes import killed
from tests.index.worlds import (
    assert_as_rebuilt,
    follow,
    following,
    in_use,
    index_up_to,
    make_chain,
    plain_flight,
    questions_about,
    rows_of,
)

pytestmark = pytest.mark.slow

FLIPS = tries(40, exploring=1000)
# Asked after each flip. If readers believed an index whatever its writer noted, 43 of 300 flips
# would give a wrong answer to one of 40; without checksums of pages, 3.
QUESTIONS = tries(15, exploring=40)
ASKED_ABOUT = 6  # of the newest flights every sixth
SETTLED_AT, TIP = 6, 16  # the heights of the file when the writer that is killed begins, and ends
PAGE, CHECKSUM, WAL_HEAD, FRAME_HEAD = 4096, 8, 32, 24
FRAME = FRAME_HEAD + PAGE

Asked = tuple[Any, Options]
# Each question about delays has one of these, so that each table is asked.
BREAKDOWNS = (
    Options(group_by="day", distribution=True),
    Options(group_by="hour"),
    Options(group_by="route", shown=Shown("average_delay", limit=5)),
)

Files = dict[str, bytes]  # what stands behind the name of the index -> content


@dataclass(frozen=True)
class Left:
    """A chain, the flights in it, and files of its index as a writer left them."""

    folder: Path
    questions: list[Asked]
    stages: dict[str, tuple[Files, Note]]
    right: dict[int, dict[Asked, Any]]  # height -> question -> answer


def flights(block: int) -> list[Any]:
    """Many in the first blocks and few in the later ones, which so touch few of all pages."""
    count = 500 if block < SETTLED_AT else 2
    chance = random.Random(block)
    return [
        plain_flight(
            OP_CARRIER_FL_NUM=chance.randrange(1, 300),
            ORIGIN_CITY_NAME=f"City {chance.randrange(120)}",
            ORIGIN="ABC",
            ORIGIN_AIRPORT_ID=None,
            OP_CARRIER_AIRLINE_ID=chance.choice((19393, 20366, 19790)),
            FL_DATE=f"2008-{chance.randrange(1, 13):02d}-{chance.randrange(1, 29):02d}",
            ARR_DELAY=chance.randrange(-20, 40),
        )
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Left:
    folder = tmp_path_factory.mktemp("left")
    contents = [flights(block) for block in range(TIP)]
    blocks = make_chain(folder, contents[:SETTLED_AT])
    follow(folder)
    path = in_use(folder)
    blocks += make_chain(folder, contents[SETTLED_AT:])
    whole = files_of(path), noted(path)
    newest = rows_of(contents, blocks)[-2 * (TIP - SETTLED_AT) :]
    questions = list(zip(questions_about(newest[::ASKED_ABOUT]), cycle(BREAKDOWNS), strict=False))
    right = {
        height: answers_at(tmp_path_factory.mktemp("right"), folder, height, questions)
        for height in range(SETTLED_AT, TIP + 1, 2)
    }
    assert killed(lambda: None, lambda: apply_all(folder), signal.SIGKILL)
    log = files_of(path)
    moving = Note(TIP, 0, 0)
    stages = {
        "settled": whole,
        "log not begun": (log, whole[1]),
        **{
            f"{part} of 4 brought into the file": (brought_in(log, part), moving)
            for part in range(5)
        },
        "log not removed": (brought_in(log, 4), Note(TIP, 0, 1)),
    }
    return Left(folder, questions, stages, right)


def answers_at(
    folder: Path, chain: Path, height: int, questions: Sequence[Asked]
) -> dict[Asked, Any]:
    """Returns what an index that was built at once answers at a height of the chain."""
    index_up_to(folder, chain, height)
    with closing(IndexReader(folder)) as reader:
        return {question: ask(reader, question)[0] for question in questions}


def apply_all(folder: Path) -> None:
    """Take in the rest of the chain, two blocks in a transaction."""
    with closing(BlockStore(folder)) as store:
        writer = IndexWriter(in_use(folder))
        for height in range(SETTLED_AT + 1, store.height() + 1, 2):
            writer.apply([sealed_block(store.block(h)) for h in (height, height + 1)])
        os.kill(os.getpid(), signal.SIGKILL)


def files_of(path: Path) -> Files:
    """Read the index, its log and the log's index."""
    paths = {suffix: path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")}
    return {suffix: file.read_bytes() for suffix, file in paths.items() if file.exists()}


def noted(path: Path) -> Note:
    note = note_of(path)
    assert note is not None
    return note


def brought_in(files: Files, quarters: int) -> Files:
    """Bring so many quarters of the log's pages into the index, in the order of pages."""
    newest: dict[int, bytes] = {}
    log = files["-wal"]
    for start in range(WAL_HEAD, len(log), FRAME):
        page = log[start + FRAME_HEAD : start + FRAME]
        newest[int.from_bytes(log[start : start + 4])] = page
    pages = sorted(newest)
    index = bytearray(files[""])
    for number in pages[: len(pages) * quarters // 4]:
        index.extend(bytes(max(0, number * PAGE - len(index))))
        index[(number - 1) * PAGE : number * PAGE] = with_checksum(newest[number])
    return {**files, "": bytes(index)}


def with_checksum(page: bytes) -> bytes:
    """Add a checksum, as the checksum VFS does in the index: the log has none of pages."""
    first = second = 0
    for even, odd in struct.iter_unpack("<II", page[:-CHECKSUM]):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return page[:-CHECKSUM] + struct.pack("<II", first, second)


def put(path: Path, files: Files, note: Note) -> None:
    """Write the files, with a note that fits."""
    for suffix in ("", "-wal", "-shm"):
        file = path.with_name(path.name + suffix)
        file.unlink(missing_ok=True)
        if suffix in files:
            file.write_bytes(files[suffix])
    path.with_name("damaged").unlink(missing_ok=True)
    if note.is_moving:
        checkpoint_note.note_moving(path, note.height)
    else:
        checkpoint_note.note_settled(path, note.height)


def flipped(files: Files, chance: random.Random) -> Files:
    """Flip one bit in one of the files, each file with the same chance."""
    suffix = chance.choice([name for name in files if files[name]])
    data = bytearray(files[suffix])
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return {**files, suffix: bytes(data)}


def answers(left: Left, questions: Sequence[Asked]) -> Iterator[bool]:
    """Ask an index as a process that has just started; for each question whether it answered."""
    with closing(IndexReader(left.folder)) as reader:
        for question in questions:
            try:
                answer, as_of = ask(reader, question)
            except TryLater:
                yield False
                continue
            assert answer == left.right[as_of.height][question], question
            yield True


def ask(reader: IndexReader, asked: Asked) -> tuple[Any, Any]:
    question, options = asked
    match question:
        case FilterTransactions():
            return reader.legs(question)
        case AverageDelays() | FlightCounter():
            return reader.counts(question, options)
        case Departures():
            return reader.departures(question, EVERYTHING)
    raise AssertionError(question)


def test_every_stage_answers_when_no_bit_is_flipped(left: Left) -> None:
    path = in_use(left.folder)
    for files, note in left.stages.values():
        put(path, files, note)
        assert all(answers(left, left.questions))


def test_after_one_flipped_bit_answers_are_right_or_refused(left: Left) -> None:
    path = in_use(left.folder)
    answered = refused = 0
    for seed in range(FLIPS):
        chance = random.Random(seed)
        files, note = chance.choice(list(left.stages.values()))
        put(path, flipped(files, chance), note)
        outcomes = list(answers(left, chance.sample(left.questions, QUESTIONS)))
        answered += all(outcomes)
        refused += not all(outcomes)
    assert answered > FLIPS / 10
    assert refused > FLIPS / 10


def test_a_log_damaged_while_it_is_written_is_not_brought_into_the_file(tmp_path: Path) -> None:
    """There its page would get a checksum that is right."""
    make_chain(tmp_path, [flights(0)])
    follow(tmp_path)
    with following(tmp_path) as (follower, _):
        follower.follow()
        path = in_use(tmp_path)
        for number in (1, 2):
            follower.apply([sealed_block(b) for b in make_chain(tmp_path, [flights(number)])])
            log = path.with_name(path.name + "-wal")
            with log.open("r+b") as stream:
                stream.seek(log.stat().st_size - 300)
                (byte,) = stream.read(1)
                stream.seek(-1, os.SEEK_CUR)
                stream.write(bytes([byte ^ 1]))
            follower.close()
            assert "log was damaged" in (damage_of(path) or "")
            with pytest.raises(TryLater, match="log was damaged"):
                IndexReader(tmp_path).position()
            follower.follow()
            path = in_use(tmp_path)
            assert damage_of(path) is None
    assert_as_rebuilt(tmp_path)


@pytest.mark.parametrize("stage", range(1, 8, tries(2, exploring=1)))
def test_the_log_damaged_at_any_frame_mixes_nothing(left: Left, stage: int) -> None:
    """Of a log, SQLite drops the frame with the flipped bit and all that follow."""
    path = in_use(left.folder)
    files, note = list(left.stages.values())[stage]
    log = files.get("-wal", b"")
    some = range(stage * FRAME, len(log), tries(40, exploring=1) * FRAME)
    for start in (*range(min(1, len(log))), *some):
        spoilt = bytearray(log)
        spoilt[start] ^= 1  # of the head of the log, or in the data of a frame
        put(path, {**files, "-wal": bytes(spoilt)}, note)
        list(answers(left, left.questions[start % 7 :: 7]))
