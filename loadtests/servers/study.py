"""Serves the study's way of storing and answering: `loadtests.baseline` behind a single worker.

    GET /flight_counter?ORIGIN_CITY_NAME=&DEST_CITY_NAME=&INITIAL_DATE=&FINAL_DATE=
    GET /average_delays?OP_CARRIER_AIRLINE_ID=&INITIAL_DATE=&FINAL_DATE=
    GET /filter_transactions?OP_CARRIER_FL_NUM=&FL_DATE=
    GET /get_block?height=      GET /get_transaction?id=

Like the study's server it answers one request at a time.

Server-Timing has `disk_reads` (number of blocks) and `cache_hits` (number of blocks; all other
requests for blocks began a refill).

With an emulated disk (K = `emulated_disk`) reading a block takes (46 + 39)/K ms, including the
real work, which is less in the blocks of `write_small_chain`, so that only K counts. A flight
question reads 503 of 522 blocks in 27 refills, so its service time is 503 × 85/K ms = 42.755/K s
with the numbers of the study's profiler; the study measured 40.499 s.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import partial
from pathlib import Path

from loadtests.baseline import Costs, StudyLedger, write_chain
from loadtests.processes import Service
from loadtests.questions import KINDS, PARAMETERS
from loadtests.servers import timed_apps
from loadtests.servers.gunicorn import FCFS, gunicorn_server
from loadtests.servers.timed_apps import Answer, Application

READ_MS, CHECK_MS = 46.0, 39.0
BLOCKS = 522
SMALL_BLOCK_FLIGHTS = 1
SMALL_CHAIN_FLIGHT = {
    "FL_DATE": "2010-02-01",
    "OP_CARRIER_AIRLINE_ID": 19393,
    "OP_CARRIER_FL_NUM": 335,
    "ORIGIN_CITY_NAME": "Chicago, IL",
    "DEST_CITY_NAME": "Springfield, IL",
    "ARR_DELAY": 7,
}
FLIGHT_COUNTER = (
    "/flight_counter?ORIGIN_CITY_NAME=Chicago,%20IL&DEST_CITY_NAME=Springfield,%20IL"
    "&INITIAL_DATE=2010-01-20&FINAL_DATE=2011-01-20"
)
"""The only question of the study's load tests. Every flight of a small chain counts in it."""


Ask = Callable[[Mapping[str, str]], object]  # the parameters of a request -> what is found


def write_small_chain(folder: Path, blocks: int = BLOCKS) -> int:
    """Write as many blocks as the study had, with almost nothing in them. Returns how many."""
    return write_chain(folder, [[SMALL_CHAIN_FLIGHT] * SMALL_BLOCK_FLIGHTS] * blocks)


def running(
    folder: Path, log: Path, *, emulated_disk: float = 0
) -> AbstractContextManager[Service]:
    """Run the server of `application` on a free port until the `with` block ends.

    folder: a chain by `write_chain`. Raises ProgramFailed if it does not start.
    """
    made = f"loadtests.servers.study:application({str(folder.resolve())!r}, {emulated_disk!r})"
    return gunicorn_server(made, FCFS, log, timed_apps.LIVE)


def application(folder: str, emulated_disk: float = 0) -> Application:
    """Return the WSGI application. emulated_disk: K, 0 for none. Raises BlockMismatch, OSError."""
    block_s = (READ_MS + CHECK_MS) / 1000 / emulated_disk if emulated_disk else 0.0
    ledger = StudyLedger(Path(folder), block_s=block_s)
    asks: dict[str, Ask] = {
        **{kind: partial(_question, ledger, kind) for kind in KINDS},
        "get_block": lambda given: _block(ledger, int(given["height"])),
        "get_transaction": lambda given: ledger.transaction(int(given["id"])),
    }
    routes = {f"/{name}": partial(_answer, ledger, name, ask) for name, ask in asks.items()}
    return timed_apps.application(routes)


def _answer(ledger: StudyLedger, name: str, ask: Ask, given: Mapping[str, str]) -> Answer:
    """Return the answer of `ask` to a request with these parameters, and what it cost."""
    ledger.costs = costs = Costs()
    body = {name: ask(given)}
    return Answer(body, counts=asdict(costs))


def _question(ledger: StudyLedger, kind: str, given: Mapping[str, str]) -> object:
    return getattr(ledger, kind)(*(given[name] for name in PARAMETERS[kind]))


def _block(ledger: StudyLedger, height: int) -> object:
    block = ledger.block(height)
    return {**vars(block), "transactions": [vars(flight) for flight in block.transactions]}
