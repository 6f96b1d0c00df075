"""Signed notes: a text, and below it a line for each signature (C2SP signed-note).

A key has a name and an id, the first four bytes of SHA-256(name || newline || kind || public key).
A verifier key is written `NAME+ID+KEY`: the id in hexadecimal, kind and public key in Base64. All
keys are of Ed25519 (RFC 8032). Those of the kind 1 sign the text itself. Those of the kind 4 belong
to witnesses (C2SP tlog-cosignature), who sign the text and when they saw it: the signature begins
with the time, eight bytes of Unix seconds.
"""

import base64
from dataclasses import dataclass
from hashlib import sha256

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

ED25519, COSIGNATURE = b"\x01", b"\x04"  # kinds of keys
KEY_BYTES = 32
TIME_BYTES = 8
ID_BYTES = 4
_DASH = "\N{EM DASH}"


class NoteError(ValueError):
    """The text is no note, or no key."""


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """Verifies signatures. name: of the key. public: the Ed25519 public key, 32 bytes."""

    name: str
    public: bytes
    kind: bytes = ED25519

    @property
    def key_id(self) -> bytes:
        """The first bytes of a hash of name and key, by which a signature names its key."""
        return sha256(self.name.encode() + b"\n" + self.kind + self.public).digest()[:ID_BYTES]

    def __str__(self) -> str:
        return key_text(self.name, self.key_id, self.public, self.kind)


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature line. name, key_id: of the key that is said to have signed."""

    name: str
    key_id: bytes
    signature: bytes

    def __str__(self) -> str:
        return f"{_DASH} {self.name} {encoded(self.key_id + self.signature)}"


@dataclass(frozen=True, slots=True)
class Note:
    """A text that ends with a newline, and its signatures, none of which has been verified."""

    text: str
    signatures: tuple[Signature, ...]

    def __str__(self) -> str:
        return "\n".join([self.text, *map(str, self.signatures), ""])


def is_name(text: str) -> bool:
    """Return whether a key can have this name: not empty, without white space and plus."""
    return bool(text) and "+" not in text and not any(c.isspace() for c in text)


def key_text(name: str, key_id: bytes, key: bytes, kind: bytes) -> str:
    """Return a key as text, be it public or private: `NAME+ID+KEY`."""
    return f"{name}+{key_id.hex()}+{encoded(kind + key)}"


def key_parts(text: str) -> tuple[str, str, bytes, bytes]:
    """Return the name, the id, the kind and the 32 bytes of a key, as `key_text` writes it.

    Raises NoteError.
    """
    name, _, rest = text.partition("+")
    key_id, _, key = rest.partition("+")
    data = decoded(key, "the key")
    is_known = data[:1] in {ED25519, COSIGNATURE} and len(data) == 1 + KEY_BYTES
    if not is_name(name) or not is_known:
        raise NoteError(f"{text[:100]!r} is not a key; it must be NAME+ID+KEY, with an Ed25519 key")
    return name, key_id, data[:1], data[1:]


def cosigned_text(text: str, seconds: int) -> bytes:
    """Return what a witness signs when it cosigns a text at a time in Unix seconds."""
    return f"cosignature/v1\ntime {seconds}\n{text}".encode()


def parse_key(text: str) -> VerifierKey:
    """Return the verifier key in `text`, which has the form `NAME+ID+KEY`. Raises NoteError."""
    name, key_id, kind, public = key_parts(text.strip())
    key = VerifierKey(name, public, kind)
    if key.key_id.hex() != key_id:
        raise NoteError(f"the id {key_id!r} is not that of the key, which is {key.key_id.hex()}")
    return key


def parse(data: bytes) -> Note:
    """Return the note in `data`. Raises NoteError."""
    try:
        whole = data.decode()
    except UnicodeDecodeError:
        raise NoteError("a note must be UTF-8") from None
    if any(c < " " and c != "\n" for c in whole):
        raise NoteError("a note has no control characters but the ends of its lines")
    text, separator, lines = whole.rpartition("\n\n")
    if not separator or not lines.endswith("\n"):
        raise NoteError("a note ends with an empty line and signatures, each a line")
    return Note(text + "\n", tuple(map(parse_signature, lines[:-1].split("\n"))))


def parse_signature(line: str) -> Signature:
    """Return the signature that a line holds. Raises NoteError."""
    dash, _, rest = line.partition(" ")
    name, _, signature = rest.partition(" ")
    data = decoded(signature, "the signature")
    if dash != _DASH or not is_name(name) or len(data) <= ID_BYTES:
        raise NoteError(f"{line[:100]!r} is not a signature line")
    return Signature(name, data[:ID_BYTES], data[ID_BYTES:])


def decoded(text: str, what: str) -> bytes:
    """Return the bytes that `encoded` has written. Raises NoteError, which says `what` they are."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:  # also for what is not ASCII
        data = b""
    if encoded(data) != text:  # also if bits are set that Base64 does not use
        raise NoteError(f"{what} is not Base64")
    return data


def encoded(data: bytes) -> str:
    """Return bytes in Base64 (RFC 4648 section 4)."""
    return base64.b64encode(data).decode()


def signed_at(note: Note, key: VerifierKey) -> int | None:
    """Return when a key has signed a note: Unix seconds, 0 if the key tells none, None if never.

    Raises NoteError if a signature that names the key is wrong.
    """
    signature = signature_by(note, key)
    return None if signature is None else seconds_of(signature, key)


def is_signed(note: Note, key: VerifierKey) -> bool:
    """Return whether a key has signed a note, and its signature is right."""
    try:
        return signature_by(note, key) is not None
    except NoteError:
        return False


def signature_by(note: Note, key: VerifierKey) -> Signature | None:
    """Return the verified signature of a note by a key; None if the key has not signed it.

    Raises NoteError if a signature that names the key is wrong.
    """
    for signature in note.signatures:
        if (signature.name, signature.key_id) != (key.name, key.key_id):
            continue
        data, signed = signature.signature, note.text.encode()
        if key.kind == COSIGNATURE:
            data, signed = data[TIME_BYTES:], cosigned_text(note.text, seconds_of(signature, key))
        try:
            Ed25519PublicKey.from_public_bytes(key.public).verify(data, signed)
        except (InvalidSignature, ValueError):
            raise NoteError(f"the signature of {key.name} is wrong") from None
        return signature
    return None


def seconds_of(signature: Signature, key: VerifierKey) -> int:
    """Return when a key says that it signed, in Unix seconds; 0 for a key that does not say."""
    if key.kind != COSIGNATURE:
        return 0
    return int.from_bytes(signature.signature[:TIME_BYTES], "big")
