"""What a posted batch holds is read in time and memory that grow with its bytes, not faster."""

import gc
import json
import time
import tracemalloc

import pytest

from backend.base.errors import FlightchainError
from backend.chain.flight import MOST_ERRORS, as_mapping
from backend.sources.posted_batch import ANY, CSV, NDJSON, Batch, batch_of
from backend.sources.source import ARRIVED, CANCELLED, NOT_ARRIVED
from tests.evil_bodies import EVIL, HEADER
from tests.flights import csv_of, flights

BODY_BYTES = 20_000
MOST_TIMES = 4  # as much memory as bytes, besides the body
ROOM_BYTES = 9_000_000  # of what is parsed together, however long the body is
MOST_FLIGHTS = 5_000
SLOWEST_S = 4.0  # several times what was measured, but nothing beside a square


@pytest.fixture(scope="module")
def warm() -> None:
    """What is remembered of earlier batches does not count."""
    for kind, make in ((CSV, "short rows that are good"), (NDJSON, "numbers as long texts")):
        batch_of(EVIL[make](10_000), kind, MOST_FLIGHTS)


@pytest.mark.slow
@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name, make in EVIL.items()
        for kind in (ANY, NDJSON)  # ANY finds out what is CSV, and knows an object by its brace
        if kind == ANY or make(1000)[:1] != b"{"
    ],
)
def test_memory_and_time_are_bounded_by_the_body(name: str, kind: str) -> None:
    body = EVIL[name](BODY_BYTES)
    tracemalloc.start()
    started = time.process_time()
    try:
        batch: Batch | None = batch_of(body, kind, MOST_FLIGHTS, stops=False)
    except FlightchainError:
        batch = None
    finally:
        took_s = time.process_time() - started
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < MOST_TIMES * len(body) + ROOM_BYTES
    assert took_s < SLOWEST_S * len(body) / BODY_BYTES
    assert batch is None or len(batch.errors) <= MOST_ERRORS


@pytest.mark.parametrize(
    "place", ["AIR_TIME", "AIR_TIME,N\ud800", "Atlanta"], ids=["title", "more titles", "city"]
)
@pytest.mark.parametrize("coding", ["utf-16", "utf-8"])
def test_broken_characters_in_a_body_are_refused_in_a_line_or_shown_in_utf_8(
    place: str, coding: str
) -> None:
    """In UTF-8 a lone surrogate is three bytes that are none; in UTF-16 it is one."""
    extra = "" if place.endswith("TIME") or place == "Atlanta" else ",1"
    text = csv_of(flights(3)).replace("\n", f"{extra}\n").replace(f"AIR_TIME{extra}", place)
    text = text.replace("AIR_TIME\n", "AIR_TIME\ud800\n") if place == "AIR_TIME" else text
    body = text.encode(coding, "surrogatepass")
    try:
        batch = batch_of(body, ANY, MOST_FLIGHTS, stops=False)
    except FlightchainError as error:
        output = str(error)
    else:
        understood = batch.understood
        output = (
            f"{understood}{understood.reading.columns}{[str(e) for e in batch.errors]}"
            if understood
            else ""
        )
    assert len(output.encode().splitlines()) == 1
    assert ("begins like UTF-16 but is not" in output) == (coding == "utf-16" and "\ud800" in text)


GOOD_NDJSON = json.dumps(as_mapping(flights(1)[0])).encode() + b"\n"
GOOD_CSV = b"2008,4,2008-01-03,1,1,,IAD,a,b,,TPA,c,d,,,,,0,\n"


@pytest.mark.parametrize(
    ("kind", "bad", "good", "header"),
    [
        (NDJSON, b"{}\n", GOOD_NDJSON, b""),
        (NDJSON, b'{"YEAR":"x", "a":1}\n', GOOD_NDJSON, b""),
        (NDJSON, GOOD_NDJSON.replace(b'"YEAR": 2', b'"YEAR": 3'), GOOD_NDJSON, b""),
        (CSV, b"x\n", GOOD_CSV, HEADER),
        (CSV, b"," * 17 + b"x\n", GOOD_CSV, HEADER),
        (CSV, b"x,\n\n", GOOD_CSV, HEADER),
    ],
)
def test_bad_rows_are_counted_on_when_enough_are_described(
    kind: str, bad: bytes, good: bytes, header: bytes
) -> None:
    body = header + good + 2500 * bad + good + 2500 * bad + good
    batch = batch_of(body, kind, MOST_FLIGHTS, stops=False)
    assert (len(batch.flights), len(batch.errors)) == (3, MOST_ERRORS)
    assert (batch.rejected, batch.rows_read, batch.is_whole) == (5000, 5003, True)
    first = 2 + header.count(b"\n")
    assert [error.row for error in batch.errors[:2]] == [first, first + bad.count(b"\n")]


def test_what_became_of_the_flights_in_bad_rows_is_counted() -> None:
    lines = (b"x\n", GOOD_CSV.replace(b",0,\n", b",1,\n").replace(b"IAD", b"?"), GOOD_CSV)
    batch = batch_of(HEADER + b"".join(lines), CSV, MOST_FLIGHTS, stops=False)
    assert (batch.rejected, batch.states) == (2, {"": 1, CANCELLED: 1})


@pytest.mark.parametrize(
    ("delay", "cancelled", "state"),
    [
        ("-2", "0", ARRIVED),
        ("-2", "Operated", ARRIVED),
        ("", "0", NOT_ARRIVED),
        ("-2 min", "0", ""),
        ("", "Operated", ""),
        ("", "Total", ""),
        ("", "Cancelled", CANCELLED),
        ("", "1", CANCELLED),
    ],
)
def test_nothing_is_said_to_have_become_of_a_flight_that_cannot_be_read(
    delay: str, cancelled: str, state: str
) -> None:
    line = f"2008,4,2008-01-03,19393,1,,IAD,,b,,TPA,c,d,1,,,{delay},{cancelled},\n"
    assert batch_of(HEADER + line.encode(), CSV, MOST_FLIGHTS).states == {state: 1}


@pytest.mark.parametrize(("kind", "header"), [(NDJSON, b""), (CSV, HEADER)])
def test_a_batch_is_read_no_further_than_a_hundred_errors(kind: str, header: bytes) -> None:
    batch = batch_of(header + b"x\n" * 10_000, kind, MOST_FLIGHTS)
    assert not batch.is_whole
    assert batch.rejected == batch.rows_read <= 2000
    assert batch_of(header + b"x\n" * 500, kind, MOST_FLIGHTS).is_whole


@pytest.mark.parametrize(("line", "good", "bad"), [(GOOD_CSV, 1999, 0), (b"x\n", 0, 1999)])
def test_a_batch_is_read_no_further_than_more_rows_than_flights_may_be_pending(
    line: bytes, good: int, bad: int
) -> None:
    batch = batch_of(HEADER + line * 10_000, CSV, 1500, stops=False)
    assert (len(batch.flights), batch.rejected, batch.is_whole) == (good, bad, False)


def test_the_error_of_a_long_line_holds_an_excerpt_of_it() -> None:
    batch = batch_of(EVIL["empty lists"](100_000), NDJSON, MOST_FLIGHTS)
    assert batch.errors[0].field == "a"
    assert len(str(batch.errors[0].value)) <= 200


@pytest.mark.parametrize("start", [b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"])
def test_a_columnar_file_is_said_to_be_taken_in_parts(start: bytes) -> None:
    with pytest.raises(FlightchainError, match=r"Parquet or Arrow file; send it to /upload or by"):
        batch_of(start, ANY, MOST_FLIGHTS)


def test_a_byte_order_mark_is_no_part_of_the_first_flight() -> None:
    assert len(batch_of(b"\xef\xbb\xbf" + GOOD_NDJSON, NDJSON, MOST_FLIGHTS).flights) == 1


@pytest.mark.parametrize(("kind", "header"), [(NDJSON, b""), (CSV, HEADER)])
def test_work_stops_when_a_pause_ends_it(kind: str, header: bytes) -> None:
    """CSV in which no row has a day is read to its end for the order of its days."""
    paused: list[int] = []

    def pause() -> None:
        paused.append(1)
        if len(paused) == 3:
            raise ConnectionError

    with pytest.raises(ConnectionError):
        batch_of(header + b"x\n" * 1_000_000, kind, MOST_FLIGHTS, stops=False, pause=pause)
    assert len(paused) == 3


@pytest.mark.parametrize("kind", [NDJSON, ANY])
def test_ndjson_of_any_kind_is_read_as_a_file_of_it(kind: str) -> None:
    row = {"year": 2013, "month": 1, "day": 1, "dep_time": 517, "dep_delay": 2, "arr_time": 830}
    row |= {"arr_delay": 11, "flight": 1545, "air_time": 227}
    line = json.dumps({**row, "carrier": "UA", "origin": "EWR", "dest": "IAH"})
    batch = batch_of(line.encode(), kind, MOST_FLIGHTS)
    assert batch.errors == []
    assert batch.flights[0][:7] == (2013, 2, "2013-01-01", 19977, 1545, None, "EWR")


def test_no_long_cell_is_remembered_when_its_batch_is_answered() -> None:
    titles = HEADER.decode().lower().replace("origin_airport_id", "other").strip()
    good = csv_of(flights(4)).splitlines()[1:]
    long = "".join(map(chr, range(0x1F600, 0x1F640))) * 400
    most = 2 * len(long.encode())

    def read(number: int) -> None:
        rows = [titles, *good]
        for name in ("FL_DATE", "ORIGIN", "ORIGIN_STATE_NM", "DEST", "DEST_CITY_NAME"):
            row = {**as_mapping(flights(1)[0]), name: f"{long}{name}{number}"}
            rows.append(",".join(f'"{value}"' for value in row.values()))
        batch_of("\n".join(rows).encode(), ANY, MOST_FLIGHTS, stops=False)

    for number in range(5):
        read(number)
    tracemalloc.start()
    try:
        for number in range(5, 25):
            read(number)
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < most
