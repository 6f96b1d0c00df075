"""What a file is, is told by its content; what is not read is refused by its name."""

import gzip
import io
import json
import lzma
import random
import shutil
import tarfile
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from backend.base.errors import BadRow, InvalidInput
from backend.chain.fields import Value
from backend.chain.flight import flight_of
from backend.sources import columnar, open_source
from tests.sources.samples import (
    FLOWN,
    PACKINGS,
    ROWS,
    archive,
    csv_text,
    flights_of,
    read,
    written,
)

TABLE = csv_text(ROWS).encode()
WORKBOOK = archive({"[Content_Types].xml": "", "xl/workbook.xml": ""})


def tar() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as packer:
        about = tarfile.TarInfo("flights.csv")
        about.size = len(TABLE)
        packer.addfile(about, io.BytesIO(TABLE))
    return packed.getvalue()


REFUSED = {
    "nothing": (b"", "is empty; download it again"),
    "a mark of nothing": (b"\xef\xbb\xbf", "is empty"),
    "blank lines": (b"\n \r\n", "is empty"),
    "many blank lines": (b"\n" * 3_000_000, "only blank lines above the titles of"),
    "packed nothing": (gzip.compress(b""), "is empty"),
    "a web page": (b"\n<!DOCTYPE html>\n<html><body>", "is a web page .*download the file again"),
    "the start of a page": (b"<HEAD><title>404", "is a web page"),
    "XML": (b'<?xml version="1.0"?>\n<flights/>', "is HTML or XML .*open it in a spread"),
    "a pointer": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0a\nsize 7\n",
        "is a Git LFS pointer instead of the file; run git lfs pull",
    ),
    "RTF": (rb"{\rtf1\ansi YEAR,ORIGIN\par", "is text with fonts .*save it as plain text"),
    "PDF": (b"%PDF-1.7\n%\xe2\xe3", "is a PDF document"),
    "a new workbook": (WORKBOOK, "CSV UTF-8"),
    "an open workbook": (archive({"mimetype": "", "content.xml": ""}), "CSV UTF-8"),
    "a workbook of Numbers": (archive({"Index/Document.iwa": ""}), "CSV UTF-8"),
    "an old workbook": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504), "CSV UTF-8"),
    "a tar archive": (tar(), r"is a tar archive; unpack it \(tar xf\)"),
    "a packed tar archive": (gzip.compress(tar()), "is a tar archive"),
    "7z": (b"7z\xbc\xaf\x27\x1c\0\4", "is an archive of an unsupported format; unpack it"),
    "LZMA": (lzma.compress(TABLE, lzma.FORMAT_ALONE), "is an archive of an unsupported format"),
    "an empty archive": (archive({}), "is an empty archive; download it again"),
    "a packed workbook": (
        gzip.compress(WORKBOOK),
        "is packed twice, or is a workbook in an archive; unpack it once",
    ),
    "packed twice": (gzip.compress(gzip.compress(TABLE)), "is packed twice, .*unpack it once"),
    "SQLite": (b"SQLite format 3\0\x10\0", "is an SQLite database; .*sqlite3 -header -csv"),
    "DuckDB": (bytes(8) + b"DUCK" + bytes(20), "is a DuckDB database; .*COPY"),
    "R": (gzip.compress(b"RDX3\nX\n\0\0\0\3"), r"is data of R; .*write\.csv"),
    "R, one value": (b"X\n\0\0\0\2\0\4", "is data of R"),
    "Stata": (b"<stata_dta><header><release>118", "is data of Stata, SPSS or SAS; load it in that"),
    "SAS": (bytes(12) + b"\xc2\xea\x81\x60\xb3", "is data of Stata, SPSS or SAS"),
    "pickled": (b"\x80\4\x95\x1a\0\0\0\0\0\0\0", "is data of another program"),
    "HDF5": (b"\x89HDF\r\n\x1a\n", "is data of another program"),
    "Weka": (b"% by R\n%\n@RELATION flights\n", "is data of another program \\(ARFF"),
    "BTS, for one airport": (
        b"Detailed Statistics Arrivals  \nDestination Airport: Salem, OR (SLE)\n\nDate,Time\n",
        "has Detailed Statistics, .*download Reporting Carrier On-Time Performance",
    ),
    "Avro": (b"Obj\1\4\x16avro.schema", "is data of another program"),
    "ORC": (b"ORC\n\3\0\0\0", "is data of another program"),
    "Access": (b"\0\1\0\0Standard ACE DB\0", "is data of another program"),
    "Stata as pandas writes it": (b"r\2\1\0\23\0", "is data of Stata, SPSS or SAS"),
    "UTF-16 without a mark": (
        "YEAR,ORIGIN\n".encode("utf-16-le"),
        "is neither text nor in a supported",
    ),
    "UTF-32": ("YEAR,ORIGIN\n".encode("utf-32"), "is neither text nor in a supported"),
    "half of UTF-16": ("YEAR\n".encode("utf-16")[:-1], "begins like UTF-16 but is not"),
    "a picture": (b"\x89PNG\r\n\x1a\n", "is neither text nor in a supported"),
    "EBCDIC": ("YEAR,ORIGIN\n2019,ATL\n".encode("cp037"), "is neither text nor in a supported"),
    "a box of SQLite": (
        "\u250c\u2500\u2500\u2510\n\u2502 YEAR \u2502\n".encode(),
        "is a table drawn with lines",
    ),
    "a box of MySQL": (b"+------+--------+\n| YEAR | ORIGIN |\n", "is a table drawn with lines"),
    "Markdown": (b"| YEAR | ORIGIN |\n|-----:|:-------|\n", "is a table drawn with lines"),
    "a dump of MySQL": (b"-- MySQL dump\n\n/*!40101 SET NAMES */;\n", "is a dump in SQL"),
    "a dump of PostgreSQL": (b"--\n-- PostgreSQL\n--\nSET x = 0;\n", "is a dump in SQL"),
    "a dump of MariaDB": (b"/*M!999999\\- enable the sandbox mode */\n", "is a dump in SQL"),
    "a dump of HeidiSQL": (b"-- --------\n-- Host: localhost\n", "is a dump in SQL"),
    "a script of SQL Server": ("USE [f]\r\nGO\r\n/** **/".encode("utf-16"), "is a dump in SQL"),
    "a page in UTF-16": ("<html><body>".encode("utf-16"), "is a web page"),
    "rows for a database": (b"INSERT INTO flights VALUES (1);\n", "is a dump in SQL"),
    "a table of DataGrip": (b"\ncreate table flights\n(\n  YEAR int\n);\n", "is a dump in SQL"),
    "rows of phpMyAdmin": (b"START TRANSACTION;\nSET time_zone = 0;\n", "is a dump in SQL"),
    "rows in place of others": (b"REPLACE INTO `flights` VALUES\n(1);\n", "is a dump in SQL"),
    "a title such as a word of SQL": (b"Set;YEAR;ORIGIN\n1;2019;ATL\n", "lacks the columns"),
    "titles of another coding": (
        "N\u00famero,L\u00ednea\n1,2\n".encode("latin-1"),
        "no column of",
    ),
    "no titles": (TABLE.partition(b"\n")[2], "add a first line with the titles of its columns"),
    "no titles, and a word": (
        TABLE.partition(b"\n")[2].replace(b"IAD", b"DAY"),
        "has no column of a flight.* add a first line with the titles of its columns",
    ),
    "other flights": (
        b"ADEP,ADES,AC Operator\nLGRP,EDDF,AEE\n",
        "or download Reporting",
    ),
    "one column": (
        b"YEAR^ORIGIN\n2019^ATL\n",
        "or separate cells by commas, semicolons, tabs or bars",
    ),
    "lines in quotes": (b'"YEAR,ORIGIN"\n"2019,ATL"\n', "and quote no whole line"),
    "a letter": (b"a letter\nto somebody\n", ", but 'a letter'"),
    "a table of others": (b"name,age\nAda,36\n", "has no column of a flight"),
    "a table without rows": (TABLE.partition(b"\n")[0] + b"\n\n", "a header but no rows"),
    "half of gzip": (b"\x1f\x8b\x08 and no more", "is damaged or incomplete"),
    "no bzip2": (b"BZh91AY&SY\xff\xff\n", "is damaged or incomplete"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_read_is_refused_by_its_name(tmp_path: Path, name: str) -> None:
    content, complaint = REFUSED[name]
    with pytest.raises(InvalidInput, match=rf"^file 'flights\.csv': .*{complaint}") as caught:
        flights_of(open_source(written(tmp_path, content)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        TABLE.decode().encode("utf-16"),
        TABLE.replace(b"\n", b"\r"),
        TABLE.decode().replace("\n", "\r").encode("utf-16"),
        b"\n\n" + TABLE,
    ],
)
def test_text_may_be_utf_16_or_end_its_lines_as_macs_did(tmp_path: Path, content: bytes) -> None:
    assert len(flights_of(open_source(written(tmp_path, content)))) == 3


def test_titles_in_brackets_are_no_json(tmp_path: Path) -> None:
    header, _, rows = TABLE.decode().partition("\n")
    path = written(tmp_path, f"[{header.replace(',', '],[')}]\n{rows}")
    assert len(flights_of(open_source(path))) == 3


def test_columns_that_folders_are_named_by_are_told_how_to_get(tmp_path: Path) -> None:
    """As Hive, Spark and Arrow write them."""
    header, rows = TABLE.replace(b"YEAR,DAY_OF_WEEK,FL_DATE,", b"").split(b"\n", 1)
    folder = tmp_path / "FL_DATE=2008-01-03"
    folder.mkdir()
    path = written(folder, header + b"\n" + rows.replace(b"2008,4,2008-01-03,", b""), "part-0.csv")
    for place in (tmp_path, path):
        with pytest.raises(
            InvalidInput, match=r"has its columns FL_DATE only in .*duckdb -c"
        ) as caught:
            open_source(place)
        assert "TranStats" not in str(caught.value)


def test_a_table_without_flights_among_others_is_named(tmp_path: Path) -> None:
    members: dict[str, str | bytes] = {"./flights.csv": TABLE, "./.hidden.csv": "no table"}
    members["airports.csv"] = "code,city\nIAD,Washington\n"  # what Kaggle puts beside flights
    members["cancellation_codes.csv"] = "reason,description\nA,Carrier\n"  # as others do
    assert len(flights_of(open_source(written(tmp_path, archive(members), "all.zip")))) == 3
    members["names.csv"] = "name,age\nAda,36\n"
    path = written(tmp_path, archive(members), "all.zip")
    with pytest.raises(InvalidInput, match=r"'all\.zip/names\.csv': .*, or remove it if"):
        open_source(path)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (b'{"title": "Flights"}', "is JSON without a list of flights"),
        (b"%PDF-1.7\n", "is a PDF document instead of a table"),
    ],
)
def test_a_table_without_rows_among_others_may_be_left_out(
    tmp_path: Path, other: bytes, reason: str
) -> None:
    written(tmp_path, TABLE, "part-0.csv")
    written(tmp_path, other, "part-1.csv")
    with pytest.raises(InvalidInput, match=f"part-1.csv': {reason}; .*, or remove it"):
        flights_of(open_source(tmp_path))


@pytest.mark.parametrize("form", ["folder", "zip"])
@pytest.mark.parametrize("place", ["part-0", "part-2"])
@pytest.mark.parametrize(
    "empty",
    [b"", b"\n\n", TABLE.partition(b"\n")[0], TABLE[: TABLE.index(b"\n") + 1] * 3, b"[]"],
    ids=["nothing", "blank", "header", "headers", "list"],
)
def test_a_part_without_rows_is_left_out(
    tmp_path: Path, form: str, place: str, empty: bytes
) -> None:
    def folder_of(name: str, *parts: tuple[str, bytes]) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        for part, content in parts:
            written(folder, content, part)
        return folder if form == "folder" else Path(shutil.make_archive(str(folder), "zip", folder))

    path = folder_of("some", ("part-1", TABLE), (place, empty))
    source = open_source(path)
    assert len(flights_of(source)) == 3
    assert str(source.understood()).endswith("1 file without rows left out")
    with pytest.raises(InvalidInput, match=r"part-9': (is empty|has .*no (rows|flights)); down"):
        open_source(folder_of("none", (place, empty), ("part-9", empty)))


def test_blank_lines_cost_little(tmp_path: Path) -> None:
    started = time.process_time()
    path = written(tmp_path, TABLE + b"\n" * 8_000_000 + TABLE.partition(b"\n")[2])
    assert len(flights_of(open_source(path))) == 6
    assert time.process_time() - started < 4  # it was measured at 0.3 s, and at 16 s before


OBJECTS = [json.dumps(row) for row in ROWS * 50]
WHOLE = {
    **{packing: pack(csv_text(ROWS * 50).encode()) for packing, pack in PACKINGS.items()},
    "UTF-16": csv_text(ROWS * 50).encode("utf-16"),
    "lines of JSON": "\n".join(OBJECTS).encode(),
    "an array": f"[{','.join(OBJECTS)}]".encode(),
    "a block": f'{{"transactions": [{",".join(OBJECTS)}]}}'.encode(),
}
PIECES = (b'"', b"\r\n", b"\xef\xbb\xbf", b"\0" * 9, b"[[[[", b'{"', b"sep=", b",", b"\xff")


@pytest.mark.parametrize("name", WHOLE)
def test_whatever_happens_to_a_file_it_is_read_or_refused_in_one_line(
    tmp_path: Path, name: str
) -> None:
    dice = random.Random(name)
    for _ in range(100):
        content = bytearray(WHOLE[name])
        for _ in range(dice.choice((1, 2, 20))):
            start = dice.randrange(min(len(content), dice.choice((100, len(content)))))
            content[start : start + dice.choice((0, 1, 30))] = dice.choice(PIECES)
        path = written(tmp_path, bytes(content[: dice.choice((len(content), 3000))]))
        try:
            read(open_source(path))
        except InvalidInput as error:
            assert len(str(error)) < 700 and "\n" not in str(error)


# --- Parquet and Arrow ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"PAR1\x15\x04", "is a Parquet file, which needs pyarrow; .*duckdb -c"),
        (b"ARROW1\0\0\xff\xff", "is an Arrow file, which needs pyarrow"),
    ],
)
def test_what_needs_pyarrow_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, complaint: str
) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(columnar, "import_module", missing)
    with pytest.raises(InvalidInput, match=complaint):
        open_source(written(tmp_path, content, "flights.parquet"))


@pytest.fixture
def arrow() -> Any:
    """The package, which the tests' requirements name; a bare installation may lack it."""
    return pytest.importorskip("pyarrow")


def columnar_file(arrow: Any, form: str, rows: Any) -> bytes:
    table = arrow.Table.from_pylist(rows) if isinstance(rows, list) else rows
    packed = io.BytesIO()
    if form == "parquet":
        import_module("pyarrow.parquet").write_table(table, packed, row_group_size=700)
    else:
        make = {"arrow": arrow.ipc.new_file, "stream": arrow.ipc.new_stream}[form]
        with make(packed, table.schema) as writer:
            writer.write_table(table, 2500)
    return packed.getvalue()


def typed(row: Mapping[str, str]) -> dict[str, object]:
    """A row as data frames have it: days, floating minutes, and nothing where nothing is known."""
    minutes = ("DEP_DELAY", "ARR_DELAY", "AIR_TIME")
    whole = ("YEAR", "DAY_OF_WEEK", "OP_CARRIER_AIRLINE_ID", "CANCELLED")
    return {
        name: datetime.fromisoformat(value)
        if name == "FL_DATE"
        else float(value or "nan")
        if name in minutes
        else int(value)
        if name in whole
        else value or None
        for name, value in row.items()
    } | {"TAGS": ["a"], "SEEN": date(2020, 1, 1)}


@pytest.mark.parametrize("form", ["parquet", "arrow", "stream"])
@pytest.mark.parametrize("packing", ["plain", "zip", "gzip"])
def test_parquet_and_arrow_are_read_as_a_table_is(
    tmp_path: Path, arrow: Any, form: str, packing: str
) -> None:
    content = columnar_file(arrow, form, [typed(row) for row in ROWS] * 1000)
    source = open_source(written(tmp_path, PACKINGS[packing](content), "flights"))
    assert flights_of(source) == [flight_of(row) for row in ROWS] * 1000
    assert source.progress() == 1


def test_the_copy_of_a_columnar_file_is_on_a_disk(
    tmp_path: Path, arrow: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder for temporary files is in memory in our units, and in Debian 13."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "memory"))
    content = columnar_file(arrow, "parquet", [typed(row) for row in ROWS])
    assert len(flights_of(open_source(written(tmp_path, content, "flights")))) == len(ROWS)


def test_a_parquet_part_without_rows_is_left_out(tmp_path: Path, arrow: Any) -> None:
    table = arrow.Table.from_pylist([typed(row) for row in ROWS])
    for number, part in enumerate((table.slice(0, 0), table)):
        written(tmp_path, columnar_file(arrow, "parquet", part), f"part-{number}.parquet")
    assert len(flights_of(open_source(tmp_path))) == 3


@pytest.mark.parametrize("form", ["parquet", "arrow", "stream"])
def test_categories_and_other_types_of_text_are_read(tmp_path: Path, arrow: Any, form: str) -> None:
    table = arrow.Table.from_pylist([typed(row) for row in ROWS])
    kinds = {"ORIGIN_CITY_NAME": "string_view", "DEST_CITY_NAME": "large_string", "DEST": "string"}
    for name, kind in kinds.items():
        texts = table[name].combine_chunks().cast(getattr(arrow, kind)())
        if name != "DEST_CITY_NAME":  # polars and pandas call it a category
            places = arrow.array(range(len(texts)), arrow.uint32())
            texts = arrow.DictionaryArray.from_arrays(places, texts)
        if form != "parquet" or kind != "string_view":
            table = table.set_column(table.schema.get_field_index(name), name, texts)
    path = written(tmp_path, columnar_file(arrow, form, table), "flights")
    assert flights_of(open_source(path)) == [flight_of(row) for row in ROWS]


def flights_with(folder: Path, arrow: Any, **columns: Any) -> list[tuple[Value, ...]]:
    """What is read of one flight in Parquet, some of whose columns are these."""
    texts = {name: arrow.array([value]) for name, value in FLOWN.items()}
    content = columnar_file(arrow, "parquet", arrow.table(texts | columns))
    return flights_of(open_source(written(folder, content)))


@pytest.mark.parametrize("unit", ["s", "ns"])
def test_durations_are_clocks_and_no_numbers_of_minutes(
    tmp_path: Path, arrow: Any, unit: str
) -> None:
    clock = arrow.array([timedelta(minutes=24)], arrow.duration(unit))
    flight = flight_of(FLOWN | {"DEP_TIME": "0024"})
    assert flights_with(tmp_path, arrow, DEP_TIME=clock) == [flight]
    with pytest.raises(BadRow, match="AIR_TIME '0:24:00': must be a whole number"):
        flights_with(tmp_path, arrow, AIR_TIME=clock)


def test_decimal_numbers_leave_no_doubt_of_what_their_point_means(
    tmp_path: Path, arrow: Any
) -> None:
    """As databases write numbers, whose text would be 8.00 and 1.000."""
    arrival = arrow.array([Decimal(8)], arrow.decimal128(12, 2))
    delay = arrow.array([Decimal(1)], arrow.decimal128(12, 3))
    flight = flight_of(FLOWN | {"ARR_TIME": "0008", "ARR_DELAY": "1"})
    assert flights_with(tmp_path, arrow, ARR_TIME=arrival, ARR_DELAY=delay) == [flight]


@pytest.mark.parametrize("size", [-1, 12])
def test_bytes_that_are_no_text_are_named_where_they_are_used(
    tmp_path: Path, arrow: Any, size: int
) -> None:
    """DuckDB writes intervals as twelve bytes."""
    blob = arrow.array([b"\xff" * 12], arrow.binary(size))
    assert len(flights_with(tmp_path, arrow, BLOB=blob)) == 1
    with pytest.raises(BadRow, match=r"row 1: DEP_DELAY '\\udcff.*: must be a whole number"):
        flights_with(tmp_path, arrow, DEP_DELAY=blob)


def test_midnight_in_a_zone_is_the_day_there(tmp_path: Path, arrow: Any) -> None:
    """As pandas has a day after tz_localize."""
    midnight = arrow.array([datetime(2008, 1, 3, 5, tzinfo=UTC)])
    day = midnight.cast(arrow.timestamp("us", "America/New_York"))
    assert flights_with(tmp_path, arrow, FL_DATE=day) == [flight_of(FLOWN)]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_a_damaged_columnar_file_is_refused(tmp_path: Path, arrow: Any, form: str) -> None:
    content = columnar_file(arrow, form, [typed(row) for row in ROWS])
    broken = content.replace(b"Tampa", b"T\xff\x81pa")
    for damaged in (broken, content[:-9], content[: len(content) // 2], content[:4]):
        with pytest.raises(InvalidInput, match=r"is damaged|has no column"):
            flights_of(open_source(written(tmp_path, damaged, "flights")))
    table = arrow.Table.from_pylist([], arrow.schema([(name, arrow.string()) for name in FLOWN]))
    with pytest.raises(InvalidInput, match="has columns but no rows"):
        flights_of(open_source(written(tmp_path, columnar_file(arrow, form, table), "flights")))


def test_a_bad_row_of_parquet_is_named_by_its_number(tmp_path: Path, arrow: Any) -> None:
    rows = [typed(FLOWN)] * 2500
    rows[2222] = typed(FLOWN) | {"CANCELLED": 3}
    path = written(tmp_path, columnar_file(arrow, "parquet", rows), "flights")
    with pytest.raises(BadRow, match=r"^flights, row 2223: CANCELLED 3: must be between 0 and 1"):
        flights_of(open_source(path))
