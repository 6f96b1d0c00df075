"""What would be a false "VERIFIED": proofs that lie, keys that are exchanged, logs that are cut."""

import re
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from flask.testing import FlaskClient

from backend.chain import merkle
from backend.chain.block import Block
from backend.trust.log import notes
from backend.trust.log.checkpoints import Checkpoint
from backend.trust.log.secret_keys import SecretKey
from tests.api.worlds import World
from tests.trust.proofs.forging import Forger, columns_in, lies
from tests.trust.proofs.proofs import Json, Judge, Proofs, fetched, written


@pytest.fixture
def forger(world: World) -> Forger:
    return Forger(world.settings.folder)


# --- of which blocks an answer tells


def test_an_answer_says_which_blocks_it_is_from(
    client: FlaskClient, proofs: Proofs, judge: Judge
) -> None:
    question = proofs["delays"][0]["question"]
    asked = {name: value for name, value in question.items() if name != "name"}
    for height in (0, 29):
        verdict = judge.of(fetched(client, "/average_delays/proof", **asked, as_of=height))
        assert verdict["verdict"] == "verified"
        assert f"in blocks 0 to {height}, " in verdict["proved"]
        assert (verdict["covered"], verdict["blocks"]) == (height + 1, 31)
        assert verdict["warning"] == f"nothing is proved about blocks {height + 1} to 30"
    verdict = judge.of(fetched(client, "/proofs/chain", as_of=7))
    assert verdict["warning"] == "nothing is proved about blocks 8 to 30"
    for kind in ("delays", "count", "legs", "chain", "transaction", "older"):
        verdict = judge.of(proofs[kind])
        assert "warning" not in verdict
        assert verdict["covered"] == (21 if kind == "older" else 31)


# --- what a log signs that lies


def test_what_is_wrong_though_the_log_has_signed_it_is_refused(
    world: World, proofs: Proofs, judge: Judge
) -> None:
    for reason, proof in lies(world.settings.folder, proofs):
        assert re.search(reason, judge.of(proof)["reason"]), proof[0]


def test_a_character_that_nobody_sees_is_shown(
    forger: Forger, proofs: Proofs, judge: Judge
) -> None:
    question = dict(proofs["count"][0]["question"])
    question["ORIGIN_CITY_NAME"] += "\u200b"
    path = judge.file(forger.chain(kind="answer", question=question, answer={"count": 0}))
    out = judge.prints(path)
    assert out.startswith("VERIFIED")
    assert "\\u200b" in out


def test_what_a_file_says_cannot_move_the_cursor(forger: Forger, judge: Judge) -> None:
    screen = "\x1b[2J\x1b[HVERIFIED\x1b[E\x9b8m\r\x08\x7f"
    note = str(forger.key.note(f"{screen}\n31\n{43 * 'A'}=\n"))
    proof = forger.chain(kind=screen)
    for data in (note.encode(), written(proof), note.replace("\n31\n", f"\n{screen}\n").encode()):
        out = judge.prints(judge.file(data, f"{screen.replace('/', '')}.json"))
        assert out.startswith("REFUSED\n")
        assert all(line.isprintable() for line in out.split("\n")), out


# --- files that are connected with a kept checkpoint, but only below it


def test_a_fork_of_what_was_kept_is_refused_however_many_files_are_given(
    forger: Forger, judge: Judge
) -> None:
    leaves = forger.leaves()[:6]
    fork = [*leaves[:3], *merkle.leaf_hashes([b"other", b"blocks", b"here"])]
    kept = judge.file(forger.note(5, merkle.root(leaves[:5])).encode(), "kept")
    honest = judge.file([forger.consistency(leaves[:5], 3)], "honest.json")
    bridge = judge.file([forger.consistency(fork, 3)], "bridge.json")
    forked = judge.file([forger.consistency(fork, 4)], "forked.json")
    for files in ([forked], [bridge, forked], [honest, bridge, forked], [honest, forked]):
        assert "nothing connects it with --kept" in judge.says(*files, kept=kept)["reason"]
    grown = judge.file([forger.consistency(leaves, 5)], "grown.json")
    older = judge.file([forger.consistency(leaves[:3], 2)], "older.json")
    for files in ([honest, grown], [grown, honest], [honest, older], [grown, honest, older]):
        assert judge.says(*files, kept=kept)["verdict"] == "verified"


def test_what_is_missing_between_a_file_and_the_kept_checkpoint_is_named(
    forger: Forger, client: FlaskClient, judge: Judge
) -> None:
    """The log has grown since: its own consistency proof leads to another checkpoint."""
    leaves = forger.leaves()
    for kept_size, size, between in ((9, 20, (9, 20)), (25, 20, (20, 25))):
        kept = judge.file(forger.note(kept_size, merkle.root(leaves[:kept_size])).encode(), "kept")
        proof = judge.file(forger.note(size, merkle.root(leaves[:size])).encode(), "checkpoint")
        reason = judge.says(proof, kept=kept)["reason"]
        assert "/proofs/consistency?from={}&to={}".format(*between) in reason
        query = dict(zip(("from", "to"), between, strict=True))
        bridge = judge.file(fetched(client, "/proofs/consistency", **query), "bridge.json")
        assert judge.says(bridge, proof, kept=kept)["verdict"] == "verified"


def test_a_kept_checkpoint_counts_whatever_it_says(
    proofs: Proofs, judge: Judge, forger: Forger
) -> None:
    kept = judge.file(f"\n3\n{43 * 'A'}=\n".encode(), "kept")
    assert "its log is flightchain/" in judge.of(proofs["transaction"], kept=kept)["reason"]
    for note in ("", "x", f"{forger.origin}\n0\n{43 * 'A'}=\n", "/nowhere"):
        path = judge.file(note.encode(), "kept")
        verdict = judge.of(proofs["transaction"], kept=path)
        assert verdict["file"] == f"--kept {path}"
        assert verdict["verdict"] == "refused"


# --- keys


def test_a_checkpoint_of_another_log_is_not_that_of_its_key(forger: Forger, judge: Judge) -> None:
    note = forger.key.note(str(Checkpoint("elsewhere", 7, bytes(32))))
    reason = judge.of(str(note).encode())["reason"]
    assert reason == "the checkpoint of elsewhere is not signed by that key"


def test_a_key_that_is_given_cannot_be_replaced_by_a_file_of_its_name(
    forger: Forger, judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    thief = SecretKey(forger.origin, bytes(32))
    forged = judge.file(
        str(thief.note(forger.note(7, bytes(32)).partition("\n\n")[0] + "\n")).encode()
    )
    monkeypatch.chdir(tmp_path)
    hidden = tmp_path / judge.key
    hidden.parent.mkdir(parents=True)
    hidden.write_text(str(thief.verifier))
    assert "not signed by that key" in judge.says(forged)["reason"]
    witnessed = judge.says(forged, witness=judge.key)
    assert witnessed["verdict"] == "refused"
    assert Judge(tmp_path, str(thief.verifier)).says(forged)["verdict"] == "verified"


def cosigned(forger: Forger, *witnesses: SecretKey, seconds: int = 1_700_000_000) -> bytes:
    note = forger.key.note(
        forger.note(6, merkle.root(forger.leaves()[:6])).partition("\n\n")[0] + "\n"
    )
    signed = [witness.cosignature(note.text, seconds) for witness in witnesses]
    return str(notes.Note(note.text, (*note.signatures, *signed))).encode()


def test_witnesses_of_the_same_name_are_two(forger: Forger, judge: Judge) -> None:
    witness, other = (SecretKey("pi/witness", bytes([n]) * 32, notes.COSIGNATURE) for n in (1, 2))
    both = [witness.verifier, other.verifier]
    for given in (both, both[::-1]):
        for signed in ([witness], [other], []):
            reason = judge.of(cosigned(forger, *signed), witness=given)["reason"]
            assert "not cosigned by all witnesses" in reason
        verdict = judge.of(cosigned(forger, witness, other), witness=given)
        assert verdict["cosigned"].keys() == {str(witness.verifier), str(other.verifier)}


def test_a_cosignature_of_any_time_counts(forger: Forger, judge: Judge) -> None:
    witness = SecretKey("pi/witness", bytes(32), notes.COSIGNATURE)
    for seconds, day in ((0, "1970"), (1_700_000_000, "2023-11-14"), (2**63, "9999-12-31")):
        data = cosigned(forger, witness, seconds=seconds)
        verdict = judge.of(data, witness=witness.verifier)
        assert verdict["cosigned"][str(witness.verifier)].startswith(day)


def test_keys_of_another_type_are_refused(forger: Forger, judge: Judge, tmp_path: Path) -> None:
    data = judge.file(cosigned(forger))
    public = forger.key.verifier.public
    for kind in (b"\x00", b"\x04", b"\x09"):
        other = str(notes.VerifierKey(forger.origin, public, kind))
        assert "is not the key of a log" in Judge(tmp_path, other).says(data)["reason"]
    assert "is not the key of a witness" in judge.says(data, witness=judge.key)["reason"]


def test_what_is_wrong_is_named(judge: Judge, proofs: Proofs, tmp_path: Path) -> None:
    path = judge.file(proofs["transaction"])
    nowhere = str(tmp_path / "nowhere")
    for key in (nowhere, "nonsense", "a" * 300):
        for verdict in (Judge(tmp_path, key).says(path), judge.says(path, witness=key)):
            assert verdict["file"] == "--key, --witness"
            assert key in verdict["reason"]
    assert judge.says(path, kept="")["verdict"] == "not read"  # a variable that is not set
    note = judge.file(str(proofs["transaction"][0]["checkpoint"]).encode(), "note")
    name, key_id, public = judge.key.split("+", 2)
    for key in (judge.key[:-1], f"{name}+{key_id[::-1]}+{public}", str(note)):
        for verdict in (Judge(tmp_path, key).says(path), judge.says(path, witness=key)):
            assert verdict["file"] == "--key, --witness"
            assert "is not the key of a log or witness" in verdict["reason"]
    for verdict in (judge.says(path, kept=nowhere), judge.says(Path(nowhere))):
        assert (verdict["verdict"], verdict["file"].split()[-1]) == ("not read", nowhere)
        assert verdict["reason"] == f"No such file or directory: {nowhere!r}"
    assert "it is damaged, or is not a proof" in judge.of(b"{}")["reason"]
    with ZipFile(tmp_path / "evidence.zip", "w", ZIP_DEFLATED) as archive:
        archive.write(path)
    zipped = (tmp_path / "evidence.zip").read_bytes()
    for data in (b"\xff", path.read_text().encode("utf-16"), zipped):
        for verdict in (judge.of(data), judge.says(path, kept=judge.file(data, "kept"))):
            assert "is not a proof: unzip it or use curl -o, not >" in verdict["reason"]
    assert judge.of(note.read_bytes().replace(b"\n", b"\r\n"))["verdict"] == "verified"
    for data in (b"", b"[]", b"x\n"):
        assert "not a proof or checkpoint: no number of blocks" in judge.of(data)["reason"]


# --- checkpoints and members that are not what they should be


@pytest.mark.parametrize("size", [-5, 0])
def test_a_checkpoint_without_blocks_is_refused(forger: Forger, judge: Judge, size: int) -> None:
    for root in (bytes(32), merkle.EMPTY_ROOT):
        assert "no number of blocks" in judge.of(forger.note(size, root).encode())["reason"]


def test_a_number_of_blocks_is_an_integer(forger: Forger, judge: Judge, proofs: Proofs) -> None:
    (right,) = proofs["consistency"]
    for change in ({"from": 9.0}, {"size": 31.0}):  # which JavaScript cannot tell from integers
        assert judge.of([{**right, **change}])["verdict"] == "refused", change
    first = forger.consistency(forger.leaves(), 1)
    assert judge.of([first])["verdict"] == "verified"
    assert judge.of([{**first, "from": True}])["verdict"] == "refused"


# --- blocks that the log has signed and that break a rule

ZEROS = "0" * 64


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"version": 2}, "unknown version"),
        ({"previous_hash": ZEROS}, "does not name the one before"),
        ({"history_root": ZEROS}, "has another history"),
        ({"first_transaction": 7}, "does not begin with id"),
        ({"timestamp": 0}, "is older than the block before"),
        ({"transactions_root": ZEROS}, "other transactions"),
    ],
)
def test_a_header_that_breaks_a_rule_is_refused(
    forger: Forger, judge: Judge, changes: dict[str, Any], reason: str
) -> None:
    forger.mine(2, forger.blocks[2].body, **changes)
    assert reason in judge.of(forger.chain())["reason"]


def test_what_hides_behind_wrong_sums_is_found_by_the_proof_of_the_chain(
    forger: Forger, proofs: Proofs, judge: Judge
) -> None:
    """An answer rests on the sums in the blocks: this is why it is said to do so."""
    question = proofs["count"][0]["question"]
    hiding = [height for height, block in enumerate(forger.blocks) if has_days(block, question)]
    for height in hiding:
        forger.mine(height, forger.blocks[height].body, summary_root=merkle.EMPTY_ROOT.hex())
    answer = forger.chain(kind="answer", question=question, answer={"count": 0})
    for height in hiding:
        header = answer[height + 1]["header"]
        answer[height + 1] = {"header": header, "first": 0, "count": 0, "cells": [], "hashes": []}
    assert judge.of(answer)["verdict"] == "verified"
    assert f"block {hiding[0]}: sums of other flights" in judge.of(forger.chain())["reason"]


def has_days(block: Block, question: Json) -> bool:
    days = columns_in(block)["FL_DATE"]
    return any(question["INITIAL_DATE"] <= day <= question["FINAL_DATE"] for day in days)
