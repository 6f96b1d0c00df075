"""Small real chains on disk, and an auditor that believes nothing but the rules."""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from backend.base.errors import DamagedBlock
from backend.base.settings import Settings
from backend.chain.block import Block
from backend.chain.block_rules import check
from backend.chain.columns import columns_of
from backend.chain.state import ChainState, Content, content_of, empty_state
from backend.storage import layout
from backend.storage.block_store import BlockStore
from backend.storage.block_writer import BlockWriter
from backend.storage.layout import Place
from tests.effort import tries
from tests.flights import EXAMPLE

GENESIS_MS = 1_000
ONE_FILE = 2**30
A_FILE_EACH = 1


ArePending = Callable[[int, int], bool]  # takes a first id, and the id after the last one


class PendingIf:
    """A mempool that holds what a function says, and contradicts nobody."""

    def __init__(self, are_pending: ArePending) -> None:
        self.holds = are_pending

    def locked(self) -> AbstractContextManager[None]:
        return nullcontext()

    def contradiction(self, place: Place, block: Callable[[], Block]) -> str | None:
        return None


NOTHING_PENDING = PendingIf(lambda first, following: first == following)


def writer_for(
    folder: Path,
    messages: list[str] | None = None,
    *,
    block_file_bytes: int = ONE_FILE,
    difficulty_bits: int = 0,
    are_pending: ArePending | None = None,
) -> BlockWriter:
    """A writer that has not been acquired; what it reports goes to `messages`."""
    chosen = Settings(
        dir=str(folder), block_file_bytes=block_file_bytes, difficulty_bits=difficulty_bits
    )
    taken: list[str] = [] if messages is None else messages
    pending = NOTHING_PENDING if are_pending is None else PendingIf(are_pending)
    return BlockWriter(chosen, lambda: GENESIS_MS, taken.append, pending)


@contextmanager
def writing(
    folder: Path, messages: list[str] | None = None, **options: Any
) -> Iterator[BlockWriter]:
    """A writer that is acquired, and closed in the end. options: of `writer_for`."""
    with closing(writer_for(folder, messages, **options)) as writer:
        writer.acquire(wait=False)
        yield writer


@contextmanager
def damage_named(height: int, words: str | None = None) -> Iterator[None]:
    """Fail unless a block is found damaged here, and it is this one."""
    with pytest.raises(DamagedBlock, match=words) as caught:
        yield
    assert caught.value.height == height


def flights(count: int, timestamp: int) -> Content:
    """`count` flights accepted at `timestamp`, with different numbers."""
    rows = [(*EXAMPLE[:4], number + 1, *EXAMPLE[5:]) for number in range(count)]
    return content_of(columns_of(rows, [timestamp] * count))


def next_block(state: ChainState, count: int = 0, *, later_ms: int = 1) -> Block:
    timestamp = state.timestamp + later_ms
    return state.build(timestamp, flights(count, timestamp))


def append_blocks(writer: BlockWriter, counts: Sequence[int], *, later_ms: int = 1) -> list[Block]:
    """Append one block for each count of transactions, and commit them together."""
    blocks = []
    for count in counts:
        blocks.append(next_block(writer.state, count, later_ms=later_ms))
        writer.append(blocks[-1])
    writer.commit()
    return blocks


def make_chain(folder: Path, counts: Sequence[int], **options: Any) -> ChainState:
    """Write genesis and a block for each count of transactions; the state at the end.

    options: of `writer_for`.
    """
    with writing(folder, **options) as writer:
        append_blocks(writer, counts)
        return writer.state


def audited(folder: Path, difficulty_bits: int = 0) -> ChainState:
    """The state of the chain under `folder`, every block of it checked by every rule."""
    state = empty_state(difficulty_bits)
    store = BlockStore(folder)
    for height in range(store.height() + 1):
        block = store.block(height)
        check(block, state)
        state = state.applied(block)
    return state


def all_are_pending(first: int, following: int) -> bool:
    """The mempool still holds everything, as it does until the block after a tip is sealed."""
    assert first <= following
    return True


def recovered(folder: Path, **options: Any) -> tuple[ChainState, list[str]]:
    """Open the chain as a writer does; its state, and what the writer reported.

    options: of `writer_for`.
    """
    messages: list[str] = []
    with writing(folder, messages, **options) as writer:
        return writer.state, messages


def blocks_folder(folder: Path) -> Path:
    return folder / layout.BLOCKS_FOLDER


def table_path(folder: Path) -> Path:
    return blocks_folder(folder) / layout.TABLE_NAME


def block_file(folder: Path, first_height: int = 0) -> Path:
    return blocks_folder(folder) / layout.block_file_name(first_height)


def contents(folder: Path) -> dict[str, bytes]:
    """Read the name and bytes of everything in the folder of blocks."""
    return {path.name: path.read_bytes() for path in blocks_folder(folder).iterdir()}


def restore(folder: Path, files: dict[str, bytes]) -> None:
    """Make the folder of blocks hold exactly `files`."""
    blocks = blocks_folder(folder)
    blocks.mkdir(parents=True, exist_ok=True)
    for path in blocks.iterdir():
        path.unlink()  # overwriting would wait for the disk
    for name, data in files.items():
        (blocks / name).write_bytes(data)


def flip(path: Path, at: int) -> None:
    """Flip one bit of the byte at `at`, where it stands; doing so twice changes nothing."""
    with path.open("r+b", buffering=0) as stream:
        stream.seek(at)
        (byte,) = stream.read(1)
        stream.seek(at)
        stream.write(bytes([byte ^ 1 << at % 8]))


def flip_in_block(folder: Path, height: int) -> None:
    """Flip one bit of the last byte of a block, which is of its body."""
    with closing(BlockStore(folder)) as store:
        place = store.place(height)
    flip(block_file(folder, place.file), place.end - 1)


def refusing(what: str, real: Callable[..., Any], error: int = errno.EIO) -> Callable[..., Any]:
    """`real`, except for paths and descriptors of files named with `what`: those fail."""

    def call(target: int | str | Path, *arguments: Any, **options: Any) -> Any:
        path = Path(f"/proc/self/fd/{target}").readlink() if isinstance(target, int) else target
        if what in Path(path).name:
            raise OSError(error, os.strerror(error))
        return real(target, *arguments, **options)

    return call


@dataclass(frozen=True)
class Sample:
    """A chain in one block file, whole and in memory.

    starts: offset of every frame, and the end of the last one. states: after each block.
    """

    data: bytes
    table: bytes
    starts: list[int]
    blocks: list[Block]
    states: list[ChainState]

    @property
    def tip(self) -> int:
        return len(self.blocks) - 1

    def frame(self, height: int) -> bytes:
        return self.data[self.starts[height] : self.starts[height + 1]]

    def entries(self, first: int, last: int) -> bytes:
        """Returns entries `first` to `last - 1` of the table of heights."""
        return self.table[first * layout.ENTRY_BYTES : last * layout.ENTRY_BYTES]

    def files(self, data: bytes, table: bytes | None) -> dict[str, bytes]:
        """Returns the folder's contents with this block file, and this table or none."""
        content = {layout.block_file_name(0): data}
        return content if table is None else {**content, layout.TABLE_NAME: table}


def sample_of(folder: Path, counts: Sequence[int]) -> Sample:
    """Write a chain into one block file under `folder`, audit it and take it along."""
    make_chain(folder, counts)
    assert audited(folder).height == len(counts)
    store = BlockStore(folder)
    places = store.places(0, len(counts) + 1)
    blocks = [store.block(height) for height in range(len(places))]
    states = [empty_state(0)]
    for block in blocks:
        states.append(states[-1].applied(block))
    starts = [place.offset for place in places] + [places[-1].end]
    data, table = block_file(folder).read_bytes(), table_path(folder).read_bytes()
    return Sample(data, table, starts, blocks, states[1:])


def a_step() -> int:
    """How far apart the bytes are that are tried besides those near edges."""
    return tries(37, exploring=1)


def some_bytes_of(sample: Sample, height: int) -> list[int]:
    """Offsets of bytes of a block: those of the prefix, the last, some of header and body."""
    start, end = sample.starts[height : height + 2]
    return [*range(start, start + 21), *range(start + 21, end, a_step()), end - 1]
