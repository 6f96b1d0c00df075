"""Files whose titles stand above values of another column are refused, with any rows below them."""

import re
from pathlib import Path

import pytest

from backend.base.errors import InvalidInput
from backend.chain.fields import FIELD_NAMES
from backend.sources import open_source
from backend.sources.airports import airport_numbers, airport_of
from tests.sources.samples import FLOWN, csv_text, flights_of, written

PLACES = [
    (12264, "IAD", "Washington, DC", "Virginia"),
    (11193, "CVG", "Cincinnati, OH", "Kentucky"),
    (13930, "ORD", "Chicago, IL", "Illinois"),
    (11292, "DEN", "Denver, CO", "Colorado"),
]
PLACE = ("AIRPORT_ID", "", "CITY_NAME", "STATE_NM")


def end_of(end: str, place: tuple[object, ...]) -> dict[str, str]:
    return {f"{end}_{n}".rstrip("_"): str(v) for n, v in zip(PLACE, place, strict=True)}


ROWS = [
    FLOWN | end_of("ORIGIN", origin) | end_of("DEST", destination)
    for origin, destination in zip(PLACES, PLACES[1:] + PLACES[:1], strict=True)
]
SWAPPED = [
    ("ORIGIN_STATE_NM", "DEST_STATE_NM"),
    ("ORIGIN_CITY_NAME", "DEST_CITY_NAME"),
    ("ORIGIN_AIRPORT_ID", "DEST_AIRPORT_ID"),
    ("ORIGIN", "DEST"),
    ("OP_CARRIER_AIRLINE_ID", "OP_CARRIER_FL_NUM"),
    ("OP_CARRIER_AIRLINE_ID", "ORIGIN_AIRPORT_ID"),
    ("OP_CARRIER_FL_NUM", "DEST_AIRPORT_ID"),
]


@pytest.mark.parametrize("titles", SWAPPED)
def test_a_file_with_two_titles_swapped_is_refused(tmp_path: Path, titles: tuple[str, str]) -> None:
    assert len(flights_of(open_source(written(tmp_path, csv_text(ROWS))))) == len(ROWS)
    title, other = titles
    path = written(tmp_path, csv_text(ROWS, titles={title: other, other: title}))
    with pytest.raises(InvalidInput, match="in most rows; correct the titles"):
        open_source(path)
    of_one_route = csv_text(ROWS[2:3], titles={title: other, other: title})
    with pytest.raises(InvalidInput, match="in most rows"):
        open_source(written(tmp_path, of_one_route))


@pytest.mark.parametrize("scheduled", ["CRS_DEP_TIME", "sched_dep_time"])
def test_departures_that_contradict_their_delays_are_refused(
    tmp_path: Path, scheduled: str
) -> None:
    """Two titles may be swapped, or delays be cut off at 0."""
    row = FLOWN | {scheduled: "1955", "DEP_TIME": "20:03"}
    late = row | {"DEP_TIME": "0003", "DEP_DELAY": "248"}
    assert refused(tmp_path, [row] * 60 + [late] * 60) == ""
    some = [row] * 40 + [late | {"DEP_DELAY": "0"}] * 20
    of_two = [*some, *(cells | {"OP_CARRIER_AIRLINE_ID": "19790"} for cells in some)]
    for rows in ([row | {"DEP_DELAY": "0"}] * 120, of_two):
        assert "which disagree in many rows; correct the titles" in refused(tmp_path, rows)
        assert refused(tmp_path, rows[-60:]) == "", "they are few"
    for one, other in (("DEP_TIME", "ARR_TIME"), ("DEP_DELAY", "ARR_DELAY")):
        reason = refused(tmp_path, [row] * 120, {one: other, other: one})
        assert f"{scheduled} 1955, which disagree" in reason


def test_arrivals_that_contradict_their_delays_are_refused(tmp_path: Path) -> None:
    row = FLOWN | {"CRS_ARR_TIME": "2225"}
    assert refused(tmp_path, [row] * 120) == ""
    reason = refused(tmp_path, [row | {"ARR_DELAY": "0"}] * 120)
    assert "ARR_DELAY 0 beside CRS_ARR_TIME 2225, which disagree in many rows" in reason


def test_delays_and_schedules_that_a_single_carrier_reported_otherwise_are_taken(
    tmp_path: Path,
) -> None:
    """OO's early departures have the delay 0 in 2003, and AA's schedules of 1996 are 0."""
    row = FLOWN | {"CRS_DEP_TIME": "1955"}
    cut_off = row | {"DEP_TIME": "1953", "DEP_DELAY": "0"}
    other = {"OP_CARRIER_AIRLINE_ID": "19790"}
    rows = [row] * 50 + [cut_off] * 70
    assert refused(tmp_path, rows) == ""
    assert refused(tmp_path, [*rows, row | other]) == ""
    assert "which disagree in many rows" in refused(tmp_path, [*rows, cut_off | other])
    assert refused(tmp_path, [row | {"CRS_DEP_TIME": "0"}] * 120) == ""
    third = {"OP_CARRIER_AIRLINE_ID": "20304"}
    assert refused(tmp_path, [row] * 98 + [cut_off | other, cut_off | third]) == "", "slips"
    put_behind = [row] * 1000 + [*rows, cut_off | other]
    assert "which disagree in many rows" in refused(tmp_path, put_behind)
    by_carrier = (rows * 9)[:1000]  # which is a batch
    by_carrier += [cells | other for cells in by_carrier]
    assert "which disagree in many rows" in refused(tmp_path, by_carrier)


def flown(number: int) -> dict[str, str]:
    """One of 150 flights that are scheduled at full five minutes and leave, mostly, at others."""
    delay, minutes = number % 7 - 2, 70 + number % 40
    left = 360 + number // 10 * 5 + delay
    cells = {"DEP_TIME": left, "ARR_TIME": left + minutes + 15}
    times = {name: f"{time // 60:02d}{time % 60:02d}" for name, time in cells.items()}
    delays = {"DEP_DELAY": str(delay), "ARR_DELAY": str(number % 11 - 5)}
    return FLOWN | times | delays | {"AIR_TIME": str(minutes), "OP_CARRIER_FL_NUM": str(number + 1)}


@pytest.mark.parametrize("before", [0, 1000])  # in what another program may have put behind
@pytest.mark.parametrize(
    ("column", "other", "reason"),
    [
        ("DEP_TIME", "ARR_TIME", "flights arrive before they leave in many rows"),
        ("DEP_DELAY", "ARR_DELAY", "which may be delays of the other end"),
        ("AIR_TIME", "DISTANCE", "which may be a distance or a clock; write minutes in the air"),
        ("ORIGIN", "DEST", "which disagree in most rows"),
    ],
)
def test_times_of_another_column_are_refused_wherever_they_begin(
    tmp_path: Path, column: str, other: str, reason: str, before: int
) -> None:
    good = [flown(number) for number in range(150)]
    assert refused(tmp_path, good) == ""
    codes = list(airport_numbers().items())[:40]
    ends = [(number, *known) for code, number in codes if (known := airport_of(code))]
    wrong = list[dict[str, str]]()
    for row, place in zip(good, ends * 4, strict=False):
        cells = row | end_of("DEST", place) | {"DISTANCE": str(int(row["AIR_TIME"]) * 9)}
        wrong.append(row | end_of("DEST", place) | {column: cells[other], other: cells[column]})
    rows = good * (before // 150) + good[: before % 150] + wrong
    assert reason in refused(tmp_path, [{name: row[name] for name in FIELD_NAMES} for row in rows])


def test_made_up_departures_at_full_five_minutes_are_taken(tmp_path: Path) -> None:
    rows = [flown(number) | {"DEP_TIME": f"06{number % 12 * 5:02d}"} for number in range(150)]
    assert refused(tmp_path, rows) == ""


def test_abbreviations_of_states_are_compared_if_they_are_used(tmp_path: Path) -> None:
    column = "ORIGIN_STATE_ABR"
    rows = [
        row | {column: state} for row, state in zip(ROWS, ("NC", "GA", "NY", "NC"), strict=True)
    ]
    names = [column if name == "ORIGIN_STATE_NM" else name for name in FIELD_NAMES]
    with pytest.raises(
        InvalidInput, match=f"ORIGIN '.*' beside {column} '..', which disagree in most rows"
    ):
        open_source(written(tmp_path, csv_text(rows, names)))
    path = written(tmp_path, csv_text(rows, [*FIELD_NAMES, column]))
    assert len(flights_of(open_source(path))) == len(rows)


def test_what_people_spell_otherwise_for_some_airports_is_taken(tmp_path: Path) -> None:
    newark = end_of("ORIGIN", (11618, "EWR", "New York, NY", "New Jersey"))
    unknown = end_of("DEST", (99999, "XQQ", "Nowhere, ZZ", "Elsewhere"))
    rows = [ROWS[0] | newark, ROWS[1] | newark | unknown]
    assert len(flights_of(open_source(written(tmp_path, csv_text(rows))))) == len(rows)


@pytest.mark.parametrize("state", ["Virginia", "District of Columbia"])
def test_the_airports_of_washington_are_in_two_states(tmp_path: Path, state: str) -> None:
    dca = end_of("ORIGIN", (11278, "DCA", "Washington, DC", state))
    rows = [row | dca for row in ROWS] + [ROWS[2] | end_of("ORIGIN", PLACES[0])]
    assert len(flights_of(open_source(written(tmp_path, csv_text(rows))))) == len(rows)


# --- carriers, airports and days that a file names twice --------------------------------------

NUMBERED = {"FL": "20437", "DL": "19790", "NW": "19386"}
FLOWN_BY = [FLOWN | {"OP_CARRIER_AIRLINE_ID": n, "CODE": c} for c, n in NUMBERED.items()]


def refused(folder: Path, rows: list[dict[str, str]], titles: dict[str, str] | None = None) -> str:
    """Returns why a file with all columns of these rows is refused; "" if it is not."""
    path = written(folder, csv_text(rows, list(rows[0]), titles))
    try:
        flights = flights_of(open_source(path))
    except InvalidInput as error:
        return re.sub(r"^file '.*?': ", "", str(error))
    assert len(flights) == len(rows)
    return ""


@pytest.mark.parametrize("code", ["OP_UNIQUE_CARRIER", "CARRIER"])
@pytest.mark.parametrize("numbers", [("7", "3", "11"), ("19790", "19386", "20437")])
def test_numbers_of_carriers_that_contradict_their_codes_are_refused(
    tmp_path: Path, numbers: tuple[str, ...], code: str
) -> None:
    titles = {"CODE": code}
    assert refused(tmp_path, FLOWN_BY, titles) == ""
    rows = [
        row | {"OP_CARRIER_AIRLINE_ID": f"{number}.0"}
        for row, number in zip(FLOWN_BY, numbers, strict=True)
    ]
    assert refused(tmp_path, rows, titles).startswith(
        f"has OP_CARRIER_AIRLINE_ID {min(numbers)} be"
    )
    reason = refused(tmp_path, rows[1:2], titles)
    assert reason == (
        f"has OP_CARRIER_AIRLINE_ID {numbers[1]} beside {code} 'DL', which disagree in most "
        "rows; write DOT numbers of carriers (such as 19393), or remove the column "
        "OP_CARRIER_AIRLINE_ID: the codes are enough"
    )
    assert refused(tmp_path, [*FLOWN_BY, rows[0]], titles) == "", "a slip"


def test_numbers_of_carriers_without_codes_are_taken_as_they_stand(tmp_path: Path) -> None:
    rows = [FLOWN | {"OP_CARRIER_AIRLINE_ID": number} for number in ("7", "9", "11")]
    assert refused(tmp_path, rows) == ""


def test_codes_that_a_carrier_had_at_times_do_not_contradict_its_number(tmp_path: Path) -> None:
    for number, codes in (("20374", ("XE", "RU")), ("20384", ("PA (1)", "PA")), ("20417", ("OH",))):
        for code in codes:
            row = FLOWN | {"OP_CARRIER_AIRLINE_ID": number, "UNIQUE_CARRIER": code}
            assert refused(tmp_path, [row | {"OP_CARRIER": codes[0]}]) == ""


def test_numbers_of_airports_that_are_none_are_refused_beside_codes(tmp_path: Path) -> None:
    rows = [
        row | {"ORIGIN_AIRPORT_ID": str(n), "DEST_AIRPORT_ID": str(n + 1)}
        for n, row in enumerate(ROWS, 30)
    ]
    assert refused(tmp_path, rows) == "", "with the columns of a flight alone, as they are posted"
    assert "AIRPORT_ID 3" in refused(tmp_path, [row | {"TAIL_NUM": "N1"} for row in rows])
    unknown = end_of("ORIGIN", (99999, "XQQ", "Nowhere, TX", "Texas"))
    assert refused(tmp_path, [row | unknown for row in ROWS]) == ""


@pytest.mark.parametrize(
    ("first", "second", "same", "other"),
    [
        ("OP_UNIQUE_CARRIER", "CARRIER", ("WN", "WN "), "DL"),
        ("OP_CARRIER", "CARRIER", ("XE", "RU"), "EV"),
        ("OP_CARRIER", "CARRIER", ("WN", "Southwest"), "DL"),
        ("DAY_OF_MONTH", "DAY", ("3", "03"), "4"),
        ("DAY_OF_MONTH", "DAY", ("3", "Thursday"), "4"),
        ("ORIGIN_STATE_ABR", "OriginState", ("VA", "Virginia"), "OH"),
    ],
)
def test_columns_that_should_be_the_same_are_compared(
    tmp_path: Path, first: str, second: str, same: tuple[str, str], other: str
) -> None:
    flown = {n: cell for n, cell in FLOWN.items() if n != "OP_CARRIER_AIRLINE_ID"}
    row = flown | {"OP_CARRIER": "WN", "MONTH": "1", first: same[0], second: same[1]}
    wrong = row | {second: other}
    assert refused(tmp_path, [row, row, wrong]) == "", "a slip"
    reason = refused(tmp_path, [row, wrong, wrong])
    assert first in reason
    assert second in reason
    assert reason.endswith("which disagree in most rows; remove the wrong one of these two columns")
