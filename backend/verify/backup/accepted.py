"""Copies what is in no block: pending flights, keys, what is known of lost flights, tokens.

Records and keys are read as at one moment, and written to a new file, which is named by a digest of
its bytes. Only when the manifest names it, it takes the place of the copy that an
earlier backup needs. So if it is not there, the file in that place is the one that is meant.

Files that were kept of a damaged mempool are copied, too. As long as a file of lost flights is
there, `verify` and `ready` name the flights, in a restored ledger as well.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from backend.base import files
from backend.base.errors import BackupRefused, Damage, DamagedMempool, NeedsRepair, WriteFailed
from backend.base.settings import Settings
from backend.base.words import COMMAND, Report, counted
from backend.mempool import FOLDER, Mempool, database, last_release
from backend.mempool.idempotency_keys import KeyUse
from backend.mempool.lost_files import NAME_FORM
from backend.mempool.records import Record
from backend.storage import tokens
from backend.storage.genesis import Genesis
from backend.trust.log.secret_keys import key_in
from backend.trust.log.successions import SUCCESSIONS_NAME, checked_successions
from backend.verify.backup.manifest import WITHOUT_PENDING

PRIVATE = 0o600
MAKING = "making.sqlite"  # a copy that is being made


@dataclass(frozen=True, slots=True)
class Copied:
    """Sizes of what was copied, in bytes.

    mempool, aside: of the copy, and of each file that was kept of a damaged mempool. new: how many
    bytes were written.
    """

    mempool: dict[str, int]
    aside: dict[str, int]
    new: int


def accepted_now(
    settings: Settings, transactions: Callable[[], int], report: Report
) -> tuple[list[Record], dict[str, KeyUse]]:
    """Return records and keys of the ledger. transactions: says how many blocks hold now.

    Raises DamagedMempool.
    """
    try:
        with closing(Mempool(settings, transactions, report)) as mempool:
            return mempool.snapshot()
    except NeedsRepair as error:
        raise DamagedMempool(
            f"{error}; start the service or run `{COMMAND} mine --once`, which repairs it, then "
            "back up again"
        ) from error


def copy_accepted(
    chain: Path, target: Path, records: list[Record], keys: dict[str, KeyUse]
) -> Copied:
    """Copy records and keys of the ledger in `chain`, and kept files, into `target`.

    A copy in `target` that an earlier backup needs stays until `complete`. Raises WriteFailed.
    """
    folder = target / FOLDER
    files.make_folder(folder)
    mempool, new = {}, 0
    if records or keys:
        data = _made_in(folder, Genesis(chain)(), records, keys)
        mempool = {(name := database.copy_name(data)): len(data)}
        if not _holds(folder / database.FILE_NAME, data):
            new = _keep(folder / name, data)
    kept = [path for path in (chain / FOLDER).glob("*") if NAME_FORM.fullmatch(path.name)]
    aside = {path.name: path.read_bytes() for path in kept}
    new += sum(_keep(folder / name, data) for name, data in aside.items())
    return Copied(mempool, {name: len(data) for name, data in aside.items()}, new)


def _made_in(folder: Path, genesis: str, records: list[Record], keys: dict[str, KeyUse]) -> bytes:
    """Make a copy below `folder`, and return its bytes. What a killed run left goes first."""
    made = folder / MAKING
    _remove_made(folder)
    try:
        database.write_file(made, genesis, records, keys)
        return made.read_bytes()
    finally:
        _remove_made(folder)


def _remove_made(folder: Path) -> None:
    for path in folder.glob(f"{MAKING}*"):
        files.remove(path)


def restore_accepted(source: Path, target: Path, sizes: dict[str, int]) -> None:
    """Copy mempool, keys and tokens of the backup in `source` into `target`.

    sizes: the files of the mempool, and how many bytes each must have. A backup of the last release
    has its own file of keys, which is not among them. Raises BackupRefused, WriteFailed.
    """
    folder = target / FOLDER
    files.make_folder(folder)
    for name, data in kept_files(source, sizes):
        files.write_new(folder / name, data)
    if not (folder / database.FILE_NAME).exists():
        last_release.copy_keys(source / FOLDER, folder)
    if (path := source / tokens.FILE_NAME).exists():
        files.write_new(target / tokens.FILE_NAME, path.read_bytes(), mode=PRIVATE)
    if (source / SUCCESSIONS_NAME).exists():
        files.write_new(target / SUCCESSIONS_NAME, (source / SUCCESSIONS_NAME).read_bytes())


def kept_files(source: Path, sizes: dict[str, int]) -> Iterator[tuple[str, bytes]]:
    """Yield the files of the mempool in a backup, by the names that they have in a ledger.

    sizes: as in `restore_accepted`. Raises BackupRefused.
    """
    for name, size in sizes.items():
        path, is_copy = source / FOLDER / name, bool(database.COPY_FORM.fullmatch(name))
        if is_copy and not path.exists():
            path = source / FOLDER / database.FILE_NAME
        data = path.read_bytes()[:size] if path.exists() else b""
        problem = ""
        if len(data) < size:
            problem = f"has {counted(len(data), 'byte')} instead of {size:,}"
        elif is_copy and database.copy_name(data) != name:
            problem = f"is damaged: its bytes are not those of {name}"
        if problem:
            raise BackupRefused(f"{path} {problem}; {WITHOUT_PENDING}")
        yield database.FILE_NAME if is_copy else name, data


def copy_successions(source: Path, target: Path, report: Report) -> None:
    """Copy the notes with which keys of the log signed the next ones; they are no secrets.

    Notes that are damaged or missing are reported, and do not replace those of an earlier backup.
    """
    path, copy = source / SUCCESSIONS_NAME, target / SUCCESSIONS_NAME
    try:
        checked_successions(source, key_in(source))
    except Damage as error:
        report(f"not copied: {error}")
        return
    if path.exists():
        files.write_new(copy, path.read_bytes())
    elif copy.exists():
        report(f"{path} is missing, and the backup keeps its own copy")


def copy_tokens(source: Path, target: Path, report: Report) -> None:
    """Copy the file of tokens, readable only by its owner; remove the copy if there is no file.

    A file that is damaged or lost is reported, and does not replace that of an earlier backup.
    """
    path, copy = source / tokens.FILE_NAME, target / tokens.FILE_NAME
    try:
        tokens.Tokens(source).all()
    except Damage as error:
        kept = f"; the backup keeps its copy, {copy}" if copy.exists() else ""
        report(f"not copied: {error}{kept}")
        return
    if path.exists():
        files.write_new(copy, path.read_bytes(), mode=PRIVATE)
    else:
        files.remove(copy)


def _holds(path: Path, data: bytes) -> bool:
    return path.exists() and path.read_bytes() == data


def _keep(path: Path, data: bytes) -> int:
    """Make a file hold `data`, and read it again from the disk. Returns how many bytes were new."""
    if _holds(path, data):
        return 0
    files.write_new(path, data)
    with path.open("rb") as stream:
        files.forget_cached(stream.fileno())
        read_back = stream.read()
    if read_back != data:
        raise WriteFailed(f"{path} has other bytes when read back: do not trust its disk")
    return len(data)


def complete(folder: Path, names: Iterable[str]) -> None:
    """Let the new copy in `folder` have its own name, now that the manifest names it.

    names: the files that belong to the backup; others are removed.
    """
    wanted = set(names)
    for name in names:
        if database.COPY_FORM.fullmatch(name):
            wanted.add(database.FILE_NAME)
            if (folder / FOLDER / name).exists():
                files.rename(folder / FOLDER / name, folder / FOLDER / database.FILE_NAME)
    for path in (folder / FOLDER).iterdir():
        if path.name not in wanted:
            files.remove(path)
