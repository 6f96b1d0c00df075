"""The first groups of a ranking are those of a plain loop, however they are sorted and cut."""

import random
from pathlib import Path

import pytest

from backend.index import ranked_groups
from backend.questions.counts import DELAY_NAMES
from backend.questions.groups import Shown
from backend.questions.values import AverageDelays, FlightCounter, Options
from tests.effort import tries
from tests.index.test_answers import Chain, ask, chance_flight, opened
from tests.index.worlds import CARRIERS, follow, make_chain

pytestmark = pytest.mark.slow

KINDS = ("origin", "destination", "route")
WHOLE_MONTHS = (
    ("2008-02-01", "2008-02-29"),
    ("2007-06-01", "2008-03-31"),
    ("2008-01-01", "2008-12-31"),
    ("2007-09-01", "2009-10-31"),
    ("1900-01-01", "1900-01-31"),  # nothing flew
)
SOME = tries(25, exploring=60)


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    """Hundreds of flights between few airports, two of which share code and city."""
    chance = random.Random(16)
    contents = [[chance_flight(chance) for _ in range(60)] for _ in range(12)]
    return Chain(tmp_path_factory.mktemp("rankings"), contents)


def rankings_by(chance: random.Random, sorts: tuple[str | None, ...]) -> list[Options]:
    return [
        Options(
            group_by=chance.choice(KINDS),
            shown=Shown(
                sort=chance.choice(sorts),
                order=chance.choice((None, "ascending", "descending")),
                least_flights=chance.choice((0, 0, 2, 5, 1000)),
                offset=chance.choice((0, 0, 1, 7, 10**15 - 1)),
                limit=chance.choice((1, 2, 10, 10_000)),
            ),
        )
        for _ in range(SOME)
    ]


@pytest.mark.parametrize("spare", [1, 10])
@pytest.mark.parametrize("interval", WHOLE_MONTHS)
def test_whole_months_are_ranked_as_by_a_plain_loop(
    chain: Chain, interval: tuple[str, str], spare: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """spare: with 1, almost every ranking meets more equals than were asked for."""
    monkeypatch.setattr(ranked_groups, "_SPARE", spare)
    chance = random.Random(interval[0])
    with opened(chain.folder) as ledger:
        for ranking in rankings_by(chance, (None, *DELAY_NAMES)):
            delays = AverageDelays(chance.choice((None, *CARRIERS)), *interval)
            chain.assert_answer(ledger, delays, ranking)
        for ranking in rankings_by(chance, (None, "count")):
            chain.assert_answer(ledger, FlightCounter(None, None, *interval), ranking)


def test_airports_that_flights_name_in_two_ways_are_one_as_soon_as_both_are_there(
    tmp_path: Path,
) -> None:
    """Blocks are indexed one by one, so the second name comes to an index that has the first."""
    chance = random.Random(7)
    for _ in range(40):
        make_chain(tmp_path, [[chance_flight(chance)]])
        follow(tmp_path)
    question = AverageDelays(None, "2007-01-01", "2009-12-31")
    with opened(tmp_path) as ledger:
        for by in KINDS:
            ranked = ask(ledger, question, Options(group_by=by, shown=Shown(limit=10_000)))
            scanned = ask(ledger, question, Options("scan", group_by=by))
            assert ranked[f"by_{by}"] == scanned[f"by_{by}"]
            assert ranked["groups"] == scanned["groups"] == len(scanned[f"by_{by}"])
