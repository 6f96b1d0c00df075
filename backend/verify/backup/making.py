"""Makes a backup of a ledger while the service runs.

Pending flights and idempotency keys are read first, then the height of the chain: in this order
nothing can be missed. A flight that is mined meanwhile is copied twice, which does no harm, because
ids below the chain's count are mined. When all is copied, synced and checked, the manifest is
written; until then the earlier backup in the folder is good. A backup that does not agree with the
ledger is never changed, because it may be the better of the two.
"""

import time
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from backend.base import files
from backend.base.errors import BackupRefused, WriteFailed
from backend.base.progress import Progress
from backend.base.settings import Settings
from backend.base.words import Report
from backend.mempool import FOLDER as MEMPOOL_FOLDER
from backend.storage.block_store import BlockStore
from backend.storage.receipt_store import belongs_to_cluster
from backend.verify.backup import manifest as manifests
from backend.verify.backup.accepted import (
    accepted_now,
    complete,
    copy_accepted,
    copy_successions,
    copy_tokens,
)
from backend.verify.backup.block_copies import (
    REMEDY,
    blocks_in_copy,
    bytes_of,
    copy_blocks,
)
from backend.verify.backup.manifest import LOCK_NAME, Manifest
from backend.verify.folder_check import require_chain

NO_MATTER = {LOCK_NAME, f"{manifests.NAME}.tmp", "lost+found"}  # in a folder that counts as empty
SPARE_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Made:
    """A backup that was made: its manifest, what was new in it, and how long it took."""

    manifest: Manifest
    new_blocks: int
    new_bytes: int
    seconds: float


def back_up(settings: Settings, folder: Path, *, report: Report, progress: Progress) -> Made:
    """Bring the backup in `folder` up to date, or begin one there.

    Raises BackupRefused if the folder or its backup does not fit the ledger, Damage without a chain
    and for a bad block of it, WriteFailed, and WriterBusy if another backup is being made there.
    """
    folder = folder.resolve()
    require_apart(settings.folder, folder)
    if not folder.parent.is_dir():
        raise BackupRefused(
            f"{folder.parent} does not exist: is the disk of the backup mounted? If it is, make "
            "that folder first"
        )
    if belongs_to_cluster(settings.folder):
        raise BackupRefused(
            f"the ledger in {settings.folder} belongs to a cluster, whose nodes are copies of each "
            "other; add a node for one more copy"
        )
    require_chain(settings.folder)
    with closing(BlockStore(settings.folder)) as store:
        files.make_folder(folder)
        _manifest_in(folder, store)  # before anything is written there
        remedy = "another backup is being made there; wait until it ends"
        with files.FileLock(folder / LOCK_NAME, waits=False, remedy=remedy):
            old = _manifest_in(folder, store)
            try:
                return _copy(settings, store, folder, old, report, progress)
            except WriteFailed as error:
                raise WriteFailed(f"{error}; {_what_is_left(old)}") from error


def require_apart(chain: Path, folder: Path) -> None:
    """Raise BackupRefused if one of the two folders is the other, or inside it."""
    backup, ledger = folder.resolve(), chain.resolve()
    if backup.is_relative_to(ledger) or ledger.is_relative_to(backup):
        raise BackupRefused(
            f"the backup in {folder} and the chain in {chain} must not be in one folder; "
            "choose one elsewhere for the backup, best on another disk"
        )


def _manifest_in(folder: Path, store: BlockStore) -> Manifest:
    """Return the manifest of the backup in `folder`, or one to begin with if it is empty."""
    genesis_hash = store.place(0).hash.hex()
    manifest = manifests.read(folder)
    if manifest is None:
        if any(entry.name not in NO_MATTER for entry in folder.iterdir()):
            raise BackupRefused(
                f"{folder} is not empty and holds no backup ({manifests.NAME} is missing); "
                "choose an empty folder"
            )
        return Manifest(is_complete=False, genesis_hash=genesis_hash)
    if manifest.genesis_hash != genesis_hash:
        raise BackupRefused(
            f"{folder} is the backup of another ledger, whose block 0 is {manifest.genesis_hash}; "
            "choose another folder"
        )
    return manifest


def _what_is_left(old: Manifest) -> str:
    if not old.is_complete:
        return "the backup is not complete; run it again when the problem is solved"
    return f"the backup of {old.time}, up to block {old.height}, is still good"


def _copy(
    settings: Settings,
    store: BlockStore,
    folder: Path,
    old: Manifest,
    report: Report,
    progress: Progress,
) -> Made:
    """Copy what the backup in `folder`, of which `old` is the manifest, does not have yet."""
    started = time.monotonic()
    first = blocks_in_copy(store, folder, old.height)
    records, keys = accepted_now(settings, store.transactions, report)
    height = store.height()
    tip = store.place(height)
    following = max(records[-1].next if records else 0, tip.next_transaction)
    _require_no_fewer(following, old, folder)
    new_bytes = bytes_of(store, first, height)
    mempool = (settings.folder / MEMPOOL_FOLDER).glob("*")
    mempool_bytes = sum(path.stat().st_size for path in mempool)
    files.require_room(folder, new_bytes + mempool_bytes + SPARE_BYTES)
    if not old.is_complete:
        manifests.FILE.write(folder, old)
    for done in copy_blocks(store, first, height, folder):
        progress(done - first, height + 1 - first)
    accepted = copy_accepted(settings.folder, folder, records, keys)
    copy_tokens(settings.folder, folder, report)
    copy_successions(settings.folder, folder, report)
    manifest = Manifest(
        is_complete=True,
        genesis_hash=old.genesis_hash,
        height=height,
        tip_hash=tip.hash.hex(),
        transactions=tip.next_transaction,
        pending=following - tip.next_transaction,
        next_transaction=following,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        mempool=accepted.mempool,
        aside=accepted.aside,
    )
    manifests.FILE.write(folder, manifest)
    complete(folder, accepted.mempool | accepted.aside)
    seconds = time.monotonic() - started
    return Made(manifest, height + 1 - first, new_bytes + accepted.new, seconds)


def _require_no_fewer(following: int, old: Manifest, folder: Path) -> None:
    """Raise BackupRefused if the backup already has an id that the ledger does not have.

    following: the id after the last one of the ledger.
    """
    if following < old.next_transaction:
        raise BackupRefused(
            f"the backup in {folder} holds flights up to id {old.next_transaction - 1}, this "
            f"ledger only up to {following - 1}: acknowledged flights are missing; {REMEDY}"
        )
