"""`scripts/verify.py` against what the service proves, what is made up, and other programs."""

import base64
import copy
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from flask.testing import FlaskClient

import verify
from backend.trust.log.secret_keys import SecretKey
from tests.api.processes import ran
from tests.api.worlds import World, answer_of, questions_about
from tests.effort import tries
from tests.trust.proofs.proofs import DAYS, Json, Judge, Proofs, fetched, written

ROOT = Path(__file__).parents[3]
MUTATIONS = tries(100, exploring=1500)
SEED = 20150102


LIGHT = ["transaction", "older", "consistency", "delays"]
HEAVY = ["legs", "legs of a carrier", "count", "chain"]  # have bodies of blocks
KINDS = LIGHT + HEAVY


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_service_proves_is_verified(proofs: Proofs, judge: Judge, kind: str) -> None:
    verdict = judge.of(proofs[kind])
    assert verdict["verdict"] == "verified", verdict
    assert verdict["log"] == judge.key.partition("+")[0]


def test_the_answers_are_those_of_a_loop_over_all_flights(
    proofs: Proofs, world: World, judge: Judge
) -> None:
    questions = questions_about(world.transactions[700], DAYS)
    for kind, (route, asked) in zip(("legs", "delays", "count"), questions.items(), strict=True):
        answer = answer_of(route, world.transactions, asked)
        assert proofs[kind][0]["answer"] == answer
        assert answer.get("count") or answer["flights"]
        verdict = judge.of(proofs[kind])["proved"].partition(" has the answer ")[2]
        assert verdict == verify.canonical(answer)  # whose other characters are escaped later


@pytest.mark.parametrize("late", [14, 15])
def test_a_flight_that_is_just_late_is_late_in_its_proof(
    client: FlaskClient, world: World, judge: Judge, late: int
) -> None:
    leg = next(flight for flight in world.transactions if flight["ARR_DELAY"] == late)
    asked = {name: leg[name] for name in ("OP_CARRIER_FL_NUM", "FL_DATE")}
    verdict = judge.of(fetched(client, "/filter_transactions/proof", **asked))
    assert f'"status":"{"late" if late == 15 else "on_time"}"' in verdict["proved"]


@pytest.mark.parametrize("height", [0, 1, 3, 16, 29])
def test_any_transaction_is_proved_as_of_any_block(
    client: FlaskClient, world: World, judge: Judge, height: int
) -> None:
    some = [flight for flight in world.transactions if flight["BLOCK_HEIGHT"] <= height]
    for flight in (some[0], some[-1]) if some else ():
        proof = fetched(client, f"/transactions/{flight['TRANSACTION_ID']}/proof", tip=height)
        assert judge.of(proof)["verdict"] == "verified"


# --- what is wrong is refused --------------------------------------------------------------------

WITHOUT_MEANING = {"key", "successions"}  # told for comparison only


def places(value: Any, *above: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the places of all values in a proof."""
    if isinstance(value, dict | list) and value:
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, *above, name)
    yield above


def mutated(value: Any, chance: random.Random) -> Any:
    """Returns another value of the same kind."""
    if isinstance(value, bool) or value is None:
        return 1
    if isinstance(value, int | float):
        return value + chance.choice([-1, 1, 10**9])
    if isinstance(value, list):
        return [*value, value[-1]] if value and chance.random() < 0.5 else value[:-1] or ["AA=="]
    if isinstance(value, dict):
        return dict(list(value.items())[1:])
    at = chance.randrange(len(value)) if value else 0
    other = chance.choice([letter for letter in "019AZaz+" if letter != value[at : at + 1]])
    return value[:at] + other + value[at + 1 :]


def with_a_change(
    given: list[Json], chance: random.Random
) -> tuple[list[Json], int, str, tuple[Any, ...]]:
    """A proof with another value at one place, seldom the same; line, member and place of it."""
    proof = copy.deepcopy(given)
    line = chance.randrange(len(proof)) if chance.random() < 0.6 else 0
    member = chance.choice([key for key in proof[line] if key not in WITHOUT_MEANING])
    place = chance.choice(list(places(proof[line][member])))
    owner: Any = proof[line]
    name: Any = member
    for step in place:
        owner, name = owner[name], step
    owner[name] = mutated(owner[name], chance)
    return proof, line, member, place


@pytest.mark.slow
def test_changed_proofs_are_refused(proofs: Proofs, judge: Judge) -> None:
    chance = random.Random(SEED)
    tried, bad = 0, []
    while tried < MUTATIONS:
        kind = chance.choice(LIGHT if chance.random() < 0.8 else HEAVY)
        proof, line, member, place = with_a_change(proofs[kind], chance)
        if proof == proofs[kind] or member == "count":  # see the next test
            continue
        if judge.of(proof)["verdict"] != "refused":
            bad.append((kind, line, member, place))
        tried += 1
    assert not bad


def test_a_wrong_number_of_cells_never_changes_an_answer(proofs: Proofs, judge: Judge) -> None:
    """Some trees look alike from a range of their leaves; what is in the range stays the same."""
    proved = judge.of(proofs["delays"])["proved"]
    for line in range(1, len(proofs["delays"])):
        for more in (-1, 1, 7):
            proof = copy.deepcopy(proofs["delays"])
            proof[line]["count"] += more
            verdict = judge.of(proof)
            assert verdict["verdict"] == "refused" or verdict["proved"] == proved


@pytest.mark.parametrize("kind", ["delays", "legs", "count", "chain"])
def test_a_block_that_is_left_out_twice_or_moved_is_noticed(
    proofs: Proofs, judge: Judge, kind: str
) -> None:
    lines = proofs[kind]
    for some in (
        lines[:-1],
        [*lines[:5], *lines[6:]],
        [*lines, lines[-1]],
        [*lines[:5], lines[6], lines[5], *lines[7:]],
    ):
        verdict = judge.of(some)
        assert verdict["verdict"] == "refused"
        assert re.search("is not the next one|the proof is cut", verdict["reason"])


def test_cells_that_are_left_out_are_noticed(proofs: Proofs, judge: Judge) -> None:
    """A server hides a cell that counts, with right hashes: the neighbours are missing then."""
    line = next(n for n, entry in enumerate(proofs["delays"]) if len(entry.get("cells", "")) == 3)
    proof = copy.deepcopy(proofs["delays"])
    hidden = verify.sha256(verify.LEAF, proof[line]["cells"].pop().encode())
    proof[line]["hashes"] = beside(proof[line], hidden)
    assert "may be missing" in judge.of(proof)["reason"]


def beside(line: Json, hidden: bytes) -> list[str]:
    """The hashes beside the first two of three cells, the last of which is hidden.

    They are searched for: the hidden leaf alone, or joined with what was at its right.
    """
    known = [base64.b64decode(text) for text in line["hashes"]]
    root = json.loads(line["header"])["summary_root"]
    for at in range(len(known) + 1):
        joined = hidden
        for upto in range(at, len(known) + 1):
            hashes = [*known[:at], joined, *known[upto:]]
            texts = [base64.b64encode(digest).decode() for digest in hashes]
            try:
                computed = verify.spanned(line["first"], line["cells"], line["count"], texts)
            except (ValueError, LookupError):
                computed = b""
            if computed.hex() == root:
                return texts
            if upto < len(known):
                joined = verify.sha256(verify.NODE, joined, known[upto])
    raise AssertionError


def test_flights_that_are_hidden_behind_cells_are_noticed(
    proofs: Proofs, client: FlaskClient, judge: Judge
) -> None:
    """A block that has flights of the day shows its cells in place of its body."""
    some = proofs["legs"][0]["question"]
    other = fetched(client, "/filter_transactions/proof", OP_CARRIER_FL_NUM=1, FL_DATE="1999-01-01")
    assert not any("body" in line for line in other)
    other[0].update(question=some, answer={"count": 0, "flights": []})
    assert "leaves out flights that may count" in judge.of(other)["reason"]


# --- keys, checkpoints, and what was kept -----------------------------------------------------


def test_a_foreign_key_a_foreign_log_and_no_signature_are_refused(
    proofs: Proofs, judge: Judge, tmp_path: Path
) -> None:
    name = judge.key.partition("+")[0]
    other = Judge(tmp_path, str(SecretKey(name, bytes(32)).verifier))
    assert "not signed by that key" in other.of(proofs["transaction"])["reason"]
    foreign = Judge(tmp_path, str(SecretKey("flightchain/0123456789abcdef", bytes(32)).verifier))
    assert "not signed by that key" in foreign.of(proofs["transaction"])["reason"]
    proof = copy.deepcopy(proofs["transaction"])
    proof[0]["checkpoint"] = proof[0]["checkpoint"].rpartition("\n\n")[0] + "\n\n"
    assert "not signed by that key" in judge.of(proof)["reason"]


def test_a_checkpoint_is_verified_alone(client: FlaskClient, judge: Judge, world: World) -> None:
    note = client.get("/log/checkpoint").get_data()
    assert judge.of(note)["blocks"] == len(world.hashes)
    damaged = note.replace(b"\n31\n", b"\n30\n")
    assert damaged != note
    assert "signature" in judge.of(damaged)["reason"]


@pytest.fixture(scope="module")
def kept(world: World, judge: Judge, proofs: Proofs) -> Path:
    """The checkpoint of the first nine blocks, as somebody kept it."""
    root = proofs["consistency"][0]["from_root"]
    text = f"{judge.key.partition('+')[0]}\n9\n{root}\n\n"
    return judge.file(text.encode(), "kept")


def test_a_kept_checkpoint_is_connected_with_what_came_since(
    proofs: Proofs, judge: Judge, kept: Path
) -> None:
    assert judge.of(proofs["consistency"], kept=kept)["verdict"] == "verified"
    assert judge.of(proofs["delays"], kept=kept)["verdict"] == "verified"
    assert judge.of(proofs["chain"], kept=kept)["verdict"] == "verified"
    assert "nothing connects it" in judge.of(proofs["transaction"], kept=kept)["reason"]
    bridge = judge.file(proofs["consistency"], "bridge.json")
    files = bridge, judge.file(proofs["transaction"])
    for order in (files, files[::-1]):
        assert judge.says(*order, kept=kept)["verdict"] == "verified"


def test_a_byte_order_mark_as_windows_writes_it_changes_nothing(
    proofs: Proofs, judge: Judge, kept: Path
) -> None:
    mark = b"\xef\xbb\xbf"
    marked = judge.file(mark + kept.read_bytes(), "marked")
    proof = judge.file(mark + judge.file(proofs["consistency"]).read_bytes())
    assert judge.says(proof, kept=marked)["verdict"] == "verified"
    note = judge.file(mark + str(proofs["transaction"][0]["checkpoint"]).encode())
    assert judge.says(note)["verdict"] == "verified"


@pytest.mark.parametrize("kind", ["consistency", "delays", "chain"])
def test_another_kept_checkpoint_shows_a_fork(
    proofs: Proofs, judge: Judge, kept: Path, kind: str
) -> None:
    other = kept.read_text().replace(proofs["consistency"][0]["from_root"], 43 * "A" + "=")
    forked = judge.file(other.encode(), "forked")
    assert "a fork" in judge.of(proofs[kind], kept=forked)["reason"]
    foreign = judge.file(b"elsewhere" + kept.read_bytes(), "foreign")
    assert "its log is flightchain/" in judge.of(proofs[kind], kept=foreign)["reason"]


# --- other programs ---------------------------------------------------------------------------


def test_signatures_are_those_of_another_implementation() -> None:
    chance = random.Random(SEED)
    for _ in range(tries(10, exploring=100)):
        key = Ed25519PrivateKey.from_private_bytes(chance.randbytes(32))
        message = chance.randbytes(chance.randrange(100))
        public, signature = key.public_key().public_bytes_raw(), bytearray(key.sign(message))
        assert verify.is_signed(public, message, bytes(signature))
        signature[chance.randrange(64)] ^= 1 << chance.randrange(8)
        try:
            Ed25519PublicKey.from_public_bytes(public).verify(bytes(signature), message)
        except InvalidSignature:
            assert not is_signed_at_all(public, message, bytes(signature))
        else:
            raise AssertionError


def is_signed_at_all(public: bytes, message: bytes, signature: bytes) -> bool:
    try:
        return verify.is_signed(public, message, signature)
    except ValueError:  # one half of it is no point
        return False


def test_a_signature_cannot_be_written_in_another_way() -> None:
    key = Ed25519PrivateKey.from_private_bytes(bytes(32))
    signature = key.sign(b"x")
    order = 2**252 + 27742317777372353535851937790883648493
    s = int.from_bytes(signature[32:], "little") + order
    for other in (signature[:32] + s.to_bytes(32, "little"), signature + bytes(1)):
        assert not verify.is_signed(key.public_key().public_bytes_raw(), b"x", other)
    first, second = bytes([1, *bytes(31)]), bytes(32)  # 0, 1 is a point, whose sign is not 1
    assert verify.is_signed(first, b"x", first + second)
    for y in (2**255 + 1, 2**255 - 18):
        assert not is_signed_at_all(y.to_bytes(32, "little"), b"x", first + second)


# --- from the command line --------------------------------------------------------------------


def verify_py(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return ran(sys.executable, "-I", "-S", str(ROOT / "scripts" / "verify.py"), *arguments)


def test_it_runs_without_anything_installed_and_tells_in_words(
    proofs: Proofs, judge: Judge
) -> None:
    path = str(judge.file(proofs["transaction"]))
    done = verify_py(path, "--key", judge.key)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        f"VERIFIED\n  file: {path}\n  proved: transaction 700 is in block"
    )
    cut = judge.file(written(proofs["delays"])[:-20], "cut.json")
    done = verify_py(str(cut), "--key", judge.key)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith(f"REFUSED\n  file: {cut}\n  reason: ")
    assert "a line is cut off" in done.stdout


def test_a_kept_checkpoint_is_utf_8_whatever_the_system_writes(
    proofs: Proofs, judge: Judge
) -> None:
    note = judge.file(str(proofs["transaction"][0]["checkpoint"]).encode(), "kept")
    proof = judge.file(proofs["transaction"])
    command = [sys.executable, "-X", "utf8=0", str(ROOT / "scripts/verify.py"), str(proof)]
    done = ran(*command, "--key", judge.key, "--kept", str(note), env={"LC_ALL": "POSIX"})
    assert done.stdout.startswith("VERIFIED"), done.stdout + done.stderr


def test_who_reads_only_the_beginning_sees_no_traceback(proofs: Proofs, judge: Judge) -> None:
    path = str(judge.file(proofs["transaction"]))
    script = str(ROOT / "scripts" / "verify.py")
    reader, writer = os.pipe()
    os.close(reader)
    try:
        command = [sys.executable, "-u", script, path, "--key", judge.key]
        done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writer)
    assert done.stderr == b""


def test_an_older_python_is_told_which_one_is_needed() -> None:
    start = "import runpy, sys; sys.version_info = (3, 10, 4); runpy.run_path(sys.argv[1])"
    done = ran(sys.executable, "-c", start, str(ROOT / "scripts" / "verify.py"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "verify.py needs Python 3.11 or newer; start it with another python3\n"


def test_it_is_short_enough_to_read() -> None:
    assert len((ROOT / "scripts" / "verify.py").read_text("utf-8").splitlines()) <= 404
