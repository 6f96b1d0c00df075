"""Files of flights: good, bad, empty, too long, in other letters; whole and in slices."""

import gzip
import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import count
from typing import Any
from zipfile import ZipFile

import pytest

from backend.chain.fields import FIELD_NAMES
from backend.chain.flight import Flight, as_mapping
from backend.sources.kinds import BTS_TABLE, KINDS, MAY_BE_EMPTY, UnknownKindError, reading_of
from backend.storage.tokens import Tokens
from frontend.context import texts
from tests.api.processes import ROOT
from tests.api.worlds import generated
from tests.flights import changed, csv_of, csv_of_days
from tests.frontend.pages.test_one_question import text_of
from tests.frontend.writing import FLIGHTS, Visitor, errors_beside, hidden, notice, visiting

CSV = csv_of(generated(30)).encode()
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


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    with visiting(tmp_path_factory.mktemp("uploading")) as found:
        yield found


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
    ("made", "name"),
    [
        (new_csv, "flights.csv"),
        (lambda: new_csv().replace(b"\n", b"\r\n"), "windows.csv"),
        (
            lambda: b"\xef\xbb\xbf" + new_csv().replace(b"DEP_TIME", b"DepTime"),
            "of a spreadsheet.txt",
        ),
        (new_ndjson, "flights.ndjson"),
        (lambda: b"\xef\xbb\xbf" + new_ndjson(), "no ending"),
    ],
)
def test_a_file_is_checked_and_added_once(
    visitor: Visitor, made: Callable[[], bytes], name: str
) -> None:
    body = made()
    before = visitor.transactions
    page = visitor.upload(body, name, action="check")
    assert page.status_code == 200
    assert "All 30 rows are flights." in page.text
    assert visitor.transactions == before
    page = visitor.upload(body, name)
    assert page.status_code == 200
    assert f"as transactions {before} to {before + 29}" in page.text
    for number in (before, before + 29):
        assert f'href="/receipts/{number}"' in page.text
    again = visitor.upload(body, name)
    assert f"as transactions {before} to {before + 29}" in again.text
    assert visitor.transactions == before + 30


def test_a_file_is_checked_and_then_added_without_being_chosen_again(visitor: Visitor) -> None:
    before = visitor.transactions
    flights = csv_of(generated(90)[60:70]).encode()
    page = visitor.upload(spoilt(flights, 4), action="check")
    assert page.status_code == 200
    assert "9 rows are flights, 1 is not." in page.text
    assert "Leave 1 row out and add 9 flights" in page.text
    assert visitor.transactions == before
    checked = page.text[page.text.index('name="checked"') - 100 :]
    form = {**hidden(checked), **visitor.hidden("/upload"), "action": "add"}
    page = visitor.client.post("/upload", data=form, content_type="multipart/form-data")
    assert "many rows are bad and the box below was not ticked" in notice(page)
    assert (
        'name="leave_out" required> Leave out 1 of 10 rows (10.0\N{NO-BREAK SPACE}%)' in page.text
    )
    assert visitor.transactions == before
    form["leave_out"] = "on"
    page = visitor.client.post("/upload", data=form, content_type="multipart/form-data")
    assert "9 flights were accepted" in page.text
    assert visitor.transactions == before + 9


def test_a_few_bad_rows_are_left_out_without_a_box(visitor: Visitor) -> None:
    before = visitor.transactions
    rows = [changed(flight, OP_CARRIER_AIRLINE_ID=77_777) for flight in generated(100)]
    body = spoilt(csv_of(rows).encode(), 4)
    assert "leave_out" not in visitor.upload(body, action="check").text
    assert "99 flights were accepted" in visitor.upload(body, on_error="skip").text
    assert visitor.transactions == before + 99


def test_what_was_not_checked_is_checked_and_not_added(visitor: Visitor) -> None:
    before = visitor.transactions
    body = new_csv()
    for digest in ("", "0" * 64):
        page = visitor.upload(body, checked=digest)
        assert page.status_code == 200
        assert "this is not the file that was checked" in notice(page)
        assert "Add 30 flights" in page.text
    assert visitor.transactions == before


def test_a_long_file_is_chosen_again(visitor: Visitor) -> None:
    long = csv_of(generated(2500)).encode()
    page = visitor.upload(long, action="check")
    assert "All 2,500 rows are flights." in page.text
    assert 'id="again" name="file" type="file"' in page.text
    assert 'name="content"' not in page.text


def test_flights_that_are_there_already_are_said_before(visitor: Visitor) -> None:
    page = visitor.upload(csv_of([*FLIGHTS[:3], *generated(95)[90:]]).encode(), action="check")
    assert "3 of them are in the ledger already" in " ".join(page.text.split())
    assert 'as <a href="/transactions/0">transaction 0</a>' in page.text
    assert "Add 5 flights" in page.text
    page = visitor.upload(csv_of(FLIGHTS[:1]).encode(), action="check")
    assert "and is left out." in " ".join(page.text.split())


def test_what_is_there_or_contradicts_is_left_out_and_said(visitor: Visitor) -> None:
    new = generated(120)[110:115]
    late = changed(FLIGHTS[4], ORIGIN_CITY_NAME="Elsewhere, XX")
    body = csv_of([*FLIGHTS[:3], late, *new]).encode()
    before = visitor.transactions
    for action in ("check", "add"):
        text = " ".join(visitor.upload(body, action=action).text.split())
        assert "3 of them are in the ledger already" in text
        assert "1 flight contradicts what the ledger says, and is left out" in text
        assert "<code>ORIGIN_CITY_NAME</code> Elsewhere, XX, stored " in text
        assert '>transaction 4</a> in <a href="/blocks/1">block 1</a>)' in text
    assert "5 flights were accepted" in text
    assert visitor.transactions == before + 5
    everything = csv_of([*FLIGHTS[:3], *new]).encode()
    page = " ".join(visitor.upload(everything, action="check").text.split())
    assert "All 8 rows are flights." in page
    assert "8 of them are in the ledger already" in page
    assert "Add " not in page.partition("8 of them")[2].partition("</section>")[0]
    page = " ".join(visitor.upload(everything).text.split())
    assert "nothing was added" in page
    assert visitor.transactions == before + 5


def test_one_bad_row_keeps_all_out_and_is_shown(visitor: Visitor) -> None:
    before = visitor.transactions
    page = visitor.upload(spoilt(CSV, 4, 9))
    assert page.status_code == 422
    assert "28 rows are flights, 2 are not. Nothing was added." in page.text
    assert '<td class="n">4</td>' in page.text
    assert "<code>x2" in page.text
    assert "must be a whole number" in page.text
    assert visitor.transactions == before


def test_all_bad_rows_are_counted_and_the_first_are_shown(visitor: Visitor) -> None:
    flights = csv_of(generated(150)).encode()
    page = visitor.upload(spoilt(flights, *range(2, 152)))
    assert "0 rows are flights, 150 are not." in page.text
    assert page.text.count('<td class="n">') == 100
    assert "the first 100" in page.text


TWO_TABLES = io.BytesIO()
with ZipFile(TWO_TABLES, "w") as archive:
    archive.writestr("a.csv", CSV)
    archive.writestr("b.csv", CSV)

TWO_ORDERS = re.sub(r"20\d\d-\d\d-\d\d", "13/01/2015", csv_of(generated(1001)))
TWO_ORDERS = TWO_ORDERS.replace("YEAR,DAY_OF_WEEK", "Y,W") + TWO_ORDERS.splitlines()[1]
TWO_ORDERS = "01/14/2015".join(TWO_ORDERS.rsplit("13/01/2015", 1))

WRONG = [  # tests/sources/test_formats.py has all that is refused
    (b"", "It is empty; download it again."),
    (gzip.compress(CSV)[:-9], "It is damaged or incomplete"),
    (TWO_TABLES.getvalue(), "It holds 2 tables; unpack it and send each of them."),
    (b"a,b\n1,2\n", "It does not have any column of a flight, but 'a, b'; if"),
    (CSV.replace(b"CANCELLED", b"CAN: LED"), "It lacks"),
    (TWO_ORDERS.encode(), "Line 1003: FL_DATE '01/14/2015' is a day if written month, day, year,"),
    (CSV + b"1" * 600_000 + b"\n2", "Line 32: It is longer than 262,144 bytes; no row"),
]


@pytest.mark.parametrize(("body", "said"), WRONG)
@pytest.mark.parametrize("action", ["check", "add"])
def test_an_unreadable_file_is_refused(
    visitor: Visitor, body: bytes, said: str, action: str
) -> None:
    before = visitor.transactions
    page = visitor.upload(body, action=action, on_error="skip")
    assert page.status_code == 422
    assert errors_beside(page)["file"].startswith(said)
    assert visitor.transactions == before


def test_a_header_alone_has_no_flights(visitor: Visitor) -> None:
    for action in ("check", "add"):
        page = visitor.upload(lines_of(CSV)[0], action=action)
        assert page.status_code == 200
        assert "This file has no flights." in page.text


def test_a_file_has_to_be_chosen(visitor: Visitor) -> None:
    page = visitor.upload(b"", name="")
    assert page.status_code == 422
    assert errors_beside(page) == {"file": "Please choose a file."}


def test_what_is_typed_into_a_file_is_no_markup(visitor: Visitor) -> None:
    page = visitor.upload(CSV.replace(b"2015", b"<script>", 1), "<b>.csv", action="check")
    assert "<script>" not in page.text.partition("</head>")[2]
    assert "&lt;b&gt;.csv" in page.text


def test_a_file_beyond_the_limit_has_advice(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("limit")
    settings = {"FLIGHTCHAIN_MAX_BODY_BYTES": 2**16, "FLIGHTCHAIN_MEMPOOL_TRANSACTIONS": 40}
    with visiting(folder, "--only-http", FLIGHTCHAIN_MINE_INTERVAL_S=3600, **settings) as visitor:
        for body in (csv_of(generated(1000)).encode(), csv_of(generated(50)).encode()):
            page = visitor.upload(body)
            assert page.status_code == 413
            assert "cut it into several files" in errors_beside(page)["file"]
        visitor.upload(new_csv())
        page = visitor.upload(new_csv(), on_error="skip")
        assert page.status_code == 503
        assert page.headers["Retry-After"] == "3600"
        assert "mempool is full" in notice(page)
        answer = visitor.slice(new_csv(), Idempotency_Key="a")
        assert answer.status_code == 503
        assert answer.headers["Retry-After"] == "3600"
        assert "mempool is full" in answer.get_json()["detail"]
        page = visitor.upload(b"x" * 2**20)  # beyond what the pages read
        assert page.status_code == 413
        assert visitor.slice(b"x" * 2**17).get_json()["title"] == "Too long"


def test_a_file_needs_a_token(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("token")
    secret = Tokens(folder).add("me")
    with visiting(folder, FLIGHTCHAIN_REQUIRE_TOKEN=1) as visitor:
        assert 'name="TOKEN"' in visitor.client.get("/upload").text
        page = visitor.upload(new_csv())
        assert page.status_code == 401
        assert "Only people with a token" in errors_beside(page)["TOKEN"]
        page = visitor.upload(new_csv(), TOKEN=secret)
        assert page.status_code == 200
        assert secret not in page.text
        checked = visitor.upload(new_csv(), action="check")
        assert checked.status_code == 200
        assert checked.text.count('name="TOKEN"') == 2  # to check another file, and to add this one
        answer = visitor.slice(CSV, Authorization="Bearer x")
        assert answer.status_code == 401
        assert "This token is unknown or was revoked" in answer.get_json()["detail"]
        answer = visitor.slice(new_csv(), Authorization=f"Bearer {secret}")
        assert answer.get_json()["added"] == 30
        assert visitor.transactions == len(FLIGHTS) + 60


@pytest.mark.slow
def test_a_backend_that_died_is_said_to_have(tmp_path_factory: pytest.TempPathFactory) -> None:
    with visiting(tmp_path_factory.mktemp("dying"), "--only-http") as visitor:
        visitor.service.stop()
        answer = visitor.slice(CSV)
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "5"
    assert "does not answer" in answer.get_json()["detail"]


# --- what it was taken for


def test_a_check_shows_what_columns_were_understood_as(visitor: Visitor) -> None:
    text = text_of(visitor.upload(EXPO.encode(), "2008.csv", action="check").text)
    assert "The file was taken for: hflights (the package of this name (R))." in text
    assert "1 cell of AIR_TIME was emptied, because what stood there means nothing." in text
    assert "1 line was left out, which repeats the header." in text
    assert "Field In the file Row 1 Row 2" in text
    assert "FL_DATE from Year and Month and DayofMonth 2008-01-03 2008-01-04" in text
    assert "OP_CARRIER_AIRLINE_ID from UniqueCarrier and FL_DATE (table of carriers) 19393" in text
    assert "ORIGIN_AIRPORT_ID stays empty" in text
    assert "DEP_TIME DepTime 2003" in text
    added = text_of(visitor.upload(EXPO.encode(), "2008.csv").text)
    assert "2 flights were accepted" in added
    assert "taken for" not in added


def test_bad_rows_of_cancelled_flights_are_counted(visitor: Visitor) -> None:
    bad = EXPO.replace("WN,336", "XQX,336") + "2008,1,5,XQX,336,IAD,TPA,2003,8,,,0,\n"
    text = text_of(visitor.upload(bad.encode(), "2008.csv", action="check").text)
    assert "1 row is a flight, 2 are not." in text
    assert "Among these rows are 1 cancelled flight and 1 without an arrival;" in text


def test_days_in_doubt_are_asked_before_anything_is_added(visitor: Visitor) -> None:
    flights = [as_mapping(flight) for flight in new_flights()]
    body = csv_of_days(flights, ["02/03/2019"] * len(flights)).encode()
    before = visitor.transactions
    page = visitor.upload(body, action="check")
    assert page.status_code == 422
    assert "Which day is 02/03/2019?" in page.text
    choices = re.findall(r'name="dates" value="([^"]*)" required> ([^<]*)<', page.text)
    assert choices == [
        ("month-first", "Month first: 3 February 2019"),
        ("day-first", "Day first: 2 March 2019"),
    ]
    question = page.text[page.text.index("Which day is") :].partition("</form>")[0]
    form = {**hidden(question), "dates": "day-first", "action": "check"}
    page = visitor.client.post("/upload", data=form, content_type="multipart/form-data")
    assert "Days are written day, month, year." in page.text
    assert "2019-03-02" in page.text
    assert visitor.transactions == before
    checked = page.text[page.text.index('name="checked"') - 100 :].partition("</form>")[0]
    form = {**hidden(checked), "action": "add"}
    page = visitor.client.post("/upload", data=form, content_type="multipart/form-data")
    assert "30 flights were accepted" in page.text
    stored = visitor.service.json(f"/transactions/{before}")["transaction"]
    assert stored["FL_DATE"] == "2019-03-02"
    problem = visitor.slice(body).get_json()
    assert problem["status"] == 422
    assert (problem["day"], problem["meanings"]) == (
        "02/03/2019",
        {"month-first": "3 February 2019", "day-first": "2 March 2019"},
    )


# --- in slices


def test_a_slice_that_is_sent_again_adds_nothing(visitor: Visitor) -> None:
    before = visitor.transactions
    body = new_csv()
    first, second = (visitor.slice(body, Idempotency_Key="slice 7").get_json() for _ in range(2))
    assert first["added"] == second["added"] == 30
    assert (first["first"], first["last"]) == (before, before + 29)
    assert (second["first"], second["last"]) == (before, before + 29)
    assert visitor.transactions == before + 30


def test_a_slice_is_checked_or_refused_with_its_rows(visitor: Visitor) -> None:
    before = visitor.transactions
    for action in ("check", "add"):
        twin = visitor.slice(spoilt(CSV, 3), action).get_json()
        assert (twin["good"], twin["bad"], twin["added"]) == (29, 1, 0)
        assert [row["row"] for row in twin["bad_rows"]] == [3]
    problem = visitor.slice(CSV + b"1" * 600_000).get_json()
    assert (problem["status"], problem["line"]) == (422, 32)
    assert visitor.transactions == before


# --- what the page says


def words(visitor: Visitor, name: str) -> list[Any]:
    with visitor.client.application.app_context():
        return list(texts(name))


def test_the_page_says_what_to_get_and_what_to_tick(visitor: Visitor) -> None:
    boxes = words(visitor, "bts_boxes")
    page = text_of(visitor.client.get("/upload").text)
    for path in ("README.md", "docs/how-to/import.md"):
        guide = " ".join((ROOT / path).read_text(encoding="utf-8").split())
        assert " ".join(boxes) in guide
        assert f"{BTS_TABLE} (1987-present)" in guide
    assert reading_of(tuple(boxes)).kind.name == "ready-made month since 2018"
    assert " , ".join(boxes) in page
    assert all(f"{kind.name} {kind.source.replace('`', '')}" in page for kind in KINDS)
    for file, what_to_do in words(visitor, "refused_files"):
        assert " ".join(f"{file} {what_to_do}".replace("`", " ").split()) in page


def test_the_columns_are_those_of_the_ledger(visitor: Visitor) -> None:
    columns = words(visitor, "columns")
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
    month = {"csv": b"-01-", "ndjson": b"-10-"}[ending]  # begin on the same day of the week
    body = sample.get_data().replace(b"2013-01-", b"2013" + month)
    page = visitor.upload(body, f"flights.{ending}")
    assert "3 flights were accepted" in page.text
    number = visitor.transactions - 3
    found = [visitor.service.json(f"/transactions/{number + i}")["transaction"] for i in range(3)]
    assert [(each["CANCELLED"], each["ARR_DELAY"]) for each in found] == [
        (0, 11),
        (1, None),
        (0, None),
    ]
