"""The table of all files of a chain's folder: what each is, who writes it, what its loss means.

`unusable` finds the files that cannot be read, and what stands in the place of one. What is wrong
inside a file is found by whoever reads it.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from backend.base import files
from backend.base.errors import Damage, NotFound
from backend.base.words import COMMAND
from backend.storage import layout
from backend.storage.block_store import BlockStore
from backend.storage.layout import Place

BACKUP = "restore the chain from a backup"
LET_IT_BE = "remove it: it is written again"


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file.

    pattern: its name below the folder, as `fnmatch` takes it. what: what it is. writer: who writes
    it. if_lost: what follows if it is lost. remedy: what to do then, `LET_IT_BE` if it is
    written again by itself, from what the other files hold.
    """

    pattern: str
    what: str
    writer: str
    if_lost: str
    remedy: str

    def consequence(self, remedy: str = "") -> str:
        """Say what follows without the file, and what to do. remedy: instead of that for a loss."""
        return f"{self.what}: {self.if_lost}; {remedy or self.remedy}"


def _derived(pattern: str, what: str, writer: str, if_lost: str) -> FileKind:
    return FileKind(pattern, what, writer, if_lost, LET_IT_BE)


_LOCK_LOST = "no data are lost, but no process can take the lock while it cannot be opened"
KINDS = (
    FileKind(
        "blocks/blocks-*.dat", "blocks", "miner, import",
        "the blocks in it cannot be read, and nothing is sealed", BACKUP,
    ),
    _derived(
        "blocks/heights.dat", "the table of where blocks are", "miner, import",
        "no block is found until the miner has written it again from the block files",
    ),
    FileKind(
        "blocks/torn-*.bin", "bytes that were cut off a block file", "recovery",
        "they can no longer be examined", "remove it if you do not need it",
    ),
    FileKind("blocks", "the blocks", "miner, import", "nothing is answered or sealed", BACKUP),
    _derived("index", "the index", "miner, import",
             "questions are answered 503 until the index is rebuilt"),
    _derived("index/*", "a part of the index", "miner, import",
             "questions are answered 503 until the index is rebuilt"),
    FileKind(
        "log.key", "the secret key of the log", "miner, log rotate-key",
        "blocks are sealed but not signed, so flights in new blocks have no proofs",
        "put back a copy",
    ),
    _derived("log.vkey", "the key that verifies checkpoints", "miner, log rotate-key",
             "nothing is signed or proved meanwhile"),
    _derived("log.key.new", "the next key of the log", "log rotate-key",
             "the key is not changed, and nothing is signed meanwhile"),
    FileKind(
        "log.successions", "signatures of the log's old keys for the keys that followed",
        "log rotate-key", "clients that trust an older key refuse the proofs of this log",
        f"put back a copy (backups have one), or run `{COMMAND} log rebuild-successions`",
    ),
    FileKind(
        "log.successions.old", "signatures of keys that the log no longer has", "miner",
        "clients that trust one of those keys refuse the proofs of this log",
        "remove it if you do not need it",
    ),
    _derived("checkpoint", "the newest signed checkpoint", "miner, import",
             "nothing is proved until it is signed again"),
    _derived("cosigned", "the checkpoint that witnesses have signed", "cosign",
             "proofs lack the signatures of witnesses until they have signed again"),
    FileKind(
        "tokens.json", "the tokens for writing", "token", "writes that need a token are refused",
        "put back a copy, or remove it and create new tokens",
    ),
    FileKind(
        "default-import-unfinished", "the name of an unfinished import of FLIGHTCHAIN_DATA",
        "import --if-empty", "the import is not continued automatically",
        f"remove it, and run `{COMMAND} import` again",
    ),
    _derived("fetched.json", "the number of flights of each downloaded month",
             "import bts:…", "the months are downloaded again, though their flights are stored"),
    _derived("months.log", "the progress of the month that was fetched last", "POST /months",
             "the outcome of that month is unknown"),
    _derived("import-*.file", "a file of flights that was uploaded", "POST /imports",
             "the file must be uploaded again"),
    _derived("import-*.json", "the progress of an uploaded file", "POST /imports",
             "the file must be uploaded again"),
    _derived("On_Time_*.zip*", "a month that is being downloaded or imported", "import bts:…",
             "the month is downloaded again"),
    FileKind(
        "cluster.sqlite", "the receipts of a cluster", "cluster node",
        "the node does not run, and no flight is found by its receipt",
        "rebuild the node's chain, as docs/how-to/cluster.md says",
    ),
    _derived("cluster.json", "the status of a cluster's node", "cluster node",
             "the node's status is unknown for a moment"),
    _derived("clock.json", "the time, noted every hour", "miner, import",
             "the clock is compared with the newest block alone"),
    _derived("scrub.json", "the progress of the scrub, and what it found beside blocks", "scrub",
             "the scrub begins again, and finds the same again"),
    _derived("verified.json", "which blocks were verified, and the hashes of their bytes", "verify",
             "`verify --since last` verifies everything; `--since HEIGHT` is refused until then"),
    _derived("damaged.json", "notes about damaged blocks", "service, scrub",
             "damaged blocks are noted again when they are read"),
    _derived("miner.json", "the status of the miner", "miner",
             "the miner seems to hang until it writes the file"),
    FileKind("*.lock", "a lock between processes", "any process", _LOCK_LOST, LET_IT_BE),
)  # fmt: skip


def kind_of(name: str) -> FileKind | None:
    """Return the kind of a file by its name below the folder; None if it is not one of ours.

    The files of the mempool have a table of their own.
    """
    return next((kind for kind in KINDS if fnmatch(name, kind.pattern)), None)


def unusable(folder: Path, *, blocks_only: bool = False) -> list[str]:
    """Say which files cannot be read, and what stands in the place of one; each with its remedy.

    blocks_only: whether nothing but the blocks is of interest.
    No file is opened: closing a file of SQLite would drop the locks that this process has on it.
    """
    return [
        problem
        for path, kind in _files_in(folder)
        if not blocks_only or kind.pattern.startswith(layout.BLOCKS_FOLDER)
        if (problem := _problem(path, kind))
    ]


def _files_in(folder: Path) -> Iterator[tuple[Path, FileKind]]:
    """Yield every file that is in the table, and every folder in the place of one."""
    for part in (folder, folder / layout.BLOCKS_FOLDER, folder / "index"):
        try:
            paths = sorted(part.iterdir())
        except OSError:  # it is not there, or it is named as a part of the folder above
            continue
        for path in paths:
            name = str(path.relative_to(folder))
            if (kind := kind_of(name)) is not None:
                yield path, kind


def _problem(path: Path, kind: FileKind) -> str:
    """Return why a file cannot be read, and what to do; "" if it can."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:  # it has just gone, or is a link to nothing
        return ""
    except OSError as error:
        remedy = files.access_remedy(path.parent) or kind.remedy
        return f"{path} cannot be looked at: {error.strerror} ({kind.consequence(remedy)})"
    is_folder, wanted = stat.S_ISDIR(mode), path.name in {layout.BLOCKS_FOLDER, "index"}
    if is_folder != wanted or not (is_folder or stat.S_ISREG(mode)):
        what = "not a folder" if wanted else "a folder, not a file" if is_folder else "not a file"
        return f"{path} is {what} ({kind.consequence()})"
    if os.access(path, os.R_OK | (os.X_OK if is_folder else 0), effective_ids=True):
        return ""
    remedy = files.access_remedy(path)
    return f"{path} cannot be read: Permission denied ({kind.consequence(remedy)})"


def has_block_files(folder: Path) -> bool:
    """Return whether there are block files, which a table of heights can be made from."""
    return any((folder / layout.BLOCKS_FOLDER).glob("blocks-*.dat"))


def missing_chain(folder: Path) -> str:
    """Say what is missing in a folder without a chain."""
    blocks = folder / layout.BLOCKS_FOLDER
    if has_block_files(folder):
        return (
            f"{blocks / layout.TABLE_NAME} is missing or empty, so that no block is found; restart "
            "the service: the miner makes it again from the block files"
        )
    return (
        f"{blocks} is missing or empty; is the disk mounted? If it is, let FLIGHTCHAIN_DIR name a "
        "ledger, or import flights"
    )


def short_block_files(folder: Path, store: BlockStore) -> list[str]:
    """Say which block files are missing, or end before a block that they must hold."""
    names = (layout.first_height_of(path.name) for path in (folder / "blocks").glob("blocks-*.dat"))
    try:
        tip = store.height()
        firsts = {first for first in names if first is not None and first <= tip} | {0}
        firsts |= {store.place(tip).file} if tip >= 0 else set()
        lasts = [first - 1 for first in sorted(firsts)[1:]] + [tip]
        places = [store.place(last) for last in lasts if last >= 0]
    except (Damage, NotFound):
        return []
    return list(filter(None, (_short(folder, place) for place in places)))


def _short(folder: Path, place: Place) -> str:
    """Say that the file of the block at `place` ends before the end of the block; "" if not."""
    path = folder / layout.BLOCKS_FOLDER / layout.block_file_name(place.file)
    if path.is_dir() or (path.exists() and path.stat().st_size >= place.end):
        return ""
    kind = kind_of(str(path.relative_to(folder)))
    assert kind is not None
    return f"{path} {'ends too early' if path.exists() else 'is missing'} ({kind.consequence()})"
