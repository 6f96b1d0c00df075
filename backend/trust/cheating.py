"""Tries to cheat, on a throw-away copy of a small chain, and tells which check notices it.

`python -m backend cheat` shows it in a terminal, the page "Try to cheat" in a browser.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from backend.base import files
from backend.base.errors import Damage, FlightchainError
from backend.base.settings import Settings
from backend.chain.block import Block, block_of, mined
from backend.chain.columns import COLUMN_NAMES, columns_from, columns_of, decode_body, encode_body
from backend.chain.fields import Value
from backend.chain.flight import Flight
from backend.chain.state import content_of, empty_state
from backend.index import index_file
from backend.sealing.sealer import Sealer, unsealed
from backend.sources.generated import Generated
from backend.sources.source import validated
from backend.storage import layout
from backend.storage.block_store import BlockStore
from backend.storage.codec import compress, frame_of
from backend.trust.log import CHECKPOINT_NAME
from backend.trust.log.checkpoints import Checkpoint
from backend.trust.log.secret_keys import LOG, log_key, secret_key, write_checkpoint
from backend.trust.log.tree import HistoryTree
from backend.trust.witness.witness import Witness
from backend.verify.audit import verify

FOLLOWING = ("index", "mempool")  # folders that follow from the blocks
BLOCKS, FLIGHTS_A_BLOCK = 5, 4
HEIGHT, ROW = 2, 1  # of the flight that is changed
LATE_MINUTES = 999
ACCEPTED_MS = 1_700_000_000_000


class Editor:
    """Writes the chain in `folder` as a cheat would who knows everything about its files.

    Any block may be changed, mined again, moved or left out. blocks: what `save` writes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with closing(BlockStore(folder)) as store:
            self.blocks = [store.block(height) for height in range(store.height() + 1)]

    def change(self, height: int, row: int, name: str, value: Value) -> None:
        """Change a value of a flight in a block, and nothing else: its header stays as it is."""
        block = self.blocks[height]
        columns = decode_body(block.body, block.header.transaction_count)
        rows = [columns[column_name].expanded() for column_name in COLUMN_NAMES]
        rows[COLUMN_NAMES.index(name)][row] = value
        self.blocks[height] = replace(block, body=encode_body(columns_from(rows)))

    def mine_again(self, first: int, last: int) -> None:
        """Let headers say what their blocks and those below are, with new proofs of work."""
        state = empty_state(self.blocks[0].header.difficulty_bits)
        for height, block in enumerate(self.blocks[: last + 1]):
            if height >= first:
                content = content_of(decode_body(block.body, block.header.transaction_count))
                self.blocks[height] = state.build(block.header.timestamp, content)
            state = state.applied(self.blocks[height])

    def renumber(self) -> None:
        """Give each block its height and the ids that follow, with a new proof of work only."""
        first = 0
        for height, block in enumerate(self.blocks):
            header = replace(block.header, height=height, first_transaction=first)
            if header != block.header:
                self.blocks[height] = block_of(mined(header), block.body)
            first += block.header.transaction_count

    def save(self) -> None:
        """Write the blocks, with right checksums and a right table of heights.

        What follows from the blocks is removed, so that the service would make it again.
        """
        for name in FOLLOWING:
            shutil.rmtree(self.folder / name, ignore_errors=True)
        blocks = self.folder / layout.BLOCKS_FOLDER
        shutil.rmtree(blocks)
        files.make_folder(blocks)
        data, table = _written(self.blocks)
        files.write_new(blocks / layout.block_file_name(0), data)
        files.write_new(blocks / layout.TABLE_NAME, table)

    def replace_key(self) -> None:
        """Do what the service does by itself where neither key nor checkpoint is left."""
        name = log_key(self.folder).verifier.name
        for file_name in (LOG.secret, LOG.public, CHECKPOINT_NAME):
            (self.folder / file_name).unlink()
        secret_key(self.folder, LOG, name)

    def sign(self) -> None:
        """Sign a checkpoint of the blocks that are saved, as whoever has the log's key can."""
        key = log_key(self.folder)
        with closing(BlockStore(self.folder)) as store:
            tree = HistoryTree(store)
            size = tree.size()
            signed = Checkpoint(key.verifier.name, size, tree.root(size))
        write_checkpoint(self.folder, key, signed)


def _written(blocks: Sequence[Block]) -> tuple[bytes, bytes]:
    """Return a block file with all blocks, and the table of heights."""
    data, table = bytearray(), bytearray()
    for block in blocks:
        frame = frame_of(block.header_bytes, block.body, compress(block.body))
        table += layout.place_of(block, 0, len(data), len(frame)).packed()
        data += frame
    return bytes(data), bytes(table)


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
    settings = Settings(dir=str(folder / "chain"), clock_wait_s=0, min_free_bytes=0)
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
    for batch in validated(Generated(10 * count, flights_per_day=10 * count)):
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
