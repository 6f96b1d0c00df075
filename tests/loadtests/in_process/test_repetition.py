"""`python -m loadtests.in_process.repetition`: what it does, and that it does it all."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from backend.chain.fields import FIELDS
from backend.chain.flight import flight_of
from backend.chain.transaction import transaction, transaction_bytes
from loadtests.in_process import repetition

ROOT = Path(__file__).parents[3]
GOOD = {field.name: field.example for field in FIELDS}
LINE = transaction_bytes(transaction(flight_of(GOOD), 7, 1_700_000_000_000))


@pytest.fixture
def file(tmp_path: Path) -> Callable[[bytes], str]:
    def write(content: bytes) -> str:
        (tmp_path / "lines").write_bytes(content)
        return str(tmp_path / "lines")

    return write


def asked(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "loadtests.in_process.repetition", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_says_nothing_when_all_is_well(file: Callable[[bytes], str]) -> None:
    for what, content in (("round-trips", LINE), ("validations", json.dumps(GOOD).encode())):
        done = asked(what, file(content + b"\n"), "50")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_it_does_as_much_as_it_is_told(
    file: Callable[[bytes], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []

    def written(one: object) -> bytes:
        seen.append(one)
        return LINE

    def examined(flight: object) -> tuple[object, list[object]]:
        seen.append(flight)
        return flight, []

    monkeypatch.setattr(repetition, "transaction_bytes", written)
    repetition.main(["round-trips", file(b"\n".join([LINE] * 3)), "7"])
    assert len(seen) == 7
    seen.clear()
    monkeypatch.setattr(repetition, "examine", examined)
    repetition.main(["validations", file(json.dumps(GOOD).encode()), "5"])
    assert seen == [GOOD] * 5


WRONG = [
    ("round-trips", LINE.replace(b'"YEAR":2008', b'"YEAR": 2008'), "no canonical bytes"),
    ("round-trips", b"{}", "missing required field"),
    ("round-trips", b"", "holds no lines"),
    ("validations", json.dumps({**GOOD, "YEAR": 2009}).encode(), "disagrees with FL_DATE"),
    ("validations", json.dumps({**GOOD, "GATE": 1}).encode(), "is not a field"),
    ("validations", b"{", "truncated"),
    ("else", LINE, "usage:"),
]


@pytest.mark.parametrize(("what", "content", "said"), WRONG)
def test_it_names_what_is_wrong(
    file: Callable[[bytes], str], what: str, content: bytes, said: str
) -> None:
    done = asked(what, file(content), "3")
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
