"""Evil bodies at every route that takes one, at the service and at the pages.

A body may take six times its bytes of a worker's memory, besides what is parsed together. Whatever
it holds, the answer is one for clients, no worker ends, and in the long form others hardly notice.
"""

import http.client
import time
from contextlib import nullcontext, suppress
from itertools import product
from pathlib import Path
from typing import NamedTuple

from backend.api import Service
from frontend.app import create_app as create_pages
from frontend.settings import Settings as PagesSettings
from tests.api.processes import processes_of
from tests.api.worlds import settings_for
from tests.evil_bodies import EVIL, MEDIA_TYPES
from tests.faults.fresh_workers import judge_log
from tests.faults.hostile import serving_flights
from tests.faults.probes import judge, probes, probing
from tests.faults.report import Outcome, Task
from tests.raw_http import megabytes

SINGLE_BYTES = 60_000  # nearly as many as a single flight may have
MOST_TIMES = 6
ROOM_MB = 40  # for what is parsed together, and what a worker remembers at first
ANSWERED_WITHIN_S = 60.0
LONG_KB = 1000  # of a body, from which others are watched
PROBLEM = "application/problem+json"
METHODS = {"POST", "PUT", "PATCH"}
QUERIES = {"/transactions/batch": ("", "?on_error=skip", "?dry_run=true")}


class Target(NamedTuple):
    """Where a body is sent. is_service: else it is a page."""

    path: str
    media_type: str
    is_service: bool


def targets(folder: Path) -> list[Target]:
    """Every route that takes a body, with every media type."""
    service = Service(settings_for(folder)).application
    pages = create_pages(PagesSettings())
    return [
        Target(rule.rule + query, media_type, app is service)
        for app in (service, pages)
        for rule in app.url_map.iter_rules()
        if METHODS & (rule.methods or set())
        for query in QUERIES.get(rule.rule, ("",))
        for media_type in MEDIA_TYPES
    ]


def run(task: Task) -> Outcome:
    """Send every body in a size of `task.count` kilobytes."""
    outcome = Outcome()
    folder = task.folder / "chain"
    with serving_flights(folder) as (service, pages, rows):
        some = probes(service.port, pages, rows, task.chance.randrange(1000))
        everywhere = targets(task.folder / "unused")
        with probing(some) if task.count >= LONG_KB else nullcontext():
            for name, make in EVIL.items():
                body = make(1000 * int(task.count))
                before = _watch(folder)
                for target, size in _chosen(everywhere, len(body), task):
                    port = service.port if target.is_service else pages
                    _send(port, target, name, body[:size], outcome)
                _judge_memory(name, len(body), before, outcome)
                task.says(f"{name}: {len(outcome.findings)} findings")
        if task.count >= LONG_KB:
            judge(some, "evil bodies", outcome)
        judge_log(service.said(), outcome)
    outcome.done = int(task.count)
    return outcome


def _chosen(everywhere: list[Target], size: int, task: Task) -> list[tuple[Target, int]]:
    """What gets how many bytes: all, or in the short form each route as a type that is drawn."""
    requests = list(product(everywhere, (size, min(size, SINGLE_BYTES))))
    if task.count >= LONG_KB:
        return requests
    drawn = task.chance.sample(requests, len(requests))
    return list({target.path: (target, size) for target, size in drawn}.values())


def _send(port: int, target: Target, name: str, body: bytes, outcome: Outcome) -> None:
    what = f"{name} ({len(body):,} bytes) to {target.path} as {target.media_type}"
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWERED_WITHIN_S)
    started = time.monotonic()
    try:
        with suppress(BrokenPipeError, ConnectionResetError):  # refused by the head alone
            connection.request("POST", target.path, body, {"Content-Type": target.media_type})
        answer = connection.getresponse()
        kind, status = answer.headers.get_content_type(), answer.status
        answer.read()
    except (OSError, http.client.HTTPException) as error:
        if not isinstance(error, ConnectionResetError):  # it had sent more than was read
            took_s = time.monotonic() - started
            outcome.add("refused", f"{what}: {type(error).__name__} after {took_s:.0f} s")
        return
    finally:
        connection.close()
    if status >= 500 and status != 503:
        outcome.add("refused", f"{what}: {status}")
    if target.is_service and status >= 400 and kind != PROBLEM:
        outcome.add("wrong", f"{what}: {status} as {kind}")


def _watch(folder: Path) -> dict[int, float]:
    """Process id -> megabytes in memory; from now on the most of each are noted by the system."""
    before = {}
    for pid in processes_of(folder):
        with suppress(OSError, ValueError):  # it has just ended
            before[pid] = megabytes(pid, "VmRSS")
            Path(f"/proc/{pid}/clear_refs").write_text("5")
    return before


def _judge_memory(name: str, size: int, before: dict[int, float], outcome: Outcome) -> None:
    for pid, mb in before.items():
        with suppress(OSError, ValueError):  # it has ended, which is judged by the log
            grown = megabytes(pid, "VmHWM") - mb
            if grown > MOST_TIMES * size / 2**20 + ROOM_MB:
                outcome.add("memory", f"{name}: {size:,} bytes took {grown:.1f} MB of {pid}")
