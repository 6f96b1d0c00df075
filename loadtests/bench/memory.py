"""Memory of the service (row 7), as proportional set sizes: after questions and scans, and after an
hour's requests of many users, sent as fast as the service answers.

The second shows memory that grows with the number of requests: the service is measured after a
tenth of the hour, too.
"""

import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random
from typing import Any

from loadtests.bench.figures import Figure
from loadtests.bench.session import SEED, Bench, load_now
from loadtests.chains import Chain
from loadtests.processes import Memory, ProgramFailed, Service, exchanged
from loadtests.questions import KINDS, Questions, flights_of_block, paths
from loadtests.scenarios import sent_form

MOST_WORKER_BYTES = 80_000_000
MOST_SERVICE_BYTES = 256_000_000
SCANS_AT_ONCE = 8

# An hour has 28 requests and a post each second, and an export and a scan each minute.
REQUESTS, POSTS, EXPORTS, SCANS = 100_000, 3_600, 60, 60
MIX = {"questions": 80, "transactions": 10, "pages": 5, "whole blocks": 5}  # percent of requests
PAGE = 20
BEGINNING = 0.1
POSTED = {"Content-Type": "application/json"}


def memory(bench: Bench) -> Iterator[Figure]:
    """The service's memory after the load of row 1 and some scans, and after an hour's requests."""
    service = bench.month_service()
    questions = bench.questions(bench.chains.month(), service)
    bench.say("memory: every question, and scans at the same time")
    if 1 not in bench.plan.rows:
        for kind, asked in paths(questions).items():
            bench.load(service, bench.script(kind, asked))
    _scan_together(service, questions)
    yield from _figures("", service.memory())
    bench.close()
    yield from _after_an_hour(bench)


def _scan_together(service: Service, questions: Questions) -> None:
    """One scan of each kind over several connections at once."""
    scans = [questions[kind][0].scan_path for kind in KINDS] * SCANS_AT_ONCE
    with ThreadPoolExecutor(SCANS_AT_ONCE) as pool:
        for _ in pool.map(service.get, scans):
            pass


def _figures(when: str, found: Sequence[Memory], **more: Any) -> Iterator[Figure]:
    raw = {"pss_mb": _megabytes(found), **more, **load_now()}
    for what, pss_bytes, most_bytes in (
        ("largest worker", _largest_worker(found), MOST_WORKER_BYTES),
        ("all processes", sum(one.pss_bytes for one in found), MOST_SERVICE_BYTES),
    ):
        yield Figure(
            7,
            f"memory, {what}{when} (proportional set size)",
            f"{pss_bytes / 1e6:.1f} MB",
            f"at most {most_bytes // 10**6} MB",
            pss_bytes <= most_bytes,
            raw=raw,
        )


def _megabytes(found: Sequence[Memory]) -> list[str]:
    return [f"{one.role} {one.pss_bytes / 1e6:.1f}" for one in found]


def _largest_worker(found: Sequence[Memory]) -> int:
    largest = max((one.pss_bytes for one in found if one.role == "worker"), default=0)
    if not largest:
        raise ProgramFailed(f"no worker found among the processes of the service: {found}")
    return largest


# --- an hour -------------------------------------------------------------------------------------


def _after_an_hour(bench: Bench) -> Iterator[Figure]:
    """The memory after an hour's requests, on a copy of the month, to which flights are posted."""
    month = bench.chains.month()
    chain = replace(month, folder=bench.empty_folder() / "chain")
    shutil.copytree(month.folder, chain.folder, symlinks=True)
    share = bench.plan.hours
    with bench.service(chain) as service:
        questions = bench.questions(chain, service)
        bench.say("memory: an hour's requests as fast as they go")
        _put_through(bench, service, chain, questions, share * BEGINNING)
        before = service.memory()
        _put_through(bench, service, chain, questions, share * (1 - BEGINNING))
        found = service.memory()
    growth = (_largest_worker(found) - _largest_worker(before)) / 1e6
    grown = {"after_a_tenth_pss_mb": _megabytes(before), "largest_worker_grew_mb": growth}
    yield from _figures(" after an hour's requests", found, **grown)


def _put_through(
    bench: Bench, service: Service, chain: Chain, questions: Questions, share: float
) -> None:
    """Send requests of all kinds at the same time. share: of an hour's requests."""
    with ThreadPoolExecutor(3) as pool:
        doing = [
            pool.submit(_post, service, _times(share, POSTS)),
            pool.submit(_export, service, questions, _times(share, EXPORTS)),
            pool.submit(_scan, service, questions, _times(share, SCANS)),
        ]
        script = bench.script("mix", _mixed(service, chain, questions))
        left = _times(share, REQUESTS)
        while left > 0:
            load = bench.load(service, script)
            if load.failed:
                raise ProgramFailed(f"{load.failed} of {load.requests} mixed requests failed")
            left -= load.requests
        for each in doing:
            each.result()


def _times(share: float, count: int) -> int:
    return max(1, round(share * count))


def _mixed(service: Service, chain: Chain, questions: Questions) -> list[str]:
    """Paths in the proportions of `MIX`, from the whole chain, in random order."""
    random = Random(SEED)  # noqa: S311 - a load, no secrets
    asked = [path for of_kind in paths(questions).values() for path in of_kind]
    height = service.get("/tip")["height"]
    draw = {
        "questions": lambda: random.choice(asked),
        "transactions": lambda: f"/transactions/{random.randrange(chain.flights)}",
        "pages": lambda: f"/blocks/{random.randint(1, height)}?limit={PAGE}",
        "whole blocks": lambda: f"/blocks/{random.randint(1, height)}",
    }
    kinds = random.choices(list(MIX), list(MIX.values()), k=len(asked))
    return [draw[kind]() for kind in kinds]


def _post(service: Service, count: int) -> None:
    flights = flights_of_block(service, 1)
    with service.connection() as connection:
        for at in range(count):
            body = sent_form(flights[at % len(flights)])
            response, answer = exchanged(connection, "/transactions", body, POSTED)
            if response.status != 202:
                raise ProgramFailed(f"a post was answered {response.status}: {answer[:300]!r}")


def _export(service: Service, questions: Questions, count: int) -> None:
    """Ask for flights between two cities, as CSV."""
    with service.connection() as connection:
        for at in range(count):
            asked = questions["flight_counter"][at % len(questions["flight_counter"])]
            path = asked.path.replace("/flight_counter?", "/flights?") + "&format=csv"
            response, exported = exchanged(connection, path)
            if not exported or response.status != 200:
                raise ProgramFailed(f"GET {path} was answered {response.status}")


def _scan(service: Service, questions: Questions, count: int) -> None:
    for at in range(count):
        of_kind = questions[KINDS[at % len(KINDS)]]
        service.get(of_kind[at % len(of_kind)].scan_path)
