"""The study's way of storing and answering as a server: `loadtests.baseline` behind one worker.

    GET /flight_counter?ORIGIN_CITY_NAME=&DEST_CITY_NAME=&INITIAL_DATE=&FINAL_DATE=
    GET /average_delays?OP_CARRIER_AIRLINE_ID=&INITIAL_DATE=&FINAL_DATE=
    GET /filter_transactions?OP_CARRIER_FL_NUM=&FL_DATE=
    GET /get_block?height=      GET /get_transaction?id=

The study's server answered one request at a time, so one thread is the default. With more threads,
each has its own `random` cache, because a shared one would need locks that the study did not have.

Server-Timing has the stages of reading (`file_read`, `decode`, `build_objects`, `reencode`,
`hash`), `emulated` (waits), `disk_reads` (number of blocks) and `cache_hits` (number of blocks; all
other requests for blocks began a refill).

With an emulated disk (K = `emulated_disk`) reading a block takes (46 + 39)/K ms, or another
`block_ms`/K, including the real work. `write_small_chain` makes blocks so small that the real work
is less than that, so that only K counts. A flight question reads 503 of 522 blocks in 27 refills,
so its service time is 503 × 85/K ms = 42.755/K s with the numbers of the study's profiler; the
study measured 40.499 s. `block_ms_for` gives the `block_ms` for a service time.
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from loadtests.baseline import CACHED_BLOCKS, STAGES, Costs, StudyLedger, write_chain
from loadtests.processes import Service
from loadtests.servers import answering
from loadtests.servers.answering import Answer, Answering, Refused, number, values
from loadtests.servers.known import Application, gunicorn_server

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
QUESTIONS = {
    "flight_counter": ("ORIGIN_CITY_NAME", "DEST_CITY_NAME", "INITIAL_DATE", "FINAL_DATE"),
    "average_delays": ("OP_CARRIER_AIRLINE_ID", "INITIAL_DATE", "FINAL_DATE"),
    "filter_transactions": ("OP_CARRIER_FL_NUM", "FL_DATE"),
}
FLIGHT_COUNTER = (
    "/flight_counter?ORIGIN_CITY_NAME=Chicago,%20IL&DEST_CITY_NAME=Springfield,%20IL"
    "&INITIAL_DATE=2010-01-20&FINAL_DATE=2011-01-20"
)
"""The only question of the study's load tests. Every flight of a small chain counts in it."""

Ask = Callable[[StudyLedger], object]


def write_small_chain(folder: Path, blocks: int = BLOCKS) -> int:
    """Write as many blocks as the study had, with almost nothing in them. Returns how many."""
    return write_chain(folder, [[SMALL_CHAIN_FLIGHT] * SMALL_BLOCK_FLIGHTS] * blocks)


def block_ms_for(service_time_s: float, blocks: int = BLOCKS) -> float:
    """The time of a block with which a flight question takes `service_time_s` seconds at K = 1.

    It is 80.516 ms for the 40.499 s that the study measured.
    """
    return 1000 * service_time_s / (blocks - CACHED_BLOCKS)


def running(
    folder: Path,
    log: Path,
    *,
    emulated_disk: float = 0,
    threads: int = 1,
    block_ms: float = READ_MS + CHECK_MS,
) -> AbstractContextManager[Service]:
    """Run the server on a free port until the `with` block ends.

    folder: a chain by `write_chain`. threads: requests at a time. emulated_disk, block_ms: as in
    `application`. Raises ProgramFailed if the server does not start.
    """
    made = f"loadtests.servers.study:application({str(folder.resolve())!r}, "
    made += f"{emulated_disk!r}, {block_ms!r})"
    return gunicorn_server(made, answering.threads(threads), log, answering.LIVE)


def application(
    folder: str, emulated_disk: float = 0, block_ms: float = READ_MS + CHECK_MS
) -> Application:
    """The WSGI application. emulated_disk: K, 0 for none. block_ms: time of a block at K = 1.

    Raises ValueError for negative times, BlockMismatch and OSError if `folder` is not a chain.
    """
    if not (emulated_disk >= 0 and block_ms >= 0):
        raise ValueError(
            f"emulated_disk {emulated_disk} and block_ms {block_ms}: must be 0 or more"
        )
    block_s = block_ms / 1000 / emulated_disk if emulated_disk else 0.0
    ledger = StudyLedger(Path(folder), block_s=block_s)
    of_thread = threading.local()

    def answered(ask: Ask) -> Answer:
        if not hasattr(of_thread, "ledger"):
            of_thread.ledger = ledger.twin()
        mine: StudyLedger = of_thread.ledger
        mine.costs = Costs()
        body = ask(mine)
        return Answer(body, *_told(mine.costs))

    return answering.application(_routes(answered), emulated_disk)


def _told(costs: Costs) -> tuple[dict[str, float], dict[str, int]]:
    parts_s = {"emulated": costs.emulated_s, **{name: costs.stage_s[name] for name in STAGES}}
    return parts_s, {"disk_reads": costs.disk_reads, "cache_hits": costs.cache_hits}


def _routes(answered: Callable[[Ask], Answer]) -> dict[str, Answering]:
    def question(kind: str) -> Answering:
        return lambda given: answered(
            lambda ledger: {kind: getattr(ledger, kind)(*values(given, *QUESTIONS[kind]))}
        )

    def one(path: str, name: str, ask: Callable[[StudyLedger, int], object]) -> Answering:
        def find(ledger: StudyLedger, wanted: int) -> object:
            try:
                return {path: ask(ledger, wanted)}
            except IndexError as error:
                raise Refused("404 Not Found", f"{name}: {error}") from None

        return lambda given: answered(
            lambda ledger: find(ledger, number(name, *values(given, name)))
        )

    return {
        **{f"/{kind}": question(kind) for kind in QUESTIONS},
        "/get_block": one("get_block", "height", _block),
        "/get_transaction": one("get_transaction", "id", StudyLedger.transaction),
    }


def _block(ledger: StudyLedger, height: int) -> object:
    block = ledger.block(height)
    return {**vars(block), "transactions": [vars(each) for each in block.transactions]}
