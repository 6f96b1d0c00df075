"""Restores a ledger from a backup, whole or not at all.

Everything is copied into `restoring/` inside the chain's folder and checked there by every rule of
the chain. Then it is moved to its place, the blocks last; while `restoring/` exists no process
begins a new chain beside it. A restore that is killed on the way leaves nothing that could be taken
for a ledger, and the same command begins again. `acknowledged.dat` is written after the blocks are
in place: if it is found beside an interrupted restore, a service has accepted flights there. The
index is made last, because it is derived; without it the ledger is whole, and whatever writes to it
next makes the index.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path

from backend.base import files
from backend.base.errors import BackupRefused, Damage, NotFound, WriteFailed, WriterBusy
from backend.base.progress import Progress
from backend.base.settings import Settings
from backend.base.words import COMMAND, Report
from backend.index.index_file import index_path
from backend.mempool import check_mempool
from backend.mempool.mempool import LOCK_NAME as MEMPOOL_LOCK_NAME
from backend.mempool.watermark import Mark, Watermark
from backend.sealing.miner_status import LOCK_NAME as MINER_LOCK_NAME
from backend.sealing.sealer import Sealer
from backend.storage import layout
from backend.storage.block_store import BlockStore
from backend.storage.block_writer import WRITER_LOCK_NAME
from backend.storage.genesis import Genesis
from backend.storage.layout import unfinished_restore
from backend.trust.log.log_checks import traces_of_log
from backend.verify.audit import verify
from backend.verify.backup import manifest as manifests
from backend.verify.backup.accepted import kept_files, restore_accepted
from backend.verify.backup.block_copies import bytes_of, copy_blocks
from backend.verify.backup.making import SPARE_BYTES, require_apart
from backend.verify.backup.manifest import BESIDE_BLOCKS, Manifest
from backend.verify.folder_files import LET_IT_BE, kind_of

Watched = Callable[[str], AbstractContextManager[Progress]]

LOCK_NAMES = (MINER_LOCK_NAME, WRITER_LOCK_NAME, MEMPOOL_LOCK_NAME)
INDEX_BYTES, FLIGHT_BYTES = 64 * 2**20, 70  # that an index takes with its log, and for each flight
NEW_BACKUP = "if its ledger still exists, make a new backup of it in another folder"
BLOCKS_ALONE = (
    f"if not, remove {manifests.NAME} and {layout.BLOCKS_FOLDER}/{layout.TABLE_NAME} from a copy "
    "of the folder, set FLIGHTCHAIN_DIR to the copy, and start the service, which rebuilds the "
    "table"
)
MAKES_INDEX = f"start the service or run `{COMMAND} reindex`, which makes the index"


def restore(settings: Settings, folder: Path, *, watched: Watched, report: Report) -> Manifest:
    """Make a ledger in `settings.folder` from the backup in `folder`. Returns the manifest.

    watched: gives a progress, in blocks, for each part of the work. report: takes messages, one at
    a time. Raises BackupRefused if `folder` holds no backup, or one that is not complete or
    damaged, or if there is a ledger already; WriteFailed, also if all but the index is restored.
    """
    require_apart(settings.folder, folder)
    manifest = _complete_manifest(folder)
    with closing(BlockStore(folder)) as backup:
        _require_sound(folder, manifest, backup)
        files.make_folder(settings.folder)
        with _locked(settings.folder):
            stage = _empty_stage(settings.folder)
            try:
                with watched("copying") as progress:
                    _copy(folder, backup, manifest, stage, progress)
                with watched("verifying") as progress:
                    following = _check(manifest, stage, progress)
            except (Damage, BackupRefused) as error:
                shutil.rmtree(stage)
                reason = str(error).replace(str(stage), str(folder))  # whose files are still there
                raise BackupRefused(
                    f"the backup in {folder} is not restored: {reason}; {NEW_BACKUP}"
                ) from error
            _put_in_place(stage, settings.folder)
            with closing(Watermark(settings.folder, Genesis(settings.folder))) as watermark:
                watermark.note(Mark(following, manifest.transactions))
    try:
        with (
            watched("making the index") as progress,
            closing(Sealer(settings, report)) as sealer,
            sealer.writing(wait=True, progress=progress, sign=False),  # a key may be put back first
        ):
            return manifest
    except WriteFailed as error:
        raise WriteFailed(
            f"all flights are restored to {settings.folder}, but the index, which takes up to "
            f"{_index_bytes(manifest):,} bytes, is not made: {error}; then {MAKES_INDEX}"
        ) from error


def require_restorable(folder: Path) -> None:
    """Raise BackupRefused if a backup, whose blocks are good, lacks anything that it should have.

    Without its manifest, nobody else would miss a copy of pending flights.
    """
    manifest = _complete_manifest(folder)
    with closing(BlockStore(folder)) as backup:
        _require_sound(folder, manifest, backup)
    try:
        for _ in kept_files(folder, manifest.mempool | manifest.aside):
            pass
    except BackupRefused as error:
        raise BackupRefused(
            f"the backup in {folder} cannot be restored: {error}; {NEW_BACKUP}"
        ) from error


def _complete_manifest(folder: Path) -> Manifest:
    """Read the manifest of a complete backup. Raises BackupRefused."""
    manifest = manifests.read(folder)
    if manifest is None:
        rest = f"; {manifests.LOST}" if (folder / layout.BLOCKS_FOLDER).exists() else ""
        raise BackupRefused(f"{folder} holds no backup: {manifests.NAME} is missing{rest}")
    if not manifest.is_complete:
        raise BackupRefused(
            f"the backup in {folder} is not complete: it was interrupted; run "
            f"`{COMMAND} backup` again"
        )
    return manifest


def _require_sound(folder: Path, manifest: Manifest, backup: BlockStore) -> None:
    """Raise BackupRefused unless the manifest and the table of heights say the same."""
    try:
        hashes = [backup.place(height).hash.hex() for height in (0, manifest.height)]
        backup.places(0, manifest.height + 1)  # for those between
    except (Damage, NotFound) as error:
        raise BackupRefused(
            f"the backup in {folder} is damaged: {error}; {NEW_BACKUP}; {BLOCKS_ALONE}"
        ) from error
    if hashes != [manifest.genesis_hash, manifest.tip_hash]:
        raise BackupRefused(
            f"the backup in {folder} is damaged: {manifests.NAME} names the blocks "
            f"{manifest.genesis_hash} and {manifest.tip_hash}, the table of heights {hashes}; "
            f"{NEW_BACKUP}; {BLOCKS_ALONE}"
        )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other processes from mining, importing and accepting. Raises BackupRefused."""
    with ExitStack() as held:
        for name in LOCK_NAMES:
            try:
                held.enter_context(files.FileLock(folder / name, waits=False))
            except WriterBusy as error:
                raise BackupRefused(
                    f"{error}: a miner, an import, a service or another restore is "
                    f"using {folder}; stop it, or wait until it ends"
                ) from error
        yield


def _empty_stage(folder: Path) -> Path:
    """Make an empty folder `restoring/`, with nothing of a ledger beside it. Raises BackupRefused.

    What an interrupted restore has moved already is removed, because the backup has it, and what is
    written again by itself, which another command may have left. If there is any other file,
    everything is left as it is.
    """
    stage = folder / layout.RESTORING_FOLDER
    paths = (path for path in folder.iterdir() if path.suffix not in {".lock", ".tmp"})
    names = {path.name for path in paths} - {"lost+found", "README.md"}  # which a new clone has
    ours: set[str] = set()
    if unfinished_restore(folder):
        kinds = {name: kind_of(name) for name in names}
        left = {name for name, kind in kinds.items() if kind and kind.remedy == LET_IT_BE}
        ours = {stage.name, *BESIDE_BLOCKS, *left - set(traces_of_log(folder))}
    if not names <= ours:
        lacks_index = not ours and not index_path(folder).exists()
        hint = f"; if a restore has ended while it made the index, {MAKES_INDEX}"
        raise BackupRefused(
            f"{folder} is not empty, it holds {', '.join(sorted(names))}; if the backup is to "
            "replace a ledger there, stop the service and move all of that aside"
            + (hint if lacks_index and layout.BLOCKS_FOLDER in names else "")
        )
    # `restoring/` is removed last, so that a restore that is killed here can be repeated.
    for path in sorted((folder / name for name in names), key=stage.__eq__):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            files.remove(path)
    files.make_folder(stage)
    files.require_links(stage)
    return stage


def _copy(
    folder: Path, backup: BlockStore, manifest: Manifest, stage: Path, progress: Progress
) -> None:
    accepted = manifest.mempool | manifest.aside
    copied = bytes_of(backup, 0, manifest.height) + sum(accepted.values())
    files.require_room(stage, copied + _index_bytes(manifest) + SPARE_BYTES)
    restore_accepted(folder, stage, accepted)  # before the next backup puts others in their place
    for done in copy_blocks(backup, 0, manifest.height, stage):
        progress(done, manifest.height + 1)


def _index_bytes(manifest: Manifest) -> int:
    """Return how many bytes the index of a ledger takes at most, while it is made."""
    return INDEX_BYTES + FLIGHT_BYTES * manifest.transactions


def _check(manifest: Manifest, stage: Path, progress: Progress) -> int:
    """Return the id after the last one of the mempool.

    Raises Damage, or BackupRefused, unless the copy is what the manifest says.
    """
    verified = verify(stage, progress)
    mempool = check_mempool(stage, lambda: verified.transactions)
    there = (verified.tip_hash, verified.transactions, mempool.pending)
    named = (manifest.tip_hash, manifest.transactions, manifest.pending)
    if there != named:
        raise BackupRefused(f"{manifests.NAME} says {named}, but the backup holds {there}")
    return mempool.following


def _put_in_place(stage: Path, folder: Path) -> None:
    """Move everything to its place, the blocks last, because without them there is no ledger."""
    for name in (*BESIDE_BLOCKS, layout.BLOCKS_FOLDER):
        if (stage / name).exists():
            files.rename(stage / name, folder / name)
    with files.refusals("remove", stage):
        stage.rmdir()
