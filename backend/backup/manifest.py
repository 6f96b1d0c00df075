"""What a backup says of itself: `backup.json` in its folder.

It is written when a backup is begun (not complete), and again when everything that it names has
been copied, synced and checked; before bad blocks are cut off, it is made to say that the backup is
not complete. Each time it is replaced in one step, so there is always one that is
true: what is in the folder beyond it was left by a run that did not come to its end.
"""

from pathlib import Path

import msgspec

from backend.errors import BackupRefused
from backend.storage import files

NAME = "backup.json"
FORMAT = 1


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup holds.

    height, tip_hash, transactions: of its newest block; if it is not complete, height is that of
    the last block that was checked, and only the genesis and next_transaction hold besides.
    pending: accepted flights in no block yet. next_transaction: the id after the last one accepted.
    mempool, aside: bytes of each segment of its log, and of each file with damaged bytes that were
    kept aside. time: when it was made, ISO 8601.
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
        raise BackupRefused(f"{path} is of format {found.format}; this release knows {FORMAT}")
    return found


def write(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest in one step. Raises WriteFailed."""
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    files.write_new(folder / NAME, text + b"\n")
