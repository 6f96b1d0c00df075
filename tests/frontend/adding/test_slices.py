"""`slices.js` cuts a file so that its rows mean the same in slices as in the whole."""

import bz2
import gzip
import io
import json
import lzma
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_LZMA, ZIP_STORED, ZipFile

import pytest

from backend.base.errors import FlightchainError
from backend.chain.flight import as_mapping
from backend.sources.packed import _BESIDE_TABLES, tables_among
from backend.sources.posted_batch import NDJSON, batch_of
from tests.api.worlds import generated
from tests.flights import csv_of

NODE = shutil.which("node")
STATIC = Path(__file__).parents[3] / "frontend" / "static"
SERVER = """
import { openAsBlob, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Cutter, slicesOf } from "./slices.js";
import { BESIDE_TABLES, tablesAmong, tablesOf } from "./unpacking.js";

const text = (bytes) => Buffer.from(bytes).toString("latin1");

function cut(path, hasHeader, lines, bytes, piece) {
  const cutter = new Cutter(hasHeader, lines, bytes);
  const content = new Uint8Array(readFileSync(path));
  const slices = [];
  for (let at = 0; at < content.length; at += piece) {
    slices.push(...cutter.feed(content.subarray(at, at + piece)));
  }
  slices.push(...cutter.finish());
  const { header, lines: all, fingerprint } = cutter;
  const places = slices.map((slice) => [1, 2, 3].map((row) => cutter.lineOf(slice, row)));
  const shown = slices.map((slice) => ({ ...slice, bytes: text(slice.bytes) }));
  return { header: header?.length ?? 0, slices: shown, lines: all, fingerprint, places };
}

async function tables(path, most) {
  const file = await openAsBlob(path);
  const found = [];
  let read = 0;
  for (const table of await tablesOf(file)) {
    for await (const { bytes, lines } of slicesOf(table, (count) => (read += count), most)) {
      found.push({ name: table.name, content: text(bytes), lines });
    }
  }
  return { found, read };
}

const among = (path) => ({ found: JSON.parse(readFileSync(path)).map(tablesAmong) });
const beside = () => ({ source: BESIDE_TABLES.source });
const asked = { cut, tables, among, beside };
for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...options] = JSON.parse(line);
  const answer = await (async () => asked[name](...options))()
    .catch((error) => ({ error: error.message }));
  console.log(JSON.stringify(answer));
}
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(NODE is None, reason="node is not installed"),
]

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
    return run(folder, "cut", content, header, lines, most, piece)


NODES: list["subprocess.Popen[str]"] = []


@pytest.fixture(scope="module", autouse=True)
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One process with the scripts for all tests: to start one takes longer than they do."""
    folder = tmp_path_factory.mktemp("scripts")
    for name in ("slices.js", "unpacking.js"):
        shutil.copy(STATIC / name, folder)
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    (folder / "server.js").write_text(SERVER, encoding="utf-8")
    command = [str(NODE), "server.js"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, text=True, stdin=pipe, stdout=pipe) as process:
        NODES[:] = [process]
        yield


def run(folder: Path, name: str, content: bytes, *options: object) -> dict[str, Any]:
    """What a function of the server says about a file."""
    (folder / "file").write_bytes(content)
    (process,) = NODES
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps([name, str(folder / "file"), *options]) + "\n")
    process.stdin.flush()
    found: dict[str, Any] = json.loads(process.stdout.readline())
    return found


def judged(body: bytes) -> tuple[list[Any], list[tuple[int, str, str]]]:
    batch = batch_of(body, "csv", 10**6)
    return batch.flights, [(bad.row, bad.field, bad.reason) for bad in batch.errors]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("lines", [1, 2, 7, 1000])
def test_rows_mean_the_same_in_slices(tmp_path: Path, name: str, lines: int) -> None:
    content = FILES[name].encode()
    slices = cut(tmp_path, content, lines)
    flights: list[Any] = []
    bad: list[tuple[int, str, str]] = []
    for part in slices["slices"]:
        good, wrong = judged(part["bytes"].encode("latin1"))
        flights += good
        bad += [(part["line"] + row - 2, field, reason) for row, field, reason in wrong]
    assert (flights, bad) == judged(content)
    assert all(part["lines"] <= lines for part in slices["slices"])
    assert slices["lines"] == len(content.decode().removesuffix("\n").split("\n"))
    assert [places[1:] for places in slices["places"]] == [
        [part["line"], part["line"] + 1] for part in slices["slices"]
    ]


def test_rows_behind_a_line_that_a_return_ends_keep_their_numbers(tmp_path: Path) -> None:
    first, *rows = SPOILT.splitlines(keepends=True)
    content = first + "".join(
        row.replace("\n", "\r") if n % 4 == 1 else row for n, row in enumerate(rows)
    )
    bad = [
        (part["line"] + row - 2, field, reason)
        for part in cut(tmp_path, content.encode(), 3)["slices"]
        for row, field, reason in judged(part["bytes"].encode("latin1"))[1]
    ]
    assert bad == judged(content.encode())[1]


def test_slices_are_the_whole_file_without_the_header(tmp_path: Path) -> None:
    content = SPOILT.encode()
    for header in (True, False):
        slices = cut(tmp_path, content, 3, header=header)
        parts = [part["bytes"].encode("latin1") for part in slices["slices"]]
        assert {part[: slices["header"]] for part in parts} == {content[: slices["header"]]}
        assert (
            content[: slices["header"]] + b"".join(p[slices["header"] :] for p in parts) == content
        )
        assert bool(slices["header"]) is header
        assert slices["places"][0][0] == 1


def test_slices_are_bounded_in_bytes(tmp_path: Path) -> None:
    content = GOOD.encode()
    longest = max(map(len, content.splitlines(keepends=True)))
    slices = cut(tmp_path, content, 1000, most=1000)
    assert len(slices["slices"]) > 2
    assert all(len(s["bytes"]) - slices["header"] < 1000 + longest for s in slices["slices"])


@pytest.mark.parametrize("content", [b"", b"\n", b"YEAR", b"YEAR\n"])
def test_a_file_without_rows_is_one_slice(tmp_path: Path, content: bytes) -> None:
    slices = cut(tmp_path, content, 5)
    assert len(slices["slices"]) == 1
    assert slices["slices"][0]["bytes"].encode() == content


def test_pieces_make_no_difference_and_content_does(tmp_path: Path) -> None:
    content = SPOILT.encode()
    whole = cut(tmp_path, content, 5, piece=10**9)
    assert cut(tmp_path, content, 5, piece=1) == whole
    for other in (content[:-1], content + b"\n", content.replace(b"Texas", b"texas", 1)):
        assert cut(tmp_path, other, 5)["fingerprint"] != whole["fingerprint"]


def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    for header in (True, False):
        slices = cut(tmp_path, b"a\nb\n" + b"x" * 300_000, 5, header=header)
        assert slices == {"error": "Line 3 is longer than 262144 bytes."}


def test_a_table_that_is_none_is_one_in_no_slice(tmp_path: Path) -> None:
    content = b"a,b\n1,2\n3,4\n"
    for part in cut(tmp_path, content, 1)["slices"]:
        with pytest.raises(FlightchainError, match="any column of a flight"):
            batch_of(part["bytes"].encode(), "csv", 10**6)


END = '{"complete":true,"count":%d,"as_of":{"height":7}}\n'
FLIGHTS = "".join(json.dumps(as_mapping(flight)) + "\n" for flight in generated(40))


@pytest.mark.parametrize("lines", [9, 10, 40, 50])
@pytest.mark.parametrize("ending", ["", "\n"])
def test_the_last_line_of_an_export_goes_with_the_whole_file_or_not_at_all(
    tmp_path: Path, lines: int, ending: str
) -> None:
    content = (FLIGHTS + END % 40).encode().removesuffix(b"\n") + ending.encode()
    slices = cut(tmp_path, content, lines, header=False)["slices"]
    batches = [batch_of(part["bytes"].encode(), NDJSON, 100) for part in slices]
    assert [flight for batch in batches for flight in batch.flights] == generated(40)
    assert [len(batch.flights) for batch in batches] == [
        min(lines, 40 - n) for n in range(0, 40, lines)
    ]


def test_an_export_that_lacks_flights_is_not_sent_in_slices(tmp_path: Path) -> None:
    slices = cut(tmp_path, (FLIGHTS + END % 41).encode(), 10, header=False)
    assert slices == {
        "error": "The file has 40 flights but says that it has 41. Download it again."
    }


def tables(folder: Path, content: bytes, most: int = 10**6) -> dict[str, Any]:
    return run(folder, "tables", content, most)


def zipped(kind: int = ZIP_DEFLATED, **members: bytes) -> bytes:
    packed = io.BytesIO()
    with ZipFile(packed, "w", kind) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_dot_", "."), content)
    return packed.getvalue()


MONTH = csv_of(generated(6000)).encode()


@pytest.mark.parametrize(
    "packed",
    [
        pytest.param(MONTH, id="plain"),
        pytest.param(gzip.compress(MONTH, 1), id="gz"),
        pytest.param(zipped(a_dot_csv=MONTH, readme_dot_html=b"<html>"), id="zip"),
        pytest.param(zipped(ZIP_STORED, a_dot_csv=MONTH), id="stored"),
        pytest.param(gzip.compress(MONTH, 1) + bytes(512), id="padded gz"),
        pytest.param(gzip.compress(MONTH, 1) + b"\0", id="gz with a zero"),
        pytest.param(b"".join(map(gzip.compress, MONTH.splitlines(True))), id="gz members"),
        pytest.param(MONTH.decode().encode("utf-16"), id="utf-16"),
        pytest.param(gzip.compress(("\ufeff" + MONTH.decode()).encode("utf-16-be"), 1), id="be"),
        pytest.param(MONTH.replace(b"\n", b"\r"), id="mac"),
        pytest.param(b"sep=,\n" + MONTH, id="excel"),
        pytest.param(b',,,\n"";""\n' + MONTH, id="empty rows"),
        pytest.param(b"\xef\xbb\xbf\n" + MONTH, id="mark"),
    ],
)
def test_a_table_is_cut_however_it_is_packed(tmp_path: Path, packed: bytes) -> None:
    made = tables(tmp_path, packed)
    bodies = [each["content"].encode("latin1") for each in made["found"]]
    batches = [batch_of(body, "", 10**6) for body in bodies]
    assert [flight for batch in batches for flight in batch.flights] == generated(6000)
    assert len(bodies) == 2
    assert not any(batch.errors for batch in batches)
    assert made["read"] <= len(packed)


def test_a_file_that_is_not_the_utf_16_that_it_seems_is_refused(tmp_path: Path) -> None:
    broken = MONTH.decode().replace("Chicago", "Chi\ud800cago").encode("utf-16", "surrogatepass")
    said = "The file begins as UTF-16 and is not. Save it as UTF-8."
    assert tables(tmp_path, broken) == {"error": said}


def test_tables_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    made = tables(tmp_path, zipped(m10_dot_csv=GOOD.encode(), m9_dot_csv=GOOD.encode()))
    assert [each["name"] for each in made["found"]] == ["m9.csv", "m10.csv"]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(lzma.compress(GOOD.encode()), id="xz"),
        pytest.param(bz2.compress(GOOD.encode()), id="bz2"),
        pytest.param(b"PAR1 and more", id="parquet"),
        pytest.param(b"PAR1 and\rmore", id="a byte like a line end of old Macs"),
        pytest.param(b' [{"FL_DATE": 1},\n {}]\n', id="array"),
        pytest.param(b'{\n "transactions": []}\n', id="block"),
        pytest.param(b'{"status": "ok", "data": [{"FL_DATE": 1}]}\n', id="object with a list"),
        pytest.param(b'{"meta": {"a": [1]}, "data": [{"FL_DATE": 1}]}\n', id="list behind others"),
        pytest.param(gzip.compress(GOOD.encode())[:-10], id="short gz"),
        pytest.param(zipped(a_dot_csv=GOOD.encode(), kind=ZIP_LZMA), id="lzma in zip"),
        pytest.param(zipped(notes_dot_md=b"a"), id="no table"),
        pytest.param(zipped(a_dot_csv=b"1", b_dot_csv=b"2").replace(b"b.", b"a."), id="twice"),
    ],
)
def test_what_cannot_be_cut_is_sent_as_it_is_if_it_is_short(tmp_path: Path, content: bytes) -> None:
    (found,) = tables(tmp_path, content)["found"]
    assert found["content"].encode("latin1") == content
    said = tables(tmp_path, content, len(content) - 1)["error"]
    assert "only be sent in one piece of at most 0 MB" in said
    assert "python -m backend import FILE" in said


BROKEN = zipped(ZIP_STORED, a_dot_csv=GOOD.encode())


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(zipped(a_dot_csv=GOOD.encode())[:-30], id="short zip"),
        pytest.param(BROKEN.replace(b"2015", b"2016", 1), id="another letter in zip"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, content: bytes) -> None:
    assert "damaged or incomplete. Download it again." in tables(tmp_path, content)["error"]


NAMES = [
    *("readme.html", "On_Time_2015_1.csv", "2015/block10.json", "2015/block9.json", "flights"),
    *("__MACOSX/._a.csv", "a/.hidden.csv", "LICENSE", "airlines.csv", "a.PARQUET", "b.csv.gz"),
    *("airports.csv", "notes.txt", "x/", "a\nb.csv", "block007.csv", "block07.csv", "README.md"),
    *("_SUCCESS", "x/_committed_12", "_started_", "_temporary/0/a.csv", "_metadata"),
    *("m=2/.cache/a.csv", "./a.csv", "x/__MACOSX/b.csv", "..a.csv", "documentation.txt"),
]


def test_what_is_left_out_beside_tables_is_what_the_reader_leaves_out(tmp_path: Path) -> None:
    source = run(tmp_path, "beside", b"")["source"]
    assert source.replace("\\/", "/") == f"^({_BESIDE_TABLES.pattern})$"


def test_the_names_of_tables_are_those_that_the_reader_takes(tmp_path: Path) -> None:
    choose = random.Random(33)
    lists = [choose.sample(NAMES, choose.randrange(9)) for _ in range(300)]
    found = run(tmp_path, "among", json.dumps(lists).encode())["found"]
    assert found == [tables_among(names) for names in lists]
