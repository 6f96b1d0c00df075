"""Tables as spreadsheets, databases and people write them."""

import csv
import io
import re
from contextlib import closing
from pathlib import Path

import pytest

from backend.base.errors import BadRow, InvalidInput
from backend.chain.flight import flight_of
from backend.sources import open_source
from backend.sources.formats import opened_records
from backend.sources.packed import BLOCK_BYTES, PackedFile
from backend.sources.records import RecordBatch, Records
from backend.sources.source import Validator
from backend.sources.table import MOST_COLUMNS
from tests.cases import each_of
from tests.sources.samples import (
    CANCELLED,
    DIVERTED,
    FLOWN,
    ROWS,
    bad_rows,
    csv_text,
    flights_of,
    written,
)

TABLE = csv_text(ROWS)
HEADER, FIRST, *_ = TABLE.splitlines()


def read(folder: Path, content: str | bytes) -> tuple[Records, list[RecordBatch]]:
    with opened_records(PackedFile(written(folder, content))) as records:
        return records, [batch(tuple(range(len(records.titles)))) for batch in records.batches]


def written_with(separator: str, quoting: int = csv.QUOTE_MINIMAL) -> str:
    text = io.StringIO(newline="")
    rows = csv.reader(io.StringIO(TABLE))
    csv.writer(text, delimiter=separator, quoting=quoting).writerows(rows)  # type: ignore[arg-type]
    return text.getvalue()


def test_a_table_is_cut_into_titles_and_columns(tmp_path: Path) -> None:
    records, (batch,) = read(tmp_path, "a, b \r\n1,2\r\n\r\n3,4\n5,6\n")
    assert records.titles == ("a", "b")
    assert [list(batch.columns[place]) for place in (0, 1)] == [["1", "3", "5"], ["2", "4", "6"]]
    assert batch.numbers == [2, 4, 5]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_cells_may_be_separated_in_four_ways(tmp_path: Path, separator: str, quoting: int) -> None:
    text = written_with(separator, quoting)
    assert len(flights_of(open_source(written(tmp_path, text)))) == 3
    spoiled = text + HEADER.replace("YEAR", "2008").replace(",", "?") + "\n"
    _, (batch,) = read(tmp_path, spoiled)
    assert [fault.row for fault in batch.faults] == [5]


def test_a_blank_may_follow_a_separator(tmp_path: Path) -> None:
    text = written_with(",", csv.QUOTE_ALL).replace('","', '", "')
    assert flights_of(open_source(written(tmp_path, text))) == [flight_of(row) for row in ROWS]


def test_a_line_of_blanks_is_no_row(tmp_path: Path) -> None:
    assert bad_rows(written(tmp_path, f"{TABLE} \t\n")) == (3, [])


def test_a_file_of_dos_may_say_that_it_ends(tmp_path: Path) -> None:
    text = written_with(",") + "\x1a"
    assert flights_of(open_source(written(tmp_path, text))) == [flight_of(row) for row in ROWS]


NOTES = ["", "a\nb", "a\n\nb\n", '\n"hi",\nthere', "a,b\nc,d", "1\n2\n3\n4", "a\r\n" * 5]
BROKEN = FLOWN | {"ORIGIN_CITY_NAME": "Washington,\nDC"}


@pytest.mark.parametrize("place", [0, 7, 19])
def test_cells_in_quotes_may_have_line_breaks(tmp_path: Path, place: int) -> None:
    names = [*FLOWN]
    names.insert(place, "NOTE")
    for notes in ([note] * 3000 for note in NOTES), [NOTES * 500], [[*[""] * 998, NOTES[1], ""]]:
        for cells in notes:
            rows = [BROKEN | {"NOTE": note} for note in cells]
            path = written(tmp_path, csv_text(rows, names).replace("\n", "\r\n"))
            assert flights_of(open_source(path)) == [flight_of(FLOWN)] * len(rows)


@pytest.mark.parametrize("separator", [",", ";", "|"])
def test_titles_in_quotes_may_have_line_breaks(tmp_path: Path, separator: str) -> None:
    """A spreadsheet writes them so if they are broken by hand."""
    text = written_with(separator).replace("DEP_DELAY", '"Dep\nDelay"').replace("YEAR", '"YEAR\n"')
    source = open_source(written(tmp_path, text + text))
    assert flights_of(source) == [flight_of(row) for row in ROWS] * 2
    assert str(source.understood()).endswith("1 repeated header left out")
    (raw,) = source.rows()
    assert raw.header == text.partition("\r\n2008")[0]
    spoiled = text.replace('\nDelay"', "\nDelay")
    with pytest.raises(InvalidInput):
        open_source(written(tmp_path, spoiled))


def test_a_row_of_several_lines_is_named_by_its_first_and_kept_whole(tmp_path: Path) -> None:
    rows = [BROKEN, BROKEN | {"DEST": "nowhere"}, FLOWN | {"DEST": "t"}]
    source = open_source(written(tmp_path, csv_text(rows)))
    (raw,) = source.rows()
    _, problems = Validator().judge(raw)
    assert [problem.row for problem in problems] == [4, 6]
    assert raw.text(4).endswith('"Tampa, FL",Florida,2003,8,2211,-14,0,116')
    assert raw.text(4).startswith('2008,4,2008-01-03,19393,335,12264,IAD,"Washington,\nDC",')


@pytest.mark.parametrize("rows_between", [0, 1, 18, 19, 999, 1000])
def test_a_forgotten_quote_spoils_its_own_line_alone(tmp_path: Path, rows_between: int) -> None:
    header, row, *_ = csv_text([FLOWN | {"NOTE": "x"}], [*FLOWN, "NOTE"]).splitlines()
    plain = row.replace('"', "").replace(", ", " ")
    for spoiled, others in (plain.replace("IAD", '"IAD'), plain), (row.replace("x", '"x'), row):
        lines = [header, others, spoiled, *[others] * rows_between, spoiled, others]
        good, problems = bad_rows(written(tmp_path, "\n".join(lines)))
        assert good + len(problems) == rows_between + 4
        is_csv = [problem for problem in problems if "is not CSV" in problem]
        assert len(is_csv) == 2


@pytest.mark.parametrize("closed", ["IAD", "TPA"])
@pytest.mark.parametrize("rows_between", [1, 18, 999])
def test_quotes_in_two_lines_swallow_no_row_between_them(
    tmp_path: Path, rows_between: int, closed: str
) -> None:
    """One opens a cell, the other closes the same cell of its row, or another one."""
    header, row, *_ = csv_text([FLOWN]).splitlines()
    plain = row.replace('"', "").replace(", ", " ")
    opening, closing = plain.replace("IAD", '"IAD'), plain.replace(closed, f'{closed}"')
    lines = [header, plain, opening, *[plain] * rows_between, closing, plain]
    good, problems = bad_rows(written(tmp_path, "\n".join(lines)))
    assert good == rows_between + 2
    assert [problem.partition(": ")[0] for problem in problems] == [
        "flights.csv, line 3",
        f"flights.csv, line {rows_between + 4}",
    ]


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "SEP=;", "sep=;;;;"])
def test_the_line_that_excel_writes_names_the_separator(tmp_path: Path, first: str) -> None:
    records, (batch,) = read(tmp_path, f"\ufeff{first}\r\n{written_with(';')}")
    assert records.titles[:2] == ("YEAR", "DAY_OF_WEEK")
    assert list(batch.numbers) == [3, 4, 5]
    records, _ = read(tmp_path, "sep=~\na~b,c,d\n1~2\n")
    assert records.titles == ("a", "b,c,d")


def test_a_column_without_a_title_may_be_the_last(tmp_path: Path) -> None:
    header, *rows = TABLE.splitlines()
    lines = [f"{header},", *(f"{row},{number}" for number, row in enumerate(rows))]
    assert len(flights_of(open_source(written(tmp_path, "\n".join(lines))))) == len(rows)


@pytest.mark.parametrize("extra", [",", ",,,"])
@pytest.mark.parametrize("in_header", [False, True])
def test_empty_cells_at_the_end_do_no_harm(tmp_path: Path, extra: str, in_header: bool) -> None:
    header, *rows = TABLE.splitlines()
    lines = [header + extra * in_header, *(row + extra for row in rows), rows[0]]
    assert len(flights_of(open_source(written(tmp_path, "\n".join(lines))))) == 4
    _, (batch,) = read(tmp_path, "\n".join([*lines, rows[0] + ",x", rows[0] + extra + "x", ""]))
    assert [fault.row for fault in batch.faults] == [6, 7]
    assert "has 20 cells, but the header has 19" in batch.faults[0].reason


@pytest.mark.parametrize("numbers", [(1, 2, 3), (17, 18, 19), (48, 12, 30), (19790, 20366, 7)])
def test_numbers_of_rows_need_no_title(tmp_path: Path, numbers: tuple[int, ...]) -> None:
    flights = [FLOWN, CANCELLED, FLOWN | {"OP_CARRIER_FL_NUM": "338"}]
    header, *rows = csv_text(flights).splitlines()
    lines = [header, *(f'"{number}",{row}' for number, row in zip(numbers, rows, strict=True))]
    path = written(tmp_path, "\n".join(lines))
    assert flights_of(open_source(path)) == [flight_of(row) for row in flights]


def test_numbers_of_rows_that_end_empty_need_no_title(tmp_path: Path) -> None:
    """As write.table of R writes them with na = "" and the diverted flights first."""
    header, *rows = csv_text([DIVERTED] * 30).splitlines()
    lines = [header, *(f"{number},{row}" for number, row in enumerate(rows, 1))]
    path = written(tmp_path, "\n".join(lines))
    assert flights_of(open_source(path)) == [flight_of(DIVERTED)] * 30
    with closing(open_source(path).rows()) as batches:
        header = next(batches).header or ""  # as above the rows in a file of bad ones
    few = written(tmp_path, "\n".join([header, lines[7], lines[19]]))
    assert flights_of(open_source(few)) == [flight_of(DIVERTED)] * 2
    with_id = [f"id,{header[3:]}", *(f"{line}," for line in lines[1:])]
    path = written(tmp_path, "\n".join(with_id))
    assert flights_of(open_source(path)) == [flight_of(DIVERTED)] * 30


def test_numbers_that_are_not_those_of_rows_misplace_no_cell(tmp_path: Path) -> None:
    header, *rows = TABLE.splitlines()
    path = written(tmp_path, "\n".join([header, *(f'"8",{row}' for row in rows)]))
    with pytest.raises(InvalidInput, match="OP_CARRIER_FL_NUM 19393, which is the number of a"):
        open_source(path)
    path = written(tmp_path, "\n".join([header, *[f"{'9' * 5000},{rows[0]}"] * 3]))
    good, problems = bad_rows(path)
    assert (good, len(problems)) == (0, 3)


@pytest.mark.parametrize("numbers", [(1, 2), (2, 1)])
def test_flight_numbers_are_no_numbers_of_rows(tmp_path: Path, numbers: tuple[int, int]) -> None:
    names = ["OP_CARRIER_FL_NUM", *(name for name in FLOWN if name != "OP_CARRIER_FL_NUM")]
    text = csv_text([FLOWN | {"OP_CARRIER_FL_NUM": str(number)} for number in numbers], names)
    header, *rows = text.splitlines()
    path = written(tmp_path, "\n".join([header, *(f"{row}," for row in rows)]))
    assert [flight[4] for flight in flights_of(open_source(path))] == [*numbers]


def test_a_repeated_header_is_left_out_and_counted(tmp_path: Path) -> None:
    quoted = ",".join(f'"{title}"' for title in HEADER.lower().split(","))
    for again in (HEADER, f"\ufeff{HEADER}", f"{HEADER}\r", quoted, HEADER.title()):
        text = TABLE + TABLE + TABLE.replace(HEADER, again)
        _, (batch,) = read(tmp_path, text)
        assert (len(batch.numbers), batch.repeated_headers, batch.faults) == (9, 2, [])
        assert list(batch.numbers) == [2, 3, 4, 6, 7, 8, 10, 11, 12]
        assert list(batch.columns[0]) == ["2008"] * 9


def test_a_mark_of_the_byte_order_may_begin_any_line(tmp_path: Path) -> None:
    text = TABLE.replace("\n2008", "\n\ufeff2008") + f'\ufeff"2008"{FIRST.removeprefix("2008")}'
    _, (batch,) = read(tmp_path, text)
    assert (list(batch.columns[0]), batch.faults) == (["2008"] * 4, [])


def test_lines_of_one_file_may_end_in_different_ways(tmp_path: Path) -> None:
    for ends in ("\r\r\n\n", "\n\r\r\n", "\r\n\n\r"):
        lines = [HEADER, *[FIRST] * 7]
        text = "\n" + "".join(line + ends[place % 4] for place, line in enumerate(lines))
        _, (batch,) = read(tmp_path, text)
        assert (len(batch.numbers), batch.faults) == (7, [])
    _, (batch,) = read(tmp_path, f"{TABLE}{FIRST.replace('TPA', 'T' + chr(13) + 'PA')}\n")
    assert (len(batch.numbers), len(batch.faults)) == (3, 2)


@pytest.mark.parametrize("tail", ["", ",,,"])
@pytest.mark.parametrize(
    "empty_row", ["," * 18, "," * 21, ",", " ,\t,", "\t," * 18, '"",' * 18 + '""']
)
def test_rows_of_empty_cells_are_left_out(tmp_path: Path, empty_row: str, tail: str) -> None:
    header, *rows = TABLE.splitlines()
    lines = [header + tail, rows[0] + tail, empty_row, rows[1] + tail, empty_row, empty_row]
    _, (batch,) = read(tmp_path, "\r\n".join([*lines, ""]))
    assert (list(batch.numbers), batch.repeated_headers, batch.faults) == ([2, 4], 0, [])
    with pytest.raises(InvalidInput, match="has a header but no rows"):
        read(tmp_path, f"{lines[0]}\n{empty_row}\n")


def test_rows_of_empty_cells_may_stand_above_the_header(tmp_path: Path) -> None:
    for above in (",,,\n", '"";""\n\n', " , ,\n,,\n"):
        records, (batch,) = read(tmp_path, above + TABLE)
        assert (len(records.titles), len(batch.numbers)) == (19, 3)
        assert batch.numbers[0] == 2 + above.count("\n")


@pytest.mark.parametrize(
    "above",
    [
        "Flights by day and carrier",
        "# Source: BTS, on time\n# 2008",
        "#TYPE System.Management.Automation.PSCustomObject",
        ",".join(f"Column{number}" for number in range(1, 20)),
        "Date,,,Carrier,,Origin,,,,Destination,,,,Departure,,Arrival,,,",
        f'"On time, by origin"{"," * 18}\n{"," * 18}',
    ],
)
def test_names_and_notes_may_stand_above_the_titles(tmp_path: Path, above: str) -> None:
    path = written(tmp_path, f"{above}\n{TABLE}2008,4\n")
    good, (problem,) = bad_rows(path)
    assert good == 3
    assert f"line {5 + above.count(chr(10)) + 1}: " in problem
    with opened_records(PackedFile(path)) as records:
        assert records.header == f"{above}\n{TABLE.partition(chr(10))[0]}"


def test_notes_may_stand_above_titles_with_the_name_of_their_table(tmp_path: Path) -> None:
    titles = ",".join(f"flights.{title}" for title in HEADER.split(","))
    text = f"WARN: no stats\nn,{titles}\n1,{FIRST}\n"  # and pandas adds numbers
    assert bad_rows(written(tmp_path, text)) == (1, [])


@pytest.mark.parametrize("row", [FIRST, "2013,1,1,NA,NA,NA,NA,EV,4308,EWR,RDU,NA"])
def test_rows_above_the_titles_are_no_notes(tmp_path: Path, row: str) -> None:
    """As where two files were put together and the first has no header: no flight is lost."""
    with pytest.raises(InvalidInput, match="has no column of a flight"):
        bad_rows(written(tmp_path, f"{row}\n{TABLE}"))


def test_a_database_may_underline_titles_and_count_rows(tmp_path: Path) -> None:
    header, _, rows = TABLE.partition("\n")
    line = ",".join("-" * len(title) for title in header.split(","))
    text = f"{header}\n{line}\n{rows}\n(3 rows affected)\n"
    assert bad_rows(written(tmp_path, text)) == (3, [])
    assert bad_rows(written(tmp_path, f"{TABLE}(3 rows)\n")) == (3, [])
    assert bad_rows(written(tmp_path, f"{TABLE}\n3 rows selected.\n")) == (3, [])


def test_the_aligned_table_of_psql_is_read(tmp_path: Path) -> None:
    rows = list(csv.reader(TABLE.splitlines()))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["|".join(map(" {:<{}} ".format, row, widths)) for row in rows]
    lines[1:1] = ["+".join("-" * (width + 2) for width in widths)]
    text = "\n".join([*lines, "(3 rows)", "", ""])
    assert flights_of(open_source(written(tmp_path, text))) == [flight_of(row) for row in ROWS]


def test_a_second_header_with_other_columns_is_refused(tmp_path: Path) -> None:
    names = HEADER.split(",")
    hflights = "Year Month DayofMonth DepTime UniqueCarrier FlightNum TailNum Origin Dest"
    nycflights = (
        "year month day dep_time sched_dep_time dep_delay arr_time sched_arr_time arr_delay "
        "carrier flight tailnum origin dest air_time distance hour minute time_hour"
    )
    kinds = [kind.split() for kind in (hflights, nycflights)]
    kinds.append(kinds[1][9:] + kinds[1][:9])  # begins with the carrier
    kinds.append([names[0].lower(), *names[:0:-1]])  # begins as the first header, in small letters
    for others in (names[::-1], [*names[1:], names[0]], *kinds):
        text = TABLE + "\n" + ",".join(others) + "\n" + FIRST + "\n"
        with pytest.raises(BadRow, match=r"line 6: .*is a header with other columns") as caught:
            bad_rows(written(tmp_path, text))
        assert caught.value.row == 6


def test_a_header_of_very_many_columns_is_refused(tmp_path: Path) -> None:
    many = ",".join(f"c{n}" for n in range(10_000))
    with pytest.raises(InvalidInput, match=f"has 10,000 columns, but at most {MOST_COLUMNS:,}"):
        read(tmp_path, f"{many}\n1\n")


@each_of("content", [TABLE.encode(), b"", b'{"YEAR": 1,\n'])
@each_of("ahead", [b"", b"\n" * 5])
def test_a_line_without_end_is_refused_before_it_fills_memory(
    tmp_path: Path, content: bytes, ahead: bytes
) -> None:
    path = written(tmp_path, content + ahead + b"1" * (4 * BLOCK_BYTES))
    with pytest.raises(InvalidInput, match=r"is longer than|without a list") as caught:
        flights_of(open_source(path))
    assert len(str(caught.value)) < 250


def test_the_length_of_a_line_is_that_of_its_bytes(tmp_path: Path) -> None:
    content = TABLE.encode() + "é".encode() * (BLOCK_BYTES + 9999)
    with pytest.raises(InvalidInput, match=r"is longer than 262,144 bytes"):
        flights_of(open_source(written(tmp_path, content)))


def test_what_is_not_utf8_does_no_harm_where_it_is_not_used(tmp_path: Path) -> None:
    names = [*FLOWN, "TAIL_NUM"]
    rows = [row | {"TAIL_NUM": "N\xe9\xff"} for row in ROWS]
    text = csv_text(rows * 1000, names)
    path = written(tmp_path, text.encode("latin-1"))
    assert len(flights_of(open_source(path))) == 3000


@pytest.mark.parametrize(
    ("field", "said"),
    [
        (
            "DEST_CITY_NAME",
            "is not the name of a city or state; correct it, or save the file as UTF-8",
        ),
        ("DEST", "must"),
        ("OP_CARRIER_FL_NUM", "must"),
    ],
)
def test_what_is_not_utf8_is_named_where_it_is_used(tmp_path: Path, field: str, said: str) -> None:
    text = csv_text([*[FLOWN] * 4000, FLOWN | {field: "Mayag\xfcez"}, FLOWN])
    good, (problem,) = bad_rows(written(tmp_path, text.encode("latin-1")))
    assert good == 4001
    assert problem.startswith(f"flights.csv, line 4002: {field} 'Mayag\\udcfcez': {said}")


def test_a_header_that_is_no_csv_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"is not CSV .* all titles in one line"):
        read(tmp_path, '"YEAR,DAY_OF_WEEK\n')


@pytest.mark.parametrize("footer", ["Total,3", "# made by hand", '2008,4,"2008-01-'])
def test_a_line_with_few_cells_may_be_no_flight(tmp_path: Path, footer: str) -> None:
    good, (problem,) = bad_rows(written(tmp_path, f"{TABLE}{footer}\n"))
    assert good == 3
    reason = "has .* but the header has 19; delete the line if it is not a flight, .*|is not CSV"
    assert re.search(reason, problem)


def test_long_lines_are_not_parsed_together(tmp_path: Path) -> None:
    _, batches = read(tmp_path, "a,b\n" + f"1,{'x' * 10_000}\n" * 200)
    assert sum(len(batch.numbers) for batch in batches) == 200
    assert all(len(batch.numbers) * 10_000 < 3 * BLOCK_BYTES for batch in batches)
