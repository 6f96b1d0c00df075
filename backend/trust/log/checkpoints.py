"""Checkpoints: what the log says of its tree, and signs (C2SP tlog-checkpoint).

The text has three lines: the origin, which names the log; the number of entries; and the root hash
in Base64.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from backend.chain import merkle
from backend.trust.log import CHECKPOINT_NAME, notes
from backend.trust.log.notes import Note, NoteError, decoded, encoded

HASH_BYTES = 32
_ORIGIN_DIGITS = 16
_SIZE = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A tree of `size` entries with this root (32 bytes), of the log that `origin` names."""

    origin: str
    size: int
    root: bytes

    def __str__(self) -> str:
        return f"{self.origin}\n{self.size}\n{encoded(self.root)}\n"


def parse(text: str) -> Checkpoint:
    """Return the checkpoint in the text of a note. Raises NoteError."""
    lines = text.split("\n")
    if len(lines) < 3:
        raise NoteError("a checkpoint has three lines: origin, size, and root hash in Base64")
    origin, root = lines[0], decoded(lines[2], "the root hash of the checkpoint")
    size = size_in(lines[1])
    if not origin or size is None:
        named = f"{origin[:100]!r} and {lines[1][:20]!r}"
        raise NoteError(f"a checkpoint names its origin and size, not {named}")
    if len(root) != HASH_BYTES:
        raise NoteError(f"the root of a checkpoint has {HASH_BYTES} bytes, not {len(root)}")
    if size == 0 and root != merkle.EMPTY_ROOT:
        raise NoteError("the root of a checkpoint of no entries is not that of an empty tree")
    return Checkpoint(origin, size, root)


def size_in(text: str) -> int | None:
    """Return the number of entries in a text, as checkpoints write it; None without one."""
    return int(text) if _SIZE.fullmatch(text) else None


def in_note(data: bytes) -> tuple[Note, Checkpoint]:
    """Return a note, and the checkpoint in it. Raises NoteError."""
    note = notes.parse(data)
    return note, parse(note.text)


def newest_in(folder: Path) -> tuple[Note, Checkpoint] | None:
    """Return what the log of a chain has signed last, unverified; None if nothing can be read."""
    try:
        return in_note((folder / CHECKPOINT_NAME).read_bytes())
    except (OSError, NoteError):
        return None


def origin_of(genesis_hash: str) -> str:
    """Return the origin of the log of a chain, by the hash of its block 0, its alone."""
    return f"flightchain/{genesis_hash[:_ORIGIN_DIGITS]}"


def is_origin_of(origin: str, genesis_hash: str) -> bool:
    """Return whether `origin` names the log of the chain with this block 0, maybe with a node."""
    ours = origin_of(genesis_hash)
    return origin == ours or origin.startswith(f"{ours}/")
