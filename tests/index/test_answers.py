"""The heart: index == scan == a plain loop over the source flights, at the tip and at every height.

Everything is asked through the facade, so the caches are under test as well.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import date
from itertools import cycle, islice, product
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.base.errors import Damage
from backend.base.settings import Settings
from backend.chain.fields import Value
from backend.chain.flight import Flight
from backend.ledger.answers import NEAR_BLOCKS
from backend.ledger.ledger import Ledger
from backend.questions.values import AverageDelays, Options, understood
from tests.api.worlds import copy_chain
from tests.effort import examples, tries
from tests.index.worlds import (
    AIRPORTS,
    BREAKDOWNS,
    CARRIERS,
    NUMBERS,
    chains,
    follow,
    make_chain,
    plain,
    plain_flight,
    questions,
    questions_about,
    rows_of,
)
from tests.storage.chains import block_file, flip

CACHE_BYTES = (0, 1, 3000, 20_000_000)
READ_RUNS = (1, 2, 19)


def ask(ledger: Ledger, question: Any, options: Options) -> dict[str, Any]:
    """The facade's answer to any question."""
    answer: dict[str, Any] = msgspec.to_builtins(ledger.answers.exact(question, options))
    return answer


@contextmanager
def opened(
    folder: Path, cache_bytes: int = 0, read_run_blocks: int = 19, near_blocks: int = NEAR_BLOCKS
) -> Iterator[Ledger]:
    """near_blocks: how far below its tip the index takes later blocks away from its totals."""
    chosen = Settings(dir=str(folder), cache_bytes=cache_bytes, read_run_blocks=read_run_blocks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("backend.ledger.answers.NEAR_BLOCKS", near_blocks)
        with closing(Ledger(chosen, lambda line: None)) as ledger:
            yield ledger


class Chain:
    """A chain on disk with its index, and the flights it was made of."""

    def __init__(self, folder: Path, contents: Sequence[Sequence[Flight]]) -> None:
        self.folder = folder
        blocks = make_chain(folder, contents)
        follow(folder)
        self.tip = len(blocks)
        self.rows = rows_of(contents, blocks)
        self.hashes = [block.header.previous_hash for block in blocks[:1]]
        self.hashes += [block.hash for block in blocks]

    def plain(self, question: Any, options: Options) -> dict[str, Any]:
        """The answer by a plain loop."""
        height = self.tip if options.as_of is None else options.as_of
        below = [row for row in self.rows if row["BLOCK_HEIGHT"] <= height]
        return plain(below, question, options)

    def assert_answer(self, ledger: Ledger, question: Any, options: Options) -> None:
        """Both engines agree with the plain loop."""
        height = self.tip if options.as_of is None else options.as_of
        expected = self.plain(question, options)
        for engine in ("index", "scan"):
            options = replace(options, engine=engine)
            answer = ask(ledger, question, options)
            position = answer.pop("as_of")
            assert answer.pop("query") == understood(question, options)
            assert answer == expected, (question, options)
            assert position["height"] == height
            if self.tip:
                assert position["tip_hash"] == self.hashes[height]

    def assert_answers(self, ledger: Ledger, question: Any, turn: int) -> None:
        """Both engines agree with the plain loop at the tip and as of every height.

        turn: where to begin among the breakdowns, of which each height takes the next two.
        """
        breakdowns = cycle(BREAKDOWNS[type(question)])
        for as_of, which in product((None, *range(self.tip + 1)), range(2)):
            breakdown = next(islice(breakdowns, turn if which == 0 else 0, None))
            self.assert_answer(ledger, question, Options(as_of=as_of, **breakdown))


@given(
    contents=chains,
    some=st.lists(questions, max_size=4),
    cache_bytes=st.sampled_from(CACHE_BYTES),
    read_run_blocks=st.sampled_from(READ_RUNS),
    turn=st.integers(0, 12),
    near_blocks=st.sampled_from((0, 2, NEAR_BLOCKS)),
)
@settings(max_examples=examples(6))
def test_index_and_scan_equal_a_plain_loop_at_every_height(
    contents: list[list[Flight]],
    some: list[Any],
    cache_bytes: int,
    read_run_blocks: int,
    turn: int,
    near_blocks: int,
) -> None:
    with TemporaryDirectory() as folder:
        chain = Chain(Path(folder), contents)
        with opened(chain.folder, cache_bytes, read_run_blocks, near_blocks) as ledger:
            by_day = sorted(chain.rows, key=itemgetter("FL_DATE"))
            about = questions_about([*by_day[:1], *by_day[-1:]])
            for question in dict.fromkeys([*some, *about]):
                chain.assert_answers(ledger, question, turn)


@pytest.fixture(scope="module")
def larger(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    """More blocks than are indexed or read at once, a few of them empty."""
    chance = random.Random(2008)
    contents = [
        [chance_flight(chance) for _ in range(chance.choice((0, 1, 30, 60)))] for _ in range(40)
    ]
    return Chain(tmp_path_factory.mktemp("larger"), contents)


def chance_flight(chance: random.Random) -> Flight:
    """A valid flight of the world within three years."""
    day = date.fromordinal(date(2007, 6, 1).toordinal() + chance.randrange(900))
    is_cancelled, is_diverted = chance.random() < 0.1, chance.random() < 0.1
    flew = {
        "ARR_TIME": f"{chance.randrange(24):02d}{chance.randrange(60):02d}",
        "ARR_DELAY": None if is_diverted else chance.randint(-60, 200),
        "AIR_TIME": chance.randint(20, 600),
    }
    changed: dict[str, Value] = {
        "FL_DATE": day.isoformat(),
        "OP_CARRIER_AIRLINE_ID": chance.choice(CARRIERS),
        "OP_CARRIER_FL_NUM": chance.choice(NUMBERS),
        "DEP_DELAY": chance.choice((None, chance.randint(-30, 200))),
        "CANCELLED": int(is_cancelled),
        **(dict.fromkeys(flew) if is_cancelled else flew),
    }
    for end in ("ORIGIN", "DEST"):
        airport = chance.choice(AIRPORTS)
        names = (f"{end}_AIRPORT_ID", end, f"{end}_CITY_NAME", f"{end}_STATE_NM")
        changed.update(zip(names, airport, strict=True))
    return plain_flight(**changed)


@pytest.mark.parametrize(("cache_bytes", "near_blocks"), [(3000, 10), (20_000_000, NEAR_BLOCKS)])
def test_a_longer_chain_gives_the_same_answers_whatever_the_caches_hold(
    larger: Chain, cache_bytes: int, near_blocks: int
) -> None:
    chance = random.Random(cache_bytes + near_blocks)
    about = questions_about(chance.sample(larger.rows, tries(1, exploring=6)))
    with opened(larger.folder, cache_bytes, 5, near_blocks) as ledger:
        for question in about:
            height = chance.randrange(larger.tip + 1)
            breakdowns = BREAKDOWNS[type(question)]
            some = chance.sample(breakdowns, min(3, len(breakdowns)))
            for as_of, breakdown in product((None, height), some):
                larger.assert_answer(ledger, question, Options(as_of=as_of, **breakdown))
    assert sum(larger.plain(question, Options()).get("count", 0) for question in about) > 0


EVERY_DELAY = AverageDelays(None, "2007-01-01", "2010-12-31")


@contextmanager
def damaged(chain: Chain, folder: Path, share: float) -> Iterator[Ledger]:
    """A copy of a chain, in which a byte is wrong behind this share of the blocks."""
    copy_chain(chain.folder, folder)
    blocks = block_file(folder)
    flip(blocks, int(share * blocks.stat().st_size))
    with opened(folder) as ledger:
        yield ledger


def test_a_damaged_block_since_then_is_not_needed(larger: Chain, tmp_path: Path) -> None:
    below = Options(as_of=larger.tip - 5)
    with damaged(larger, tmp_path, 0.999) as ledger:
        answer = ask(ledger, EVERY_DELAY, below)
        assert answer["flights"] == larger.plain(EVERY_DELAY, below)["flights"] > 0
        with pytest.raises(Damage):
            ask(ledger, EVERY_DELAY, Options("scan"))


def test_a_scan_as_of_a_recent_height_reads_every_block(larger: Chain, tmp_path: Path) -> None:
    with damaged(larger, tmp_path, 0.5) as ledger, pytest.raises(Damage):
        ask(ledger, EVERY_DELAY, Options("scan", larger.tip - 5))
