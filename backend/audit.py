"""`verify`: everything derived again from the bytes, and compared.

Block by block: the table of heights, framing and checksum, header, links, proof of work, every
transaction, roots, summaries, ids (rules R1 to R15). Then the index against the chain.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from backend.chain.block import Block, HeaderError, header_from
from backend.chain.canonical import sha256_hex
from backend.chain.rules import check
from backend.chain.state import ChainState, empty_state
from backend.errors import Damage, DamagedBlock
from backend.index.checks import IndexCheck
from backend.storage import layout
from backend.storage.block_store import BlockStore
from backend.storage.codec import FrameError, body_of, whole_frame
from backend.storage.layout import Place

BLOCKS_AT_ONCE = 64

Progress = Callable[[int, int], None]  # blocks done, blocks to do


@dataclass(frozen=True, slots=True)
class Verified:
    """What was found good. index: words about the index."""

    height: int
    transactions: int
    tip_hash: str
    index: str


def verify(folder: Path, progress: Progress = lambda done, to_do: None) -> Verified:
    """Check the whole chain in `folder`, then its index.

    Raises DamagedBlock, RuleViolation or Damage naming the first block, transaction and field that
    are wrong; the chain comes first, because the index can be made anew. Blocks that are sealed
    meanwhile are not looked at.
    """
    store = BlockStore(folder)
    try:
        with IndexCheck(folder) as index:
            return _verify(folder, store, index, progress)
    finally:
        store.close()


def _verify(folder: Path, store: BlockStore, index: IndexCheck, progress: Progress) -> Verified:
    height = store.height()
    state: ChainState | None = None
    for place, block in _blocks(folder, store, height):
        below = state or _before_genesis(block)
        columns = check(block, below)
        _compare_place(place, block)
        state = below.applied(block)
        index.compare(block, columns)
        progress(block.header.height + 1, height + 1)
    if state is None:
        raise Damage(f"there is no chain in {folder}")
    indexed = index.finish(height)
    return Verified(state.height, state.transactions, state.tip_hash, _index_words(indexed, height))


def _before_genesis(genesis: Block) -> ChainState:
    try:
        return empty_state(genesis.header.difficulty_bits)
    except ValueError as error:
        raise DamagedBlock(0, str(error)) from error


def _index_words(indexed: int | None, height: int) -> str:
    if indexed is None:
        return "there is no index yet; the miner makes it"
    if indexed < height:
        return f"the index agrees up to block {indexed}; the miner will take in the rest"
    return "the index agrees with every block"


def _blocks(folder: Path, store: BlockStore, height: int) -> Iterator[tuple[Place, Block]]:
    """Every block with its place, whole; frames must stand one behind the other."""
    end = (0, 0)  # file and offset where the next frame must start
    at = 0
    while at <= height:
        run = store.frames(at, min(BLOCKS_AT_ONCE, height + 1 - at))
        if not run:
            raise DamagedBlock(at, "the chain was cut while it was read")
        for place, frame in run:
            _require_adjacent(folder, place, at, end)
            end = (place.file, place.end)
            yield place, _whole(frame, at)
            at += 1


def _require_adjacent(folder: Path, place: Place, height: int, end: tuple[int, int]) -> None:
    if (place.file, place.offset) == end:
        return
    if (place.file, place.offset) != (height, 0):
        raise DamagedBlock(
            height, f"it stands at byte {place.offset} of file {place.file}, not {end}"
        )
    size = (folder / layout.BLOCKS_FOLDER / layout.block_file_name(end[0])).stat().st_size
    if size != end[1]:
        raise DamagedBlock(height - 1, f"{size - end[1]} bytes stand behind it that belong to none")


def _whole(data: bytes, height: int) -> Block:
    """The block in a frame, its header in canonical form."""
    try:
        frame = whole_frame(data)
        header = header_from(frame.header_bytes)
        return Block(header, frame.header_bytes, sha256_hex(frame.header_bytes), body_of(frame))
    except (FrameError, HeaderError) as error:
        raise DamagedBlock(height, str(error)) from error


def _compare_place(place: Place, block: Block) -> None:
    header = block.header
    in_table = (place.hash.hex(), place.first_transaction, place.transaction_count)
    in_header = (block.hash, header.first_transaction, header.transaction_count)
    if in_table != in_header:
        raise DamagedBlock(header.height, f"the table of heights says {in_table}, not {in_header}")
