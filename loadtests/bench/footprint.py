"""Measures what the service needs: disk (row 5), start (6), memory (7), verify (12), export (17).

Memory is the proportional set size: after questions and scans, and after an hour's requests of
many users, sent as fast as the service answers. The second shows memory that grows with the number
of requests: the service is measured after a tenth of the hour, too.
"""

import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from random import Random

from loadtests.bench.figures import Bound, Figure, at_least, at_most, ratio
from loadtests.bench.session import PAGE, SEED, Bench, say
from loadtests.chains import Chain, copy_served
from loadtests.machine import at_most_cores
from loadtests.number_format import format_number
from loadtests.processes import Memory, ProgramFailed, Service, backend, exchanged, running
from loadtests.questions import KINDS, Questions, drawn, flights_of_block, in_turns, paths
from loadtests.scenarios import sent_form

CORES = 2  # of an import, and of verify


def verifies(bench: Bench) -> Iterator[Figure]:
    """Measure how long `verify` takes for the month and its index, and when nothing has changed.

    The latter is `verify --since last`, right after the former, and a share of it.
    """
    chain = bench.month()
    first_s, again_s = list[float](), list[float]()
    for _ in bench.repeats(f"verifying {chain.label}, and again"):
        with at_most_cores(CORES):
            for walls_s, options in ((first_s, ()), (again_s, ("--since", "last"))):
                spent = backend(chain.folder, "verify", *options, log=bench.log)[1]
                walls_s.append(spent.wall_s)
    what = f"verify of {chain.label}"
    yield Figure.judged(12, f"{what} with its index", first_s, at_most(15), unit=" s")
    yield ratio(12, f"{what}, then --since last / at first", again_s, first_s, at_most(0.1))


def exports(bench: Bench) -> Iterator[Figure]:
    """Measure flights per second of an export to Parquet, and the bytes of a flight there."""
    chain, folder, per_s = bench.month(), bench.scratch / "export", []
    for _ in bench.repeats(f"exporting {chain.label}"):
        shutil.rmtree(folder, ignore_errors=True)
        with at_most_cores(CORES):
            spent = backend(chain.folder, "export", "parquet", str(folder), log=bench.log)[1]
        per_s.append(chain.flights / spent.wall_s)
    what = f"export of {chain.label} to Parquet"
    yield Figure.judged(17, f"{what}, flights per second", per_s, at_least(200_000))
    exported = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
    yield Figure.judged(17, f"{what}, bytes a flight", exported / chain.flights, at_most(12))


def bytes_on_disk(bench: Bench) -> Iterator[Figure]:
    chain = bench.month()
    per_flight = chain.block_bytes / chain.flights
    yield Figure.judged(5, "chain on disk, bytes a flight", per_flight, at_most(20))
    index = f"{format_number(chain.index_bytes / chain.flights)} ({chain.index_bytes / 1e6:.1f} MB)"
    yield Figure(5, "index on disk, bytes a flight", index)


def starts(bench: Bench) -> Iterator[Figure]:
    """Measure the seconds from the start of a service to its first answer, chains in turns."""
    bench.require_room()
    chains, paths = [bench.month(), *map(bench.generated, bench.plan.factors)], []
    for chain in chains:
        with bench.service(chain) as service:
            paths.append(drawn(flights_of_block(service, 1), 1, SEED)[KINDS[0]][0].path)
    rounds = [
        [_start_s(bench, *pair) for pair in zip(chains, paths, strict=True)]
        for _ in bench.repeats(f"starting on {len(chains)} chains in turns")
    ]
    for chain, times_s in zip(chains, zip(*rounds, strict=True), strict=True):
        what = f"start to first answer, {chain.label}"
        yield Figure.judged(6, what, times_s, Bound("under", 1), unit=" s")


def _start_s(bench: Bench, chain: Chain, path: str) -> float:
    with running(chain.folder, bench.log, asking=path) as service:
        return service.first_answer_s


# --- memory --------------------------------------------------------------------------------------

SCANS_AT_ONCE = 8

# An hour has 28 requests and a post each second, and an export and a scan each minute.
REQUESTS, POSTS, EXPORTS, SCANS = 100_000, 3_600, 60, 60
MIX = {"questions": 80, "transactions": 10, "pages": 5, "whole blocks": 5}  # percent of requests
BEGINNING = 0.1
POSTED = {"Content-Type": "application/json"}


def memory(bench: Bench) -> Iterator[Figure]:
    """Measure the memory after every question and some scans, and after an hour's requests."""
    month = bench.month()
    with bench.service(month) as service:
        questions = bench.questions(month, service)
        say("memory: every question, and scans at the same time")
        for own_paths in paths(questions).values():
            bench.load(service, bench.script(own_paths))
        scans = [questions[kind][0].scan_path for kind in KINDS] * SCANS_AT_ONCE
        with ThreadPoolExecutor(SCANS_AT_ONCE) as pool:
            list(pool.map(service.get, scans))
        yield from _used("", service.memory())
    yield from _after_an_hour(bench)


def _used(when: str, memories: Sequence[Memory]) -> Iterator[Figure]:
    for what, pss_bytes, most_mb in (
        ("largest worker", _largest_worker(memories), at_most(80)),
        ("all processes", sum(process.pss_bytes for process in memories), at_most(256)),
    ):
        title, used_mb = f"memory, {what}{when} (proportional set size)", pss_bytes / 1e6
        shown = f"{used_mb:.1f} MB"
        yield Figure.judged(7, title, used_mb, most_mb, unit=" MB", measured=shown)


def _largest_worker(memories: Sequence[Memory]) -> int:
    workers = [process.pss_bytes for process in memories if process.role == "worker"]
    if not workers:
        raise ProgramFailed(f"no worker found among the processes of the service: {memories}")
    return max(workers)


def _after_an_hour(bench: Bench) -> Iterator[Figure]:
    """Measure the memory after an hour's requests, on a copy of the month, which posts change."""
    month, share = bench.month(), bench.plan.hours
    with copy_served(month, bench.empty_folder() / "chain", bench.log) as service:
        questions = bench.questions(month, service)
        say("memory: an hour's requests as fast as they go")
        _put_through(bench, service, month, questions, share * BEGINNING)
        before = service.memory()
        _put_through(bench, service, month, questions, share * (1 - BEGINNING))
        after = service.memory()
    yield from _used(" after an hour's requests", after)
    grown_mb = (_largest_worker(after) - _largest_worker(before)) / 1e6
    what = "memory, growth of the largest worker in the last nine tenths of these requests"
    yield Figure(7, what, f"{grown_mb:+.1f} MB")


def _put_through(
    bench: Bench, service: Service, chain: Chain, questions: Questions, share: float
) -> None:
    """Send requests of all kinds at the same time. share: of an hour's requests."""
    requests, posts, exports, scans = (
        max(1, round(share * count)) for count in (REQUESTS, POSTS, EXPORTS, SCANS)
    )
    counters = [question.path for question in questions["flight_counter"]]
    exported = [f"{path.replace('/flight_counter?', '/flights?')}&format=csv" for path in counters]
    by_flight = zip(*questions.values(), strict=True)
    scanned = [question.scan_path for group in by_flight for question in group]
    with ThreadPoolExecutor(3) as pool:
        doing = [
            pool.submit(_post, service, posts),
            pool.submit(_ask, service, exported, exports),
            pool.submit(_ask, service, scanned, scans),
        ]
        script = bench.script(_mixed(service, chain, questions))
        while requests > 0:
            load = bench.load(service, script)
            if load.failed:
                raise ProgramFailed(f"{load.failed} of {load.requests} mixed requests failed")
            requests -= load.requests
        for task in doing:
            task.result()


def _mixed(service: Service, chain: Chain, questions: Questions) -> list[str]:
    """Return paths in the proportions of `MIX`, from the whole chain, in random order."""
    random = Random(SEED)  # noqa: S311 - a load, no secrets
    question_paths = in_turns(questions)
    height = service.get("/tip")["height"]
    draw = {
        "questions": lambda: random.choice(question_paths),
        "transactions": lambda: f"/transactions/{random.randrange(chain.flights)}",
        "pages": lambda: f"/blocks/{random.randint(1, height)}?limit={PAGE}",
        "whole blocks": lambda: f"/blocks/{random.randint(1, height)}",
    }
    kinds = random.choices(list(MIX), list(MIX.values()), k=len(question_paths))
    return [draw[kind]() for kind in kinds]


def _post(service: Service, count: int) -> None:
    flights = cycle(flights_of_block(service, 1))
    with service.connection() as connection:
        for flight in islice(flights, count):
            exchanged(connection, "/transactions", sent_form(flight), POSTED, status=202)


def _ask(service: Service, paths: Sequence[str], count: int) -> None:
    with service.connection() as connection:
        for path in islice(cycle(paths), count):
            if not exchanged(connection, path, status=200)[1]:
                raise ProgramFailed(f"GET {path} was answered with nothing")
