"""Slow and hostile clients at both ports, while others ask, post and look at pages.

Some connections are silent, some send a byte a second, some do not read what they asked for, some
send heads without end, some try to hide a second request in the first, some ask for scans or, at
the service, for rankings, or post with idempotency keys of all kinds. The others must hardly
notice: their 99th percentile stays within `probes.P99_S`. The hostile ones have a process of their
own, `python -m tests.faults.hostile ATTACK PORT`, so that those who measure do not wait for them.
"""

import random
import re
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

from tests.api.processes import ROOT, Service, backend, free_port, is_answered, until
from tests.api.worlds import Json
from tests.faults.probes import judge, probes, probing
from tests.faults.report import Outcome, Task
from tests.hostile_keys import LONGEST, post_of, wrong_answers
from tests.raw_http import (
    HELD,
    HIDDEN_STATUS,
    STATUS,
    STRANGER,
    answer_to,
    connected,
    ended_within,
    hiding_requests,
    megabytes,
)
from tests.units.supervised import serving_confined

HEAD = b"GET /average_delays?x=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n"
SCAN = "/average_delays?OP_CARRIER_AIRLINE_ID=19393&INITIAL_DATE=2015-01-01&FINAL_DATE=2015-12-31"
RANKING = (  # but for its place, of which there are so many that hardly an answer is kept
    "/average_delays?INITIAL_DATE=2015-01-02&FINAL_DATE=2015-12-30"
    "&group_by=route&sort=average_delay&limit=5&offset="
)
PLACES = 4000
EXPORT = "/flights?INITIAL_DATE=2000-01-01&FINAL_DATE=2030-01-01&format=csv"
BLOCKS = "".join(f"GET /blocks/{n} HTTP/1.1\r\nHost: localhost\r\n\r\n" for n in range(1, 21))
HELD_BY_EACH = 100  # connections
MOST_MB = 32 + 32  # that unread answers add to a worker: what README promises, and what it reuses
FLIGHTS = 100_000  # so many that an export does not fit into the buffers of the system
SERVICE, PAGES = "service", "pages"
TICK_S = 1.0
CONNECT_WITHIN_S = 5.0
SETTLE_S = 0.5


UNREAD = "unread blocks"


class Attack(NamedTuple):
    """connections: how many there are at a time. act: what one does until it is told to stop.

    ports: which it is made at.
    """

    name: str
    connections: int
    act: Callable[[int, threading.Event], None]
    ports: tuple[str, ...] = (SERVICE, PAGES)


def _connection(port: int) -> socket.socket:
    """A connection with little room to receive, from an address that nobody else has."""
    connection = connected(port, STRANGER, SO_RCVBUF=4096)
    connection.settimeout(CONNECT_WITHIN_S)
    return connection


def _stay_silent(port: int, stopping: threading.Event) -> None:
    """Connect, and send nothing; connect again when the service has had enough."""
    while not stopping.is_set():
        with suppress(OSError), _connection(port) as connection:
            _wait_for_end(connection, stopping)


def _wait_for_end(connection: socket.socket, stopping: threading.Event) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        while not stopping.is_set():
            if selector.select(TICK_S) and not connection.recv(65536):
                return


def _dribble(port: int, stopping: threading.Event) -> None:
    """Send a head a byte a second."""
    while not stopping.is_set():
        with suppress(OSError), _connection(port) as connection:
            for byte in HEAD * 100:
                connection.sendall(bytes([byte]))
                if stopping.wait(TICK_S):
                    return


def _read_slowly(port: int, stopping: threading.Event) -> None:
    """Ask for everything there is, and read a byte a second of it."""
    while not stopping.is_set():
        with suppress(OSError), _connection(port) as connection:
            connection.sendall(f"GET {EXPORT} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            while connection.recv(1) and not stopping.wait(TICK_S):
                pass


def _send_heads(port: int, stopping: threading.Event) -> None:
    """Send heads that do not end."""
    while not stopping.is_set():
        with suppress(OSError), _connection(port) as connection:
            connection.sendall(HEAD)
            while not stopping.is_set():
                connection.sendall(b"X-Filler: " + b"x" * 4000 + b"\r\n")


def _read_no_blocks(port: int, stopping: threading.Event) -> None:
    """Ask for twenty blocks at once, read nothing, and leave."""
    while not stopping.is_set():
        with suppress(OSError), _connection(port) as connection:
            connection.sendall(BLOCKS.encode())
            stopping.wait(TICK_S)


def _hold_many(port: int, stopping: threading.Event) -> None:
    """Hold connections of all kinds, and open others for those that end."""
    held: list[socket.socket] = []
    kinds = cycle(HELD.values())
    while not stopping.is_set():
        with suppress(OSError):
            while len(held) < HELD_BY_EACH:
                held.append(_connection(port))
                held[-1].sendall(next(kinds))
        stopping.wait(TICK_S)
        ended = [connection for connection in held if ended_within(connection, 0.001)]
        held = [connection for connection in held if connection not in ended]
        for connection in ended:
            connection.close()
    for connection in held:
        connection.close()


def _ask_scans(port: int, stopping: threading.Event) -> None:
    """Ask for scans, one after the other."""
    while not stopping.is_set():
        _ask(port, f"{SCAN}&engine=scan", stopping)


def _ask_rankings(port: int, stopping: threading.Event) -> None:
    """Ask for rankings, one after the other."""
    while not stopping.is_set():
        _ask(port, f"{RANKING}{random.randrange(PLACES)}", stopping)


def _post_with_keys(port: int, stopping: threading.Event) -> None:
    """Post flights, each with the longest key, or with one of few that were used for others."""
    serial = random.randrange(8 * 10**8, 9 * 10**8)  # other connections post others
    while not stopping.is_set():
        serial += 1
        key = f"{serial if serial % 2 else serial % 7:0>{LONGEST}}"
        with suppress(OSError), _connection(port) as connection:
            connection.sendall(post_of(serial, f"Idempotency-Key: {key}".encode()))
            _wait_for_end(connection, stopping)


def _ask(port: int, target: str, stopping: threading.Event) -> None:
    """Ask over a connection, and read the answer."""
    asked = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    with suppress(OSError), _connection(port) as connection:
        connection.sendall(asked.encode())
        _wait_for_end(connection, stopping)


ATTACKS = (
    Attack("silent connections", 500, _stay_silent),
    Attack("dribbling connections", 200, _dribble),
    Attack("slow readers of exports", 8, _read_slowly),
    Attack("heads without end", 20, _send_heads),
    Attack("2,000 connections", 20, _hold_many),
    Attack(UNREAD, 900, _read_no_blocks, (SERVICE,)),
    Attack("clients that scan", 100, _ask_scans),
    Attack("clients that rank", 100, _ask_rankings, (SERVICE,)),
    Attack("clients with keys", 20, _post_with_keys, (SERVICE,)),
)


def run(task: Task) -> Outcome:
    """Let every attack go on for `task.count` seconds, at either port."""
    outcome = Outcome()
    with serving_flights(task.folder / "chain") as (service, pages, rows):
        for which, port in ((SERVICE, service.port), (PAGES, pages)):
            _smuggle(which, port, outcome)
            for attack in (attack for attack in ATTACKS if which in attack.ports):
                name = f"{attack.name} at the {which}"
                before = _memory_mb(service)
                some = probes(service.port, pages, rows, task.chance.randrange(1000))
                with attacking(attack, port):
                    time.sleep(SETTLE_S)
                    with probing(some):
                        time.sleep(task.count)
                judge(some, name, outcome)
                if attack.name == UNREAD:
                    _judge_memory(service, before, outcome)
                task.says(f"{name}: {len(outcome.findings)} findings")
                outcome.done += 1
        for wrong in wrong_answers(service.port, STRANGER):
            outcome.add("wrong", wrong)
    return outcome


def _memory_mb(service: Service) -> dict[int, float]:
    return {pid: megabytes(pid, "VmRSS") for pid in service.booted()}


def _judge_memory(service: Service, before: dict[int, float], outcome: Outcome) -> None:
    """Take down how much more memory the workers took, and whether one was replaced."""
    more = [mb - before.get(pid, 0.0) for pid, mb in _memory_mb(service).items()]
    outcome.notes.append(f"{UNREAD}: a worker took {max(more):.0f} MB more")
    if max(more) > MOST_MB:
        outcome.add("memory", f"{UNREAD}: {max(more):.0f} MB more, {MOST_MB} MB are allowed")


@contextmanager
def serving_flights(folder: Path) -> Iterator[tuple[Service, int, list[Json]]]:
    """A service with many flights; the port of its pages, and some of the flights."""
    done = backend(folder, "import", "--generate", str(FLIGHTS))
    assert done.returncode == 0, done.stderr
    pages = free_port()
    with serving_confined(folder, "--frontend", FLIGHTCHAIN_FRONTEND_PORT=pages) as service:
        until(lambda: is_answered(f"http://127.0.0.1:{pages}/"))
        rows = service.json("/blocks/3")["block"]["transactions"]
        yield service, pages, rows


@contextmanager
def attacking(attack: Attack, port: int) -> Iterator[None]:
    """An attack goes on meanwhile."""
    command = [sys.executable, "-m", "tests.faults.hostile", attack.name, str(port)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as job:
        assert job.stdin is not None
        assert job.stdout is not None
        assert job.stdout.readline() == b"\n"
        try:
            yield
        finally:
            job.stdin.close()  # it ends then
    assert job.returncode == 0


def _attack(attack: Attack, port: int) -> None:
    """Let an attack go on until standard input ends."""
    stopping = threading.Event()
    with ThreadPoolExecutor(attack.connections) as pool:
        acting = [pool.submit(attack.act, port, stopping) for _ in range(attack.connections)]
        print(flush=True)
        sys.stdin.read()
        stopping.set()
    for future in acting:
        future.result()


def _smuggle(which: str, port: int, outcome: Outcome) -> None:
    """A request that is hidden in another one is never answered."""
    for odd, data in hiding_requests():
        received = answer_to(port, data, STRANGER)
        if HIDDEN_STATUS in re.findall(STATUS, received):
            outcome.add("wrong", f"the {which} answered a hidden request: {odd}")


if __name__ == "__main__":
    _attack(next(attack for attack in ATTACKS if attack.name == sys.argv[1]), int(sys.argv[2]))
