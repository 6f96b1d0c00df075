"""`slices.js` cuts a file so that its rows mean the same in slices as in the whole."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from backend.base.errors import FlightchainError
from backend.chain.flight import as_mapping
from backend.sources.posted_batch import NDJSON, batch_of
from tests.api.worlds import generated
from tests.flights import csv_of

NODE = shutil.which("node")
SCRIPT = Path(__file__).parents[3] / "frontend" / "static" / "slices.js"
DRIVER = """
import { readFileSync } from "node:fs";
import { Cutter } from "./slices.mjs";
const [path, hasHeader, lines, bytes, piece] = process.argv.slice(2);
const cutter = new Cutter(hasHeader === "true", Number(lines), Number(bytes));
const content = readFileSync(path);
try {
  for (let at = 0; at < content.length; at += Number(piece)) {
    cutter.feed(content.subarray(at, at + Number(piece)));
  }
  cutter.finish();
  if (hasHeader !== "true") cutter.leaveOutEnd(content.subarray(-1000).toString());
} catch (error) {
  console.log(JSON.stringify({ error: error.message }));
  process.exit();
}
const { headerEnd, slices, lines: all, fingerprint } = cutter;
const places = slices.map((slice) => [1, 2, 3].map((row) => cutter.lineOf(slice, row)));
console.log(JSON.stringify({ headerEnd, slices, lines: all, fingerprint, places }));
"""

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")

GOOD = csv_of(generated(40))
LINES = GOOD.splitlines(keepends=True)
SPOILT = "".join([
    LINES[0],
    *LINES[1:5],
    "x" + LINES[5],
    LINES[6].replace('"', '"\n', 1),  # a quoted line break
    "\n",
    *LINES[7:9],
    '"' + LINES[9],  # a quote that is not closed
    *LINES[10:20],
    LINES[20].replace(",", ";"),
    *LINES[21:],
])  # fmt: skip
FILES = {
    "good": GOOD,
    "no line feed at the end": GOOD.rstrip("\n"),
    "spoilt": SPOILT,
    "CRLF": SPOILT.replace("\n", "\r\n"),
    "with a byte order mark": "\ufeff" + SPOILT,
    "several bytes a letter": GOOD.replace("New York", "Zürich 東京"),
}


def cut(
    folder: Path,
    content: bytes,
    lines: int,
    *,
    header: bool = True,
    most: int = 2**22,
    piece: int = 999,
) -> dict[str, Any]:
    """What slices.js makes of a file that is read in pieces."""
    (folder / "slices.mjs").write_text(SCRIPT.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "driver.mjs").write_text(DRIVER, encoding="utf-8")
    (folder / "file").write_bytes(content)
    options = [str(header).lower(), str(lines), str(most), str(piece)]
    run = subprocess.run(
        [str(NODE), "driver.mjs", "file", *options],
        cwd=folder, capture_output=True, check=True, text=True,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def judged(body: bytes) -> tuple[list[Any], list[tuple[int, str, str]]]:
    batch = batch_of(body, "csv", 10**6)
    return batch.flights, [(bad.row, bad.field, bad.reason) for bad in batch.errors]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("lines", [1, 2, 7, 1000])
def test_rows_mean_the_same_in_slices(tmp_path: Path, name: str, lines: int) -> None:
    content = FILES[name].encode()
    found = cut(tmp_path, content, lines)
    header = content[: found["headerEnd"]]
    flights: list[Any] = []
    bad: list[tuple[int, str, str]] = []
    for part in found["slices"]:
        good, wrong = judged(header + content[part["start"] : part["end"]])
        flights += good
        bad += [(part["line"] + row - 2, field, reason) for row, field, reason in wrong]
    assert (flights, bad) == judged(content)
    assert all(part["lines"] <= lines for part in found["slices"])
    assert found["lines"] == len(content.decode().removesuffix("\n").split("\n"))
    assert [places[1:] for places in found["places"]] == [
        [part["line"], part["line"] + 1] for part in found["slices"]
    ]


def test_slices_are_the_whole_file_without_the_header(tmp_path: Path) -> None:
    content = SPOILT.encode()
    for header in (True, False):
        found = cut(tmp_path, content, 3, header=header)
        parts = [content[part["start"] : part["end"]] for part in found["slices"]]
        assert b"".join(parts) == content[found["headerEnd"] :]
        assert bool(found["headerEnd"]) is header
        assert found["places"][0][0] == 1


def test_slices_are_bounded_in_bytes(tmp_path: Path) -> None:
    content = GOOD.encode()
    longest = max(map(len, content.splitlines(keepends=True)))
    found = cut(tmp_path, content, 1000, most=1000)
    assert len(found["slices"]) > 2
    assert all(part["end"] - part["start"] < 1000 + longest for part in found["slices"])


@pytest.mark.parametrize("content", [b"", b"\n", b"YEAR", b"YEAR\n"])
def test_a_file_without_rows_is_one_slice(tmp_path: Path, content: bytes) -> None:
    found = cut(tmp_path, content, 5)
    assert len(found["slices"]) == 1
    assert found["slices"][0]["end"] == len(content)


def test_pieces_make_no_difference_and_content_does(tmp_path: Path) -> None:
    content = SPOILT.encode()
    whole = cut(tmp_path, content, 5, piece=10**9)
    assert cut(tmp_path, content, 5, piece=1) == whole
    for other in (content[:-1], content + b"\n", content.replace(b"Texas", b"texas", 1)):
        assert cut(tmp_path, other, 5)["fingerprint"] != whole["fingerprint"]


def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    for header in (True, False):
        found = cut(tmp_path, b"a\nb\n" + b"x" * 300_000, 5, header=header)
        assert found == {"error": "Line 3 is longer than 262144 bytes."}


def test_a_table_that_is_none_is_one_in_no_slice(tmp_path: Path) -> None:
    content = b"a,b\n1,2\n3,4\n"
    for part in cut(tmp_path, content, 1)["slices"]:
        with pytest.raises(FlightchainError, match="any column of a flight"):
            batch_of(content[:4] + content[part["start"] : part["end"]], "csv", 10**6)


END = '{"complete":true,"count":%d,"as_of":{"height":7}}\n'
FLIGHTS = "".join(json.dumps(as_mapping(flight)) + "\n" for flight in generated(40))


@pytest.mark.parametrize("lines", [9, 10, 40, 50])
@pytest.mark.parametrize("ending", ["", "\n"])
def test_the_last_line_of_an_export_goes_with_the_whole_file_or_not_at_all(
    tmp_path: Path, lines: int, ending: str
) -> None:
    content = (FLIGHTS + END % 40).encode().removesuffix(b"\n") + ending.encode()
    slices = cut(tmp_path, content, lines, header=False)["slices"]
    batches = [batch_of(content[s["start"] : s["end"]], NDJSON, 100) for s in slices]
    assert [flight for batch in batches for flight in batch.flights] == generated(40)
    assert [len(batch.flights) for batch in batches] == [
        min(lines, 40 - n) for n in range(0, 40, lines)
    ]


def test_an_export_that_lacks_flights_is_not_sent_in_slices(tmp_path: Path) -> None:
    said = cut(tmp_path, (FLIGHTS + END % 41).encode(), 10, header=False)
    assert said == {"error": "The file has 40 flights but says that it has 41. Download it again."}
