"""Whatever happens to a file of the folder: it is written again, or `ready` and `verify` name it.

Each harm comes to each file and folder, before a service starts and while one has the folder open.
The mempool's files have their own matrix.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from backend.chain import merkle
from backend.storage.block_store import BlockStore
from backend.trust.log import checkpoints
from backend.trust.log.notes import NoteError
from backend.verify.folder_files import kind_of
from tests.folder_harms import (
    HARMS,
    OF_ALL,
    OF_FILES,
    Findings,
    Houses,
    copy_for_nobody,
    findings_in,
    findings_while_running,
    folder_of_nobody,
    give_to_nobody,
    harms_of,
    make_houses,
)

# What looks right by itself, and is as good as what it replaces. Tokens are a person's to choose.
AS_GOOD = {("tokens.json", "foreign"), ("tokens.json", "older")}
# Blocks below the tip are read by the scrub and by whoever asks for them, not by `ready`.
NOT_READ_BY_READY = "blocks/blocks-"


@pytest.fixture(scope="module")
def houses() -> Iterator[Houses]:
    with folder_of_nobody() as root:
        made = make_houses(root)
        give_to_nobody(root)
        yield made


def test_every_file_that_a_ledger_has_is_in_the_table(houses: Houses) -> None:
    assert [name for name in houses.files() if kind_of(name) is None] == []
    assert {"log.successions", "checkpoint", "cosigned", "tokens.json"} <= set(houses.files())
    for name in houses.files():
        kind = kind_of(name)
        assert kind is not None
        assert all((kind.what, kind.writer, kind.if_lost, kind.remedy))


@pytest.mark.parametrize("is_running", [False, True], ids=["at rest", "running"])
@pytest.mark.parametrize("harm", [*OF_FILES, *OF_ALL])
def test_a_harmed_file_is_written_again_or_named(
    houses: Houses, harm: str, is_running: bool
) -> None:
    wrong = []
    for name in houses.files():
        if harm in harms_of(houses, name):
            with copy_for_nobody(houses) as folder:
                found = _harmed(houses, folder, name, harm, is_running=is_running)
                problem = _problem(name, harm, found) or _signed_wrongly(houses, folder)
            if problem:
                wrong.append((name, problem, found))
    assert wrong == []


def _harmed(houses: Houses, folder: Path, name: str, harm: str, *, is_running: bool) -> Findings:
    def act() -> None:
        HARMS[harm](folder / name, houses, name)

    if is_running:
        return findings_while_running(folder, act)
    act()
    return findings_in(folder)


def _problem(name: str, harm: str, found: Findings) -> str:
    """What is wrong with what was said of a harm; "" if nothing is."""
    kind = kind_of(name)
    assert kind is not None
    if not found.ready and not found.verify:
        may_be_whole = kind.is_derived or (name, harm) in AS_GOOD
        return "" if may_be_whole else "nobody names it, and it is not derived"
    names = {name, Path(name).name}
    if name.startswith("blocks"):
        names |= {"block "}
    is_named = [any(one in text for one in names) for text in (" ".join(found.ready), found.verify)]
    if name.startswith(NOT_READ_BY_READY) and harm == "flipped":
        is_named[0] = True
    return "" if all(is_named) else f"named by ready, verify: {is_named}"


def _signed_wrongly(houses: Houses, folder: Path) -> str:
    """What was signed that must not be: for another ledger, or over what was signed before."""
    try:
        _, signed = checkpoints.in_note((folder / "checkpoint").read_bytes())
    except (OSError, NoteError):
        return ""
    put_there = {(house / "checkpoint").read_bytes() for house in (houses.older, houses.foreign)}
    if (folder / "checkpoint").read_bytes() in put_there:
        return ""
    with closing(BlockStore(houses.chain)) as store:
        hashes = [place.hash for place in store.places(0, store.height() + 1)]
    if signed.origin != checkpoints.origin_of(hashes[0].hex()):
        return f"{signed.origin} was signed"
    if signed.size < len(hashes):
        return f"{signed.size} blocks were signed, fewer than before"
    if signed.size == len(hashes) and signed.root != merkle.root(merkle.leaf_hashes(hashes)):
        return "other blocks were signed"
    return ""
