"""Signed notes and checkpoints: what is written is read back, and nothing else is read."""

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from backend.trust.log import checkpoints, notes
from backend.trust.log.checkpoints import Checkpoint
from backend.trust.log.notes import NoteError
from backend.trust.log.secret_keys import SecretKey
from tests.cases import each_of

# The key and the signed text of the documentation of golang.org/x/mod/sumdb/note.
GO_VERIFIER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
GO_TEXT = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n"
)
GO_SIGNATURE = (
    "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM="
)

KEY = SecretKey("flightchain/0123456789abcdef", bytes(range(32)))
TEXT = str(Checkpoint("flightchain/0123456789abcdef", 21, bytes(32)))


def test_a_note_that_another_program_has_signed_is_read_and_its_signature_is_good() -> None:
    key = notes.parse_key(GO_VERIFIER)
    assert str(key) == GO_VERIFIER
    note = notes.parse(f"{GO_TEXT}\n— PeterNeumann {GO_SIGNATURE}\n".encode())
    (signature,) = note.signatures
    assert (note.text, signature.name, signature.key_id) == (GO_TEXT, key.name, key.key_id)
    Ed25519PublicKey.from_public_bytes(key.public).verify(signature.signature, note.text.encode())


def test_what_is_signed_is_read_back() -> None:
    note = notes.Note(TEXT, (KEY.signature(TEXT), KEY.signature(TEXT)))
    assert notes.parse(str(note).encode()) == note
    assert notes.parse_key(str(KEY.verifier)) == KEY.verifier


@each_of(
    "text",
    [
        "",
        "a",
        "a+b",
        GO_VERIFIER.replace("c74f20a3", "c74f20a4"),
        GO_VERIFIER.replace("PeterNeumann", "Peter Neumann"),
        GO_VERIFIER[:-4],
        GO_VERIFIER[:-1] + "ä",
        "a+00000000+" + base64.b64encode(b"\x02" + bytes(32)).decode(),
    ],
)
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(NoteError):
        notes.parse_key(text)


@each_of(
    "data",
    [
        b"",
        b"a\n",
        b"a\n\n",
        b"a\n\n\xff\n",
        "a\n\n— name AAAA".encode(),
        b"a\n\n- name AAAAAAAA\n",
        "a\n\n— na+me AAAAAAAA\n".encode(),
        "a\n\n— name AAAAA\n".encode(),
        "a\n\n— name \n".encode(),
        "a\x1bb\n\n— name AAAAAAAA\n".encode(),
        "a\r\n\n— name AAAAAAAA\n".encode(),
        "a\n\n— na\x00me AAAAAAAA\n".encode(),
        "a\n\n— name AAAAAAAÄ\n".encode(),
        "a\n\n— name AAAAAAAA\u2028— name AAAAAAAA\n".encode(),
    ],
)
def test_what_is_no_note_is_refused(data: bytes) -> None:
    with pytest.raises(NoteError):
        notes.parse(data)


ROOT = base64.b64encode(bytes(32)).decode()


def test_a_checkpoint_is_read_back_and_may_have_more_lines() -> None:
    checkpoint = Checkpoint("flightchain/0123456789abcdef", 21, bytes(32))
    assert checkpoints.parse(TEXT) == checkpoints.parse(f"{TEXT}more\n") == checkpoint


@each_of(
    "text",
    [
        "",
        "a\n1\n",
        f"\n1\n{ROOT}\n",
        f"a\n01\n{ROOT}\n",
        f"a\n-1\n{ROOT}\n",
        f"a\n{'1' * 30}\n{ROOT}\n",
        f"a\n1\n{ROOT[:-4]}\n",
        "a\n1\n??\n",
        f"a\n0\n{ROOT}\n",
        f"a\n1\n{'ä' * 44}\n",
    ],
)
def test_what_is_no_checkpoint_is_refused(text: str) -> None:
    with pytest.raises(NoteError):
        checkpoints.parse(text)


@each_of(("more", "is_ours"), [("", True), ("/node0", True), ("0", False), ("0/node0", False)])
def test_a_log_is_named_after_the_chain_and_perhaps_a_node(more: str, is_ours: bool) -> None:
    genesis_hash = "ab" * 32
    name = checkpoints.origin_of(genesis_hash) + more
    assert checkpoints.is_origin_of(name, genesis_hash) is is_ours
    assert not checkpoints.is_origin_of(name, "cd" * 32)
