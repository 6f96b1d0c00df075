"""Whatever is given to verify.py, it answers in a sentence, in little time and room."""

import base64
import json
import re
import sys
import zlib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.api.processes import ran
from tests.trust.proofs.forging import Forger
from tests.trust.proofs.malformed import malformed
from tests.trust.proofs.proofs import Json, Judge, Proofs, written

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
CPU_S, BYTES = 10, 512 * 2**20
NO_SENTENCE = re.compile(r"Error|Traceback|object is not|NoneType|\bint\b|\bstr\b")


def test_a_malformed_proof_is_refused_in_a_sentence(proofs: Proofs, judge: Judge) -> None:
    wrong = []
    for what, proof in malformed(proofs):
        verdict = judge.of(proof)
        if verdict["verdict"] != "refused" or NO_SENTENCE.search(verdict["reason"]):
            wrong.append((what, verdict))
    assert wrong == []


def bombs(forger: Forger, proofs: Proofs) -> Iterator[tuple[str, bytes]]:
    """Proofs that are small, or as large as a line may be, and want much time or room."""
    head = {**proofs["chain"][0], "size": 31}
    yield "lines that unpack to 16 MB", written([head, *_blocks(40, bytes(16 * 2**20))])
    for value in ("x" * 290_000, "x" * 250):
        columns = [f'["{value}"]'.encode()] * 20
        sizes = json.dumps([[len(column), 1000] for column in columns]).replace(" ", "").encode()
        body = sizes + b"\n" + b"".join(column + bytes(1000) for column in columns)
        yield f"a value of {len(value)} characters in each row", written([head, *_blocks(30, body)])
    many = b'{"checkpoint":"","x":[' + b'{"":0},' * 1_000_000 + b"0]}\n"
    yield "a line of small objects", many
    yield "a line of brackets", b'{"x":' + b"[" * 3_000_000
    yield "a line of quotes", b'{"x":' + b'"' * 3_000_000
    yield "a line of escapes", b'{"x":"' + b"\\" * 3_000_000
    yield "a line of digits", b'{"x":' + b"9" * 3_000_000 + b"}"
    yield "a line without end", b'{"x":"' + b"x" * 12_000_000
    yield "a checkpoint without end", b"x" * 12_000_000
    yield "a checkpoint with many digits", b"x\n" + b"1" * 60_000 + b"\n\n"
    legs = dict.fromkeys(range(200), 0)
    yield "a question of many parameters", written([{**head, "kind": "answer", "question": legs}])
    path = {"path": ["A" * 43 + "="] * 150_000, "from": 1}
    yield "a long path", written([{**proofs["consistency"][0], **path}])
    cells = {"first": 0, "count": 10**15, "cells": [], "hashes": ["A" * 43 + "="] * 150_000}
    block = {"header": forger.chain()[1]["header"], **cells}
    yield "many hashes", written([proofs["delays"][0], block])


def _blocks(count: int, body: bytes) -> list[Json]:
    """Blocks whose headers commit to a body, as nobody who has no key of the log could sign."""
    packed = base64.b64encode(zlib.compress(body, 9)).decode()
    digest = sha256(body).hexdigest()
    header = {"version": 1, "height": 0, "previous_hash": "0" * 64, "timestamp": 0}
    header |= {"first_transaction": 0, "transaction_count": 1000, "body_hash": digest}
    header |= {"history_root": sha256().hexdigest(), "difficulty_bits": 0}
    text = json.dumps(header, sort_keys=True, separators=(",", ":"))
    return [{"header": text, "body": packed}] * count


JUDGING = """
import functools, json, resource, sys, time
sys.path.insert(0, sys.argv[1])
import verify
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]),) * 2)
verify.is_signed = functools.cache(verify.is_signed)
key, found = sys.argv[3], []
for path in sys.stdin.read().split("\\n"):
    started = time.process_time()
    sys.argv[1:] = ["--json", "--key", key, path]
    verify.print = found.append
    verify.main()
    found[-1] = {**json.loads(found[-1]), "seconds": time.process_time() - started}
print(json.dumps(found))
"""


def judged(key: str, paths: list[Path]) -> list[Json]:
    """The verdict on each file by a process that has little room, and how long each took."""
    command = [sys.executable, "-I", "-c", JUDGING, str(ROOT / "scripts"), str(BYTES), key]
    done = ran(*command, text="\n".join(map(str, paths)), timeout_s=600)
    assert done.stderr == ""
    verdicts: list[Json] = json.loads(done.stdout)
    assert len(verdicts) == len(paths)
    return verdicts


def test_small_files_that_want_much_are_refused_at_once(
    world: Any, proofs: Proofs, judge: Judge
) -> None:
    wanting = list(bombs(Forger(world.settings.folder), proofs))
    paths = [judge.file(proof, f"bomb-{at}") for at, (_, proof) in enumerate(wanting)]
    for (what, _), verdict in zip(wanting, judged(judge.key, paths), strict=True):
        (report,) = verdict["files"]
        assert verdict["verdict"] == "refused", what
        assert not NO_SENTENCE.search(report["reason"]), what
        assert verdict["seconds"] < CPU_S, what
