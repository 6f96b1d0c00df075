"""Verifies again what was verified before, by the bytes alone: `verify --since`.

`verified.json` remembers how far the chain was verified, and the SHA-256 of the bytes of all block
files and of the table of heights then, and of the index when it was last found to agree with all
blocks. Where bytes are the same, so is what was checked; where they are not, everything is checked
as if for the first time. The file is not signed: it is for disks that forget, not against whoever
can write to the folder.
"""

import hashlib
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from backend.base.errors import Damage, FlightchainError, NotFound, WriteFailed
from backend.base.progress import Progress
from backend.base.state_file import StateFile
from backend.base.words import COMMAND
from backend.index.index_file import index_path
from backend.storage.block_store import BlockStore
from backend.storage.layout import BLOCKS_FOLDER, ENTRY_BYTES, TABLE_NAME, first_height_of
from backend.verify.audit import Verified, verify
from backend.verify.folder_files import unusable

NAME = "verified.json"
PIECE_BYTES = 2**20
NOT_VERIFIED = f"run `{COMMAND} verify` without --since first"

Hashes = dict[str, str]  # SHA-256 by the names of files


class IndexMemory(msgspec.Struct, frozen=True):
    """An index that agreed with blocks 0 to `height`, when these were all. time: ISO 8601."""

    hash: str
    height: int
    time: str


class Memory(msgspec.Struct, frozen=True):
    """Says what was verified: blocks 0 to `height`, and at some time the index; None if never.

    blocks: the hashes of the bytes up to that height. time: ISO 8601.
    """

    height: int
    tip_hash: str
    time: str
    blocks: Hashes
    index: IndexMemory | None = None


MEMORY = StateFile(NAME, Memory)


@dataclass(frozen=True, slots=True)
class Again:
    """The result of a verification.

    before: what was verified before, and of which bytes alone were compared now; None if everything
    was checked. note: why everything was, although less was asked for; "" if it was not. forgotten:
    why this verification is not remembered; "" if it is.
    """

    verified: Verified
    before: Memory | None = None
    note: str = ""
    forgotten: str = ""


def verify_again(
    folder: Path,
    progress: Progress,
    processes: int,
    since: int | None = None,
    *,
    chain_only: bool = False,
) -> Again:
    """Verify a ledger, and remember it. progress, processes: as in `verify`.

    since: up to which block bytes alone are compared; None: everything is checked. chain_only:
    whether nothing but the blocks is. Raises FlightchainError if blocks up to `since` were not
    verified before, Damage if they are others now, and what `verify` raises.
    """
    if problems := unusable(folder, blocks_only=chain_only):  # to open a pipe never ends
        raise Damage(problems[0])
    memory = MEMORY.read(folder)
    with closing(BlockStore(folder)) as store:
        if since is not None:
            memory = _of_same_chain(store, memory, since)
        blocks = _bytes_of(folder, store, memory)
    index_hash = "" if chain_only else _index_hash(folder)
    note, before, first = "", None, 0
    if memory is not None and since is not None:
        note = _difference(memory, blocks.known, blocks.height, None if chain_only else index_hash)
        if not note:
            before, first = memory, since + 1
    with_index, with_accepted = not (chain_only or before), not chain_only
    verified = verify(
        folder, progress, processes, first=first, with_index=with_index, with_accepted=with_accepted
    )
    time = datetime.now(UTC).isoformat(timespec="seconds")
    index = memory.index if memory and memory.blocks == blocks.known else None
    if with_index:
        is_whole = verified.is_index_whole and verified.height == blocks.height
        is_same = _index_hash(folder) == index_hash  # else it was written to meanwhile
        index = IndexMemory(index_hash, blocks.height, time) if is_whole and is_same else None
    forgotten = _remember(
        folder, Memory(blocks.height, blocks.tip_hash, time, blocks.hashes, index)
    )
    return Again(verified, before, note, forgotten)


class _Bytes(NamedTuple):
    """Blocks 0 to `height` by their bytes.

    hashes: of the bytes up to that height. known: of those up to the height that was verified
    before; {} if another block is there now. Both are empty if the table of heights is damaged.
    """

    height: int
    tip_hash: str = ""
    hashes: Hashes = {}  # noqa: RUF012  never written to
    known: Hashes = {}  # noqa: RUF012


def _bytes_of(folder: Path, store: BlockStore, memory: Memory | None) -> _Bytes:
    """Return the blocks of a folder by their bytes, and those that `memory` knows."""
    blocks = _Bytes(store.height())
    hash_of = cache(_hash_of)
    with suppress(Damage, NotFound):  # which `verify` names
        tip_hash = store.place(blocks.height).hash.hex()
        ends = _ends(folder, store, blocks.height)
        hashes = {path.name: hash_of(path, end) for path, end in ends}
        blocks = _Bytes(blocks.height, tip_hash, hashes)
        if memory is not None and _tip_hash(store, memory) == memory.tip_hash:
            ends = _ends(folder, store, memory.height)
            blocks = blocks._replace(known={path.name: hash_of(path, end) for path, end in ends})
    return blocks


def _remember(folder: Path, memory: Memory) -> str:
    """Write down what was verified. Returns why that cannot be; "" if it is done."""
    try:
        MEMORY.write_unsynced(folder, memory)
    except WriteFailed as error:  # as on a medium that can only be read
        return str(error)
    return ""


def _of_same_chain(store: BlockStore, memory: Memory | None, since: int) -> Memory:
    """Return `memory` if it says that blocks up to `since` were verified, and they are there."""
    if memory is None:
        raise FlightchainError(f"nothing was verified before; {NOT_VERIFIED}")
    if since > memory.height:
        raise FlightchainError(
            f"blocks up to {since} were not verified before, but up to {memory.height} on "
            f"{memory.time}; {NOT_VERIFIED}, or with --since {memory.height}"
        )
    tip_hash = _tip_hash(store, memory)
    if tip_hash != memory.tip_hash:
        raise Damage(
            f"block {memory.height} is {tip_hash}, but was {memory.tip_hash} when it was verified "
            f"on {memory.time}: the chain was replaced or put back; {NOT_VERIFIED} if you did that"
        )
    return memory


def _tip_hash(store: BlockStore, memory: Memory) -> str:
    """Return the hash of the block that was the tip; "missing" if there is none."""
    try:
        return store.place(memory.height).hash.hex()
    except NotFound:
        return "missing"


def _difference(before: Memory, hashes: Hashes, height: int, index: str | None) -> str:
    """Say what is not as it was verified before; "" if all is.

    height: of the tip now. index: the hash of its bytes; None: it is not looked at.
    """
    names = sorted(before.blocks.keys() | hashes.keys())
    changed = [name for name in names if hashes.get(name) != before.blocks.get(name)]
    known, problem = before.index, ""
    if changed:
        problem = f"{changed[0]} has other bytes than on {before.time}"
    elif index is None:
        return ""
    elif known is None:
        problem = "the index was not verified before"
    elif index != known.hash:
        problem = f"the index has other bytes than on {known.time}"
    elif height > known.height:
        problem = f"the index ends at block {known.height}"
    return f"{problem}, so everything is checked" if problem else ""


def _ends(folder: Path, store: BlockStore, height: int) -> Iterator[tuple[Path, int]]:
    """Yield the files that hold blocks 0 to `height`, and where the bytes of these end."""
    last = store.place(height)
    yield folder / BLOCKS_FOLDER / TABLE_NAME, (height + 1) * ENTRY_BYTES
    for path in (folder / BLOCKS_FOLDER).glob("blocks-*.dat"):
        first = first_height_of(path.name)
        if first is not None and first <= last.file:
            yield path, last.end if first == last.file else path.stat().st_size


def _hash_of(path: Path, end: int) -> str:
    """Return the SHA-256 of a file up to a byte; "" if it cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while piece := file.read(min(PIECE_BYTES, end)):
                digest.update(piece)
                end -= len(piece)
    except OSError:  # which `verify` names
        return ""
    return digest.hexdigest()


def _index_hash(folder: Path) -> str:
    """Return a hash of the file of the index in use and its log; "" if there is none.

    No connection to the index may be open in this process, because closing a file drops its locks.
    """
    path = index_path(folder).resolve()
    if not path.exists():
        return ""
    log = path.with_name(f"{path.name}-wal")  # an empty one comes and goes
    parts = [part for part in (path, log) if part.exists() and part.stat().st_size]
    return " ".join(_hash_of(part, sys.maxsize) for part in parts)  # one may go meanwhile
