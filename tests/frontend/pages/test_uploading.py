"""Files of flights: good, bad, empty, too long, in other letters; in one piece and in parts."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import count

import msgspec
import pytest
from flask.testing import FlaskClient

from backend.base.files import FileLock
from backend.chain.fields import FIELD_NAMES
from backend.chain.flight import Flight, as_mapping
from backend.ledger.file_imports import FileImports
from backend.sources.kinds import BTS_TABLE, KINDS, MAY_BE_EMPTY, UnknownKindError, reading_of
from frontend.adding.uploads import UploadedFile
from frontend.field_labels import TEXTS
from tests.api.processes import ROOT
from tests.api.worlds import generated, settings_for
from tests.flights import changed, csv_of, csv_of_days
from tests.frontend.pages.reading import text_of
from tests.frontend.writing import FLIGHTS, Visitor, errors_beside, notice, visiting
from tests.sources.samples import archive

EXPO = (
    "Year,Month,DayofMonth,UniqueCarrier,FlightNum,Origin,Dest,DepTime,DepDelay,ArrTime,ArrDelay,"
    "Cancelled,AirTime\n"
)
EXPO += f"2008,1,3,WN,335,IAD,TPA,2003,8,2211,-14,0,116\n{EXPO}2008,1,4,WN,336,IAD,TPA,,,,,1,5\n"
carriers = count(90_000)


def new_flights() -> list[Flight]:
    """30 flights of a carrier that the ledger does not have."""
    carrier = next(carriers)
    return [changed(flight, OP_CARRIER_AIRLINE_ID=carrier) for flight in generated(30)]


def new_csv() -> bytes:
    return csv_of(new_flights()).encode()


def new_ndjson() -> bytes:
    return b"".join(json.dumps(as_mapping(flight)).encode() + b"\n" for flight in new_flights())


def test_rows_that_the_ledger_knows_or_contradicts_are_not_bad() -> None:
    report = {"accepted": 1, "already_there": 2, "conflicts": 3, "rejected": 4}
    file = UploadedFile({"report": report})
    assert (file.good, file.rows, file.share_bad) == (6, 10, 0.4)


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    with visiting(tmp_path_factory.mktemp("uploading")) as visitor:
        yield visitor


def lines_of(body: bytes) -> list[bytes]:
    return body.splitlines(keepends=True)


def spoilt(body: bytes, *numbers: int) -> bytes:
    """`body` with an x before these lines, which makes them no flights."""
    lines = lines_of(body)
    for number in numbers:
        lines[number - 1] = b"x" + lines[number - 1]
    return b"".join(lines)


# --- in one piece


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (new_csv, "flights.csv"),
        (lambda: b"\xef\xbb\xbf" + new_ndjson(), "no ending"),
    ],
)
def test_a_file_is_checked_and_added_once(
    visitor: Visitor, make: Callable[[], bytes], name: str
) -> None:
    body = make()
    before = visitor.service.sealed()
    page = visitor.upload(body, name)
    assert page.status_code == 200
    assert "All 30 rows are flights." in page.text
    assert visitor.service.sealed() == before
    added = text_of(visitor.go_on(page).text)
    last = before + 29
    assert f"30 flights were added, the first as transaction {before} and the last" in added
    assert f"as transaction {last}." in added
    for number in (before, last):
        assert f'href="/receipts/{number}"' in visitor.client.get(page.request.path).text
    again = text_of(visitor.upload(body, name).text)
    assert f"30 of them are in the ledger already (the first as transaction {before} )" in again
    assert "Add 30 flights" not in again
    assert visitor.service.sealed() == before + 30


def test_a_file_that_comes_while_another_is_checked_need_not_be_sent_again(
    visitor: Visitor,
) -> None:
    imports = FileImports(settings_for(visitor.service.folder, min_free_bytes=0))
    other = imports.begin("other.csv", 1)
    with FileLock(imports.path(other.IMPORT_ID)):
        imports.note(msgspec.structs.replace(other, state="checking"))
        page = visitor.upload(new_csv())
    assert "The file has arrived, and was not checked yet." in page.text
    assert "All 30 rows are flights." in visitor.go_on(page, action="check").text


def test_more_than_a_few_bad_rows_are_left_out_if_a_box_is_ticked(visitor: Visitor) -> None:
    before = visitor.service.sealed()
    flights = csv_of(generated(90)[60:70]).encode()
    page = visitor.upload(spoilt(flights, 4))
    assert page.status_code == 200
    assert "9 rows are flights, 1 is not." in page.text
    assert "or leave this row out." in page.text
    assert "Leave 1 row out and add 9 flights" in page.text
    refused = visitor.go_on(page)
    assert "many rows are bad and the box below was not ticked" in notice(refused)
    assert "A bad row can mean that the whole file is misread" in refused.text
    assert (
        'name="leave_out" required> Leave out 1 of 10 rows (10.0\N{NO-BREAK SPACE}%)'
        in refused.text
    )
    assert visitor.service.sealed() == before
    added = text_of(visitor.go_on(refused, leave_out="on").text)
    assert "Line What is wrong Field Value 4 must be a whole number" in added
    assert "9 flights were added" in added
    assert "1 row was left out." in added
    assert visitor.service.sealed() == before + 9


def test_a_few_bad_rows_are_left_out_without_a_box(visitor: Visitor) -> None:
    before = visitor.service.sealed()
    rows = [changed(flight, OP_CARRIER_AIRLINE_ID=77_777) for flight in generated(100)]
    page = visitor.upload(spoilt(csv_of(rows).encode(), 4))
    assert "leave_out" not in page.text
    assert "99 flights were added" in visitor.go_on(page).text
    assert visitor.service.sealed() == before + 99


def test_what_is_there_or_contradicts_is_left_out_and_said(visitor: Visitor) -> None:
    new = generated(120)[110:115]
    late = changed(FLIGHTS[4], ORIGIN_CITY_NAME="Elsewhere, XX")
    before = visitor.service.sealed()
    page = visitor.upload(csv_of([*FLIGHTS[:3], late, *new]).encode())
    text = text_of(page.text)
    assert "3 of them are in the ledger already (the first as transaction 0 ) or repeat" in text
    assert (
        "1 flight contradicts earlier records in the ledger or in the file, and is left out" in text
    )
    assert "ORIGIN_CITY_NAME Elsewhere, XX, earlier " in text
    assert "( transaction 4 in block 1 )" in text
    added = text_of(visitor.go_on(page).text)
    assert "5 flights were added" in added
    assert "3 flights were in the ledger already, or repeated another row." in added
    assert "1 flight contradicted earlier records, and stayed out." in added
    assert visitor.service.sealed() == before + 5
    page = visitor.upload(csv_of(FLIGHTS[:1]).encode())
    assert "The row is a flight. It is in the ledger already" in text_of(page.text)
    assert 'value="add"' not in page.text


def test_of_many_contradictions_the_first_are_shown(visitor: Visitor) -> None:
    rows = [changed(flight, OP_CARRIER_AIRLINE_ID=66_666) for flight in generated(30)]
    visitor.added(csv_of(rows).encode())
    late = [changed(row, ORIGIN_CITY_NAME="Elsewhere, XX") for row in rows]
    new = changed(rows[0], OP_CARRIER_AIRLINE_ID=66_667)
    page = visitor.upload(csv_of([*late, new]).encode())
    for shown in (page, visitor.go_on(page)):
        assert shown.text.count("Elsewhere, XX") >= 20
        assert "<li>and 10 more</li>" in shown.text


def test_all_bad_rows_are_counted_and_the_first_are_shown(visitor: Visitor) -> None:
    flights = csv_of(generated(150)).encode()
    page = visitor.upload(spoilt(flights, *range(2, 152)))
    assert "0 rows are flights, 150 are not." in page.text
    assert page.text.count('<td class="n">') == 100
    assert "the first 100" in page.text
    assert '<td class="n">4</td>' in page.text
    assert "<code>x2" in page.text
    assert "must be a whole number" in page.text
    assert 'value="add"' not in page.text


def test_a_bad_row_of_an_archive_is_named_with_its_table_and_is_no_markup(
    visitor: Visitor,
) -> None:
    bad = lines_of(new_csv())[0] + b"<script>" + b",".join([b"x"] * 19)
    zipped = archive({"a.csv": csv_of(generated(30)), "b.csv": bad})
    page = visitor.upload(zipped, "<b>.zip").text
    shown = text_of(page)
    assert "30 rows are flights, 1 is not." in shown
    assert re.search(r"Table Line What is wrong Field Value <b>.zip/b.csv 2 must be", shown)
    assert "<script>" not in page.partition("</head>")[2]


def test_an_unreadable_file_is_refused(visitor: Visitor) -> None:
    """`tests/sources/test_formats.py` has all that is refused."""
    before = visitor.service.sealed()
    page = visitor.upload(b"a,b\n1,2\n")
    assert page.status_code == 422
    assert notice(page).startswith("It has no column of a flight, but 'a, b'; delete")
    assert visitor.service.sealed() == before


@pytest.mark.parametrize(
    ("body", "name", "message"),
    [(b"", "", "Please choose a file."), (b"", "a.csv", "It is empty; download it again.")],
)
def test_a_file_has_to_be_chosen(visitor: Visitor, body: bytes, name: str, message: str) -> None:
    page = visitor.upload(body, name)
    assert page.status_code == 422
    assert errors_beside(page) == {"file": message}


def test_a_part_that_leaves_a_gap_is_refused_with_the_reason(visitor: Visitor) -> None:
    sent = visitor.part(NAME="a.csv", SIZE=2).get_json()["IMPORT_ID"]
    refused = visitor.part(b"x", IMPORT_ID=sent, OFFSET=1)
    assert "cannot begin here" in refused.get_json()["detail"]


def test_a_page_of_a_file_that_nobody_sent_is_not_found(visitor: Visitor) -> None:
    page = visitor.client.get(f"/upload/{'0' * 32}")
    assert page.status_code == 404
    assert "files are kept for a day" in page.text


def test_parts_are_to_be_sent_again_while_the_backend_is_away(lonely_pages: FlaskClient) -> None:
    headers = {"Origin": "http://localhost"}
    answer = lonely_pages.post("/upload.json?NAME=a.csv&SIZE=5", headers=headers)
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "5"
    assert answer.get_json()["detail"].count("Nothing is added twice.") == 1


# --- what it was taken for


def test_a_check_shows_what_columns_were_understood_as(visitor: Visitor) -> None:
    empty = EXPO.splitlines()[0].encode()
    page = visitor.upload(archive({"2008.csv": EXPO.encode(), "2009.csv": empty}), "expo.zip")
    text = text_of(page.text)
    assert "The file was taken for: hflights (the package of this name (R))." in text
    assert "1 cell of AIR_TIME was emptied, because its value cannot be right." in text
    assert "1 line was left out, which repeats the header." in text
    assert "1 file without rows was left out." in text
    assert "Field In the file Row 1 Row 2" in text
    assert "FL_DATE from Year and Month and DayofMonth 2008-01-03 2008-01-04" in text
    assert "OP_CARRIER_AIRLINE_ID from UniqueCarrier and FL_DATE (table of carriers) 19393" in text
    assert "ORIGIN_AIRPORT_ID stays empty" in text
    assert "DEP_TIME DepTime 2003" in text
    assert "2 flights were added" in visitor.go_on(page).text


def test_bad_rows_of_cancelled_flights_are_counted(visitor: Visitor) -> None:
    bad = EXPO.replace("WN,336", "XQX,336") + "2008,1,5,XQX,336,IAD,TPA,2003,8,,,0,\n"
    text = text_of(visitor.upload(bad.encode(), "2008.csv").text)
    assert "1 row is a flight, 2 are not." in text
    assert "Among these rows are 1 cancelled flight and 1 without an arrival;" in text


def test_days_in_doubt_are_asked_before_anything_is_added(visitor: Visitor) -> None:
    flights = [as_mapping(flight) for flight in new_flights()]
    body = csv_of_days(flights, ["02/03/2019"] * len(flights)).encode()
    before = visitor.service.sealed()
    page = visitor.upload(body)
    assert page.status_code == 422
    assert "Which day is 02/03/2019?" in page.text
    choices = re.findall(r'name="dates" value="([^"]*)" required> ([^<]*)<', page.text)
    assert choices == [
        ("month-first", "Month first: 3 February 2019"),
        ("day-first", "Day first: 2 March 2019"),
    ]
    page = visitor.go_on(page, dates="day-first", action="check")
    assert "Days are written day, month, year." in page.text
    assert "2019-03-02" in page.text
    page = visitor.go_on(page, action="check")
    assert "Which day is 02/03/2019?" in page.text
    page = visitor.go_on(page, dates="year-first", action="check")  # which fits no weekday
    assert "Which day is" not in page.text
    assert "Answer again how days are written" in page.text
    page = visitor.go_on(visitor.go_on(page, action="check"), dates="day-first", action="check")
    assert visitor.service.sealed() == before
    assert "30 flights were added" in visitor.go_on(page).text
    stored = visitor.service.json(f"/transactions/{before}")["transaction"]
    assert stored["FL_DATE"] == "2019-03-02"


# --- what the page says


def test_the_page_says_what_to_get_and_what_to_tick(visitor: Visitor) -> None:
    boxes = TEXTS["bts_boxes"]
    page = text_of(visitor.client.get("/upload").text)
    for path in ("README.md", "docs/how-to/import.md"):  # who has only read README needs them, too
        guide = " ".join((ROOT / path).read_text(encoding="utf-8").split())
        assert " ".join(boxes) in guide
        assert f"{BTS_TABLE} (1987-present)" in guide
    assert reading_of(tuple(boxes)).kind.name == "ready-made month, downloaded since 2018"
    assert " , ".join(boxes) in page
    assert all(f"{kind.name} {kind.source.replace('`', '')}" in page for kind in KINDS)
    for file, what_to_do in TEXTS["refused_files"]:
        assert " ".join(f"{file} {what_to_do}".replace("`", " ").split()) in page


def test_the_columns_are_those_of_the_ledger(visitor: Visitor) -> None:
    columns = TEXTS["columns"]
    assert tuple(name for name, *_ in columns) == FIELD_NAMES
    needs = {name: needed for name, _, needed, _ in columns}
    assert {name for name in needs if needs[name] == "No"} == set(MAY_BE_EMPTY)
    for name, needed in needs.items():
        is_optional = needed == "No" or needed.startswith("If the column is there")
        with nullcontext() if is_optional else pytest.raises(UnknownKindError):
            reading_of(tuple(title for title in FIELD_NAMES if title != name))


@pytest.mark.parametrize("ending", ["csv", "ndjson"])
def test_the_sample_works(visitor: Visitor, ending: str) -> None:
    assert f'href="/upload/sample.{ending}"' in visitor.client.get("/upload").text
    sample = visitor.client.get(f"/upload/sample.{ending}")
    assert sample.headers["Content-Disposition"] == f'attachment; filename="flights.{ending}"'
    empty = {"csv": b"4424,,EWR", "ndjson": b'"ORIGIN_AIRPORT_ID": null'}[ending]
    assert empty in sample.get_data()
    month = {"csv": b"-01-", "ndjson": b"-10-"}[ending]  # begin on the same day of the week
    body = sample.get_data().replace(b"2013-01-", b"2013" + month)
    page = visitor.added(body, f"flights.{ending}")
    assert "3 flights were added" in page.text
    number = visitor.service.sealed() - 3
    flights = [visitor.service.json(f"/transactions/{number + i}")["transaction"] for i in range(3)]
    assert [(flight["CANCELLED"], flight["ARR_DELAY"]) for flight in flights] == [
        (0, 11),
        (1, None),
        (0, None),
    ]
