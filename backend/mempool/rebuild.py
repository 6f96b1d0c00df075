"""Rebuilds a damaged mempool: it keeps what can be read, names what is lost, and changes no id.

The process that holds the lock between processes reads all records and keys that are as they were
written. Where acknowledged ids are missing, void entries take their places, and
`lost-FIRST-COUNT.bin` names them. If transactions are missing that blocks once held, then the chain
has lost blocks. That cannot be repaired here, and nothing is changed until a person gives them up.

A new file is written whole and synced, and gets a name under which it counts (`NEW_NAME`). Then the
old one and its log are renamed, and are kept, and the new one gets the name of the old one. A crash
on the way loses nothing: the next process goes on there. Others notice by the file's inode that
theirs was replaced.
"""

import os
from pathlib import Path

from backend.base import files
from backend.base.clock import now_ms
from backend.base.words import COMMAND, Report
from backend.mempool import last_release, lost_files
from backend.mempool.database import FILE_NAME, NEW_NAME, write_file
from backend.mempool.idempotency_keys import KeyUse
from backend.mempool.lost_files import Lost
from backend.mempool.records import Record, missing_ids, void_record
from backend.mempool.store import Store, require_blocks
from backend.mempool.watermark import Mark
from backend.storage.layout import is_backup

_NEXT_PROCESS = "the next process that accepts or mines flights"
WHAT_NEXT = f"{_NEXT_PROCESS} repairs it, and says if any are lost"
KEYS_FORGOTTEN = "idempotency keys that came with it may be used again"
MARK_UNKNOWN = (
    "acknowledged.dat was missing or damaged, so it is unknown whether more was acknowledged"
)


def what_next(folder: Path) -> str:
    """Return what becomes of the mempool in `folder`, which is damaged or of the last release."""
    if not last_release.is_to_be_read(folder):
        return WHAT_NEXT
    first = f"a backup is not changed; after `{COMMAND} restore`, "
    return f"{first if is_backup(folder.parent) else ''}{_NEXT_PROCESS} converts it"


def finish_replacing(folder: Path) -> str:
    """Put a new file in its place, and keep the old one, if a process had got so far.

    Returns the name of what was kept, or "".
    """
    new, kept = folder / NEW_NAME, ""
    if os.path.exists(new):  # noqa: PTH110  this is asked often
        aside = lost_files.free_name(folder, ".sqlite")
        for ending in ("-wal", ""):
            path = folder / f"{FILE_NAME}{ending}"
            if path.exists():
                kept = f"{aside.name}{ending}"
                files.rename(path, folder / kept)
        files.remove(folder / f"{FILE_NAME}-shm")
        last_release.remove(folder)
        files.rename(new, folder / FILE_NAME)
    return kept


def rebuild(
    store: Store,
    mined: int,
    mark: Mark | None,
    problem: str,
    report: Report,
    *,
    accepts_loss: bool = False,
) -> Mark:
    """Rebuild the file of `store`. Returns the mark that holds for the new one.

    Only under the lock between processes, after `finish_replacing`. mined: how many transactions
    blocks hold. mark: how far flights have been acknowledged; None if that is not known. problem:
    what is wrong, in words. accepts_loss: whether a person has given up blocks that are lost.
    Raises WriteFailed, TryLater if the disk is full, or DamagedMempool if blocks are lost or the
    file is another ledger's; then nothing is changed.
    """
    folder, known = store.path.parent, mark or Mark()
    ours = (p for p in folder.iterdir() if not lost_files.NAME_FORM.fullmatch(p.name))
    files.require_free(folder, 0, sum(path.stat().st_size for path in ours))
    is_conversion = last_release.is_to_be_read(folder)
    records, keys, damage = contents_of(store)
    store.close()
    lost = list(missing_ids(records, known.end, mined))
    once = max([known.mined, mined, *(r.mined for r in records)])
    if lost and not accepts_loss:
        require_blocks(folder.parent, lost[0][0], once)
    end = max([0, *(r.next for r in records), *(ids.stop for ids in lost)])
    # What blocks alone hold at the end is void, too, or the file would be taken for an older one.
    in_blocks = [range(end, known.next)] if end < known.next else []
    voids = [_void(ids, records, mined) for ids in lost + in_blocks]
    keys = _sound_keys(keys, lost, max(end, mined))
    if is_conversion and (damage or lost):
        last_release.keep(folder)
    problem = damage or problem
    named = [_named(folder, problem, ids, mark) for ids in lost]
    write_file(folder / NEW_NAME, store.genesis(), sorted(records + voids), keys)
    kept = finish_replacing(folder)
    where = f"; what was there is kept as {kept}" if kept else ""
    message = f"{problem}; the mempool was rebuilt{where}; {_cost(lost, in_blocks, mark)}"
    if is_conversion and not (damage or lost):
        message = f"{folder}: the mempool of the last release was converted into one file"
    for line in (message, *named):
        report(line)
    return Mark(max(end, known.next), once)


def contents_of(store: Store) -> tuple[list[Record], dict[str, KeyUse], str]:
    """Return the records and keys that can be read, in whatever format, in the order of the ids.

    The third is what is wrong with the mempool of the last release, in words, or "". Raises
    DamagedMempool, TryLater.
    """
    if last_release.is_to_be_read(store.path.parent):
        return last_release.read(store.path.parent)
    return *store.readable(), ""  # also of a log that has no name any more


def _void(ids: range, records: list[Record], mined: int) -> Record:
    """Return the record of lost flights, as old as the one before: times never go back."""
    times = [record.timestamp for record in records if record.first < ids[0]] or [
        record.timestamp for record in records[:1]
    ]
    return void_record(ids[0], len(ids), times[-1] if times else now_ms(), mined)


def _sound_keys(keys: dict[str, KeyUse], lost: list[range], end: int) -> dict[str, KeyUse]:
    """Return the keys none of whose flights are lost, or have ids that will be given to others."""
    return {
        text: use
        for text, use in keys.items()
        if use.next <= end
        and not any(use.first < ids.stop and ids.start < use.next for ids in lost)
    }


def _named(folder: Path, problem: str, ids: range, mark: Mark | None) -> str:
    """Name lost ids in a file. Returns the message about them."""
    path = folder / f"lost-{ids[0]}-{len(ids)}.bin"
    if not path.exists():
        files.write_new(path, f"{problem}\n".encode())
    return str(Lost(ids[0], len(ids), path)) + ("" if mark else f" ({MARK_UNKNOWN})")


def _cost(lost: list[range], in_blocks: list[range], mark: Mark | None) -> str:
    """Return what the damage costs, in words."""
    if lost:
        return "acknowledged flights are lost"
    if in_blocks:
        return f"blocks hold the missing flights; {KEYS_FORGOTTEN}"
    if mark is None:
        return MARK_UNKNOWN
    return f"no flight is missing; {KEYS_FORGOTTEN} if they were damaged"
