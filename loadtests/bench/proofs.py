"""What proofs cost (row 14): the service that makes them, `scripts/verify.py`, and their size."""

import gzip
import json
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple
from urllib.parse import urlencode

from loadtests.bench.figures import Figure, short
from loadtests.bench.session import FLIGHTS, SEED, Bench, load_now
from loadtests.chains import Source, imported
from loadtests.processes import PROJECT, ProgramFailed, Service, exchanged
from loadtests.servers.timing import SERVER_TIMING, durations_s

VERIFY = PROJECT / "scripts" / "verify.py"
TRANSACTIONS = 200
MOST_PROOF_MS, MOST_PROOF_BYTES = 5.0, 4000
MOST_CONSISTENCY_BYTES = 2000
MOST_CHAIN_S, MOST_FILE_S = 10.0, 0.2
MOST_YEAR_S, MOST_YEAR_BYTES = 1.0, 300_000
NEW_YORK = Source("New York 2013", ("--nycflights",))
YEAR = {
    "OP_CARRIER_AIRLINE_ID": 20366,
    "INITIAL_DATE": "2013-01-01",
    "FINAL_DATE": "2013-12-31",
}


class Got(NamedTuple):
    """An answer. sent_bytes: as it came, perhaps compressed. service_ms: from Server-Timing."""

    body: bytes
    sent_bytes: int
    service_ms: float
    took_s: float


def proofs(bench: Bench) -> Iterator[Figure]:
    """Time and size of each kind of proof, of the month and of a year of one airline."""
    chain = bench.chains.month()
    files = bench.scratch
    with bench.service(chain) as service, service.connection() as connection:
        (files / "log.vkey").write_bytes(_got(connection, "/log/key").body)
        yield from _transactions(bench, connection, service)
        size = _size_of(connection)
        grown = _got(connection, f"/proofs/consistency?from={size // 3}")
        yield _figure("proof of consistency, bytes", grown.sent_bytes, MOST_CONSISTENCY_BYTES)
        bench.say(f"proving all of {chain.label}")
        (files / "chain.ndjson").write_bytes(_got(connection, "/proofs/chain").body)
    (files / "grown.json").write_bytes(grown.body)
    for name, what, most_s in (
        ("grown.json", "verify.py, one proof", MOST_FILE_S),
        ("chain.ndjson", f"verify.py, all of {chain.label}", MOST_CHAIN_S),
    ):
        bench.say(what)
        yield _figure(f"{what}, s", min(_verified_s(files, name) for _ in range(3)), most_s)
    yield from _year(bench)


def _transactions(bench: Bench, connection: HTTPConnection, service: Service) -> Iterator[Figure]:
    bench.say("proving transactions")
    count, chance = service.get("/tip")["transactions"], random.Random(SEED)  # noqa: S311
    ids = [chance.randrange(count) for _ in range(TRANSACTIONS)]
    found = [_got(connection, f"/transactions/{one}/proof") for one in ids]
    times_ms = [one.service_ms for one in found]
    raw = {"service_ms": times_ms}
    yield _figure("proof of a transaction, ms on the service", median(times_ms), MOST_PROOF_MS, raw)
    largest = max(len(one.body) for one in found)
    yield _figure("proof of a transaction, largest, bytes", largest, MOST_PROOF_BYTES)


def _year(bench: Bench) -> Iterator[Figure]:
    """The proof of an average over a year of New York's flights, or of a few in a quick run."""
    is_whole = bench.plan.flights >= FLIGHTS
    chain = bench.chains.month()
    if is_whole:
        chain = imported(NEW_YORK, bench.empty_folder(), bench.log)
    bench.say(f"proving an average of {chain.label}")
    with bench.service(chain) as service, service.connection() as connection:
        (bench.scratch / "log.vkey").write_bytes(_got(connection, "/log/key").body)
        path = f"/average_delays?{urlencode(YEAR)}"
        if not is_whole:
            path = bench.questions(chain, service)["average_delays"][0].path
        path = path.replace("?", "/proof?", 1)
        found = [_got(connection, path, {"Accept-Encoding": "gzip"}) for _ in range(3)]
    took_s, size = min(one.took_s for one in found), found[0].sent_bytes
    (bench.scratch / "year.ndjson").write_bytes(found[0].body)
    yield _figure("average of a year, proved, s", took_s, MOST_YEAR_S)
    yield _figure("average of a year, its proof, bytes compressed", size, MOST_YEAR_BYTES)
    checked_s = _verified_s(bench.scratch, "year.ndjson")
    yield Figure(14, "verify.py, average of a year, s", short(checked_s), raw=load_now())


def _figure(what: str, value: float, most: float, raw: Mapping[str, Any] | None = None) -> Figure:
    raw = {**load_now(), **(raw or {})}
    return Figure(14, what, short(value), f"at most {most:,g}", value <= most, raw=raw)


def _got(connection: HTTPConnection, path: str, headers: Mapping[str, str] | None = None) -> Got:
    started = perf_counter()
    response, data = exchanged(connection, path, headers=headers)
    took_s = perf_counter() - started
    if response.status != 200:
        raise ProgramFailed(f"{path} has status {response.status}: {data[:200]!r}")
    took_there_s = durations_s(response.headers.get(SERVER_TIMING, "")).get("total", 0.0)
    is_packed = response.headers.get("Content-Encoding") == "gzip"
    body = gzip.decompress(data) if is_packed else data
    return Got(body, len(data), 1000 * took_there_s, took_s)


def _size_of(connection: HTTPConnection) -> int:
    """The number of blocks in the newest checkpoint."""
    return int(_got(connection, "/log/checkpoint").body.split(b"\n")[1])


def _verified_s(folder: Path, name: str) -> float:
    """How long `verify.py` takes. Raises ProgramFailed unless it verifies the file."""
    started = perf_counter()
    command = [sys.executable, str(VERIFY), name, "--key", "log.vkey", "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603
    took_s = perf_counter() - started
    if done.returncode != 0:
        verdict = json.loads(done.stdout or "{}")
        raise ProgramFailed(f"verify.py refuses {name}: {verdict} {done.stderr[-300:]}")
    return took_s
