"""Processes that hang instead of dying, and strangers who hold locks.

A stopped process keeps its locks and its connections. It has to be noticed: `/health/ready` says
so, posts are answered (503 if need be) within seconds, and the supervisor or the web server starts
another one.
"""

import fcntl
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import requests

from backend.chain.flight import as_mapping
from tests.api.processes import until
from tests.faults.auditing import audit
from tests.faults.clients import Memory, memories, posting
from tests.faults.house import IMPORT, MINER, WORKER, House, house_in, roles_of
from tests.faults.report import Outcome, Task
from tests.flights import flight

CLIENTS = 2
POST_WITHIN_S = 10.0  # whatever hangs
NOTICED_WITHIN_S = 15.0  # by /health/ready
REPLACED_WITHIN_S = 30.0
SERIAL = 6 * 10**8


class Hang(NamedTuple):
    """Something that hangs. is_replaced: whether another one has to be started."""

    name: str
    begin: Callable[[House], list[int]]  # processes that are stopped; none if a lock is held
    is_noticed: bool  # by /health/ready
    is_replaced: bool


def _stop(role: str) -> Callable[[House], list[int]]:
    def begin(house: House) -> list[int]:
        if role == IMPORT:
            house.keep_importing()
        until(lambda: bool(roles_of(house.folder).get(role)))
        pids = roles_of(house.folder)[role][:1]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        return pids

    return begin


HANGS = (
    Hang("a stopped miner", _stop(MINER), is_noticed=True, is_replaced=True),
    Hang("a stopped worker", _stop(WORKER), is_noticed=False, is_replaced=True),
    Hang("a stopped import", _stop(IMPORT), is_noticed=False, is_replaced=False),
    Hang("a stranger with mempool.lock", lambda _: [], is_noticed=False, is_replaced=False),
)


def run(task: Task) -> Outcome:
    """Let each of them hang, `task.count` times."""
    outcome = Outcome()
    for number in range(task.count):
        for hang in HANGS:
            house = house_in(task.folder / f"stopped-{number}-{HANGS.index(hang)}")
            try:
                _live(house, hang, outcome)
            finally:
                house.kill_all()
            outcome.done += 1
            task.says(f"{hang.name}: {len(outcome.findings)} findings")
    return outcome


def _live(house: House, hang: Hang, outcome: Outcome) -> None:
    remembered, single = memories(CLIENTS), Memory(SERIAL, submitted=1)
    house.restart(outcome)
    with posting(house.port, remembered, pause_s=0.05):
        with _hanging(house, hang) as stopped:
            _post(house, hang, outcome)
            if hang.is_noticed:
                _wait(lambda: not house.is_ready(), NOTICED_WITHIN_S, hang, "noticed", outcome)
            if hang.is_replaced:
                gone = set(stopped)
                _wait(
                    lambda: _has_another(house, gone), REPLACED_WITHIN_S, hang, "replaced", outcome
                )
        time.sleep(1)  # the posts go on
    if house.stop() != 0 or not house.seal_the_rest():
        outcome.found("refused", f"{hang.name}: the service does not end well\n{house.log()}")
    house.finish_importing()
    audit(house.folder, [*remembered, single], outcome, house.imported())


@contextmanager
def _hanging(house: House, hang: Hang) -> Iterator[list[int]]:
    """It hangs meanwhile. Whatever was stopped and is still there goes on afterwards."""
    stopped = hang.begin(house)
    with (house.folder / "mempool.lock").open("ab") as lock:
        if not stopped:
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield stopped
        finally:
            for pid in stopped:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)


def _has_another(house: House, gone: set[int]) -> bool:
    return not gone & {pid for pids in roles_of(house.folder).values() for pid in pids}


def _post(house: House, hang: Hang, outcome: Outcome) -> None:
    """A post gets an answer, whatever hangs; another connection may find another worker."""
    started = time.monotonic()
    try:
        requests.post(
            f"http://127.0.0.1:{house.port}/transactions",
            data=json.dumps(as_mapping(flight(SERIAL))),
            headers={"Content-Type": "application/json", "Connection": "close"},
            timeout=REPLACED_WITHIN_S,
        )
    except requests.RequestException as error:
        outcome.found("refused", f"{hang.name}: a post has no answer: {error}")
    took = time.monotonic() - started
    if took > POST_WITHIN_S:
        outcome.found("slow", f"{hang.name}: a post took {took:.0f} s")


def _wait(
    condition: Callable[[], bool], within_s: float, hang: Hang, what: str, outcome: Outcome
) -> None:
    started = time.monotonic()
    while not condition():
        if time.monotonic() - started > within_s:
            outcome.found("slow", f"{hang.name} is not {what} within {within_s:.0f} s")
            return
        time.sleep(0.1)
    outcome.notes.append(f"{hang.name} is {what} after {time.monotonic() - started:.1f} s")
