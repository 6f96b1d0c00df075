import random
from pathlib import Path

import pytest

from backend.base.errors import BadRow, InvalidInput
from backend.chain.fields import FIELD_NAMES, POSITION
from backend.chain.flight import flight_of
from backend.sources.flight_file import FlightFile
from backend.sources.source import BATCH_ROWS, validated
from tests.sources.samples import (
    FLOWN,
    PACKINGS,
    PARSED_FLOWN,
    ROWS,
    csv_text,
    flights_of,
    monthly_text,
    rows_of,
    written,
)

FLIGHTS = [flight_of(row) for row in ROWS]
LINE = csv_text([FLOWN]).split("\n")[1]


def bad_rows(path: Path) -> tuple[int, list[str]]:
    """How many flights are good, and what is said of the others."""
    bad: list[BadRow] = []
    good = rows_of(list(validated(FlightFile(path), bad.append)))
    return len(good), [str(problem) for problem in bad]


@pytest.mark.parametrize(
    "text", [csv_text(ROWS), monthly_text(ROWS)], ids=["FL_DATE", "FlightDate"]
)
@pytest.mark.parametrize("packing", PACKINGS)
def test_both_styles_in_every_packing(tmp_path: Path, packing: str, text: str) -> None:
    source = FlightFile(written(tmp_path, PACKINGS[packing](text.encode())))
    assert flights_of(source) == FLIGHTS
    assert flights_of(source) == FLIGHTS, "a source can be read again"
    assert source.progress() == 1.0


def test_columns_in_any_order_with_others_between(tmp_path: Path) -> None:
    names = [*FIELD_NAMES, "TAIL_NUM", "DISTANCE"]
    for seed in range(5):
        random.Random(seed).shuffle(names)
        rows = [row | {"TAIL_NUM": "N1, or so"} for row in ROWS]
        assert flights_of(FlightFile(written(tmp_path, csv_text(rows, names)))) == FLIGHTS


def test_year_weekday_and_airport_ids_may_be_absent(tmp_path: Path) -> None:
    absent = ("YEAR", "DAY_OF_WEEK", "ORIGIN_AIRPORT_ID", "DEST_AIRPORT_ID")
    names = [name for name in FIELD_NAMES if name not in absent]
    path = written(tmp_path, csv_text([FLOWN, FLOWN | {"FL_DATE": "soon"}], names))
    bad: list[BadRow] = []
    (flight,) = rows_of(list(validated(FlightFile(path), bad.append)))
    expected = list(PARSED_FLOWN)
    expected[POSITION["ORIGIN_AIRPORT_ID"]] = expected[POSITION["DEST_AIRPORT_ID"]] = None
    assert flight == tuple(expected)
    assert [str(problem) for problem in bad] == [
        "flights.csv, line 3: FL_DATE 'soon': must be a date, YYYY-MM-DD"
    ]


def test_missing_columns_are_named_beside_what_was_found(tmp_path: Path) -> None:
    path = written(tmp_path, csv_text(ROWS, FIELD_NAMES[:-2]))
    with pytest.raises(
        InvalidInput, match="lacks the columns CANCELLED, which are not guessed; it"
    ):
        flights_of(FlightFile(path))
    with pytest.raises(
        InvalidInput, match="does not have any column of a flight; its first line is 'name, age'"
    ):
        flights_of(FlightFile(written(tmp_path, "name,age\nAda,36\n")))


def test_a_column_given_twice_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, csv_text(ROWS, [*FIELD_NAMES, "Origin"]))
    with pytest.raises(InvalidInput, match="more than one column for ORIGIN"):
        flights_of(FlightFile(path))


def test_byte_order_mark_crlf_blank_lines_and_no_last_line_end(tmp_path: Path) -> None:
    text = csv_text(ROWS).replace("\n", "\r\n").rstrip()
    first, rest = text.split("\r\n", 1)
    path = written(tmp_path, f"\ufeff{first}\r\n\r\n{rest}\r\n\r\n")
    assert flights_of(FlightFile(path)) == FLIGHTS
    assert flights_of(FlightFile(written(tmp_path, text))) == FLIGHTS


def test_names_beyond_ascii(tmp_path: Path) -> None:
    row = FLOWN | {"ORIGIN_CITY_NAME": "Mayagüez, PR", "DEST_STATE_NM": "北海道"}
    assert flights_of(FlightFile(written(tmp_path, csv_text([row])))) == [flight_of(row)]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (LINE + ",7", "has 20 cells, but the header has 19"),
        (LINE.rpartition(",")[0], "has 18 cells, but the header has 19"),
        (LINE.replace('"Tampa, FL"', '"Tampa, FL'), "is not CSV (unexpected end of data)"),
        (LINE.replace("19393", '"19393'), "is not CSV ("),
        (LINE.replace("Tampa, FL", "Tampa\0, FL"), "must not contain control"),
        (LINE.replace("Tampa, FL", "T" * 5000), "must have at most 100 characters"),
        (LINE.replace("Tampa, FL", "T" * 200_000), "is not CSV (field larger than field limit"),
        (LINE.replace("TPA", "T\rPA"), "is not CSV (new-line character"),
        (LINE.replace(",335,", ",33x,"), "OP_CARRIER_FL_NUM '33x': must be a whole number"),
        (LINE.replace(",335,", ",3 35,"), "OP_CARRIER_FL_NUM '3 35': must be a whole number"),
    ],
)
def test_one_bad_line_is_named_and_spoils_no_other(
    tmp_path: Path, line: str, complaint: str
) -> None:
    lines = [LINE] * 2500
    lines[1999] = line
    path = written(tmp_path, "\n".join([",".join(FIELD_NAMES), *lines]))
    good, (message,) = bad_rows(path)
    assert good == 2499
    assert message.startswith("flights.csv, line 2001: ")
    assert complaint in message
    assert len(message) < 250
    with pytest.raises(BadRow, match=r"^flights\.csv, line 2001: "):
        flights_of(FlightFile(path))


def test_a_quote_left_open_does_not_swallow_the_next_line(tmp_path: Path) -> None:
    lines = [LINE, LINE.rpartition(",")[0] + ',"1', '16"', LINE]
    good, messages = bad_rows(written(tmp_path, "\n".join([",".join(FIELD_NAMES), *lines])))
    assert good == 2
    assert [message.partition(": ")[0] for message in messages] == [
        "flights.csv, line 3",
        "flights.csv, line 4",
    ]


def test_damage_in_the_middle_is_told_after_the_flights_before_it(tmp_path: Path) -> None:
    lines = [LINE.replace(",335,", f",{n},") for n in range(1, 50_001)]
    packed = PACKINGS["gzip"]("\n".join([",".join(FIELD_NAMES), *lines]).encode())
    batches = validated(FlightFile(written(tmp_path, packed[: len(packed) // 2])))
    assert len(next(batches)[0]) == BATCH_ROWS
    with pytest.raises(InvalidInput, match=r"'flights\.csv': is damaged or incomplete"):
        list(batches)


def test_batches_are_full_and_in_order(tmp_path: Path) -> None:
    rows = [FLOWN | {"OP_CARRIER_FL_NUM": str(n)} for n in range(1, 3501)]
    batches = list(validated(FlightFile(written(tmp_path, csv_text(rows)))))
    assert [len(batch[0]) for batch in batches] == [1000, 1000, 1000, 500]
    number = POSITION["OP_CARRIER_FL_NUM"]
    assert [row[number] for row in rows_of(batches)] == list(range(1, 3501))
