"""The attempts to cheat, and what `verify` and a witness say of each."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from backend.base.errors import Damage, FlightchainError
from backend.base.settings import Settings
from backend.chain.columns import columns_of
from backend.chain.flight import Flight
from backend.index import index_file
from backend.sealing.miner import Sealer, unsealed
from backend.sources.generated import Generated
from backend.sources.source import validated
from backend.storage.block_store import BlockStore
from backend.trust.cheating.editor import Editor
from backend.trust.log import CHECKPOINT_NAME
from backend.trust.log.secret_keys import log_key
from backend.trust.log.tree import HistoryTree
from backend.trust.witness.witness import Witness
from backend.verify.audit import verify

BLOCKS, FLIGHTS_A_BLOCK = 5, 4
HEIGHT, ROW = 2, 1  # of the flight that is changed
LATE_MINUTES = 999
ACCEPTED_MS = 1_700_000_000_000


class Cheat(NamedTuple):
    """An attempt. what: in one sentence. steps: carry it out, one after the other, on a copy."""

    name: str
    what: str
    steps: tuple[Callable[[Editor], object], ...]


class Outcome(NamedTuple):
    """Says what came of a cheat. verify, witness: what each says; None if it notices nothing."""

    name: str
    what: str
    verify: str | None
    witness: str | None


def try_all() -> Iterator[Outcome]:
    """Try every cheat, each on a new copy of the same chain."""
    with tempfile.TemporaryDirectory(prefix="flightchain-cheat-") as folder:
        honest = Path(folder) / "honest"
        _make_chain(honest)
        for cheat in CHEATS:
            copy = Path(folder) / cheat.name
            shutil.copytree(honest, copy, symlinks=True)
            editor = Editor(copy / "chain")
            for step in cheat.steps:
                step(editor)
            yield Outcome(cheat.name, cheat.what, _verify_says(copy), _witness_says(copy))


def _make_chain(folder: Path) -> None:
    """Make a small chain in `folder`/chain, and a witness in `folder`/witness that has seen it."""
    settings = Settings(dir=str(folder / "chain"), clock_wait_s=0)
    flights = _flights(BLOCKS * FLIGHTS_A_BLOCK)
    with closing(Sealer(settings, lambda line: None)) as sealer, sealer.writing(wait=True):
        for first in range(0, len(flights), FLIGHTS_A_BLOCK):
            part = flights[first : first + FLIGHTS_A_BLOCK]
            sealer.seal([unsealed(columns_of(part, [ACCEPTED_MS] * len(part)))])
    if _verify_says(folder) or _witness_says(folder):
        raise Damage("the chain on which to cheat is not sound")


def _flights(count: int) -> list[Flight]:
    """Return made-up flights, all of which arrived."""
    flights: list[Flight] = []
    for batch in validated(Generated(10 * count, seed=1)):
        flights += [flight for flight in zip(*batch, strict=True) if None not in flight]
    return flights[:count]


def _verify_says(folder: Path) -> str | None:
    try:
        verify(folder / "chain")
    except FlightchainError as error:
        return str(error).replace(str(folder / "chain"), "chain")
    return None


def _witness_says(folder: Path) -> str | None:
    chain = folder / "chain"
    witness = Witness(folder / "witness", "example.org/witness")
    log = log_key(chain)
    with closing(BlockStore(chain)) as store:
        prove = HistoryTree(store).consistency_proof
        try:
            witness.cosign((chain / CHECKPOINT_NAME).read_bytes(), log.verifier, prove)
        except FlightchainError as error:
            return str(error).replace(f"{folder}/", "")
    return None


def _change_a_delay(editor: Editor) -> None:
    editor.change(HEIGHT, ROW, "ARR_DELAY", LATE_MINUTES)


def _swap_blocks(editor: Editor) -> None:
    editor.blocks[HEIGHT : HEIGHT + 2] = editor.blocks[HEIGHT : HEIGHT + 2][::-1]


def _roll_back(editor: Editor) -> None:
    del editor.blocks[-2:]


def _edit_index(editor: Editor) -> None:
    with closing(index_file.open_to_write(index_file.index_path(editor.folder))) as index:
        index.execute("UPDATE carrier_total SET sum_arr_delay = sum_arr_delay + 100")


def _mine_another_newest(editor: Editor) -> None:
    """Make another newest block than the one that the witness has seen."""
    editor.change(BLOCKS, ROW, "ARR_DELAY", LATE_MINUTES)
    editor.mine_again(BLOCKS, BLOCKS)


_REWRITE = (_change_a_delay, lambda editor: editor.mine_again(HEIGHT, BLOCKS), Editor.save)
CHEATS = (
    Cheat(
        "change-a-delay",
        f"A delay in block {HEIGHT} becomes {LATE_MINUTES} minutes.",
        (_change_a_delay, Editor.save),
    ),
    Cheat(
        "mine-it-again",
        "The same, and the block is mined again.",
        (_change_a_delay, lambda editor: editor.mine_again(HEIGHT, HEIGHT), Editor.save),
    ),
    Cheat("mine-all-again", "The same, and all blocks above it are mined again.", _REWRITE),
    Cheat("sign-it-all", "The same, and the log's key signs the result.", (*_REWRITE, Editor.sign)),
    Cheat(
        "sign-with-a-new-key",
        "The same, but key and checkpoint are removed, so that a new key signs the result.",
        (*_REWRITE, Editor.replace_key, Editor.sign),
    ),
    Cheat(
        "delete-a-block",
        f"Block {HEIGHT} is left out, and those above move down.",
        (lambda editor: editor.blocks.pop(HEIGHT), Editor.renumber, Editor.save),
    ),
    Cheat(
        "swap-two-blocks",
        f"Blocks {HEIGHT} and {HEIGHT + 1} change places.",
        (_swap_blocks, Editor.renumber, Editor.save),
    ),
    Cheat("roll-back", "The two newest blocks are removed.", (_roll_back, Editor.save)),
    Cheat(
        "roll-back-and-sign",
        "The same, and the log's key signs the rest.",
        (_roll_back, Editor.save, Editor.sign),
    ),
    Cheat("edit-the-index", "All sums of delays in the index grow by 100 minutes.", (_edit_index,)),
    Cheat(
        "sign-a-fork",
        "The newest block gets another delay, is mined again and signed.",
        (_mine_another_newest, Editor.save, Editor.sign),
    ),
)
