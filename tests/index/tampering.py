"""What an attacker who knows the format does to a chain on disk.

Whatever can be recomputed is put in order: checksums, hashes, roots, links, the table of heights.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from backend.chain.block import Block, Header, block_of, mined
from backend.chain.columns import columns_of, decode_body
from backend.chain.fields import FIELD_NAMES, Value
from backend.chain.flight import Flight
from backend.chain.state import ChainState, content_of, empty_state
from backend.storage.block_store import BlockStore
from backend.storage.codec import compress, frame_of
from backend.storage.layout import Place
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


def with_flights(block: Block, rows: list[Flight], times: list[int]) -> tuple[Header, bytes]:
    """Give a block other transactions; returns its header and body, which agree with them."""
    built = replace(
        empty_state(block.header.difficulty_bits),
        height=block.header.height - 1,
        tip_hash=block.header.previous_hash,
        transactions=block.header.first_transaction,
    ).build(block.header.timestamp, content_of(columns_of(rows, times)))
    header = replace(built.header, history_root=block.header.history_root)
    return mined(header), built.body


def relinked(blocks: Sequence[Block], changed: int) -> list[Block]:
    """Seal every block above `changed` again, upon it."""
    state: ChainState | None = None
    linked: list[Block] = []
    for block in blocks:
        if state is not None and block.header.height > changed:
            linked.append(_resealed(block, state))
        else:
            linked.append(block)
        state = (state or empty_state(0)).applied(linked[-1])
    return linked


def _resealed(block: Block, below: ChainState) -> Block:
    history_root = below.history.root().hex()
    header = replace(block.header, previous_hash=below.tip_hash, history_root=history_root)
    return block_of(mined(header), block.body)


def changed_flight(block: Block, row: int, **changed: Value) -> tuple[Header, bytes]:
    """Change one transaction of a block; returns its header and body."""
    columns = decode_body(block.body, block.header.transaction_count)
    rows = [columns.row(i) for i in range(columns.count)]
    rows[row].update(changed)
    times = [int(one["timestamp"] or 0) for one in rows]
    return with_flights(block, [tuple(one[name] for name in FIELD_NAMES) for one in rows], times)
