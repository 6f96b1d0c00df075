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

ROOT = Path(__file__).parents[3]
GOOD = {field.name: field.example for field in FIELDS}
LINE = transaction_bytes(transaction(flight_of(GOOD), 7, 1_700_000_000_000))


@pytest.fixture
def file(tmp_path: Path) -> Callable[[bytes], str]:
    def write(content: bytes) -> str:
        (tmp_path / "lines").write_bytes(content)
        return str(tmp_path / "lines")

    return write


def ran(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "loadtests.in_process.repetition", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


WAYS = [
    ("round-trips", "ours", LINE),
    ("round-trips", "json", LINE),
    ("validations", "ours", json.dumps(GOOD).encode()),
    ("validations", "jsonschema", json.dumps(GOOD).encode()),
]
DATES = {"properties": {"FL_DATE": {"type": "string", "format": "date"}}}


@pytest.mark.parametrize(("task", "way", "content"), WAYS)
def test_it_does_as_much_as_it_is_told_and_says_nothing(
    file: Callable[[bytes], str], schema: str, task: str, way: str, content: bytes
) -> None:
    broken = content + b"\n" + content[:-1]  # the second line is only met when it is its turn
    more = [schema] * (way == "jsonschema")
    done = ran(task, way, file(content), "50", *more)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    if task == "round-trips":
        assert ran(task, way, file(broken), "1", *more).returncode == 0
        assert ran(task, way, file(broken), "2", *more).returncode == 1


@pytest.fixture
def schema(tmp_path: Path) -> str:
    (tmp_path / "schema").write_text(json.dumps(DATES))
    return str(tmp_path / "schema")


def other(**fields: object) -> bytes:
    return json.dumps(GOOD | fields).encode()


WRONG = [
    ("round-trips", "ours", LINE.replace(b'"YEAR":2008', b'"YEAR": 2008'), "no canonical bytes"),
    ("round-trips", "json", b'{"b":1,"a":2}', "no canonical bytes"),
    ("round-trips", "ours", b"{}", "missing required field"),
    ("validations", "ours", other(YEAR=2009), "disagrees with FL_DATE"),
    ("validations", "ours", other(GATE=1), "is not a field"),
    ("validations", "jsonschema", other(FL_DATE="2008-02-31"), "is not a 'date'"),
]


@pytest.mark.parametrize(("task", "way", "content", "message"), WRONG)
def test_it_names_what_is_wrong(
    file: Callable[[bytes], str], schema: str, task: str, way: str, content: bytes, message: str
) -> None:
    done = ran(task, way, file(content), "3", *([schema] * (way == "jsonschema")))
    assert done.returncode == 1
    assert message in done.stderr
