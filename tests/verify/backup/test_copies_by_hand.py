"""Copies that somebody made of a running ledger, folder by folder, instead of a backup.

Such a copy is good, or everybody refuses to go on with it: flights that are in neither its blocks
nor its mempool are never passed over.
"""

import shutil
from contextlib import closing
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest

from backend.base.errors import Damage
from backend.base.settings import Settings
from backend.chain.flight import Flight
from backend.ledger.ledger import Ledger
from backend.sealing.sealer import Sealer
from tests.flights import flights
from tests.storage.chains import contents
from tests.submitting import sealing
from tests.verify.backup.house import House, everything_in

pytestmark = pytest.mark.slow

PARTS = ("blocks", "index", "mempool")
REST = ("acknowledged.dat", "tokens.json")


def go_on(house: House, step: int) -> None:
    """Blocks are sealed and segments trimmed while somebody copies."""
    house.add(20, 1000 * step)
    house.add(20, 1000 * step + 100)
    house.accept(flights(4, 1000 * step + 200))


def copy_part(house: House, part: str, folder: Path) -> None:
    if (house.folder / part).is_dir():
        shutil.copytree(house.folder / part, folder / part, symlinks=True)
    else:
        shutil.copy(house.folder / part, folder / part)


def is_said(settings: Settings) -> bool:
    """Whether the service would say that flights are missing, and not only that nobody mines."""
    with closing(Ledger(settings, print)) as ledger, closing(Sealer(settings, print)) as sealer:
        reasons = [*ledger.not_ready(), *sealer.mempool.not_ready()]
    return any(word in reason for reason in reasons for word in ("damaged", "chain has lost"))


def is_gone_on_with(settings: Settings, known: list[Flight]) -> bool:
    """Whether the copy is sound, and then all that is `known` is in it; else nothing is changed."""
    before = contents(settings.folder)
    try:
        with sealing(settings) as sealer:
            sealer.seal_pending()
    except Damage:
        assert contents(settings.folder) == before
        assert is_said(settings)
        return False
    held = everything_in(settings)
    assert held[: len(known)] == known
    return True


ORDERS = list(permutations(PARTS))
# What is refused without a mark is refused with it; what is good without it is the news.
MARKED = [("mempool", "index", "blocks"), ("index", "mempool", "blocks")]


@pytest.mark.parametrize(
    ("order", "has_mark"),
    [*((order, False) for order in ORDERS), *((order, True) for order in MARKED)],
)
def test_a_copy_by_hand_is_good_or_refused(
    house: House, order: tuple[str, ...], has_mark: bool
) -> None:
    known = everything_in(house.settings)
    copy = house.root / "copy"
    copy.mkdir()
    for step, part in enumerate([*order, *(REST if has_mark else ())], 1):
        copy_part(house, part, copy)
        go_on(house, step)
    # An index that is newer than the blocks tells of blocks that are missing.
    is_good = order.index("mempool") < order.index("blocks") > order.index("index")
    if not has_mark:
        assert is_gone_on_with(house.elsewhere(copy), known) == is_good
    else:  # a mark that is newer than the mempool tells of flights that were acknowledged later
        assert not is_gone_on_with(house.elsewhere(copy), known)


@pytest.mark.parametrize("blocks_between", [1, 2])
def test_a_table_of_heights_that_is_newer_than_the_block_files_is_noticed(
    house: House, blocks_between: int
) -> None:
    """The newest block is mined again if the mempool of the copy still holds it."""
    house.settings = replace(house.settings, block_file_bytes=10**6)
    known = everything_in(house.settings)
    copy = house.root / "copy"
    shutil.copytree(house.folder / "blocks", copy / "blocks")
    for number in range(blocks_between):
        house.add(3, 1000 * number)
    shutil.copy(house.folder / "blocks" / "heights.dat", copy / "blocks")
    copy_part(house, "mempool", copy)
    assert is_gone_on_with(house.elsewhere(copy), known) == (blocks_between == 1)
