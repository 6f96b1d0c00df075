"""The witness answers over HTTP as the protocol says (C2SP tlog-witness)."""

from collections.abc import Callable, Sequence

import pytest
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

from backend.service.witness_server import answer
from backend.trust.log import notes
from backend.trust.log.notes import Note, Signature, encoded
from backend.trust.log.secret_keys import SecretKey
from backend.trust.log.tree import HistoryTree
from backend.trust.witness.witness import Witness
from tests.trust.witness.logs import signed

Ask = Callable[..., tuple[int, str]]


@pytest.fixture
def ask(log: SecretKey, witness: Witness) -> Ask:
    """Send a checkpoint; status and text of the answer."""

    def asked(old: object, note: bytes, proof: Sequence[bytes] = ()) -> tuple[int, str]:
        lines = "".join(f"{line}\n" for line in (f"old {old}", *map(encoded, proof), ""))
        body = lines.encode() + note
        environ = EnvironBuilder("/add-checkpoint", method="POST", data=body).get_environ()
        response = answer(witness, {log.verifier.name: log.verifier}, Request(environ))
        return response.status_code, response.get_data(as_text=True)

    return asked


def test_what_the_log_has_not_signed_is_forbidden(
    ask: Ask, log: SecretKey, tree: HistoryTree
) -> None:
    note = notes.parse(signed(log, 3, tree.root(3)))
    (good,) = note.signatures
    wrong = Signature(good.name, good.key_id, bytes(64))
    assert ask(0, str(Note(note.text, (wrong,))).encode())[0] == 403
    other = SecretKey(log.verifier.name, b"\x33" * 32)
    assert ask(0, signed(other, 3, tree.root(3)))[0] == 403
    elsewhere = SecretKey("elsewhere", b"\x33" * 32)
    assert ask(0, signed(elsewhere, 3, tree.root(3)))[0] == 404


def test_an_old_size_above_the_new_one_is_a_bad_request(
    ask: Ask, log: SecretKey, tree: HistoryTree
) -> None:
    note = signed(log, 3, tree.root(3))
    assert ask(4, note)[0] == 400
    assert ask(0, note)[0] == 200
    assert ask(5, note)[0] == 400
    assert ask(2, note) == (409, "3\n")


def test_an_old_size_is_written_in_one_way_alone(
    ask: Ask, log: SecretKey, tree: HistoryTree
) -> None:
    for old in ("", "x", "-1", "+1", "03", "00", "1" * 20, "²", "1 ", "1_0"):
        assert ask(old, signed(log, 3, tree.root(3)))[0] == 400, old


def test_a_proof_where_none_is_needed_proves_nothing(
    ask: Ask, log: SecretKey, tree: HistoryTree
) -> None:
    note, proof = signed(log, 3, tree.root(3)), tree.consistency_proof(2, 3)
    status, text = ask(0, note, proof)
    assert (status, "from 0 to 3 blocks needs no proof" in text) == (422, True)
    assert ask(0, note)[0] == 200
    status, text = ask(3, note, proof)
    assert (status, "from 3 to 3 blocks needs no proof" in text) == (422, True)


def test_a_hash_of_a_proof_has_32_bytes(ask: Ask, log: SecretKey, tree: HistoryTree) -> None:
    assert ask(0, signed(log, 3, tree.root(3)))[0] == 200
    note, (first, *others) = signed(log, 5, tree.root(5)), tree.consistency_proof(3, 5)
    for bad in (first[:3], first[:31], first + b"x", first * 2):
        status, text = ask(3, note, [bad, *others])
        assert (status, "32 bytes" in text) == (400, True)
    assert ask(3, note, [first, *others])[0] == 200


def test_an_empty_tree_has_one_root(ask: Ask, log: SecretKey, tree: HistoryTree) -> None:
    assert ask(0, signed(log, 0, b"\x09" * 32))[0] == 400
    assert ask(0, signed(log, 0, tree.root(0)))[0] == 200
    assert ask(0, signed(log, 3, tree.root(3)))[0] == 200


def test_what_would_write_on_a_terminal_is_not_cosigned(
    ask: Ask, log: SecretKey, tree: HistoryTree
) -> None:
    for more in ("\x1b[2J\n", "\x00\n", "a\rb\n", "\t\n"):
        assert ask(0, signed(log, 3, tree.root(3), more))[0] == 400
    assert ask(0, signed(log, 3, tree.root(3), "more of it\n"))[0] == 200


def test_whoever_asks_does_not_learn_where_the_witness_keeps_its_files(
    ask: Ask, log: SecretKey, tree: HistoryTree, witness: Witness
) -> None:
    assert ask(0, signed(log, 3, tree.root(3)))[0] == 200
    for note in (signed(log, 3, tree.root(2)), signed(log, 5, tree.root(5))):
        status, text = ask(3, note)
        assert status in {409, 422}
        assert str(witness.folder) not in text
    next(witness.folder.glob("flightchain*.note")).write_text("x")
    status, text = ask(3, signed(log, 5, tree.root(5)))
    assert (status, str(witness.folder) in text) == (503, False)
