"""Keys that sign: `log.key`, which signs checkpoints of the log, and `witness.key`, which cosigns.

A key's file is for its owner alone. It has one line, as Go's package `note` writes private keys:
`PRIVATE+KEY+NAME+ID+SEED`. A key that followed others (`rotation`) names them in lines after that,
the oldest first: `FOLLOWS+NAME+ID+KEY`. The verifier key stands in a file beside it, which anybody
may read. No backup has a secret key: who holds it can sign in the name of the log or of the
witness.
"""

import stat
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from backend.base import files
from backend.base.errors import Damage, NotFound
from backend.trust.log import CHECKPOINT_NAME, KEY_NAME, VERIFIER_NAME
from backend.trust.log.checkpoints import Checkpoint
from backend.trust.log.notes import (
    COSIGNATURE,
    ED25519,
    TIME_BYTES,
    Note,
    NoteError,
    Signature,
    VerifierKey,
    cosigned_text,
    key_parts,
    key_text,
    parse_key,
)

_PRIVATE = "PRIVATE+KEY+"
_FOLLOWS = "FOLLOWS+"


class KeyFiles(NamedTuple):
    """Where a key is kept.

    secret, public: names of files. kind: of the key, as in `notes`. signed: the name of a file that
    the key has signed; while that is there, no other key is made.
    """

    secret: str
    public: str
    kind: bytes
    signed: str = ""

    @property
    def advice(self) -> str:
        """What to do when one of the files is damaged or missing."""
        names = ", ".join(filter(None, (self.secret, self.public, self.signed)))
        return (
            f"put back a copy; or move {names} away and start again: a new key is then made, and "
            "everybody who relies on the old one must be told"
        )


LOG = KeyFiles(KEY_NAME, VERIFIER_NAME, ED25519, CHECKPOINT_NAME)
WITNESS = KeyFiles("witness.key", "witness.vkey", COSIGNATURE)


class SecretKey:
    """A private key and its name."""

    def __init__(
        self, name: str, seed: bytes, kind: bytes = ED25519, *, follows: Sequence[str] = ()
    ) -> None:
        """seed: the private key of RFC 8032, 32 bytes.

        follows: the verifier keys that the log had before, the oldest first; none for a first key,
        and for one that an earlier release made.
        """
        self.follows = tuple(follows)
        self._seed = seed
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.verifier = VerifierKey(name, self._key.public_key().public_bytes_raw(), kind)

    def without_predecessors(self) -> "SecretKey":
        return SecretKey(self.verifier.name, self._seed, self.verifier.kind)

    def signature(self, text: str) -> Signature:
        return self._signed(self._key.sign(text.encode()))

    def note(self, text: str) -> Note:
        return Note(text, (self.signature(text),))

    def cosignature(self, text: str, seconds: int) -> Signature:
        """Return the signature of a checkpoint by a witness, at a time in Unix seconds."""
        signed = self._key.sign(cosigned_text(text, seconds))
        return self._signed(seconds.to_bytes(TIME_BYTES, "big") + signed)

    def _signed(self, data: bytes) -> Signature:
        return Signature(self.verifier.name, self.verifier.key_id, data)

    def __str__(self) -> str:
        verifier = self.verifier
        written = key_text(verifier.name, verifier.key_id, self._seed, verifier.kind)
        lines = [f"{_PRIVATE}{written}", *(f"{_FOLLOWS}{key}" for key in self.follows)]
        return "".join(f"{line}\n" for line in lines)


def secret_key(folder: Path, pair: KeyFiles, name: str) -> SecretKey:
    """Return the key in `folder`, which is made if there is none. Raises Damage, WriteFailed.

    name: the name of a key that is made. Only one process may call it at a time. If the power was
    cut between the two files of a key, the second one is written now.
    """
    key = _secret_in(folder, pair)
    if key is None:
        if pair.signed and (folder / pair.signed).exists():
            raise Damage(
                f"{folder / pair.secret} and {pair.public} are missing, although {pair.signed} is "
                f"there; {pair.advice}"
            )
        key = new_key(name, pair)
        files.write_new(folder / pair.secret, str(key).encode(), files.LOCK_MODE)
    if not (folder / pair.public).exists():
        files.write_new(folder / pair.public, public_text(key))
    _require_public(folder, pair, key)
    return key


def new_key(name: str, pair: KeyFiles) -> SecretKey:
    """Make a key that is on no disk yet."""
    return SecretKey(name, Ed25519PrivateKey.generate().private_bytes_raw(), pair.kind)


def exposure(folder: Path, pair: KeyFiles) -> str | None:
    """Return the advice if others than its owner can read or change a key; else None.

    A file system without modes, as on many USB sticks, lets everybody read all files.
    """
    path = folder / pair.secret
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:  # there is none, or whoever reads it says more
        return None
    if not mode & 0o077:
        return None
    return (
        f"{path} is open to others (mode {mode:o}): whoever has read it can sign in its name; "
        f"run `chmod 600 {path}`, or mount a disk without modes, such as NTFS, with umask=077"
    )


def log_key(folder: Path) -> SecretKey:
    """Return the key of the log of the chain in `folder`. Raises NotFound, Damage."""
    key = key_in(folder)
    if key is None:
        raise NotFound("the log has no key yet; the miner creates it when it starts")
    return key


def write_checkpoint(folder: Path, key: SecretKey, checkpoint: Checkpoint) -> None:
    """Sign a checkpoint of the log; it is not synced, as it can be made again."""
    files.replace_unsynced(folder / CHECKPOINT_NAME, str(key.note(str(checkpoint))).encode())


def key_in(folder: Path, *, has_public: bool = True) -> SecretKey | None:
    """Return the log's key in `folder`; None if there never was one. Raises Damage.

    has_public: whether the file of the verifier key must fit.
    """
    key = _secret_in(folder, LOG)
    if key is not None and has_public:
        _require_public(folder, LOG, key)
    return key


def _secret_in(folder: Path, pair: KeyFiles) -> SecretKey | None:
    """Return the key in its own file; None if no public one is there either. Raises Damage."""
    path = folder / pair.secret
    key = read_key(path, pair.kind, pair.advice)
    if key is None and (folder / pair.public).exists():
        raise Damage(f"{path} is missing; {pair.advice}")
    return key


def read_key(path: Path, kind: bytes, remedy: str) -> SecretKey | None:
    """Return the key of this kind in a file; None if there is no file. Raises Damage."""
    try:
        key = parsed_key(path.read_text("utf-8", errors="replace"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Damage(f"cannot read {files.reason_of(error, path, remedy)}") from error
    if key is None or key.verifier.kind != kind:
        raise Damage(f"{path} is damaged; {remedy}")
    return key


def _require_public(folder: Path, pair: KeyFiles, key: SecretKey) -> None:
    """Raise Damage unless the file of the verifier key belongs to a key."""
    path = folder / pair.public
    try:
        is_same = path.read_bytes() == public_text(key)
    except OSError as error:
        remedy = f"remove it: {pair.secret} is enough to write it again"
        raise Damage(f"cannot read {files.reason_of(error, path, remedy)}") from error
    if not is_same:
        raise Damage(
            f"{path} is damaged, or does not belong to {pair.secret}; if {pair.secret} is right, "
            f"remove {path}, which is then written again as {key.verifier}"
        )


def public_text(key: SecretKey) -> bytes:
    """Return what the file of the verifier key holds."""
    return f"{key.verifier}\n".encode()


def parsed_key(text: str) -> SecretKey | None:
    """Return the key in the text of its file; None if the text is damaged."""
    try:
        first, *others = text.removesuffix("\n").split("\n")
        name, _, kind, seed = key_parts(first.removeprefix(_PRIVATE))
        follows = [str(parse_key(line.removeprefix(_FOLLOWS))) for line in others]
    except NoteError:
        return None
    key = SecretKey(name, seed, kind, follows=follows)
    return key if str(key) == text else None
