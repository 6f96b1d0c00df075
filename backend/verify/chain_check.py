"""Checks the blocks of a chain on disk: the table of heights, frames, headers, and every rule.

The chain is cut into stretches, so that several processes can check it at the same time. A stretch
starts from what the table of heights and the header below say of the chain up to there. The end of
each stretch must agree with the start of the next, so that nothing is taken on trust. Of several
errors, the one at the lowest height is raised.
"""

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

from backend.base.errors import Damage, DamagedBlock, FlightchainError, NotFound
from backend.base.processes.parent_death import die_with_parent
from backend.base.progress import Progress
from backend.base.words import COMMAND, counted
from backend.chain.block import Block, header_from
from backend.chain.block_rules import check
from backend.chain.canonical import sha256_hex
from backend.chain.columns import Columns
from backend.chain.merkle import Frontier
from backend.chain.state import ChainState, empty_state, state_at
from backend.storage.block_store import BlockStore
from backend.storage.codec import body_of, opened
from backend.storage.layout import Place

BLOCKS_AT_ONCE = 64

Summand = Callable[[Block, Columns], int]  # what a checked block adds to a sum over the chain
End = tuple[int, int]  # file and offset where the next frame must start

TWO_READINGS = f"two readings of it differ; check the disk, and run `{COMMAND} verify` again"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Adjacent blocks to be checked.

    below: the chain up to there, None for genesis. end: where the block below ends.
    """

    heights: range
    below: ChainState | None
    end: End


@dataclass(frozen=True, slots=True)
class Checked:
    """Blocks that have passed the check.

    state: the chain up to the last block. end: where that block ends. sum: the sum of the blocks'
    summands.
    """

    state: ChainState
    end: End
    sum: int


Each = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[Any]]  # works as `map` does


def stretches_of(store: BlockStore, height: int, first: int = 0) -> Iterator[Stretch]:
    """Cut the blocks `first` to `height` into stretches. Raises Damage or NotFound.

    They end early after a stretch that cannot be read, because checking that one raises the reason.
    """
    history = Frontier()
    for at in range(first, height + 1, BLOCKS_AT_ONCE):
        below, end = None, (0, 0)
        try:
            for place in store.places(history.size, at - history.size):
                history, end = history.extended(place.hash), (place.file, place.end)
            if at:
                last, frame = store.frame(at - 1)
                header = opened(frame, at - 1, header_from)[1]
                below = state_at(header, last.hash.hex(), history)
        except (Damage, NotFound):
            if at > first:
                return
            raise
        yield Stretch(range(at, min(at + BLOCKS_AT_ONCE, height + 1)), below, end)


# --- checking --------------------------------------------------------------------------------


def checked(folder: Path, summand: Summand | None, stretch: Stretch) -> Checked:
    """Check every block of a stretch. summand: None where no sum is needed.

    Raises DamagedBlock, RuleViolation or Damage naming the first block that is wrong.
    """
    state, end, total = stretch.below, stretch.end, 0
    with closing(BlockStore(folder)) as store:  # of its own: processes share none
        for place, block in _blocks(store, stretch):
            below = state or _before_genesis(block)
            columns = check(block, below)
            _compare_place(place, block)
            total += summand(block, columns) if summand else 0
            state, end = below.applied(block), (place.file, place.end)
    assert state is not None
    return Checked(state, end, total)


def _before_genesis(genesis: Block) -> ChainState:
    try:
        return empty_state(genesis.header.difficulty_bits)
    except ValueError as error:
        raise DamagedBlock(0, str(error)) from error


def _blocks(store: BlockStore, stretch: Stretch) -> Iterator[tuple[Place, Block]]:
    """Yield each block with its place.

    Raises Damage if frames do not follow each other without a gap.
    """
    at, end = stretch.heights.start, stretch.end
    while at < stretch.heights.stop:
        run = store.frames(at, stretch.heights.stop - at)
        if not run:
            raise DamagedBlock(at, "the chain was cut while it was read")
        for place, frame in run:
            _require_adjacent(store, place, at, end)
            end = (place.file, place.end)
            yield place, _whole(frame, at)
            at += 1


def _require_adjacent(store: BlockStore, place: Place, height: int, end: End) -> None:
    if (place.file, place.offset) == end:
        return
    if (place.file, place.offset) != (height, 0):
        raise DamagedBlock(
            height,
            f"it is at byte {place.offset} of file {place.file}, not at byte {end[1]} of file "
            f"{end[0]}",
        )
    size = store.file_bytes(end[0])
    if size != end[1]:
        rest = counted(size - end[1], "byte stands", "bytes stand")
        raise DamagedBlock(height - 1, f"after it {rest} that do not belong to any block")


def _whole(data: bytes, height: int) -> Block:
    """Return the block in a frame, with its header in canonical form."""
    frame, header = opened(data, height, header_from)
    body = body_of(frame, height)
    return Block(header, frame.header_bytes, sha256_hex(frame.header_bytes), body)


def _compare_place(place: Place, block: Block) -> None:
    header = block.header
    in_table = (place.hash.hex(), place.first_transaction, place.transaction_count)
    in_header = (block.hash, header.first_transaction, header.transaction_count)
    if in_table != in_header:
        raise DamagedBlock(header.height, f"the table of heights says {in_table}, not {in_header}")


# --- a whole chain ---------------------------------------------------------------------------


@contextmanager
def mapping(processes: int) -> Iterator[Each]:
    """Yield a function like `map` whose work so many processes do; if one, then this process.

    The processes start when the function is called, and no other thread may be running then. They
    are killed if the context is left with an error.
    """
    if processes == 1:
        yield map
        return
    with ProcessPoolExecutor(processes, get_context("fork"), _begin) as pool:
        try:
            yield lambda action, tasks: _results(pool.map(action, tasks))
        except BaseException:
            for process in active_children():
                process.kill()
            raise


def _begin() -> None:
    """Begin a process that checks. The process that started it decides about Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent(signal.SIGKILL)


def _results(results: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from results
    except BrokenProcessPool:
        raise FlightchainError(
            "a process that checked a part died, perhaps because memory ran out; "
            "try again with `--processes 1`"
        ) from None


def joined(
    stretches: Sequence[Stretch], results: Iterator[Checked], height: int, progress: Progress
) -> Checked:
    """Join the results of all stretches of a chain up to `height`.

    Raises the error of the first wrong block, and DamagedBlock where two stretches do not agree.
    """
    state, end, total = stretches[0].below, stretches[0].end, 0
    for stretch in stretches:
        if (stretch.below, stretch.end) != (state, end):
            raise DamagedBlock(stretch.heights.start - 1, TWO_READINGS)
        checked_stretch = next(results)
        state, end, total = checked_stretch.state, checked_stretch.end, total + checked_stretch.sum
        for at in stretch.heights:
            progress(at + 1, height + 1)
    assert state is not None
    if state.height != height:
        raise DamagedBlock(state.height + 1, TWO_READINGS)
    return Checked(state, end, total)
