"""Flights in JSON: an object a line, arrays of objects, and block files of the study."""

import errno
import gzip
import json
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backend.base.errors import InvalidInput
from backend.chain.fields import FIELD_NAMES
from backend.chain.flight import flight_of
from backend.sources import open_source, validated
from backend.sources.formats import opened_records
from backend.sources.json_records import NO_OBJECT
from backend.sources.kinds import KINDS, Kind, reading_of, words
from backend.sources.packed import BLOCK_BYTES, PackedFile
from backend.sources.posted_batch import NDJSON, batch_of
from tests.sources.samples import (
    CANCELLED,
    FLOWN,
    ROWS,
    bad_rows,
    flights_of,
    rows_of,
    understood,
    written,
)

FLIGHTS = [flight_of(row) for row in ROWS]
LINES = [json.dumps({"TRANSACTION_ID": n, **row, "BLOCK_HEIGHT": 1}) for n, row in enumerate(ROWS)]
LINES_FORM, ARRAY_FORM, POSTED_FORM = "lines", "array", "posted"
COMPLETE = '{"complete":true,"count":3,"as_of":{"height":1}}'
STUDYS_OWN = {"TRANSACTION_ID": "17", "timestamp": "1600000000.5", "transaction_id": 17}


def text(*lines: str) -> bytes:
    return "\n".join([*lines, ""]).encode()


def block(*transactions: object, **others: object) -> str:
    return json.dumps({"index": 3, "transactions": transactions, "nonce": 12} | others)


def numbered(number: int) -> dict[str, str]:
    return FLOWN | {"OP_CARRIER_FL_NUM": str(number)}


@pytest.mark.parametrize(
    "content",
    [
        text(*LINES),
        text(*LINES, COMPLETE),
        text(*LINES).rstrip(b"\n"),
        text(*LINES).replace(b"\n", b"\r\n"),
        text("", *LINES[:1], " ", *LINES[1:], COMPLETE, ""),
        b"\xef\xbb\xbf" + text(*LINES),
        text(*LINES).decode().encode("utf-16"),
        gzip.compress(text(*LINES)),
        json.dumps(ROWS).encode(),
        b"\xef\xbb\xbf\n" + json.dumps(ROWS, indent=2).encode() + b"\r\n ",
        json.dumps([row | STUDYS_OWN for row in ROWS]).encode(),
        block(*(row | STUDYS_OWN for row in ROWS)).encode(),
        b"\n " + block(*ROWS).encode(),
        json.dumps({"transactions": ROWS}, indent=4).encode(),
        json.dumps({"status": "ok", "data": ROWS, "next": None}).encode(),
        json.dumps({"meta": {"ORIGIN": ["IAD"], "of": [1, {"a": "]"}]}, "data": ROWS}).encode(),
        json.dumps({"columns": [{"id": "YEAR"}], "[": "{", "rows": ROWS}, indent=1).encode(),
        json.dumps({"schema": {"fields": [{"name": n} for n in FLOWN]}, "data": ROWS}).encode(),
        json.dumps({"names": [{"id": 1}], "SELECT * FROM f": ROWS}, indent=1).encode(),
    ],
)
def test_every_object_is_a_flight(tmp_path: Path, content: bytes) -> None:
    source = open_source(written(tmp_path, content, "flights.csv"))
    assert flights_of(source) == FLIGHTS
    assert source.progress() == 1


@pytest.mark.parametrize("content", ["[]", " [ ]\n", '{"complete":true,"count":0}\n', block()])
def test_json_without_flights_is_refused_as_a_header_without_rows_is(
    tmp_path: Path, content: str
) -> None:
    with pytest.raises(InvalidInput, match="has no flights; download it again"):
        open_source(written(tmp_path, content, "none"))


def test_numbers_and_nulls_do_as_well_as_strings(tmp_path: Path) -> None:
    row: dict[str, Any] = FLOWN | {"ARR_DELAY": -14.0, "CANCELLED": 0, "AIR_TIME": None}
    expected = flight_of(row)
    for number, content in enumerate((json.dumps(row), json.dumps([row]), block(row))):
        path = written(tmp_path, content.replace("null", "NaN"[: 3 * number] or "null"), "flights")
        if number < 2:  # Python writes NaN where a value is missing
            assert flights_of(open_source(path)) == [expected]


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ((*LINES[:2], COMPLETE), "has 2 flights, but its last line says 3; download it again"),
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
        ("{", "line 2: line '{': is not JSON"),
        ("[1]", "line 2: line '[1]': must be a JSON object"),
        ("[" * 5000, "line 2: line '[["),
        (LINES[1][:-1] + ', "YEAR": 2008}', "line 2: YEAR 2008: is given twice"),
        ('{"a": "' + "x" * 70_000 + '"}', "is longer than 65536 bytes"),
        ('{"FL_DATE":"2008-01-03"}', "line 2: YEAR is missing"),
        (LINES[0].replace('"0"', "[]", 1), "line 2: CANCELLED []: must be a whole number"),
        (
            LINES[0].replace('"CANCELLED"', '"CANCELED"'),
            "line 2: CANCELED '0': is a member that the first rows do not have",
        ),
    ],
)
def test_one_bad_line_is_named_and_spoils_no_other(
    tmp_path: Path, line: str, complaint: str
) -> None:
    lines = [LINES[0]] * 2500
    lines[1] = line
    if "CANCELED" in line:  # the names are those of the first thousand lines
        lines[1], lines[2000] = lines[2000], lines[1]
        complaint = complaint.replace("line 2:", "line 2001:")
    good, (message,) = bad_rows(written(tmp_path, text(*lines), "flights"))
    assert good == 2499
    assert complaint in message
    assert len(message) < 250


def test_objects_may_leave_out_what_is_empty_until_late(tmp_path: Path) -> None:
    early = {name: value for name, value in CANCELLED.items() if value}
    path = written(tmp_path, text(*[json.dumps(early)] * 1500, json.dumps(FLOWN)), "flights")
    *_, cancelled, last = flights_of(open_source(path))
    assert (cancelled, last) == (FLIGHTS[1], FLIGHTS[0])


def of_kind(kind: Kind, **values: object) -> dict[str, object]:
    """An object with the titles of a kind; what is None is left out."""
    meanings: dict[str, object] = dict.fromkeys(["MONTH", "DAY"], None)
    meanings |= FLOWN | {"MONTH": 1, "DAY": 3, "CARRIER": "WN", "DIVERTED": 0} | values
    titles = {title: meanings.get(meaning) for meaning, title in kind.pairs}
    titles |= dict.fromkeys(set(words(kind.marks)) - titles.keys(), "")
    return {title: value for title, value in titles.items() if value is not None}


NOTHING = dict.fromkeys(["DEP_TIME", "DEP_DELAY", "ARR_TIME", "ARR_DELAY", "AIR_TIME"])
NOT_ARRIVED = dict.fromkeys(["ARR_TIME", "ARR_DELAY", "AIR_TIME"])


@pytest.mark.parametrize("form", [LINES_FORM, ARRAY_FORM, POSTED_FORM])
@pytest.mark.parametrize(
    "kind", [k for k in KINDS if not k.is_cancelled_without_departure], ids=lambda k: k.name
)
def test_cancelled_flights_alone_lack_nothing(tmp_path: Path, kind: Kind, form: str) -> None:
    rows = [of_kind(kind, CANCELLED=1, OP_CARRIER_FL_NUM=n, **NOTHING) for n in range(1, 4)]
    if "DIVERTED" in dict(kind.pairs):
        rows.append(of_kind(kind, DIVERTED=1, OP_CARRIER_FL_NUM=7, **NOT_ARRIVED))
    lines = [*map(json.dumps, rows)]
    if form == POSTED_FORM:
        flights = [*batch_of(text(*lines), NDJSON, 10).flights]
    else:
        content = text(*lines) if form == LINES_FORM else json.dumps(rows)
        source = open_source(written(tmp_path, content, "flights"))
        flights = flights_of(source)
        kind_of_all = reading_of(tuple(of_kind(kind))).kind
        assert understood(source).reading.kind is kind_of_all
    assert [flight[13] for flight in flights][:3] == [None] * 3
    assert len(flights) == len(rows)


@pytest.mark.parametrize(
    "title", ["DEPARTURE_TIME", "DEPARTURE_DELAY", "ARRIVAL_TIME", "ARRIVAL_DELAY"]
)
def test_a_column_that_flights_must_have_is_not_empty_for_all(tmp_path: Path, title: str) -> None:
    (kind,) = (kind for kind in KINDS if kind.name == "2015 Flight Delays")
    rows = [of_kind(kind), of_kind(kind, CANCELLED=1, **NOTHING)]
    assert len(flights_of(open_source(written(tmp_path, json.dumps(rows), "all")))) == 2
    del rows[0][title]
    with pytest.raises(InvalidInput, match="lacks the columns"):
        open_source(written(tmp_path, json.dumps(rows), "lacking"))


@pytest.mark.parametrize(
    ("values", "late"),
    [
        ({"CANCELLED": 1, **NOTHING}, {"CANCELLATION_REASON": "B"}),
        ({"DIVERTED": 1, **NOT_ARRIVED}, {"DIV_AIRPORT": "ORD"}),
    ],
)
def test_a_flight_without_times_may_have_names_of_its_own(
    tmp_path: Path, values: dict[str, object], late: dict[str, object]
) -> None:
    (kind,) = (kind for kind in KINDS if kind.name == "2015 Flight Delays")
    rows = [of_kind(kind)] * 1000 + [of_kind(kind, **values) | late, of_kind(kind) | late]
    assert bad_rows(written(tmp_path, json.dumps(rows), "late")) == (1002, [])
    rows[-1].pop("ARRIVAL_DELAY")
    assert bad_rows(written(tmp_path, json.dumps(rows), "late"))[0] == 1001


def test_a_part_with_cancelled_flights_alone_is_not_to_be_left_out(tmp_path: Path) -> None:
    (kind,) = (kind for kind in KINDS if kind.name.startswith("nycflights"))
    written(tmp_path, json.dumps([of_kind(kind), of_kind(kind)]), "part-1.json")
    written(tmp_path, json.dumps([of_kind(kind, **NOTHING)]), "part-2.json")
    with pytest.raises(InvalidInput, match=r"part-2\.json': lacks the columns") as caught:
        open_source(tmp_path)
    assert "remove it" not in str(caught.value)


@pytest.mark.parametrize("form", [LINES_FORM, ARRAY_FORM])
def test_a_name_that_comes_late_and_means_nothing_is_not_used(tmp_path: Path, form: str) -> None:
    later = json.dumps(FLOWN | {"CANCELLATION_CODE": "A", "x\ud800": math.nan})
    objects = [json.dumps(FLOWN)] * 1500 + [later]
    content = "\n".join(objects) if form == LINES_FORM else f"[{','.join(objects)}]"
    assert len(flights_of(open_source(written(tmp_path, content, "flights")))) == 1501


@pytest.mark.parametrize("name", ["AirTime", "AIR_TIM"])
def test_a_name_that_comes_late_and_may_mean_something_is_a_bad_row(
    tmp_path: Path, name: str
) -> None:
    late = {n: value for n, value in FLOWN.items() if n != "AIR_TIME"} | {name: "116"}
    lines = [json.dumps(FLOWN)] * 1000 + [json.dumps(late)]
    good, (message,) = bad_rows(written(tmp_path, text(*lines), "flights"))
    assert good == 1000
    assert f"line 1001: {name} '116': is a member that the first rows do not have" in message


def test_an_array_is_read_piece_by_piece(tmp_path: Path) -> None:
    rows = [*map(numbered, range(1, 2000)), FLOWN | {"YEAR": "x"}, 7, numbered(2002)]
    for indent in (None, 1):
        path = written(tmp_path, json.dumps(rows, indent=indent), "flights.json")
        assert path.stat().st_size > 3 * BLOCK_BYTES
        good, messages = bad_rows(path)
        assert good == 2000
        assert messages == [
            "flights.json, object 2000: YEAR 'x': must be a whole number",
            f"flights.json, object 2001: object 7: {NO_OBJECT}",
        ]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (json.dumps(ROWS)[:-1], "ends too early, after 3 objects; download it again"),
        (json.dumps(ROWS)[:-30], "ends too early, after 2 objects; download it again"),
        (json.dumps(ROWS) + "[]", "is not JSON after its list of flights"),
        (
            "[" + " " * (2 * BLOCK_BYTES) + "]",
            "has more than [0-9,]+ bytes without a flight",
        ),
        (json.dumps(ROWS) + " " * (2 * BLOCK_BYTES) + "!", "bytes after its list of flights"),
        (
            json.dumps({"transactions": ROWS, "log": "x" * (2 * BLOCK_BYTES)}),
            "has more than [0-9,]+ bytes after its list of flights; remove them",
        ),
        (json.dumps(ROWS * 900).replace("}", "]", 1), "object 1: .*is not JSON"),
        ("[" * 1_000_000, "object 1: .*is not JSON"),
        ('[{"a": "' + "x" * 1_000_000, "object 1: .*is not JSON"),
        ("[[1, 2], [3, 4]]", "is JSON without a list of flights; .*orient='records'"),
        (json.dumps(ROWS).replace("}, {", "} {"), r"object 2: .*is not JSON \(a comma is missing"),
        (
            json.dumps(ROWS).replace("}, {", "},, {"),
            r"object 2: .*is not JSON \(a comma is missing",
        ),
        (json.dumps(ROWS)[:-1] + ",]", r"object 4: .*is not JSON"),
        (
            "[" + ",\n".join([LINES[0]] * 3000 + [LINES[0] + "\n" + LINES[0]]) + "]",
            "object 3002: .*comma",
        ),
    ],
)
def test_an_array_that_is_none_is_refused(tmp_path: Path, content: str, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        flights_of(open_source(written(tmp_path, content, "flights.json")))


AFTER_A_BLOCK = "is not JSON after its list of flights"
CUT_OFF = "ends too early, after"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"transactions": [', f"{CUT_OFF} 0 objects"),
        ('{"transactions": [{"YEAR": 1},', f"{CUT_OFF} 1 objects"),
        ('{"a":' * 100_000, "is JSON without a list of flights"),
        ('{"transactions": [{"YEAR": ' + "9" * 5000 + "}]}", "is not JSON"),
        (b'{"transactions":\n["\xff"]}', "is JSON without a list of flights"),
        ('{"transactions":\n[{"YEAR": 1 2}]}', "is not JSON"),
        (block(FLOWN) + "\n" + block(FLOWN), AFTER_A_BLOCK),
        (block(FLOWN).rstrip()[:-1] + ", garbage}", AFTER_A_BLOCK),
        (block(FLOWN).rstrip()[:-1], f"{CUT_OFF} 1 objects"),
        (block(FLOWN).encode() + b"\xc3", AFTER_A_BLOCK),
        ('{"transactions": [], "transactions": []}', AFTER_A_BLOCK),
        ('{"error":\n"none today"}', "is JSON without a list of flights; .*NDJSON"),
        ('{"transactions": "none"}', "is JSON without a list of flights"),
        ('{"error": "none today", "status": 404}', "is JSON without a list of flights"),
        (json.dumps({name: {"0": cell} for name, cell in FLOWN.items()}), ".*orient='records'"),
        (json.dumps({"0": FLOWN, "1": FLOWN}), ".*orient='records'"),
        (json.dumps(dict.fromkeys(range(300), FLOWN)), ".*orient='records'"),
        (json.dumps({"value": [{"a": 1}] * 300}), ".*orient='records'"),
        (b"{" + b" " * (2 * BLOCK_BYTES), "is JSON without a list of flights"),
    ],
)
def test_what_is_no_block_is_refused(tmp_path: Path, content: str | bytes, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=rf"7\.json.*: {complaint}"):
        flights_of(open_source(written(tmp_path, content, "7.json")))


def test_a_folder_below_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, block(), "1.json")
    (tmp_path / "below").mkdir()
    listed = os.scandir

    def refusing(path: str) -> Iterator[os.DirEntry[str]]:
        if path.endswith("below"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(
        InvalidInput, match="folder 'below': cannot be read \\(Permission denied\\)"
    ):
        open_source(tmp_path)


def test_long_blocks_come_in_batches(tmp_path: Path) -> None:
    path = written(tmp_path, block(*map(numbered, range(1, 2502))))
    batches = list(validated(open_source(path)))
    assert [len(batch[0]) for batch in batches] == [1000, 1000, 501]
    assert [row[4] for row in rows_of(batches)] == list(range(1, 2502))


def test_bad_transactions_are_named_by_file_and_number(tmp_path: Path) -> None:
    written(tmp_path, block(FLOWN), "1.json")
    lacking = {name: value for name, value in FLOWN.items() if name != "FL_DATE"}
    flags = FLOWN | {"CANCELLED": [0]}
    written(tmp_path, block(*[FLOWN] * 1000, lacking, 7, FLOWN, flags), "2.json")
    place = f"{tmp_path.name}/2.json, object"
    assert bad_rows(tmp_path) == (
        1002,
        [
            f"{place} 1001: FL_DATE is missing; this field is required",
            f"{place} 1002: object 7: {NO_OBJECT}",
            f"{place} 1004: CANCELLED [0]: must be a whole number",
        ],
    )


def test_titles_of_another_table_are_the_names_of_its_members(tmp_path: Path) -> None:
    rows = [{"Year": 2008, "Origin": "IAD"}, {"Year": 2008, "Dest": "TPA"}]
    path = written(tmp_path, text(*map(json.dumps, rows)), "flights")
    with opened_records(PackedFile(path)) as records:
        (batch,) = (batch(tuple(range(len(records.titles)))) for batch in records.batches)
        assert records.titles == ("Year", "Origin", "Dest")
        assert list(batch.columns.values()) == [[2008, 2008], ["IAD", None], [None, "TPA"]]


# --- in a request --------------------------------------------------------------------------------


def test_what_the_service_exported_can_be_posted_back() -> None:
    batch = batch_of(text(*LINES, COMPLETE), NDJSON, 10)
    assert (batch.flights, batch.errors) == (FLIGHTS, [])
    with pytest.raises(InvalidInput, match="has 2 flights, but its last line says 3"):
        batch_of(text(*LINES[1:], COMPLETE), NDJSON, 10)


def test_a_posted_flight_with_a_misspelt_field_is_refused() -> None:
    slip = LINES[0].replace('"ARR_DELAY"', '"AR_DELAY"')
    batch = batch_of(text(*LINES, slip), NDJSON, 10)
    assert len(batch.flights) == 3
    assert [str(error) for error in batch.errors] == [
        "body, line 4: AR_DELAY '-14': is not a field of a flight"
    ]


def test_a_posted_flight_with_many_misspelt_fields_is_refused() -> None:
    slips = re.sub(r'"(ARR_TIME|ARR_DELAY|AIR_TIME)"', r'"\1X"', LINES[0])
    batch = batch_of(text(slips), NDJSON, 10)
    assert [str(error) for error in batch.errors] == [
        "body, line 1: ARR_TIMEX '2211': is not a field of a flight"
    ]


def test_posted_objects_of_another_table_may_have_more_members() -> None:
    extra = {"TAIL_NUM": "N1", "DISTANCE": 7, "MONTH": 1, "QUARTER": 1}
    batch = batch_of(text(*(json.dumps(row | extra) for row in ROWS)), NDJSON, 10)
    assert (batch.flights, batch.errors) == (FLIGHTS, [])
    assert set(extra).isdisjoint(FIELD_NAMES)


def test_posted_objects_of_another_kind_are_no_slips() -> None:
    (kind,) = (kind for kind in KINDS if "2009 to 2018" in kind.name)
    rows = [of_kind(kind), of_kind(kind, CANCELLED=1, **NOTHING)]
    for row in rows:
        del row["Unnamed:27"]
    batch = batch_of(text(*map(json.dumps, rows)), NDJSON, 10)
    assert [flight[3:5] + flight[13:14] for flight in batch.flights] == [
        (19393, 335, "2003"),
        (19393, 335, None),
    ]
    assert batch.errors == []
    extra = batch_of(text(json.dumps(FLOWN | {"TAIL_NUM": "N1"})), NDJSON, 10)
    assert [str(error) for error in extra.errors] == [
        "body, line 1: TAIL_NUM 'N1': is not a field of a flight"
    ]
    misspelt = json.dumps({n: v for n, v in FLOWN.items() if n != "ARR_DELAY"} | {"DIVERTED": 0})
    assert batch_of(text(misspelt), NDJSON, 10).rejected == 1


@pytest.mark.parametrize("extra", [{"items": []}, {"data": [1, 2]}, {"rows": [{"a": 1}]}])
def test_a_flight_with_a_list_of_its_own_is_a_flight(
    tmp_path: Path, extra: dict[str, object]
) -> None:
    lines = [json.dumps(row | extra) for row in ROWS]
    assert flights_of(open_source(written(tmp_path, text(*lines), "flights.json"))) == FLIGHTS
    assert flights_of(open_source(written(tmp_path, text(*lines[:1]), "one.json"))) == FLIGHTS[:1]


@pytest.mark.parametrize(
    ("beside", "reason"),
    [
        ({"items": ROWS[:1]}, "has a second list of flights, 'items'"),
        ({"total": 100}, "has 3 flights, but its member 'total' says 100"),
        ({"total_count": 100}, "has 3 flights, but its member 'total_count' says 100"),
        ({"totalRows": "100"}, "has 3 flights, but its member 'totalRows' says 100"),
        ({"meta": {"page": {"total": 100}}}, "has 3 flights, but its member 'total' says 100"),
        ({"next": "/flights?page=2"}, "has 3 flights, but its member 'next' says that there are m"),
        ({"hasMore": True, "count": 3}, "its member 'hasMore' says that there are more; download"),
        ({"@odata.nextLink": "/flights"}, "member '@odata.nextLink' says that there are more"),
    ],
)
def test_an_answer_that_has_more_flights_is_refused(
    tmp_path: Path, beside: dict[str, object], reason: str
) -> None:
    path = written(tmp_path, json.dumps({"data": ROWS, **beside}), "answer.json")
    with pytest.raises(InvalidInput, match=reason):
        flights_of(open_source(path))


def test_an_answer_without_another_page_is_whole(tmp_path: Path) -> None:
    beside = {"next": None, "hasMore": False, "truncated": "false", "meta": {"total": "3"}}
    path = written(tmp_path, json.dumps({"data": ROWS, **beside}), "answer.json")
    assert flights_of(open_source(path)) == FLIGHTS


def test_objects_of_another_table_are_refused_by_their_names(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps([{"Jahr": 2008, "Ziel": "TPA"}]), "other.json")
    with pytest.raises(InvalidInput, match="has no column of a flight"):
        flights_of(open_source(path))
