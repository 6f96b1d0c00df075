"""Keeps the tokens that allow writing when the service can be reached from elsewhere.

Reading is open. Writing needs `Authorization: Bearer TOKEN` if the service or the frontend, which
passes posts on, listens beyond loopback, or if FLIGHTCHAIN_REQUIRE_TOKEN is set (behind a proxy
both listen on loopback and are public all the same). A token is 256 random bits, shown once when it
is made; `tokens.json` in the chain's folder keeps its SHA-256, which needs no salt for so much
randomness. A checksum beside it tells a damaged entry from an unknown token.
"""

import hashlib
import hmac
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from backend.base import files
from backend.base.errors import Damage, FlightchainError, InvalidInput, NotAllowed
from backend.base.settings import Settings, variable
from backend.base.state_file import StateFile
from backend.base.words import COMMAND
from backend.serving.host_policy import is_loopback

FILE_NAME = "tokens.json"
MAX_NAME_CHARACTERS = 60
ADD = f"{COMMAND} token add NAME"
MAKE_ONE = f"create one with: {ADD}"


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A token: its owner's name, its SHA-256, and the CRC-32 of both, in hexadecimal."""

    name: str
    sha256: str
    checksum: str


_FILE = StateFile(FILE_NAME, list[Token])


def are_needed(settings: Settings) -> bool:
    """Return whether writing needs a token."""
    return bool(settings.require_token) or bool(reachable(settings))


def reachable(settings: Settings) -> str:
    """Return the setting that makes the service or the pages public, and its value; "" for none."""
    for name in ("host", "frontend_host"):
        host = getattr(settings, name)
        if not is_loopback(host):
            return f"{variable(name)} {host}"
    return ""


class Tokens:
    """The tokens of the chain in `folder`, with changes by other processes. Safe for threads."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._lock_path = self._path.with_suffix(".lock")  # it exists once a token was made
        self._read: tuple[int, list[Token]] = (-1, [])

    def all(self) -> list[Token]:
        """Return all tokens. Raises Damage if the file is not a list of tokens, or is gone."""
        tokens = self._kept()
        if tokens is None and self._lock_path.exists():
            raise Damage(
                f"{self._path} is missing, although tokens existed here: restore it, or create new "
                f"ones with: {ADD}"
            )
        return tokens or []

    def _kept(self) -> list[Token] | None:
        """Return the tokens in the file; None if there is no file."""
        try:
            changed = self._path.stat().st_mtime_ns
            if changed != self._read[0]:
                self._read = (changed, _sound(_FILE.load(self._path.parent)))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise Damage(
                f"{self._path} is not a list of tokens: {error}; restore it, or remove it and "
                f"create new tokens with: {ADD}"
            ) from None
        return self._read[1]

    def add(self, name: str) -> str:
        """Make a token for `name` and return it. Raises InvalidInput if the name does not fit.

        A name does not fit if it is empty, too long, not printable or taken.
        """
        if not name.strip() or len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
            reason = f"must have 1 to {MAX_NAME_CHARACTERS} printable characters"
            raise InvalidInput("name", name, reason)
        secret = secrets.token_hex(32)  # never begins with a dash, as an option of a command does
        with self._changing():
            tokens = self._kept() or []
            if any(token.name == name for token in tokens):
                raise InvalidInput(
                    "name", name, "has a token already; remove it first to create a new one"
                )
            hashed = _hash(secret)
            self._write([*tokens, Token(name, hashed, _checksum(name, hashed))])
        return secret

    def remove(self, name: str) -> None:
        """Remove the token of `name`. Raises InvalidInput if there is none."""
        with self._changing():
            tokens = self._kept() or []
            kept = [token for token in tokens if token.name != name]
            if len(kept) == len(tokens):
                raise InvalidInput(
                    "name", name, f"has no token; `{COMMAND} token list` shows who has one"
                )
            self._write(kept)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the lock. A first change that fails leaves none, which would tell of lost tokens."""
        files.make_folder(self._path.parent)
        is_first = not self._lock_path.exists()
        with files.FileLock(self._lock_path):
            try:
                yield
            except BaseException:
                if is_first and not self._path.exists():
                    files.remove(self._lock_path)
                raise

    def _write(self, tokens: list[Token]) -> None:
        _FILE.write(self._path.parent, tokens, mode=0o600)

    def owner_of(self, authorization: str | None) -> str:
        """Return the owner of the token in an Authorization header. Raises NotAllowed."""
        scheme, _, secret = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            raise NotAllowed(
                f"writing needs a token in the header Authorization: Bearer TOKEN; {MAKE_ONE}"
            )
        hashed = _hash(secret.strip())
        owners = [t.name for t in self.all() if hmac.compare_digest(t.sha256, hashed)]
        if not owners:
            raise NotAllowed("this token is unknown or was revoked")
        return owners[0]


def require_some(settings: Settings) -> None:
    """Raise FlightchainError if writing needs a token and there is none."""
    if are_needed(settings) and not Tokens(settings.folder).all():
        reason = (
            "FLIGHTCHAIN_REQUIRE_TOKEN asks for tokens"
            if settings.require_token
            else f"others can reach {reachable(settings)}"
        )
        raise FlightchainError(f"{reason}, but no token exists yet; {MAKE_ONE}")


def _sound(tokens: list[Token]) -> list[Token]:
    """Return the tokens in the file. Raises ValueError if one of them is damaged."""
    for token in tokens:
        if token.checksum != _checksum(token.name, token.sha256):
            raise ValueError(f"the token of {token.name!r} does not agree with its checksum")
    return tokens


def _checksum(name: str, sha256: str) -> str:
    return f"{zlib.crc32(f'{name} {sha256}'.encode()):08x}"


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
