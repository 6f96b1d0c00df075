"""Files whose titles stand above values of another column are refused, with any rows below them."""

from pathlib import Path

import pytest

from backend.base.errors import InvalidInput
from backend.chain.fields import FIELD_NAMES
from backend.sources import open_source
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
    FLOWN | end_of("ORIGIN", one) | end_of("DEST", other)
    for one, other in zip(PLACES, PLACES[1:] + PLACES[:1], strict=True)
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
    one, other = titles
    path = written(tmp_path, csv_text(ROWS, titles={one: other, other: one}))
    with pytest.raises(InvalidInput, match="in most rows; put the titles of its columns right"):
        open_source(path)
    of_one_route = csv_text(ROWS[2:3], titles={one: other, other: one})
    with pytest.raises(InvalidInput, match="in most rows"):
        open_source(written(tmp_path, of_one_route))


def test_abbreviations_of_states_are_compared_if_they_are_used(tmp_path: Path) -> None:
    column = "ORIGIN_STATE_ABR"
    rows = [
        row | {column: state} for row, state in zip(ROWS, ("NC", "GA", "NY", "NC"), strict=True)
    ]
    names = [column if name == "ORIGIN_STATE_NM" else name for name in FIELD_NAMES]
    with pytest.raises(InvalidInput, match=f"ORIGIN '.*' beside {column} '..' in most rows"):
        open_source(written(tmp_path, csv_text(rows, names)))
    path = written(tmp_path, csv_text(rows, [*FIELD_NAMES, column]))
    assert len(flights_of(open_source(path))) == len(rows)


def test_what_people_spell_otherwise_for_some_airports_is_taken(tmp_path: Path) -> None:
    newark = end_of("ORIGIN", (11618, "EWR", "New York, NY", "New Jersey"))
    unknown = end_of("DEST", (99999, "XQQ", "Nowhere, ZZ", "Elsewhere"))
    rows = [ROWS[0] | newark, ROWS[1] | newark | unknown]
    assert len(flights_of(open_source(written(tmp_path, csv_text(rows))))) == len(rows)


def test_the_airports_of_washington_are_in_virginia_too(tmp_path: Path) -> None:
    dca = end_of("ORIGIN", (11278, "DCA", "Washington, DC", "Virginia"))
    rows = [row | dca for row in ROWS] + [ROWS[2] | end_of("ORIGIN", PLACES[0])]
    assert len(flights_of(open_source(written(tmp_path, csv_text(rows))))) == len(rows)
