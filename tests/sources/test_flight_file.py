import random
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

import pytest

from backend.base.day_orders import DAY_FIRST, MONTH_FIRST, YEAR_FIRST
from backend.base.errors import BadRow, InvalidInput
from backend.chain.fields import FIELD_NAMES, POSITION
from backend.chain.flight import flight_of
from backend.sources import open_source
from backend.sources.airports import Airport
from backend.sources.flight_file import FlightFile
from backend.sources.source import BATCH_ROWS, validated
from tests.cases import each_of
from tests.sources.samples import (
    CANCELLED,
    DIVERTED,
    FLOWN,
    PACKINGS,
    ROWS,
    bad_rows,
    csv_text,
    flights_of,
    monthly_text,
    read,
    rows_of,
    understood,
    written,
)

FLIGHTS = [flight_of(row) for row in ROWS]
LINE = csv_text([FLOWN]).split("\n")[1]


@each_of("text", [csv_text(ROWS), monthly_text(ROWS), "\ufeff" + csv_text(ROWS)])
@each_of("packing", PACKINGS)
def test_a_file_is_known_by_its_content(tmp_path: Path, packing: str, text: str) -> None:
    source = open_source(written(tmp_path, PACKINGS[packing](text.encode()), "download.json"))
    assert source.label == "download.json"
    assert flights_of(source) == FLIGHTS
    assert flights_of(source) == FLIGHTS, "a source can be read again"
    assert source.progress() == 1.0


def test_columns_in_any_order_with_others_between(tmp_path: Path) -> None:
    names = [*FIELD_NAMES, "TAIL_NUM", "DISTANCE"]
    for seed in range(5):
        random.Random(seed).shuffle(names)
        rows = [row | {"TAIL_NUM": "N1, or so"} for row in ROWS]
        assert flights_of(FlightFile(written(tmp_path, csv_text(rows, names)))) == FLIGHTS


def test_a_column_given_twice_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, csv_text(ROWS, [*FIELD_NAMES, "Origin"]))
    with pytest.raises(InvalidInput, match="more than one column for ORIGIN"):
        flights_of(FlightFile(path))


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
        (LINE.replace(",335,", ",33x,"), "OP_CARRIER_FL_NUM '33x': must be a whole number"),
        (LINE.replace(",335,", ",3 35,"), "OP_CARRIER_FL_NUM '3 35': must be a whole number"),
        (LINE.replace("2008-01-03", "2008-02-30"), "FL_DATE '2008-02-30': is not a day of the cal"),
        (LINE.replace("Florida", ""), "DEST_STATE_NM '': is missing; this field is required"),
        (LINE.replace(",", ";"), "separate its cells by ',', as the titles are"),
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


def test_damage_in_the_middle_is_told_after_the_flights_before_it(tmp_path: Path) -> None:
    lines = [LINE.replace(",335,", f",{n},") for n in range(1, 50_001)]
    packed = PACKINGS["gzip"]("\n".join([",".join(FIELD_NAMES), *lines]).encode())
    batches = validated(FlightFile(written(tmp_path, packed[: len(packed) // 2])))
    assert 0 < len(next(batches)[0]) <= BATCH_ROWS
    with pytest.raises(InvalidInput, match=r"'flights\.csv': is damaged or incomplete"):
        list(batches)


def test_batches_are_short_and_in_order(tmp_path: Path) -> None:
    rows = [FLOWN | {"OP_CARRIER_FL_NUM": str(n)} for n in range(1, 3501)]
    batches = list(validated(FlightFile(written(tmp_path, csv_text(rows)))))
    assert max(len(batch[0]) for batch in batches) <= BATCH_ROWS
    number = POSITION["OP_CARRIER_FL_NUM"]
    assert [row[number] for row in rows_of(batches)] == list(range(1, 3501))


# --- days ------------------------------------------------------------------------------------


def dated(folder: Path, days: list[str], weekdays: Sequence[object] | None = None) -> Path:
    """A file of a flight on each day, with or without its weekday."""
    names = [name for name in FIELD_NAMES if name not in {"YEAR", "DAY_OF_WEEK"}]
    rows = [FLOWN | {"FL_DATE": day} for day in days]
    if weekdays is not None:
        names.append("DAY_OF_WEEK")
        rows = [r | {"DAY_OF_WEEK": str(w)} for r, w in zip(rows, weekdays, strict=True)]
    return written(folder, csv_text(rows, names))


def days_of(path: Path, dates: str = "") -> list[object]:
    return [flight[POSITION["FL_DATE"]] for flight in flights_of(FlightFile(path, dates=dates))]


@pytest.mark.parametrize("dates", ["", DAY_FIRST])
def test_the_order_of_days_is_that_of_the_file_whatever_the_user_says(
    tmp_path: Path, dates: str
) -> None:
    dated(tmp_path, ["2019-03-13", "2019-03-14"])
    assert understood(open_source(tmp_path, dates=dates)).dates == YEAR_FIRST
    (tmp_path / "flights.csv").rename(tmp_path / "first.csv")
    dated(tmp_path, ["15/03/2019"])
    assert days_of(tmp_path, dates) == ["2019-03-13", "2019-03-14", "2019-03-15"]
    assert understood(open_source(tmp_path, dates=dates)).dates == DAY_FIRST


def test_days_that_may_be_two_are_refused_until_the_user_says_which(tmp_path: Path) -> None:
    path = dated(tmp_path, ["02/03/2019", "03/03/2019", "04/03/2019"])
    with pytest.raises(InvalidInput) as caught:
        FlightFile(path).check()
    assert "2019; add --dates month-first or --dates day-first" in str(caught.value)
    with pytest.raises(InvalidInput):
        flights_of(FlightFile(path))
    assert days_of(path, "day-first") == ["2019-03-02", "2019-03-03", "2019-03-04"]
    assert days_of(path, "month-first") == ["2019-02-03", "2019-03-03", "2019-04-03"]


@pytest.mark.parametrize("ahead", [1, 2500])
def test_a_day_far_down_decides_for_all_before_it(tmp_path: Path, ahead: int) -> None:
    path = dated(tmp_path, ["02/03/2019"] * ahead + ["13/03/2019"])
    assert understood(open_source(path)).dates == "day-first"
    assert days_of(path) == ["2019-03-02"] * ahead + ["2019-03-13"]


def test_of_days_that_nobody_can_read_no_order_is_said(tmp_path: Path) -> None:
    path = dated(tmp_path, ["03/20/19"] * 3)
    assert understood(open_source(path)).dates is None


def test_weekdays_prove_the_order_and_must_agree_with_every_row(tmp_path: Path) -> None:
    for weekdays in ([6, 2], ["Sat", "TUESDAY"]):
        path = dated(tmp_path, ["02/03/2019", "05/03/2019"], weekdays)
        assert days_of(path) == ["2019-03-02", "2019-03-05"]
    good, (message,) = bad_rows(dated(tmp_path, ["02/03/2019", "05/03/2019"], [6, 3]))
    assert good == 1
    assert "line 3: DAY_OF_WEEK 3: disagrees with FL_DATE 2019-03-05" in message


JOINED = {
    "day first, then month first": ["13/03/2019"] * 1000 + ["02/03/2019", "03/14/2019"],
    "month first, then day first": ["03/14/2019"] * 1500 + ["02/03/2019", "14/03/2019"],
    "TranStats, then day first": ["3/14/2019 12:00:00 AM"] * 1001 + ["13/03/2019"],
}


@pytest.mark.parametrize("name", JOINED)
@pytest.mark.parametrize("dates", ["", "proven"])
def test_a_file_that_was_put_together_of_two_orders_is_refused(
    tmp_path: Path, name: str, dates: str
) -> None:
    """Although bad rows may be left out, since the days beside this one would be misread."""
    order = "day-first" if name.startswith("day") else "month-first"
    with pytest.raises(BadRow, match=r"FL_DATE '.*': cannot be .*; write all days") as e:
        read(FlightFile(dated(tmp_path, JOINED[name]), dates=dates and order))
    assert e.value.row == len(JOINED[name]) + 1


COUNTED = {
    "0 = Monday": date.weekday,
    "": lambda day: day.isoweekday() % 7,
}
WEEKS = [date(2019, 3, 1) + timedelta(n) for n in range(1, 30)]


@pytest.mark.parametrize("first", [0, 1000])
@pytest.mark.parametrize("form", ["%Y-%m-%d", "%m/%d/%Y"])
@pytest.mark.parametrize("counted", COUNTED)
def test_weekdays_may_be_counted_otherwise_if_all_are(
    tmp_path: Path, counted: str, form: str, first: int
) -> None:
    flown = [WEEKS[0]] * first + WEEKS
    days, weekdays = [day.strftime(form) for day in flown], [*map(COUNTED[counted], flown)]
    source = open_source(dated(tmp_path, days, weekdays))
    assert [flight[1:3] for flight in flights_of(source)] == [
        (day.isoweekday(), day.isoformat()) for day in flown
    ]
    said = f"not used: DAY_OF_WEEK (counted from {counted})"
    assert (said in str(source.understood())) == bool(counted)
    path = dated(tmp_path, days, [*weekdays[:-1], weekdays[-2]])
    with pytest.raises(InvalidInput, match=r"DAY_OF_WEEK|weekday contradicts|order"):
        flights_of(open_source(path))
    if counted and form == "%Y-%m-%d":
        with pytest.raises(InvalidInput, match="DAY_OF_WEEK"):
            flights_of(open_source(dated(tmp_path, days[:1], weekdays[:1])))


def test_weekdays_from_sunday_on_might_be_days_that_are_one_off(tmp_path: Path) -> None:
    days, weekdays = map(str, WEEKS), [day.isoweekday() % 7 + 1 for day in WEEKS]
    with pytest.raises(InvalidInput, match="1 = Sunday, or days that a program moved back by one"):
        open_source(dated(tmp_path, [*days], weekdays))


def test_weekdays_that_are_counted_otherwise_decide_no_order(tmp_path: Path) -> None:
    weekdays = list(map(date.weekday, WEEKS[:11]))
    path = dated(tmp_path, [day.strftime("%m/%d/%Y") for day in WEEKS[:11]], weekdays)
    with pytest.raises(InvalidInput, match="a column of month, day or weekday contradicts"):
        open_source(path)
    days = [flight[2] for flight in flights_of(open_source(path, dates=MONTH_FIRST))]
    assert days == [day.isoformat() for day in WEEKS[:11]]


def test_days_in_three_columns_tell_how_weekdays_are_counted(tmp_path: Path) -> None:
    names = [n for n in FIELD_NAMES if n != "FL_DATE"] + ["MONTH", "DAY_OF_MONTH"]
    rows = [
        FLOWN
        | {"YEAR": "2019", "MONTH": str(day.month), "DAY_OF_MONTH": str(day.day)}
        | {"DAY_OF_WEEK": str(day.weekday())}
        for day in WEEKS
    ]
    flights = flights_of(open_source(written(tmp_path, csv_text(rows, names))))
    assert [flight[1] for flight in flights] == [day.isoweekday() for day in WEEKS]


@pytest.mark.parametrize(
    ("departure", "delay", "arrival", "clocks"),
    [
        ("2008-01-03 20:03:00", "8", "2008-01-03 22:11:00", ("2003", "2211")),
        ("2008-01-03T20:03", "8", "2008-01-04T00:11", ("2003", "0011")),
        ("1/3/2008 8:03:00 PM", "8", "1/3/2008 22:11", ("2003", "2211")),
        ("01/03/2008 20:03", "8", "3.1.2008 22:11", ("2003", "2211")),
        ("1/5/2008 20:03", "8", "5.1.2008 22:11", "DEP_TIME '1/5/2008 20:03': is not on"),
        ("2008-01-04 00:03:00.000", "8", "2008-01-04 02:11", ("0003", "0211")),
        ("2008-01-02 23:58", "-8", "2008-01-03 02:11", ("2358", "0211")),
        ("2008-01-05 00:01", "1500", "2008-01-05 02:11", ("0001", "0211")),
        ("2008-01-04 00:03", "0", "2008-01-04 02:11", "DEP_TIME '2008-01-04 00:03': is not on"),
        ("2008-01-03 20:03", "8", "2008-01-06 00:11", "ARR_TIME '2008-01-06 00:11': is not on"),
        ("2026-11-28 20:03", "8", "2026-11-28 22:11", "DEP_TIME '2026-11-28 20:03': is not on"),
        ("2008-01-03T20:03Z", "8", "2008-01-03T22:11Z", "or no local time without a zone"),
        ("2008-01-03T20:03-05:00", "8", "", "or no local time without a zone"),
        ("2008-01-03", "8", "2211", "must be a local time"),
    ],
)
def test_times_may_have_their_days_with_them(
    tmp_path: Path, departure: str, delay: str, arrival: str, clocks: tuple[str, str] | str
) -> None:
    late = {"DEP_DELAY": delay, "ARR_DELAY": delay}
    row = FLOWN | {"DEP_TIME": departure, "ARR_TIME": arrival} | late
    if "PM" in departure:
        row["FL_DATE"] = "1/3/2008"
    path = written(tmp_path, csv_text([row, CANCELLED, row]))
    if isinstance(clocks, tuple):
        flights = flights_of(open_source(path))
        assert [(flight[13], flight[15]) for flight in flights] == [clocks, (None, None), clocks]
    else:
        _, (message, _) = bad_rows(path)
        assert clocks in message


def test_days_in_another_order_than_the_one_named_say_so(tmp_path: Path) -> None:
    path = dated(tmp_path, ["02/03/2019", "03/14/2019"])
    for order, number in (("day-first", 3), ("year-first", 2)):
        with pytest.raises(BadRow, match=r"is read; .*, or name the right one") as error:
            read(open_source(path, dates=order))
        assert error.value.row == number


def test_weekdays_show_that_a_file_was_put_together_of_two_orders(tmp_path: Path) -> None:
    path = dated(tmp_path, ["02/03/2019"] * 1001, [6] * 1000 + [7])
    with pytest.raises(BadRow, match=r"line 1002: FL_DATE '02/03/2019': cannot be day, month"):
        bad_rows(path)


def test_days_with_the_year_first_before_others_do_not_decide_these(tmp_path: Path) -> None:
    days = ["2019-03-01"] * 1000 + ["02/03/2019", "13/03/2019"]
    with pytest.raises(BadRow, match="'02/03/2019': cannot be year, month, day, the order in"):
        bad_rows(dated(tmp_path, days))
    days = ["2019-03-01", "13/03/2019", "02/03/2019"]
    assert days_of(dated(tmp_path, days)) == ["2019-03-01", "2019-03-13", "2019-03-02"]


@pytest.mark.parametrize("share", [(0, 1), (1, 2)])
def test_days_that_a_spreadsheet_may_have_swapped_are_found_anywhere(
    tmp_path: Path, share: tuple[int, int]
) -> None:
    """It takes 04/03/2019 for 3 April where it can, and leaves 13/03/2019 as it is."""
    left = [f"{day}/03/2019" for day in range(13, 32)] * 60
    changed = [f"2019-{month:02d}-03" for month in range(1, 13)] * 100
    for days, dates in ((left + changed, ""), (left + changed, "day-first"), (changed + left, "")):
        source = FlightFile(dated(tmp_path, days), dates=dates)
        source.share = share
        with pytest.raises(InvalidInput, match=r"may have swapped|write all days in one"):
            list(source.rows())
    good, problems = bad_rows(dated(tmp_path, [*left, *changed, "04/03/2019"]))
    assert (good, problems) == (len(left) + len(changed) + 1, [])


def test_files_that_are_imported_together_are_of_one_kind(tmp_path: Path) -> None:
    folder = tmp_path / "months"
    folder.mkdir()
    written(folder, csv_text(ROWS), "1.csv")
    written(folder, csv_text(ROWS), "2.csv")
    source = FlightFile(folder)
    assert (flights_of(source), source.progress()) == (FLIGHTS * 2, 1)
    written(folder, monthly_text(ROWS), "3.csv")
    with pytest.raises(InvalidInput, match=r"3\.csv': is of another kind \(ready-made month"):
        FlightFile(folder).check()


# --- what it was taken for -------------------------------------------------------------------


def test_a_sample_shows_what_columns_were_understood_as(tmp_path: Path) -> None:
    path = written(tmp_path, monthly_text(ROWS * 3))
    known = understood(open_source(path))
    reading = known.reading
    assert reading.columns["OP_CARRIER_AIRLINE_ID"] == "DOT_ID_Reporting_Airline"
    assert (reading.derivations, reading.left_empty, known.dates) == ({}, [], "year-first")
    sample = known.sample()
    assert len(sample) == 5
    assert {name: str(value) for name, value in sample[0].items()} == FLOWN


def test_what_was_emptied_is_counted_in_the_latest_reading(tmp_path: Path) -> None:
    source = FlightFile(written(tmp_path, csv_text([*ROWS, CANCELLED | {"AIR_TIME": "53"}])))
    for _ in range(2):
        assert len(flights_of(source)) == 4
        known = understood(source)
        assert known.emptied == {"AIR_TIME": 1}
    assert str(known) == (
        "the 19 fields; days are written year, month, day; 1 cell of AIR_TIME emptied, "
        "because its value cannot be right"
    )


def test_what_two_processes_have_counted_is_added_up(tmp_path: Path) -> None:
    rows = [FLOWN | {"AIR_TIME": "0"}, *[FLOWN] * 999] * 2
    path = written(
        tmp_path, csv_text(rows).replace("\n2008", f"\n{','.join(FIELD_NAMES)}\n2008", 1)
    )
    known = understood(open_source(path))
    for place in range(2):
        source = FlightFile(path)
        source.share = (place, 2)
        list(source.rows())
        known = understood(source).joined(known)
    assert (known.emptied, known.repeated_headers) == ({"AIR_TIME": 2}, 1)


@pytest.mark.parametrize("time", ["8.15", "23,59", "8.3", "20.5"])
def test_times_with_points_make_those_of_full_hours_doubtful(tmp_path: Path, time: str) -> None:
    rows = [FLOWN | {"DEP_TIME": clock} for clock in ("8.0", time)]
    with pytest.raises(InvalidInput, match=f"has times such as '{time}', .* with a colon"):
        flights_of(FlightFile(written(tmp_path, csv_text(rows))))


def test_columns_that_mean_nothing_are_named_those_first_that_seem_to(tmp_path: Path) -> None:
    names = [name for name in FIELD_NAMES if name != "AIR_TIME"]
    titles = ["Tail", "Wheels_Off", "Stände\x1b", "Note", "AIR_TIME (min)"]
    text = csv_text([FLOWN | {titles[-1]: "116"}], [*names, *titles])
    known = understood(open_source(written(tmp_path, text)))
    assert known.reading.not_used == ["AIR_TIME (min)", "Tail", "Wheels_Off", "Stände\\x1b", "Note"]
    assert str(known).endswith(
        "left empty: AIR_TIME; not used: AIR_TIME (min), Tail, Wheels_Off, 2 more"
    )
    lacking = text.replace("ARR_DELAY", "Arrival Delay (minutes)")
    with pytest.raises(
        InvalidInput, match=r"ARR_DELAY.*; rename Arrival Delay \(minutes\), .* not read$"
    ):
        FlightFile(written(tmp_path, lacking)).check()


def test_a_state_that_others_spell_otherwise_is_stored_as_the_file_has_it(tmp_path: Path) -> None:
    """Cincinnati's airport is in Kentucky, for the table, and so for BTS."""
    kentucky = FLOWN | {"DEST": "CVG", "DEST_CITY_NAME": "Cincinnati, OH", "DEST_STATE_NM": "Ohio"}
    names = [name for name in FIELD_NAMES if name != "DEST_STATE_NM"]
    state = POSITION["DEST_STATE_NM"]
    path = written(tmp_path, csv_text([kentucky]))
    known = Airport("CVG", "Cincinnati, OH", "Kentucky")
    assert flights_of(FlightFile(path, ledger=lambda _: known))[0][state] == "Ohio"
    path = written(tmp_path, csv_text([kentucky], names))
    assert flights_of(FlightFile(path))[0][state] == "Kentucky"


HOURS = [str(hour) for hour in range(14, 23)]
MORNING = [f"{hour}:{minute}" for hour in range(5, 13) for minute in (10, 35)]
NIGHT = ["1:05", "2:59", "3:10", "4:00", *MORNING]
EVENING = ["9:20", "10:05", "12:59"]
DIGITS = [clock.replace(":", "") for clock in NIGHT]
TIMES = ("DEP_TIME", "ARR_TIME", "DEP_DELAY", "ARR_DELAY")
Columns = tuple[Sequence[object], ...]  # below these titles


@each_of(
    ("columns", "reason"),
    [
        ((["8.0", "NA", *HOURS], ["2211", "", "NA"], (1, 2), (3,)), "'8.0', which may be whole ho"),
        (([*HOURS, "1"], [*HOURS, "3"], (1,), (3,)), "which may be whole hours; write times"),
        ((NIGHT, EVENING, (1, 2), (3,)), "times such as '4:00', which may be 12-hour times"),
        ((NIGHT, ["11:02", "noon", "1310"], (1, 2), (3,)), "times without AM or PM"),
        (
            ([f"0{NIGHT[0]}:00", *NIGHT[1:]], ["1:15:00", ""], (1, 2), (3,)),
            "times without AM or PM",
        ),
        (
            ([f"1900-01-01 {clock:0>5}:00" for clock in NIGHT], ["2008-01-03 1:15"], (1,), (3,)),
            "times without AM or PM",
        ),
        ((DIGITS, ["1102", "NA"], (1, 2), (3,)), "such as '400', which may be 12-hour times"),
        (([f"{digits}.0" for digits in DIGITS], ["959.0"], (1, 2), (3,)), "or add AM and PM"),
        ((["811"], ["930"], (60, -120, 480, "", 540, 0, "-600.00"), (0, 3600, "", 61)), "may be s"),
    ],
)
def test_columns_in_another_unit_are_refused(tmp_path: Path, columns: Columns, reason: str) -> None:
    zeros = dict.fromkeys(TIMES, "0")
    for first in ([], [CANCELLED] * 1200, [CANCELLED | zeros] * 1200):  # as a database sorts them
        with pytest.raises(InvalidInput, match=reason):
            read(open_source(timed(tmp_path, columns, first)))


def test_clocks_that_are_sorted_tell_further_down_that_they_may_lack_am_or_pm(
    tmp_path: Path,
) -> None:
    early, late = MORNING * 80, ["1:05", "2:59", "3:10", "4:00", "4:30"] * 40
    rows = [FLOWN | {"DEP_TIME": clock, "ARR_TIME": "12:59"} for clock in (*early, *late)]
    source = open_source(written(tmp_path, csv_text(rows)))
    with pytest.raises(InvalidInput, match="times without AM or PM"):
        read(source)
    for place in (0, len(early)):  # what is later, or at 0:.., settles it for all that follows
        good = [*rows[:place], rows[0] | {"DEP_TIME": "13:05"}, *rows[place:]]
        good.insert(place, rows[0] | {"DEP_TIME": "0:05"})
        assert read(open_source(written(tmp_path, csv_text(good))))[1] == []


@each_of("cells", [{"ARR_DELAY": "3"}, {"ARR_TIME": "2211", "ARR_DELAY": "0"}])
def test_diverted_flights_that_come_first_are_compared_with_all_others(
    tmp_path: Path, cells: dict[str, str]
) -> None:
    names = [name for name in FIELD_NAMES if name != "DAY_OF_WEEK"]
    rows = [*[DIVERTED | cells] * 1200, *[FLOWN] * 300]
    _, bad = read(open_source(written(tmp_path, csv_text(rows, names))))
    assert len(bad) == 1200


@each_of(
    "columns",
    [
        (HOURS, ["2211"], (60, -120, 480, 540, 0), (-14,)),  # too few to tell
        (["0005", *HOURS], ["2211"], (60, -120, 480, 540, 61), (-60,)),
        ([*NIGHT, "13:00"], EVENING, (1, 2), (3,)),
        ([*NIGHT, "0:05"], EVENING, (1, 2), (3,)),
        (NIGHT[2:], ["12:59"], (1, 2), (3,)),
        ([*MORNING, "6:15", "7:15", "8:15", "9:15", "4:55"], EVENING, (1, 2), (3,)),
        (NIGHT, [*EVENING, "13:10"], (1, 2), (3,)),
        (NIGHT, [*EVENING, "0:35"], (1, 2), (3,)),
        ([*DIGITS, "1300"], ["0959"], (1, 2), (3,)),
        (DIGITS, ["0959", "35.0"], (1, 2), (3,)),
        (["811"], ["930"], (60, -120, 480, "", 540, 0, "-600.00"), (0, 60, 7, -8)),
    ],
)
def test_columns_in_their_own_unit_are_read(tmp_path: Path, columns: Columns) -> None:
    assert read(open_source(timed(tmp_path, columns)))[1] == []


def test_times_of_an_export_were_judged_when_they_were_stored(tmp_path: Path) -> None:
    rows = [FLOWN | {"TRANSACTION_ID": "7", "DEP_TIME": t, "ARR_TIME": "0959"} for t in DIGITS]
    source = open_source(written(tmp_path, csv_text(rows, ["TRANSACTION_ID", *FIELD_NAMES])))
    assert read(source)[1] == []


@each_of(
    ("times", "arrivals", "are_minutes"),
    [
        ("7 9 12 14 15 18 19 21 22 24", "110 0055 140 205 1:24 0615 59 200 135 150", True),
        ("7 9 12 14 15 18 19 21 22 24", "840 1105 1350 1810 1655 1940 2230 2359 0010 0120", False),
        ("0 1 2 3 4 5 6 7 8 9", "150 240 0500 610 455 720 925 1010 1130 1202", False),
        ("7 9 12 14 15 18 19 21 22 24", "8 11 14 16 17 19 21 23 23 1", False),
        ("7 9 12 14 15 18 19 21 22 24", "- - - - - - - - - -", False),
    ],
)
def test_times_up_to_24_are_minutes_if_the_arrivals_say_so(
    tmp_path: Path, times: str, arrivals: str, are_minutes: bool
) -> None:
    both = zip(times.split(), arrivals.split(), strict=True)
    rows = [FLOWN | {"DEP_TIME": time, "ARR_TIME": arrival} for time, arrival in both]
    path = written(tmp_path, csv_text(rows))
    if are_minutes:
        assert [flight[13] for flight in flights_of(open_source(path))][:2] == ["0007", "0009"]
    else:
        with pytest.raises(InvalidInput, match="which may be whole hours"):
            open_source(path)


def timed(folder: Path, columns: Columns, first: Sequence[dict[str, str]] = ()) -> Path:
    """A file of flights with these times and delays, below other ones."""
    rows = [
        FLOWN
        | {name: str(cells[n % len(cells)]) for name, cells in zip(TIMES, columns, strict=True)}
        for n in range(len(columns[0]) * len(columns[2]))
    ]
    return written(folder, csv_text([*first, *rows]))
