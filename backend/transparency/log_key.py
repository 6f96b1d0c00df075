"""The key that signs the log's checkpoints: `log.key` in the chain's folder, for its owner alone.

The file has one line, as Go's package `note` writes private keys: `PRIVATE+KEY+NAME+ID+SEED`. The
verifier key stands beside it in `log.vkey`, which anybody may read. The key is made when a chain is
first written to. No backup has it: who holds the key can sign in the name of this log.
"""

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from backend.errors import Damage
from backend.storage import files
from backend.transparency import KEY_NAME, VERIFIER_NAME
from backend.transparency.notes import NoteError, Signature, VerifierKey, key_parts, key_text

_PRIVATE = "PRIVATE+KEY+"
_PUT_BACK = (
    "put back a copy; or move log.key and log.vkey away and start the service again: a new key is "
    "made then, and everybody who checks this log has to be told"
)


class LogKey:
    """A private key and its name."""

    def __init__(self, name: str, seed: bytes) -> None:
        """seed: the private key of RFC 8032, 32 bytes."""
        self._seed = seed
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.verifier = VerifierKey(name, self._key.public_key().public_bytes_raw())

    def signature(self, text: str) -> Signature:
        """The signature of a text."""
        signed = self._key.sign(text.encode())
        return Signature(self.verifier.name, self.verifier.key_id, signed)

    def __str__(self) -> str:
        return f"{_PRIVATE}{key_text(self.verifier.name, self.verifier.key_id, self._seed)}\n"


def log_key(folder: Path, name: str) -> LogKey:
    """The key of the chain in `folder`, which is made if there is none. Raises Damage, WriteFailed.

    name: the name of a key that is made.
    """
    found = key_in(folder)
    if found is None:
        found = LogKey(name, Ed25519PrivateKey.generate().private_bytes_raw())
        files.write_new(folder / KEY_NAME, str(found).encode(), files.LOCK_MODE)
        files.write_new(folder / VERIFIER_NAME, _public(found))
    return found


def key_in(folder: Path) -> LogKey | None:
    """The key of the chain in `folder`; None if it never had one. Raises Damage."""
    path, public_path = folder / KEY_NAME, folder / VERIFIER_NAME
    try:
        secret = path.read_text("ascii", errors="replace")
    except FileNotFoundError:
        if public_path.exists():
            raise Damage(f"{path} is missing; {_PUT_BACK}") from None
        return None
    except OSError as error:
        raise Damage(f"{path} cannot be read: {error.strerror}") from error
    found = _parsed(secret)
    if found is None:
        raise Damage(f"{path} is damaged; {_PUT_BACK}")
    try:
        is_same = public_path.read_bytes() == _public(found)
    except OSError as error:
        raise Damage(f"{public_path} cannot be read: {error.strerror}") from error
    if not is_same:
        raise Damage(f"{public_path} is damaged; it must be: {found.verifier}")
    return found


def _public(key: LogKey) -> bytes:
    return f"{key.verifier}\n".encode()


def _parsed(text: str) -> LogKey | None:
    try:
        name, _, seed = key_parts(text.partition("\n")[0].removeprefix(_PRIVATE))
    except NoteError:
        return None
    found = LogKey(name, seed)
    return found if str(found) == text else None
