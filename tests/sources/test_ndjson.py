"""Flights as JSON lines."""

import gzip
import json
from pathlib import Path

import pytest

from backend.base.errors import BadRow, InvalidInput
from backend.sources import open_source, validated
from backend.sources.ndjson import JsonLines, is_json_lines
from backend.sources.study import StudyBlocks
from tests.sources.samples import ROWS, flights_of, written

LINES = [json.dumps({"TRANSACTION_ID": n, **row, "BLOCK_HEIGHT": 1}) for n, row in enumerate(ROWS)]
COMPLETE = '{"complete":true,"count":3,"as_of":{"height":1}}'


def text(*lines: str) -> bytes:
    return "\n".join([*lines, ""]).encode()


@pytest.mark.parametrize(
    "content",
    [
        text(*LINES),
        text(*LINES, COMPLETE),
        text(*LINES).rstrip(b"\n"),
        text(*LINES).replace(b"\n", b"\r\n"),
        text("", *LINES[:1], " ", *LINES[1:], COMPLETE, ""),
        b"\xef\xbb\xbf" + text(*LINES),
        gzip.compress(text(*LINES)),
    ],
)
def test_every_line_is_a_flight(tmp_path: Path, content: bytes) -> None:
    source = open_source(written(tmp_path, content, "flights.csv"))
    assert isinstance(source, JsonLines)
    assert flights_of(source) == flights_of(
        StudyBlocks(written(tmp_path, json.dumps({"transactions": ROWS}), "block.json"))
    )
    assert source.progress() == 1


def test_no_flights_at_all(tmp_path: Path) -> None:
    content = '{"complete":true,"count":0}\n'
    assert flights_of(open_source(written(tmp_path, content, "none"))) == []


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ((*LINES[:2], COMPLETE), "has 2 flights but says that it has 3"),
        ((*LINES, COMPLETE, LINES[0]), "continues in line 5"),
        ((*LINES, COMPLETE, COMPLETE), "continues in line 5"),
    ],
)
def test_a_file_that_is_not_what_its_end_says_is_refused(
    tmp_path: Path, lines: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        flights_of(open_source(written(tmp_path, text(*lines), "flights")))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "line 2: .*is not JSON"),
        ("[1]", "line 2: .*must be a JSON object"),
        ("[" * 5000, "line 2: .*is not JSON"),
        ('{"FL_DATE":"2008-01-03"}', "line 2: YEAR"),
        (
            LINES[0].replace("{", '{"CANCELLED":[],', 1).replace('"CANCELLED": ', '"X":'),
            "CANCELLED",
        ),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    bad: list[BadRow] = []
    source = open_source(written(tmp_path, text(LINES[0], line, LINES[1]), "flights"))
    good = [row for batch in validated(source, bad.append) for row in zip(*batch, strict=True)]
    assert len(good) == 2
    (problem,) = bad
    with pytest.raises(BadRow, match=complaint):
        raise problem


@pytest.mark.parametrize(
    "start",
    [b"", b"YEAR,ORIGIN\n", b"[1]\n", b'{"transactions":[]}\n', b'{\n "FL_DATE": 1}', b"[" * 5000],
)
def test_other_files_are_not_taken_for_it(start: bytes) -> None:
    assert not is_json_lines(start)
