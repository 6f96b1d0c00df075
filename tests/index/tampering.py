"""What an attacker who knows the format does to a chain on disk.

Whatever can be recomputed is put in order: checksums, hashes, roots, links, the table of heights.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from backend.chain.block import Block, block_of, mined
from backend.chain.fields import Value
from backend.chain.state import ChainState, empty_state
from backend.storage.block_store import BlockStore
from backend.storage.codec import compress, frame_of
from backend.storage.layout import Place
from backend.trust.cheating import Editor
from tests.storage.chains import block_file, table_path


def blocks_in(folder: Path) -> list[Block]:
    with closing(BlockStore(folder)) as store:
        return [store.block(height) for height in range(store.height() + 1)]


def places_in(folder: Path) -> list[Place]:
    with closing(BlockStore(folder)) as store:
        return store.places(0, store.height() + 1)


def write_table(folder: Path, places: Sequence[Place]) -> None:
    table_path(folder).write_bytes(b"".join(place.packed() for place in places))


def frame(block: Block) -> bytes:
    return frame_of(block.header_bytes, block.body, compress(block.body))


def write_blocks(folder: Path, blocks: Sequence[Block], frames: Sequence[bytes] = ()) -> None:
    """Put `blocks` into one file and into the table, every checksum in order."""
    written = list(frames) or [frame(block) for block in blocks]
    places, offset = [], 0
    for block, data in zip(blocks, written, strict=True):
        counts = (block.header.first_transaction, block.header.transaction_count)
        counts = (max(0, counts[0]), max(0, counts[1]))
        places.append(Place(bytes.fromhex(block.hash), 0, offset, len(data), *counts))
        offset += len(data)
    block_file(folder).write_bytes(b"".join(written))
    write_table(folder, places)


def with_change(folder: Path, height: int, row: int, name: str, value: Value) -> list[Block]:
    """Change a value of a transaction, and seal its block alone again. Returns all blocks."""
    editor = Editor(folder)
    editor.change(height, row, name, value)
    editor.mine_again(height, height)
    return editor.blocks


def relinked(blocks: Sequence[Block], changed: int) -> list[Block]:
    """Seal every block above `changed` again, upon it."""
    state = empty_state(blocks[0].header.difficulty_bits)
    linked: list[Block] = []
    for block in blocks:
        linked.append(_resealed(block, state) if block.header.height > changed else block)
        state = state.applied(linked[-1])
    return linked


def _resealed(block: Block, below: ChainState) -> Block:
    history_root = below.history.root().hex()
    header = replace(block.header, previous_hash=below.tip_hash, history_root=history_root)
    return block_of(mined(header), block.body)
