"""Verifies the signatures of notes."""

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from backend.transparency.notes import (
    COSIGNATURE,
    TIME_BYTES,
    Note,
    NoteError,
    VerifierKey,
    cosigned_text,
)


def signed_at(note: Note, key: VerifierKey) -> int | None:
    """When a key has signed a note: Unix seconds, 0 for a key that does not say, None if never.

    Raises NoteError if a signature that names the key is wrong.
    """
    for one in note.signatures:
        if (one.name, one.key_id) != (key.name, key.key_id):
            continue
        data, seconds, signed = one.signature, 0, note.text.encode()
        if key.kind == COSIGNATURE:
            seconds, data = int.from_bytes(data[:TIME_BYTES], "big"), data[TIME_BYTES:]
            signed = cosigned_text(note.text, seconds)
        try:
            Ed25519PublicKey.from_public_bytes(key.public).verify(data, signed)
        except (InvalidSignature, ValueError):
            raise NoteError(f"the signature of {key.name} is wrong") from None
        return seconds
    return None
