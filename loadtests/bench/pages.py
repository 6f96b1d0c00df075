"""The time in which the frontend makes a page, beyond its wait for the backend (row 11).

Both times are in the Server-Timing of every page, as the frontend measures them.
"""

from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from statistics import median
from time import monotonic, sleep

from loadtests.bench.figures import Figure, short
from loadtests.bench.session import Bench, load_now, timed_ms
from loadtests.processes import (
    HOST,
    LOOK_EVERY_S,
    READY_WITHIN_S,
    ProgramFailed,
    exchanged,
    free_port,
)
from loadtests.questions import Questions, paths

MOST_PAGE_MS = 30.0
TIMES = 20  # requests of each address; for questions, of as many different ones
ALWAYS = ("/", "/blocks", "/blocks/1", "/blocks/1?check=transactions", "/transactions/0", "/add")


def pages(bench: Bench) -> Iterator[Figure]:
    """The median for each kind of page, and for the slowest kind."""
    chain, port = bench.chains.month(), free_port()
    with (
        bench.service(chain, ("serve", "--frontend"), frontend_port=port) as service,
        closing(HTTPConnection(HOST, port, timeout=READY_WITHIN_S)) as connection,
    ):
        addresses = _addresses(bench.questions(chain, service))
        bench.say("making pages")
        _wait_for(connection)
        _made_ms(connection, addresses)  # not counted, so that everything is loaded
        made_ms = _made_ms(connection, addresses)
    medians_ms = {name: median(times) for name, times in made_ms.items()}
    slowest = max(medians_ms, key=lambda name: medians_ms[name])
    yield Figure(
        11,
        f"a page, beyond the backend's answers, slowest kind ({slowest}), ms",
        short(medians_ms[slowest]),
        f"at most {MOST_PAGE_MS:g}",
        medians_ms[slowest] <= MOST_PAGE_MS,
        raw={"median_ms": medians_ms, "load": load_now()},
    )


def _addresses(questions: Questions) -> dict[str, list[str]]:
    asked = {kind: of_kind[:TIMES] for kind, of_kind in paths(questions).items()}
    return {**{address: [address] * TIMES for address in ALWAYS}, **asked}


def _made_ms(connection: HTTPConnection, addresses: dict[str, list[str]]) -> dict[str, list[float]]:
    """The times in which pages of each kind were made, in ms. Raises ProgramFailed."""
    found: dict[str, list[float]] = {}
    for name, asked in addresses.items():
        for path in asked:
            total_ms, backend_ms = timed_ms(connection, path, "total", "backend")
            found.setdefault(name, []).append(total_ms - backend_ms)
    return found


def _wait_for(connection: HTTPConnection) -> None:
    deadline_s = monotonic() + READY_WITHIN_S
    while monotonic() < deadline_s:
        try:
            exchanged(connection, "/health/live")
        except (OSError, HTTPException):
            connection.close()
            sleep(LOOK_EVERY_S)
        else:
            return
    raise ProgramFailed(f"the frontend did not answer within {READY_WITHIN_S} s")
