"""Makes a backup of a ledger while the service runs.

Pending flights are copied first, then idempotency keys, then the height of the chain is read: in
this order nothing can be missed. A flight that is mined meanwhile is copied twice, which does no
harm, because ids below the chain's count are mined. Then the blocks up to that height, the tokens
and the notes by which keys of the log follow each other are copied, and when all is synced and
checked the manifest is written. Until then the earlier backup in the folder is good. Only if some
of its blocks are bad and must be copied again, its manifest is first made to say that it is not
complete, and that is done only if the chain's own blocks are good.
"""

import time
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from backend.base import files
from backend.base.errors import BackupRefused, DamagedBlock, WriteFailed
from backend.base.settings import Settings
from backend.base.words import Report
from backend.mempool import FOLDER as MEMPOOL_FOLDER
from backend.storage.block_store import BlockStore
from backend.storage.receipt_store import belongs_to_cluster
from backend.verify.backup import manifest as manifests
from backend.verify.backup.accepted import complete, copy_accepted, copy_successions, copy_tokens
from backend.verify.backup.block_copies import (
    BlockCopy,
    Progress,
    agreeing_blocks,
    bytes_of,
    check_blocks,
    not_ours,
)
from backend.verify.backup.manifest import LOCK_NAME, Manifest

NO_MATTER = {LOCK_NAME, f"{manifests.NAME}.tmp", "lost+found"}  # in a folder that counts as empty
SPARE_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Made:
    """A backup that was made: its manifest, what was new in it, and how long it took."""

    manifest: Manifest
    new_blocks: int
    new_bytes: int
    seconds: float


def _require_alone(folder: Path) -> None:
    """Raise BackupRefused for the ledger of a node of a cluster."""
    if belongs_to_cluster(folder):
        raise BackupRefused(
            f"the ledger in {folder} belongs to a cluster, whose nodes are copies of each other; "
            "add a node for one more copy"
        )


def back_up(
    settings: Settings, folder: Path, *, full: bool, report: Report, progress: Progress
) -> Made:
    """Bring the backup in `folder` up to date, or begin one there.

    full: read and check all of it again, not only what is new. Raises BackupRefused if the folder
    or its backup does not fit the ledger, DamagedBlock for a bad block of the chain, WriteFailed,
    and WriterBusy if another backup is being made there.
    """
    started = time.monotonic()
    folder = folder.resolve()
    require_apart(settings.folder, folder)
    if not folder.parent.is_dir():
        raise BackupRefused(
            f"{folder.parent} does not exist: is the disk of the backup mounted? If it is, make "
            "that folder first"
        )
    _require_alone(settings.folder)
    with closing(BlockStore(settings.folder)) as store:
        if store.height() < 0:
            raise BackupRefused(
                f"{settings.folder} holds no chain to back up; let FLIGHTCHAIN_DIR name a ledger"
            )
        files.make_folder(folder)
        _require_backup_or_empty(folder)
        lock = files.FileLock(folder / LOCK_NAME)
        lock.acquire(wait=False)
        try:
            old = _begun(store, folder)
            run = _Run(settings, store, folder, old, report, progress)
            manifest, new_blocks, new_bytes = run.run(full=full)
        except WriteFailed as error:
            raise WriteFailed(f"{error}; {_what_is_left(folder)}") from error
        finally:
            lock.release()
    return Made(manifest, new_blocks, new_bytes, time.monotonic() - started)


def require_apart(chain: Path, folder: Path) -> None:
    """Raise BackupRefused if one of the two folders is the other, or inside it."""
    backup, ledger = folder.resolve(), chain.resolve()
    if backup.is_relative_to(ledger) or ledger.is_relative_to(backup):
        raise BackupRefused(
            f"the backup in {folder} and the chain in {chain} must not be in one folder; "
            "choose one elsewhere for the backup, best on another disk"
        )


def _require_backup_or_empty(folder: Path) -> None:
    manifest = manifests.read(folder)
    is_empty = all(entry.name in NO_MATTER for entry in folder.iterdir())
    if not is_empty and manifest is None:
        raise BackupRefused(
            f"{folder} is not empty and holds no backup ({manifests.NAME} is missing); "
            "choose an empty folder"
        )


def _begun(store: BlockStore, folder: Path) -> Manifest:
    """Return the manifest of the backup in `folder`; an incomplete one is written if missing."""
    genesis_hash = store.place(0).hash.hex()
    manifest = manifests.read(folder)
    if manifest is None:
        manifest = Manifest(is_complete=False, genesis_hash=genesis_hash)
        manifests.FILE.write(folder, manifest)
    if manifest.genesis_hash != genesis_hash:
        raise BackupRefused(
            f"{folder} is the backup of another ledger, whose block 0 is {manifest.genesis_hash}; "
            "choose another folder"
        )
    return manifest


def _what_is_left(folder: Path) -> str:
    left = manifests.read(folder)
    if left is None or not left.is_complete:
        return "the backup is not complete; run it again when the problem is solved"
    return f"the backup of {left.time}, up to block {left.height}, is still good"


class _Run:
    """One run that brings the backup in `folder` up to date; `old` is its manifest before that."""

    def __init__(
        self,
        settings: Settings,
        store: BlockStore,
        folder: Path,
        old: Manifest,
        report: Report,
        progress: Progress,
    ) -> None:
        self._settings = settings
        self._store = store
        self._folder = folder
        self._old = old
        self._report = report
        self._progress = progress

    def run(self, *, full: bool) -> tuple[Manifest, int, int]:
        """Bring the backup up to date. Returns the manifest, and counts of new blocks and bytes."""
        self._require_same_blocks()
        self._require_room()
        accepted = copy_accepted(
            self._settings, self._transactions, self._folder, self._report, self._require_no_fewer
        )
        height = self._store.height()
        first = self._copy_blocks(height, trusted=-1 if full else self._old.height)
        copy_tokens(self._settings.folder, self._folder)
        copy_successions(self._settings.folder, self._folder, self._report)
        tip = self._store.place(height)
        following = max(accepted.next_transaction, tip.next_transaction)
        manifest = Manifest(
            is_complete=True,
            genesis_hash=self._old.genesis_hash,
            height=height,
            tip_hash=tip.hash.hex(),
            transactions=tip.next_transaction,
            pending=following - tip.next_transaction,
            next_transaction=following,
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            mempool=accepted.mempool,
            aside=accepted.aside,
        )
        manifests.FILE.write(self._folder, manifest)
        complete(self._folder, accepted.mempool | accepted.aside)
        new_bytes = accepted.new_bytes + bytes_of(self._store, first, height)
        return manifest, height + 1 - first, new_bytes

    def _transactions(self) -> int:
        return self._store.place(self._store.height()).next_transaction

    def _require_same_blocks(self) -> None:
        """Raise BackupRefused if the newest block of the backup is not a block of the chain."""
        old, height = self._old, self._store.height()
        if old.height > height or (
            old.is_complete and self._store.place(old.height).hash.hex() != old.tip_hash
        ):
            raise not_ours(self._folder, old.height, height)

    def _require_no_fewer(self, following: int) -> None:
        """Raise BackupRefused if the backup already has an id that the ledger does not have.

        following: the id after the last one in the mempool.
        """
        following = max(following, self._transactions())
        if following < self._old.next_transaction:
            raise BackupRefused(
                f"the backup in {self._folder} holds flights up to id "
                f"{self._old.next_transaction - 1}, this ledger only up to {following - 1}: "
                "acknowledged flights are missing; keep that backup, and make another one in "
                "another folder"
            )

    def _require_room(self) -> None:
        height = self._store.height()
        agreed = agreeing_blocks(self._settings.folder, self._folder, height)
        mempool = self._settings.folder / MEMPOOL_FOLDER
        pending = sum(p.stat().st_size for p in mempool.iterdir()) if mempool.is_dir() else 0
        wanted = bytes_of(self._store, agreed, height) + pending + SPARE_BYTES
        files.require_room(self._folder, wanted)

    def _copy_blocks(self, height: int, trusted: int) -> int:
        """Copy blocks up to `height`. Returns the height of the first block that was new.

        trusted: the height up to which blocks were checked by an earlier run, and are not again.
        """
        agreed = agreeing_blocks(self._settings.folder, self._folder, height)
        start = min(agreed, trusted + 1)
        with BlockCopy(self._store, self._folder) as copy:
            first = self._first_bad(copy, start, agreed)
            # Good blocks of the copy are cut off only if those of the chain are good, too.
            check_blocks(self._store, first, max(agreed, self._old.height + 1))
            if first <= self._old.height:
                left = replace(self._old, is_complete=False, height=first - 1, tip_hash="")
                manifests.FILE.write(self._folder, left)  # as it will be when they are cut off
            done = first
            for following in copy.copy(first, height):
                self._check_arrived(copy, done, following)
                done = following
                self._progress(done - start, height + 1 - start)
        return first

    def _first_bad(self, copy: BlockCopy, start: int, following: int) -> int:
        """Return the height of the first bad block from `start` to `following` (exclusive).

        It is `following` if all are good.
        """
        try:
            check_blocks(copy.copied, start, following, self._progress)
        except DamagedBlock as error:
            self._report(f"in the backup {error}; it and the blocks after it are copied again")
            return error.height
        return following

    def _check_arrived(self, copy: BlockCopy, first: int, following: int) -> None:
        """Check blocks `first` to `following` (exclusive) of the copy.

        Raises DamagedBlock if the chain has a bad block, WriteFailed if only the copy has one.
        """
        try:
            check_blocks(copy.copied, first, following)
        except DamagedBlock as error:
            check_blocks(self._store, first, following)
            raise WriteFailed(f"{error} in {self._folder}, but not in the chain") from error
