"""A MariaDB with a few flights, for the tests of a module."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from loadtests.servers.mariadb import Database, mariadb

HEADER = (
    "TRANSACTION_ID,timestamp,YEAR,DAY_OF_WEEK,FL_DATE,OP_CARRIER_AIRLINE_ID,OP_CARRIER_FL_NUM,"
    "ORIGIN_AIRPORT_ID,ORIGIN,ORIGIN_CITY_NAME,ORIGIN_STATE_NM,DEST_AIRPORT_ID,DEST,"
    "DEST_CITY_NAME,DEST_STATE_NM,DEP_TIME,DEP_DELAY,ARR_TIME,ARR_DELAY,CANCELLED,AIR_TIME,"
    "BLOCK_HEIGHT"
)
NAMES = '10599,BHM,"Birmingham, AL",Alabama,12889,LAS,"Las ""Vegas"", NV",Nevada'
FLIGHTS = 1000


def row(number: int) -> str:
    """A flight; every tenth is cancelled."""
    when = f"1795314511522,2015,4,2015-01-{1 + number % 31:02d},{19393 + number % 3},{number % 50}"
    times = ",,,,1," if number % 10 == 0 else f"0540,40,0740,{number % 7},0,223"
    return f"{number},{when},{NAMES},{times},{1 + number // 1000}"


def written(folder: Path, flights: int = FLIGHTS) -> Path:
    """A file as the service exports it."""
    path = folder / "flights.csv"
    lines = [HEADER, *(row(number) for number in range(flights))]
    path.write_bytes("".join(f"{line}\r\n" for line in lines).encode())
    return path


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """Three groups in its thread pool, 1000 flights."""
    folder = tmp_path_factory.mktemp("mariadb")
    with mariadb(folder, folder / "log", workers=3) as running:
        running.load(written(folder))
        yield running
