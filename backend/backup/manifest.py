"""Writes and reads the manifest of a backup, which says what it holds: `backup.json` in its folder.

It is written when a backup is begun (not complete), and again when everything that it names has
been copied, synced and checked. Before bad blocks are cut off, it is made to say that the backup is
not complete. Each time it is replaced in one step, so what it says is always true. If the folder
holds more than it names, a run that was interrupted left that.
"""

from pathlib import Path

import msgspec

from backend.errors import BackupRefused
from backend.storage import files

NAME = "backup.json"
FORMAT = 1


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup holds.

    height, tip_hash: its newest block. transactions: how many its blocks hold. If it is not
    complete, height is that of the last block that was checked, and of the rest only genesis_hash
    and next_transaction are valid. pending: how many accepted flights are in no block yet.
    next_transaction: the id after the last accepted one. mempool, aside: the size in bytes of each
    segment of the mempool's log, and of each file with damaged bytes. time: when it was made, ISO
    8601.
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
    mempool: dict[str, int] = {}
    aside: dict[str, int] = {}


_decode = msgspec.json.Decoder(Manifest).decode


def read(folder: Path) -> Manifest | None:
    """The manifest of the backup in `folder`; None if there is none. Raises BackupRefused."""
    path = folder / NAME
    try:
        found = _decode(path.read_bytes())
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise BackupRefused(f"{path} is damaged ({error}); make a new backup elsewhere") from None
    if found.format != FORMAT:
        raise BackupRefused(f"{path} has format {found.format}; this release reads format {FORMAT}")
    return found


def write(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest in one step. Raises WriteFailed."""
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    files.write_new(folder / NAME, text + b"\n")
