"""Writes and reads the manifest of a backup, which says what it holds: `backup.json` in its folder.

It is written when a backup is begun (not complete), and again when everything that it names has
been copied, synced and checked. Each time it is replaced in one step, so what it says is always
true. If the folder holds more than it names, a run that was interrupted left that.
"""

from pathlib import Path
from typing import Annotated

import msgspec

from backend.base.errors import BackupRefused, InvalidInput
from backend.base.file_names import bare_name, strange_entry
from backend.base.state_file import StateFile
from backend.base.words import COMMAND
from backend.mempool import FOLDER as MEMPOOL_FOLDER
from backend.mempool import database, last_release, lost_files
from backend.storage import tokens
from backend.storage.layout import BACKUP_NAME, BLOCKS_FOLDER
from backend.trust.log.successions import SUCCESSIONS_NAME

NAME = BACKUP_NAME
FORMAT = 1
LOCK_NAME = "backup.lock"
MOST_BYTES = 16 * 2**20
BESIDE_BLOCKS = (MEMPOOL_FOLDER, tokens.FILE_NAME, SUCCESSIONS_NAME)
PARTS = (NAME, f"{NAME}.tmp", LOCK_NAME, BLOCKS_FOLDER, *BESIDE_BLOCKS)

Size = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Says what a backup holds.

    height, tip_hash: its newest block. transactions: how many its blocks hold. If it is not
    complete, only genesis_hash is valid. pending: how many accepted flights are in no block yet.
    next_transaction: the id after the last accepted one. mempool, aside: the size in bytes of the
    copy of the mempool, and of each file that was kept of a damaged one. time: when it was made,
    ISO 8601.
    """

    format: int = FORMAT
    is_complete: bool
    genesis_hash: str
    height: int = -1
    tip_hash: str = ""
    transactions: int = 0
    pending: int = 0
    next_transaction: int = 0
    time: str = ""
    mempool: dict[str, Size] = {}
    aside: dict[str, Size] = {}


USE_COPY = f"set FLIGHTCHAIN_DIR to the copy, run `{COMMAND} verify`, and start the service"
LOST = f"if only that file was lost, its blocks can still be used: copy the folder, {USE_COPY}"
WITHOUT_IT = f"if its ledger is lost, remove that file from a copy of the folder, {USE_COPY}"
WITHOUT_PENDING = (
    f"if its ledger is lost, all blocks can still be used: remove that file and {NAME} from a copy "
    f"of the folder, {USE_COPY}"
)
FILE = StateFile(NAME, Manifest, MOST_BYTES)


def read(folder: Path) -> Manifest | None:
    """Read the manifest of the backup in `folder`; None if there is none.

    Raises BackupRefused also if the backup has anything that no backup has: then nothing of it may
    be read or written.
    """
    _require_plain_files(folder)
    path = folder / NAME
    try:
        manifest = FILE.load(folder)
        _require_known_names(manifest)
    except FileNotFoundError:
        return None
    except (ValueError, InvalidInput) as error:
        raise BackupRefused(
            f"{path} is damaged ({error}); make a new backup elsewhere; {WITHOUT_IT}"
        ) from None
    if manifest.format != FORMAT:
        raise BackupRefused(
            f"{path} has format {manifest.format}; this release reads format {FORMAT}"
        )
    return manifest


def _require_plain_files(folder: Path) -> None:
    """Raise BackupRefused if a part of the backup is a link, a pipe or a device."""
    for name in PARTS:
        if strange := strange_entry(folder / name):
            raise BackupRefused(
                f"the backup in {folder} is not used, because {strange} is neither a regular file "
                "nor a folder, and might lead elsewhere; put the file itself in its place"
            )


def _require_known_names(manifest: Manifest) -> None:
    """Raise InvalidInput if the manifest names a file that no mempool has."""
    for name in manifest.mempool:
        bare_name(name, database.COPY_FORM, last_release.NAME_FORM)
    for name in manifest.aside:
        bare_name(name, lost_files.NAME_FORM)
