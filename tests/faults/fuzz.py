"""Sends requests that nobody would write to both ports: mutated, cut off, glued together.

Whatever comes, the answer is one that a client can understand. An answer from 500 on is 503, or
says that a protocol or a coding is not supported. No worker may die, and no traceback may stand in
the log.
"""

import json
import random
import re
import socket
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

from tests.api.processes import Service, free_port
from tests.api.worlds import GOOD, world_in
from tests.faults.fresh_workers import judge_log
from tests.faults.report import Outcome, Task
from tests.units.supervised import serving_confined

THREADS = 4
ANSWER_WITHIN_S = 10.0
ALLOWED = {501, 503, 505}  # of those from 500 on
AT_ONCE = 2000  # requests between two lines about progress
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")

PATHS = (
    "/",
    "/filter_transactions?OP_CARRIER_FL_NUM=1545&FL_DATE=2015-01-02",
    "/average_delays?OP_CARRIER_AIRLINE_ID=19393&INITIAL_DATE=2015-01-01&FINAL_DATE=2015-01-31",
    "/flight_counter?ORIGIN_CITY_NAME=Chicago,%20IL&DEST_CITY_NAME=Austin,%20TX&group_by=day",
    "/flights?INITIAL_DATE=2015-01-01&FINAL_DATE=2015-01-02&format=csv",
    "/suggest?field=city&q=ch",
    "/blocks",
    "/blocks/3?limit=2",
    "/transactions/17",
    "/transactions_pages?page=1&per_page=5",
    "/tip",
    "/coverage",
    "/docs",
    "/openapi.json",
    "/metrics",
    "/health/ready",
    "/search?q=UA+1545",
    "/add",
    "/upload",
    "/months",
    "/lab",
    "/lab/calculator",
    "/about",
)
POSTED = (
    "/transactions?mode=async",
    "/transactions/batch",
    "/transactions/batch?on_error=skip&dry_run=true",
    "/new_transaction",
    "/add",
    "/upload",
    "/upload.json?NAME=a&SIZE=5",
    "/imports?NAME=a&SIZE=5",
    "/imports/0?OFFSET=0",
    "/imports/0/check",
    "/months",
    "/months?MONTH=2008-01",
)
METHODS = (*["GET"] * 6, *["POST"] * 3, "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "get", "")
FIELDS = (
    "Host: 127.0.0.1",
    "Content-Length: 5",
    "Content-Length: -1",
    "Content-Length: 99999999999999999999",
    "Content-Length: 1e3",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding : chunked",
    "Content-Type: application/json",
    "Content-Type: text/csv; charset=utf-7",
    "Content-Type: multipart/form-data; boundary=",
    "Content-Encoding: gzip",
    "Accept: */*;q=oo",
    "Accept-Encoding: zstd, gzip;q=9",
    'If-None-Match: "',
    "If-Modified-Since: never",
    "Range: bytes=-1-",
    "Expect: 100-continue",
    "Connection: close, upgrade",
    "Upgrade: h2c",
    "Cookie: session=\xff; ;=",
    "Authorization: Bearer \x00",
    "Idempotency-Key: a\tb",
    "X-Request-ID: <script>",
    "X-Forwarded-For: ::1, unix:",
    "Origin: null",
    "Sec-Fetch-Site: same-origin",
    "Referer: http://[",
)
BODIES = (
    (json.dumps(GOOD).encode(), "application/json"),
    (json.dumps(GOOD).encode() + b"\n", "application/x-ndjson"),
    (b'{"YEAR":', "application/json"),
    (b"[" * 5000, "application/json"),
    (b"\xff\xfe\x00", "application/json"),
    (b"5\r\nhello\r\n0\r\n\r\n", "text/plain"),
    (b"YEAR,FL_DATE\n2015,2015-01-01\n", "text/csv"),
    (b"a=b&c=d", "application/x-www-form-urlencoded"),
)
TOKENS = (b"\0", b"%00", b"%", b"%ff", b"\r\n", b"\n", b"../", b";", b"&&", b"=", b" ", b"\xc3\x28")


def request(chance: random.Random) -> bytes:
    """A request; most are wrong in some way."""
    method = chance.choice(METHODS)
    path = chance.choice(POSTED if method == "POST" and chance.random() < 0.8 else PATHS)
    version = chance.choice([*["1.1"] * 8, "1.0", "2.0", "9"])
    body, kind = chance.choice(BODIES) if method == "POST" else (b"", "")
    fields = [FIELDS[0], *chance.sample(FIELDS, chance.choice([0, 0, 0, 1, 1, 3]))]
    if body:
        fields += [f"Content-Length: {len(body)}", f"Content-Type: {kind}"]
    head = "\r\n".join([f"{method} {_mutated_path(path, chance)} HTTP/{version}", *fields])
    data = head.encode("latin-1", "replace") + b"\r\n\r\n" + body
    for _ in range(chance.choice([0, 0, 0, 0, 1, 2])):
        data = chance.choice(MUTATIONS)(data, chance)
    return data


def _mutated_path(path: str, chance: random.Random) -> str:
    """A path with other parameters now and then."""
    if chance.random() < 0.5:
        return path
    base, _, query = path.partition("?")
    pairs = query.split("&")
    chance.shuffle(pairs)
    value = quote(chance.randbytes(chance.randrange(12)))
    odd = chance.choice(["engine", "as_of", "limit", "FL_DATE", "q", "format", "x"])
    return f"{base}?{'&'.join(pairs[: chance.randrange(4)])}&{odd}={value}"


def _flip(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) or 1)
    return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]


def _insert(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(TOKENS) + data[at:]


def _cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _repeat(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + data[max(0, at - 40) : at] * chance.choice([1, 2, 500]) + data[at:]


def _glue(data: bytes, chance: random.Random) -> bytes:
    return data + data[chance.randrange(len(data) + 1) :]


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip,
    _insert,
    _cut,
    _repeat,
    _glue,
)


def run(task: Task) -> Outcome:
    """Send `task.count` requests, half of them to the frontend."""
    outcome = Outcome()
    folder = task.folder / "chain"
    world_in(folder)
    pages = free_port()
    more = {"FLIGHTCHAIN_FRONTEND_PORT": pages, "FLIGHTCHAIN_COMMIT_WAIT_S": 0.05}
    with serving_confined(folder, "--frontend", **more) as service:
        answered: Counter[int] = Counter()
        while outcome.done < task.count:
            count = min(AT_ONCE, task.count - outcome.done)
            answered += _send(count, (service.port, pages), task.chance, outcome)
            task.says(f"{outcome.done} requests, {len(outcome.findings)} findings")
        _look_at_processes(service, outcome)
    outcome.notes.append("answers: " + ", ".join(f"{s} {n}" for s, n in sorted(answered.items())))
    return outcome


def _send(
    count: int, ports: tuple[int, int], chance: random.Random, outcome: Outcome
) -> Counter[int]:
    """Send so many requests from several threads, one connection each; statuses of the answers."""
    jobs = [(request(chance), port) for port in ports for _ in range(-(-count // 2))][:count]
    answered: Counter[int] = Counter()
    with ThreadPoolExecutor(THREADS) as pool:
        for (sent, port), statuses in zip(jobs, pool.map(_statuses, jobs), strict=True):
            answered.update(statuses)
            for status in statuses:
                if status >= 500 and status not in ALLOWED:
                    outcome.add("refused", f"{status} from port {port} for {sent[:300]!r}")
    outcome.done += count
    return answered


def _statuses(job: tuple[bytes, int]) -> list[int]:
    data, port = job
    received = bytearray()
    try:
        with socket.create_connection(("127.0.0.1", port), ANSWER_WITHIN_S) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65536):
                received += part
    except OSError:  # refused, or reset because it sent more than is read
        pass
    return [int(status) for status in STATUS.findall(received)]


def _look_at_processes(service: Service, outcome: Outcome) -> None:
    """Nobody has died, and nothing surprised the service."""
    if not service.answers("/health/ready"):
        outcome.add("crashed", "the service is not ready any more")
    judge_log(service.said(), outcome)
