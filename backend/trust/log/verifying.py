"""Verifies the signatures of notes."""

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from backend.trust.log.notes import (
    COSIGNATURE,
    TIME_BYTES,
    Note,
    NoteError,
    Signature,
    VerifierKey,
    cosigned_text,
)


def signed_at(note: Note, key: VerifierKey) -> int | None:
    """When a key has signed a note: Unix seconds, 0 for a key that does not say, None if never.

    Raises NoteError if a signature that names the key is wrong.
    """
    signature = signature_by(note, key)
    return None if signature is None else seconds_of(signature, key)


def signature_by(note: Note, key: VerifierKey) -> Signature | None:
    """The signature of a note by a key, which is verified; None if it has not signed the note.

    Raises NoteError if a signature that names the key is wrong.
    """
    for one in note.signatures:
        if (one.name, one.key_id) != (key.name, key.key_id):
            continue
        data, signed = one.signature, note.text.encode()
        if key.kind == COSIGNATURE:
            data, signed = data[TIME_BYTES:], cosigned_text(note.text, seconds_of(one, key))
        try:
            Ed25519PublicKey.from_public_bytes(key.public).verify(data, signed)
        except (InvalidSignature, ValueError):
            raise NoteError(f"the signature of {key.name} is wrong") from None
        return one
    return None


def seconds_of(signature: Signature, key: VerifierKey) -> int:
    """When a key says that it signed, in Unix seconds; 0 for a key that does not say."""
    if key.kind != COSIGNATURE:
        return 0
    return int.from_bytes(signature.signature[:TIME_BYTES], "big")
