"""Backend and frontend as processes, over a small ledger."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import requests

from backend.chain.fields import FIELD_NAMES
from backend.storage.block_store import BlockStore
from tests.api.processes import ROOT, Service, environment, free_port, is_answered, living, until
from tests.api.worlds import GOOD, Json, generated, seal, settings_for
from tests.flights import changed, csv_of, on_disk
from tests.frontend.lab.folders import make_result

# Flights of each block after genesis.
RESULT = "open-workload-20261003-101500"  # of the lab
LEDGERS: dict[str, list[int]] = {"many": [40, 1, 0, 59, *[50] * 26], "empty": []}


@dataclass(frozen=True, slots=True)
class Site:
    """Pages at `url` over `service`. values: for the addresses in the table."""

    url: str
    service: Service
    values: dict[str, str]

    def address(self, template: str) -> str:
        """Return `template` with the values of this ledger."""
        return template.format_map(self.values)


def lab_dir(folder: Path) -> Path:
    """Where the pages over the chain in `folder` look for results of the lab."""
    return folder.parent / "lab"


def make_ledger(folder: Path, sizes: list[int]) -> None:
    """Make a chain with made-up flights; beside it, unless it is empty, a result of the lab."""
    if sizes:
        make_result(lab_dir(folder) / RESULT)
    flights = iter(generated(sum(sizes)) if sizes else [])
    seal(settings_for(folder), [[next(flights) for _ in range(size)] for size in sizes])


@contextmanager
def site_over(folder: Path) -> Iterator[Site]:
    """Pages and service over the chain in `folder`, without a miner: see `Site.service`."""
    with served(folder) as service, shown(service) as url:
        yield Site(url, service, values_in(folder) | {"import": checked_file(service)})


def checked_file(service: Service) -> str:
    """The id of a file that was sent and is checked, with a new flight and a bad row.

    On a ledger with flights, one of its others is there already, and one contradicts it.
    """
    first, second = generated(2)
    conflict = changed(first, ORIGIN_CITY_NAME="Elsewhere, XX")
    new = changed(first, OP_CARRIER_AIRLINE_ID=89_999)
    body = csv_of([conflict, second, new, ["x", *new[1:]]])
    ours = f"{service.url}/imports"
    sent = requests.post(f"{ours}?NAME=four.csv&SIZE={len(body)}", timeout=20).json()["IMPORT_ID"]
    for step in (f"{sent}?OFFSET=0", f"{sent}/check"):
        requests.post(f"{ours}/{step}", body, timeout=20).raise_for_status()
    until(lambda: service.json(f"/imports/{sent}")["state"] == "checked")
    return str(sent)


@contextmanager
def served(folder: Path, port: int = 0) -> Iterator[Service]:
    """The service alone, at `port` or a free one; nothing is mined unless a test does."""
    settings: dict[str, Any] = {"FLIGHTCHAIN_WORKERS": 1, "FLIGHTCHAIN_PORT": port or free_port()}
    with living(folder, "--only-http", **settings) as service:
        yield service


@contextmanager
def shown(service: Service, port: int = 0) -> Iterator[str]:
    """The frontend of `service` at `port` or a free one; its address."""
    ports = {"FLIGHTCHAIN_PORT": service.port, "FLIGHTCHAIN_FRONTEND_PORT": port or free_port()}
    lab = {"FLIGHTCHAIN_LAB_DIR": lab_dir(service.folder)}
    process = subprocess.Popen(
        [sys.executable, "-m", "frontend"],
        cwd=ROOT,
        env=environment(service.folder, **ports, **lab),
    )
    url = f"http://127.0.0.1:{ports['FLIGHTCHAIN_FRONTEND_PORT']}"
    try:
        until(lambda: is_answered(f"{url}/health/live"))
        yield url
    finally:
        process.terminate()
        process.wait(20)


def values_in(folder: Path) -> dict[str, str]:
    """Return values of the chain in `folder` for addresses, quoted for a query string.

    Of a flight in the middle; on an empty ledger of one that could be there.
    """
    flights: list[Json] = [
        dict(zip(FIELD_NAMES, flight, strict=True)) for flight in on_disk(folder).flights
    ]
    flight = flights[len(flights) // 2] if flights else GOOD
    days = sorted(leg["FL_DATE"] for leg in flights or [GOOD])
    with closing(BlockStore(folder)) as store:
        tip = store.height()
        newest = store.place(tip).hash.hex()
    origin = flight["ORIGIN_CITY_NAME"]
    used = {(leg["OP_CARRIER_FL_NUM"], leg["OP_CARRIER_AIRLINE_ID"]) for leg in flights}
    common = Counter(number for number, _ in sorted(used)).most_common(1)
    values = {
        "number": flight["OP_CARRIER_FL_NUM"],
        "shared_number": common[0][0] if common else flight["OP_CARRIER_FL_NUM"],
        "carrier": flight["OP_CARRIER_AIRLINE_ID"],
        "day": flight["FL_DATE"],
        "first": days[0],
        "last": days[-1],
        "origin": origin,
        "origin_typo": origin[:2] + origin[3:],
        "destination": flight["DEST_CITY_NAME"],
        "airport": flight["ORIGIN"],
        "id": len(flights) // 2,
        "tip": tip,
        "hash": newest,
        "result": RESULT,
    }
    return {name: quote_plus(str(value)) for name, value in values.items()}
