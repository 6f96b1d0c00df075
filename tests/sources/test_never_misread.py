"""Files that look as if they could be read: each row becomes the flight that it means, or none."""

from pathlib import Path

import pytest

from backend.base.errors import BadRow, InvalidInput
from backend.chain.fields import FIELD_NAMES, Value
from backend.sources import open_source
from tests.sources import samples

Rows = list[dict[str, Value]]

NYC = "year,month,day,dep_time,dep_delay,arr_time,arr_delay,carrier,flight,origin,dest,air_time\n"
KAGGLE = (
    "FL_DATE,OP_CARRIER,OP_CARRIER_FL_NUM,ORIGIN,DEST,DEP_TIME,DEP_DELAY,ARR_TIME,ARR_DELAY,"
    "CANCELLED,AIR_TIME{}\n"
)
FLOWN = "DL,{},ATL,RDU,811,-4,930,-11,0,58"


def read(path: Path, text: str, name: str = "flights.csv") -> tuple[Rows, list[BadRow]]:
    """The flights in a file, and its bad rows."""
    flights, bad = samples.read(open_source(samples.written(path, text, name)))
    return [dict(zip(FIELD_NAMES, flight, strict=True)) for flight in flights], bad


def test_a_departure_of_blanks_is_none(tmp_path: Path) -> None:
    (row,), bad = read(tmp_path, f"{NYC}2013,3,2, \t,,,,DL,1207,ATL,RDU,\n")
    assert (row["CANCELLED"], row["DEP_TIME"], bad) == (1, None, [])


def test_a_flight_that_arrived_is_not_called_cancelled_without_departure(tmp_path: Path) -> None:
    rows, (problem,) = read(tmp_path, f"{NYC}2013,3,2,NA,NA,930,-11,DL,1207,ATL,RDU,58\n")
    assert (rows, problem.field) == ([], "CANCELLED")
    assert "the flight has no departure but arrived; write the time of departure" in problem.reason


@pytest.mark.parametrize("month", ["3.7", "inf", "1_0", "1e400", "-3"])
def test_a_month_is_a_whole_number(tmp_path: Path, month: str) -> None:
    rows, (problem,) = read(tmp_path, f"{NYC}2013,{month},2,811,-4,930,-11,DL,1207,ATL,RDU,58\n")
    assert (rows, problem.field) == ([], "FL_DATE")


@pytest.mark.parametrize("cell", ["", "NA", "NaN", "March"])
def test_a_month_that_is_no_number_says_nothing_of_a_date(tmp_path: Path, cell: str) -> None:
    text = KAGGLE.format(",MONTH") + f"2019-03-02,{FLOWN.format(1)},{cell}\n"
    rows, bad = read(tmp_path, text)
    assert ([row["FL_DATE"] for row in rows], bad) == (["2019-03-02"], [])


@pytest.mark.parametrize(("title", "cell"), [("MONTH", "4"), ("DAY_OF_MONTH", "3.0")])
def test_month_and_day_beside_a_date_agree_with_it(tmp_path: Path, title: str, cell: str) -> None:
    text = KAGGLE.format(f",{title}") + f"2019-03-02,{FLOWN.format(1)},{cell}\n"
    rows, (problem,) = read(tmp_path, text)
    assert (rows, problem.field) == ([], "FL_DATE")
    assert "disagrees with the columns of month and day; correct" in problem.reason


def test_a_column_that_contradicts_most_days_proves_no_order(tmp_path: Path) -> None:
    """Months from 0 to 11, of which one is by chance the day."""
    days = [f"{month + 1:02d}/0{day}/2019" for month in range(12) for day in (1, 3, 5)]
    months = [month for month in range(12) for _ in range(3)]
    rows = [f"{day},{FLOWN.format(n)},{months[n]}\n" for n, day in enumerate(days)]
    with pytest.raises(InvalidInput, match="a column of month, day or weekday contradicts"):
        read(tmp_path, KAGGLE.format(",MONTH") + "".join(rows))


@pytest.mark.parametrize("neighbour", ["", "2019-03-02,DL,6,ATL,RDU,0,0,0,0,1,0\n"])
@pytest.mark.parametrize("departure", ["0,0", ",0", " ,0", "0000,"])
def test_zeros_of_a_cancelled_flight_mean_the_same_beside_any_other(
    tmp_path: Path, neighbour: str, departure: str
) -> None:
    text = KAGGLE.format("") + f"2019-03-02,DL,5,ATL,RDU,{departure},,,1,\n{neighbour}"
    rows, bad = read(tmp_path, text)
    assert bad == []
    assert [(row["DEP_TIME"], row["DEP_DELAY"]) for row in rows] == [(None, None)] * len(rows)


def test_a_comma_without_quotes_does_not_shift_the_cells_behind_it(tmp_path: Path) -> None:
    header = KAGGLE.format(",DEST_CITY_NAME,NOTE")
    good = f'2019-03-02,{FLOWN.format(1)},"Raleigh/Durham, NC",\n'
    shifted = f"2019-03-02,{FLOWN.format(2)},Raleigh/Durham, NC,\n"
    for extra in ("", ","):  # a comma more at the end of every row does no harm
        lines = [line[:-1] + extra + "\n" for line in (good, shifted, good.replace("1207", "3"))]
        orders = (lines, [lines[0], *lines[:0:-1]], [lines[0]] * 3000 + [lines[1]], lines[1:])
        for order in orders[: 3 if extra else 4]:  # two lines may be all of a file, or its end
            text = header + "".join(order)
            rows, bad = read(tmp_path, text.removesuffix("\n"))
            assert {row["DEST_CITY_NAME"] for row in rows} == {"Raleigh/Durham, NC"}
            assert [problem.reason[:12] for problem in bad] == [f"has {14 + len(extra)} cells"]


@pytest.mark.parametrize("lines", [1, 3])
def test_cities_without_quotes_before_empty_columns_do_not_shift_each_other(
    tmp_path: Path, lines: int
) -> None:
    header = KAGGLE.format(",ORIGIN_CITY_NAME,DEST_CITY_NAME,A,B,C")
    row = f"2019-03-02,{FLOWN.format(2)},Atlanta, GA,Raleigh/Durham, NC,,,\n"
    rows, bad = read(tmp_path, header + row * lines)
    assert (rows, len(bad)) == ([], lines)
    assert "18 cells, but the header has 16; put a cell that contains ',' in" in bad[0].reason
    rows, bad = read(tmp_path, f"{KAGGLE.format('')}2019-03-02,{FLOWN.format(2)},\n" * lines)
    assert (len(rows), bad) == (lines, [])


@pytest.mark.parametrize("cities", ["Atlanta,GA,Raleigh,NC", "Atlanta, Ga,Raleigh, Nc"])
def test_a_state_is_no_city(tmp_path: Path, cities: str) -> None:
    header = KAGGLE.format(",ORIGIN_CITY_NAME,DEST_CITY_NAME,A,B")
    rows, bad = read(tmp_path, f"{header}2019-03-02,{FLOWN.format(2)},{cities},,\n")
    assert (rows, len(bad)) == ([], 1)


def test_codes_in_small_letters_are_those_in_capitals_but_words_for_nothing(
    tmp_path: Path,
) -> None:
    row = samples.FLOWN | {"DEST_CITY_NAME": "Tampa"}
    spelled = [row | {"DEST": code} for code in ("TPA", "tpa ", "nan", "katl", "tampa", "12")]
    source = open_source(samples.written(tmp_path, samples.csv_text(spelled)))
    good, bad = samples.read(source)
    assert good == [samples.PARSED_FLOWN] * 2
    assert [problem.value for problem in bad] == ["nan", "katl", "tampa", "12"]


def test_a_code_of_the_icao_is_no_other_airport(tmp_path: Path) -> None:
    header = KAGGLE.format(",ORIGIN_CITY_NAME,ORIGIN_STATE_NM,DEST_CITY_NAME,DEST_STATE_NM")
    places = '"Atlanta, GA",Georgia,"Raleigh/Durham, NC",North Carolina'
    row = f"2019-03-02,{FLOWN.format(2)},{places}\n"
    codes = ("KATL", "PHOG", "TJSJ", "ZZZZ")
    rows, bad = read(tmp_path, header + "".join(row.replace("ATL", code) for code in codes))
    assert ([flight["ORIGIN"] for flight in rows], len(bad)) == (["ZZZZ"], 3)
    assert "'KATL': is an ICAO code; write the IATA code" in str(bad[0])


@pytest.mark.parametrize(
    ("name", "form"),
    [("flights.ndjson", "{}\n"), ("flights.json", "[{}]"), ("b.json", '{{"transactions":[{}]}}')],
)
def test_a_member_given_twice_is_refused(tmp_path: Path, name: str, form: str) -> None:
    titles = KAGGLE.format("").strip().split(",")
    cells = f"2019-03-02,{FLOWN.format(1)}".split(",")
    members = ",".join(f'"{t}":"{c}"' for t, c in zip(titles, cells, strict=True))
    flight = f'{{{members},"NOTE":NaN,"ARR_DELAY":"99"}}'
    try:
        rows, bad = read(tmp_path, form.format(flight), name)
    except InvalidInput as problem:
        assert "twice" in str(problem) or "not JSON" in str(problem)
    else:
        assert (rows, [problem.reason for problem in bad]) == ([], ["is given twice; give it once"])
