"""Measures how long answers take: scans (row 3), pages (11), proofs (14), answers by groups (15).

Row 3 is our scan against the study's way of scanning, with the same flights on the same machine.
Our scan reads and checks every block for every question: its caches have no bytes, and the bytes
that the service reads are counted. The study's scan is `baseline.StudyLedger`, in this process.
Both find their files in the page cache, and both must give the same answers.

The others come from Server-Timing: row 11 is the time in which the frontend makes a page, beyond
its wait for the backend; row 14 is the service that makes proofs, `scripts/verify.py`, and the size
of proofs; row 15 is what the index takes for answers by groups, about the days of one month or most
of them, against what could be asked before there were any. Of row 15 each is the least of several,
on a service that keeps no answers.
"""

import json
import random
import subprocess
import sys
from calendar import monthrange
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlencode

from loadtests.baseline import StudyLedger, write_chain
from loadtests.bench.figures import Figure, Target, at_least, at_most, ratio, spread
from loadtests.bench.session import FLIGHTS, SEED, Bench, got, say, timed
from loadtests.chains import Source, imported
from loadtests.number_format import format_number
from loadtests.processes import (
    HOST,
    PROJECT,
    READY_WITHIN_S,
    ProgramFailed,
    Service,
    Site,
    free_port,
    wait_for,
)
from loadtests.questions import KINDS, Question, all_blocks, flights_of_block, paths

TIMES = 20  # requests of each page and of each question by groups

# --- scans ---------------------------------------------------------------------------------------


def scan_against_study(bench: Bench) -> Iterator[Figure]:
    """Compare our scan with the study's, by one worker, so that all meet the same caches."""
    chain = bench.month()
    only_http = ("serve", "--only-http")
    with (
        bench.service(chain, only_http, workers=1, cache_bytes=0) as cold,
        bench.service(chain, only_http, workers=1) as warm,
    ):
        questions = bench.questions(chain, cold)
        say("writing the same blocks the study's way, and opening them")
        folder = bench.empty_folder()
        write_chain(folder, all_blocks(cold))
        ledger, question = StudyLedger(folder), questions[KINDS[0]][0]
        warm.get(question.scan_path)
        is_whole = _bytes_of_a_scan(cold, question) >= 0.9 * chain.block_bytes
        for kind in KINDS:
            yield from _scanned(bench, ledger, (cold, warm), questions[kind], is_whole=is_whole)


def _bytes_of_a_scan(service: Service, question: Question) -> int:
    before = service.bytes_read()
    service.get(question.scan_path)
    return service.bytes_read() - before


def _scanned(
    bench: Bench,
    ledger: StudyLedger,
    services: tuple[Service, Service],
    questions: Sequence[Question],
    *,
    is_whole: bool,
) -> Iterator[Figure]:
    """Scan in turns, the study's way and ours. Raises ProgramFailed if the answers differ.

    is_whole: whether our scan reads every block.
    """
    kind, rounds = questions[0].kind, bench.plan.scan_rounds
    study_s, cold_s, warm_s = list[float](), list[float](), list[float]()
    for number, question in enumerate(questions[:rounds], start=1):
        say(f"scans: {kind}, round {number} of {rounds}")
        scan = partial(getattr(ledger, kind), *question.parameters.values())
        studys, took_s = timed(scan)
        study_s.append(took_s)
        for service, times_s in zip(services, (cold_s, warm_s), strict=True):
            ours, took_s = timed(partial(service.get, question.scan_path))
            times_s.append(took_s)
            _require_same(question, ours, studys)
    what = f"{kind} by scan, times faster than the study's way"
    figure = ratio(3, what, study_s, cold_s, at_least(15))
    if not is_whole:
        incomplete = f"{figure.measured}, but NOT every block was read"
        figure = replace(figure, measured=incomplete, reached=False)
    yield figure
    yield Figure(3, f"{kind} by scan, caches warm", f"{spread(warm_s)} s")


def _require_same(question: Question, ours: dict[str, Any], studys: Any) -> None:
    expected = len(studys) if isinstance(studys, list) else studys
    value = ours["average_delay"] if question.kind == "average_delays" else ours["count"]
    if value != expected:
        raise ProgramFailed(f"{question.scan_path}: our scan says {value}, the study's {expected}")


# --- pages ---------------------------------------------------------------------------------------

ALWAYS = ("/", "/blocks", "/blocks/1", "/blocks/1?check=transactions", "/transactions/0", "/add")


def pages(bench: Bench) -> Iterator[Figure]:
    """Measure the median for each kind of page, and for the slowest kind."""
    chain, port = bench.month(), free_port()
    site = Site(f"http://{HOST}:{port}")
    with bench.service(chain, ("serve", "--frontend"), frontend_port=port) as service:
        addresses = {address: [address] * TIMES for address in ALWAYS}
        for kind, own_paths in paths(bench.questions(chain, service)).items():
            addresses[kind] = own_paths[:TIMES]
        say("making pages")
        problem = f"the frontend did not answer within {READY_WITHIN_S} s"
        wait_for(lambda: site.answers("/health/live"), READY_WITHIN_S, problem)
        with site.connection() as connection:
            _made_ms(connection, addresses)  # not counted, so that everything is loaded
            medians_ms = _made_ms(connection, addresses)
    slowest = max(medians_ms, key=lambda name: medians_ms[name])
    what = f"a page, beyond the backend's answers, slowest kind ({slowest}), ms"
    yield Figure.judged(11, what, medians_ms[slowest], at_most(30))


def _made_ms(connection: HTTPConnection, addresses: dict[str, list[str]]) -> dict[str, float]:
    """Return median times in ms in which pages of each kind were made. Raises ProgramFailed."""
    medians_ms = {}
    for name, own_paths in addresses.items():
        timings = [got(connection, path, "total", "backend").timing_ms for path in own_paths]
        medians_ms[name] = median(timing["total"] - timing["backend"] for timing in timings)
    return medians_ms


# --- proofs --------------------------------------------------------------------------------------

VERIFY = PROJECT / "scripts" / "verify.py"
TRANSACTIONS = 200
NEW_YORK = Source("New York 2013", ("--nycflights",))
YEAR = {"OP_CARRIER_AIRLINE_ID": 20366, "INITIAL_DATE": "2013-01-01", "FINAL_DATE": "2013-12-31"}


def proofs(bench: Bench) -> Iterator[Figure]:
    """Measure time and size of each kind of proof, of the month and of a year of an airline."""
    chain, files = bench.month(), bench.scratch
    with bench.service(chain) as service, service.connection() as connection:
        (files / "log.vkey").write_bytes(got(connection, "/log/key").body)
        yield from _transactions(connection, service)
        checkpoint = got(connection, "/log/checkpoint").body
        size = int(checkpoint.split(b"\n")[1])  # the number of blocks in it
        grown = got(connection, f"/proofs/consistency?from={size // 3}")
        yield _proof("proof of consistency, bytes", grown.sent_bytes, at_most(2000))
        say(f"proving all of {chain.label}")
        (files / "chain.ndjson").write_bytes(got(connection, "/proofs/chain").body)
    (files / "grown.json").write_bytes(grown.body)
    for name, what, most_s in (
        ("grown.json", "verify.py, one proof", at_most(0.2)),
        ("chain.ndjson", f"verify.py, all of {chain.label}", at_most(10)),
    ):
        say(what)
        yield _proof(f"{what}, s", min(_verified_s(files, name) for _ in range(3)), most_s)
    yield from _year(bench)


def _transactions(connection: HTTPConnection, service: Service) -> Iterator[Figure]:
    say("proving transactions")
    count, chance = service.get("/tip")["transactions"], random.Random(SEED)  # noqa: S311
    answers = [
        got(connection, f"/transactions/{chance.randrange(count)}/proof", "total")
        for _ in range(TRANSACTIONS)
    ]
    took_ms = median(answer.timing_ms["total"] for answer in answers)
    yield _proof("proof of a transaction, ms on the service", took_ms, at_most(5))
    largest = max(len(answer.body) for answer in answers)
    yield _proof("proof of a transaction, largest, bytes", largest, at_most(4000))


def _year(bench: Bench) -> Iterator[Figure]:
    """Measure the proof of an average over a year of New York, or over a few flights if quick."""
    is_whole, chain = bench.plan.flights >= FLIGHTS, bench.month()
    if is_whole:
        chain = imported(NEW_YORK, bench.empty_folder(), bench.log)
    say(f"proving an average of {chain.label}")
    with bench.service(chain) as service, service.connection() as connection:
        (bench.scratch / "log.vkey").write_bytes(got(connection, "/log/key").body)
        path = f"/average_delays?{urlencode(YEAR)}"
        if not is_whole:
            path = bench.questions(chain, service)["average_delays"][0].path
        path = path.replace("?", "/proof?", 1)
        answers = [got(connection, path, headers={"Accept-Encoding": "gzip"}) for _ in range(3)]
    took_s, size = min(answer.took_s for answer in answers), answers[0].sent_bytes
    (bench.scratch / "year.ndjson").write_bytes(answers[0].body)
    yield _proof("average of a year, proved, s", took_s, at_most(1))
    yield _proof("average of a year, its proof, bytes compressed", size, at_most(300_000))
    yield _proof("verify.py, average of a year, s", _verified_s(bench.scratch, "year.ndjson"), None)


def _proof(what: str, value: float, target: Target) -> Figure:
    return Figure.judged(14, what, value, target)


def _verified_s(folder: Path, name: str) -> float:
    """Return how long `verify.py` takes, in s. Raises ProgramFailed unless it verifies the file."""
    command = [sys.executable, str(VERIFY), name, "--key", "log.vkey", "--json"]
    run = partial(subprocess.run, command, cwd=folder, capture_output=True, text=True, check=False)
    done, took_s = timed(run)
    if done.returncode != 0:
        verdict = json.loads(done.stdout or "{}")
        raise ProgramFailed(f"verify.py refuses {name}: {verdict} {done.stderr[-300:]}")
    return took_s


# --- answers by groups ---------------------------------------------------------------------------

SOME_DAYS = 25  # which are no whole month
BEFORE = "a carrier by day, with its distribution"
WORST = {"sort": "average_delay", "order": "descending", "least_flights": 100, "limit": 10}


def breakdowns(bench: Bench) -> Iterator[Figure]:
    """Measure how many times the time of `BEFORE` each kind of question takes."""
    chain = bench.month()
    with bench.service(chain, answer_cache_bytes=0) as service, service.connection() as connection:
        say(f"asking by groups of {chain.label}")
        times_ms = {
            what: min(got(connection, path, "index").timing_ms["index"] for _ in range(TIMES))
            for what, path in _by_groups(service).items()
        }
    before_ms = times_ms[BEFORE]
    yield Figure.judged(15, f"index: {BEFORE}, ms", before_ms, None)
    for what, took_ms in times_ms.items():
        if what != BEFORE:
            times, title = took_ms / before_ms, f"index: {what}, times as long"
            shown = f"{format_number(times)} ({format_number(took_ms)} ms)"
            yield Figure.judged(15, title, times, at_most(2), measured=shown)


def _by_groups(service: Service) -> dict[str, str]:
    """Return the address of each question, about a flight amid the ledger and its month."""
    tip = service.get("/tip")["height"]
    flight = flights_of_block(service, (tip + 1) // 2)[0]
    first = date.fromisoformat(flight["FL_DATE"]).replace(day=1)
    last = first.replace(day=monthrange(first.year, first.month)[1])
    days = {"INITIAL_DATE": first, "FINAL_DATE": last}
    third, last_of_some = first.replace(day=3), first.replace(day=2 + SOME_DAYS)
    some_days = {"INITIAL_DATE": third, "FINAL_DATE": last_of_some}
    carrier = {"OP_CARRIER_AIRLINE_ID": flight["OP_CARRIER_AIRLINE_ID"]}
    origin = {"ORIGIN": flight["ORIGIN"]}
    route = {**origin, "DEST": flight["DEST"]}
    parameters: dict[str, dict[str, object]] = {
        BEFORE: {**carrier, "group_by": "day", "distribution": "true"},
        **{f"all flights by {by}": {"group_by": by} for by in ("carrier", "hour")},
        "a carrier by hour": {**carrier, "group_by": "hour"},
        **{f"a route by {by}": {**route, "group_by": by} for by in ("carrier", "hour", "weekday")},
        "a route with its distribution": {**route, "distribution": "true"},
        **{f"an airport by {by}": {**origin, "group_by": by} for by in ("hour", "destination")},
        "the ten worst airports": {"group_by": "origin", **WORST},
        "the ten worst routes": {"group_by": "route", **WORST},
        "the ten worst routes of a carrier": {**carrier, "group_by": "route", **WORST},
        f"all flights by hour, {SOME_DAYS} days": {"group_by": "hour", **some_days},
        f"a carrier by hour, {SOME_DAYS} days": {**carrier, "group_by": "hour", **some_days},
        f"a route by hour, {SOME_DAYS} days": {**route, "group_by": "hour", **some_days},
    }
    number = {"OP_CARRIER_FL_NUM": flight["OP_CARRIER_FL_NUM"], "FL_DATE": first}
    return {
        **{what: f"/average_delays?{urlencode(days | own)}" for what, own in parameters.items()},
        "a flight number": f"/filter_transactions?{urlencode(number | {'FINAL_DATE': last})}",
    }
