"""Harms that can come to any file. A process may have it open meanwhile."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

GARBAGE_BYTES = 600

Harm = Callable[[bytes, random.Random], bytes | None]  # None: the file is gone


def flip(data: bytes, chance: random.Random) -> bytes:
    """Turn one bit around."""
    changed = bytearray(data)
    if changed:
        changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def truncate(data: bytes, chance: random.Random) -> bytes:
    """Cut the end off."""
    return data[: chance.randrange(len(data) or 1)]


def scribble(data: bytes, chance: random.Random) -> bytes:
    """Put random bytes over a part."""
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.randbytes(GARBAGE_BYTES) + data[at + GARBAGE_BYTES :]


def blank(data: bytes, chance: random.Random) -> bytes:
    """Fill a sector with zeros, as a disk does that forgot it."""
    at = chance.randrange(0, len(data) or 1, 512)
    return (data[:at] + bytes(512) + data[at + 512 :])[: len(data)]


HARMS: dict[str, Harm] = {
    "flip": flip,
    "truncate": truncate,
    "scribble": scribble,
    "blank": blank,
    "empty": lambda data, chance: b"",
    "remove": lambda data, chance: None,
}


def harm(path: Path, how: str, chance: random.Random) -> None:
    """Harm a file, or remove a folder or a link."""
    data = HARMS[how](path.read_bytes() if path.is_file() else b"", chance)
    if data is None:
        remove(path)
    else:
        overwrite(path, data)


def remove(path: Path) -> None:
    """Let a file be gone, or a folder with all that is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def overwrite(path: Path, data: bytes) -> None:
    """Let this be all that is in a file."""
    with path.open("r+b") as file:
        file.write(data)
        file.truncate()
