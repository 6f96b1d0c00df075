"""Verifies again what was verified before, by the bytes alone: `verify --since`.

`verified.json` remembers how far the chain was verified, and the SHA-256 of the bytes of all block
files, of the table of heights and of the index then. Where bytes are the same, so is what was
checked; where they are not, everything is checked as if for the first time. The file is not signed:
it is for disks that forget, not against whoever can write to the folder.
"""

import hashlib
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import msgspec

from backend.base.clock import now_ms
from backend.base.errors import Damage, FlightchainError, NotFound, WriteFailed
from backend.base.files import replace_unsynced
from backend.index.index_file import index_path
from backend.storage.block_store import BlockStore
from backend.storage.layout import BLOCKS_FOLDER, ENTRY_BYTES, TABLE_NAME, first_height_of
from backend.verify.audit import Scope, Verified, verify
from backend.verify.chain_check import Progress

NAME = "verified.json"
PIECE_BYTES = 2**20
NOT_VERIFIED = "run `verify` without --since first"

Hashes = dict[str, str]  # SHA-256 by the names of files


class Memory(msgspec.Struct, frozen=True):
    """What was verified: blocks 0 to `height`, and the index, if its hash is not empty.

    blocks: the hashes of the bytes up to that height. time: ISO 8601.
    """

    height: int
    tip_hash: str
    time: str
    blocks: Hashes
    index: str = ""


_READ_MEMORY = msgspec.json.Decoder(Memory)


@dataclass(frozen=True, slots=True)
class Again:
    """The result of a verification.

    before: what was verified before, and of which bytes alone were compared now; None if everything
    was checked. note: why everything was, although less was asked for; "" if it was not.
    """

    verified: Verified
    before: Memory | None = None
    note: str = ""


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
    memory, hashes, old, tip_hash = remembered(folder), {}, {}, ""
    with closing(BlockStore(folder)) as store:
        height = store.height()
        before = None if since is None else _of_same_chain(store, memory, since)
        with suppress(Damage, NotFound):  # which `verify` names
            hash_of = cache(_hash_of)
            tip_hash = store.place(height).hash.hex()
            hashes = {path.name: hash_of(path, end) for path, end in _ends(folder, store, height)}
            if before is not None:
                ends = _ends(folder, store, before.height)
                old = {path.name: hash_of(path, end) for path, end in ends}
    index = "" if chain_only else _index_hash(folder)
    scope, note = Scope(index=not chain_only, accepted=not chain_only), ""
    if before is not None and since is not None:
        note = _difference(before, old, None if chain_only else index)
        scope = scope if note else Scope(since + 1, index=False, accepted=not chain_only)
    verified = verify(folder, progress, processes, scope)
    if chain_only:
        index = memory.index if memory else ""
    elif scope.index and _index_hash(folder) != index:  # it was written to meanwhile
        index = ""
    time = datetime.fromtimestamp(now_ms() / 1000, UTC).isoformat(timespec="seconds")
    with suppress(WriteFailed):  # on a medium that can only be read
        now = Memory(height, tip_hash, time, hashes, index)
        replace_unsynced(folder / NAME, msgspec.json.encode(now))
    return Again(verified, None if note else before, note)


def remembered(folder: Path) -> Memory | None:
    """Return what was verified last; None if nothing was, or the file is damaged."""
    try:
        return _READ_MEMORY.decode((folder / NAME).read_bytes())
    except (OSError, msgspec.DecodeError):
        return None


def _of_same_chain(store: BlockStore, memory: Memory | None, since: int) -> Memory:
    """Return `memory` if it says that blocks up to `since` were verified, and they are there."""
    if memory is None:
        raise FlightchainError(f"nothing was verified before; {NOT_VERIFIED}")
    if since > memory.height:
        raise FlightchainError(
            f"blocks up to {since} were not verified before, but up to {memory.height} on "
            f"{memory.time}; {NOT_VERIFIED}, or with --since {memory.height}"
        )
    try:
        tip_hash = store.place(memory.height).hash.hex()
    except NotFound:
        tip_hash = "missing"
    if tip_hash != memory.tip_hash:
        raise Damage(
            f"block {memory.height} is {tip_hash}, but was {memory.tip_hash} when it was verified "
            f"on {memory.time}: the chain was replaced or put back; {NOT_VERIFIED} if you did that"
        )
    return memory


def _difference(before: Memory, hashes: Hashes, index: str | None) -> str:
    """Say which file has other bytes than before; "" if none. index: None: it is not looked at."""
    names = sorted(before.blocks.keys() | hashes.keys())
    changed = [name for name in names if hashes.get(name) != before.blocks.get(name)]
    if index is not None and (not index or index != before.index):
        changed.append("the index")
    if not changed:
        return ""
    return f"{changed[0]} has other bytes than on {before.time}, so everything is checked"


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
    return " ".join(_hash_of(part, part.stat().st_size) for part in parts)
