"""Makes load with wrk, a compiled generator: so fast that it leaves the cores to the service.

It is a closed system: 8 connections, kept alive, each of which asks again as soon as it has its
answer. Requests are prepared beforehand and handed over in a Lua script, even where all are equal,
so that both sides of a ratio cost the generator the same.

The latencies that wrk prints are not those that it measured: it adds requests that it thinks a slow
answer kept it from sending, as if it were an open system. So scripts make it print its whole
histogram as well, from which `uncorrected` takes those requests out again.

Source: wrk 4.1.0, src/wrk.c (`main`, `response_complete`) and src/stats.c (`stats_correct`).
"""

import math
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from loadtests.machine import Usage, moment

CONNECTIONS = 8
TIMEOUT_S = 60

_BEGINNING = """\
local requests

init = function(args)
  requests = {
"""
_END = """
  }
end

local at = 0

request = function()
  at = at % #requests + 1
  return requests[at]
end

done = function(summary, latency)
  io.write("Recorded ", summary.duration, " us ", summary.requests, " requests:")
  for i = 1, #latency do
    io.write(" ", string.format("%d %d", latency(i)))
  end
  io.write("\\n")
end
"""
_UNIT_MS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0, "h": 3_600_000.0}
_LATENCY = re.compile(r"^\s+(50|99)%\s+([\d.]+)(us|ms|s|m|h) ?$", re.MULTILINE)
_RATE = re.compile(r"^Requests/sec:\s+([\d.]+)$", re.MULTILINE)
_REQUESTS = re.compile(r"^\s+(\d+) requests in ", re.MULTILINE)
_REFUSED = re.compile(r"^\s+Non-2xx or 3xx responses: (\d+)$", re.MULTILINE)
_RECORDED = re.compile(r"^Recorded (\d+) us (\d+) requests:((?: \d+)*)$", re.MULTILINE)
_SOCKET_ERRORS = re.compile(
    r"^\s+Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)$", re.MULTILINE
)


class WrkFailed(Exception):
    """Says that wrk is missing, has ended with an error, or has printed something unexpected."""


@dataclass(frozen=True, slots=True)
class Load:
    """Holds the results of a run of wrk. failed: answers other than 2xx and 3xx, socket errors.

    p50_ms, p99_ms: as wrk prints them. recorded: uncorrected latencies. usage: of the processor.
    """

    requests: int
    requests_per_s: float
    p50_ms: float
    p99_ms: float
    failed: int
    recorded: "Recorded | None" = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """Counts how many requests took how many microseconds, in so many seconds of load.

    A request takes from its writing to the last byte of its answer, without a new connection.
    """

    duration_s: float
    latencies_us: Mapping[int, int]

    @property
    def requests(self) -> int:
        """Return the number of requests."""
        return sum(self.latencies_us.values())

    def percentile_s(self, percent: float) -> float | None:
        """Return the latency that `percent` % did not exceed (nearest rank), None without any."""
        rank = max(1, math.ceil(percent / 100 * self.requests))
        for us in sorted(self.latencies_us):
            rank -= self.latencies_us[us]
            if rank <= 0:
                return us / 1e6
        return None


def write_script(path: Path, request_paths: Sequence[str], etags: Sequence[str] = ()) -> Path:
    """Write a Lua script that GETs `request_paths` in turn, with the ETags known of them."""
    headers = (f", {{['If-None-Match'] = '{etag}'}}" for etag in etags)
    requests = zip_longest(request_paths, headers, fillvalue="")
    return _written(path, [f'"GET", "{requested}"{header}' for requested, header in requests])


def write_posting_script(path: Path, request_path: str, bodies: Sequence[bytes]) -> Path:
    """Write a Lua script that posts `bodies` (JSON in ASCII) to `request_path` in turn."""
    posted = f'"POST", "{request_path}", {{["Content-Type"] = "application/json"}}'
    return _written(path, [f"{posted}, [==[{body.decode('ascii')}]==]" for body in bodies])


def _written(path: Path, requests: Iterable[str]) -> Path:
    lines = ",\n".join(f"    wrk.format({arguments})" for arguments in requests)
    path.write_text(_BEGINNING + lines + _END, encoding="ascii")
    return path


def program() -> str:
    """Return the path of wrk. Raises WrkFailed."""
    if path := shutil.which("wrk"):
        return path
    raise WrkFailed("the load generator wrk is missing; on Debian: sudo apt install wrk")


def load(
    base_url: str,
    script: Path,
    duration_s: int,
    connections: int = CONNECTIONS,
    server_pid: int | None = None,
) -> Load:
    """Load a service. server_pid: of which the processor time is wanted, too. Raises WrkFailed."""
    command = [
        *(program(), "--latency", "--threads=1", f"--connections={connections}"),
        *(f"--duration={duration_s}s", f"--timeout={TIMEOUT_S}s", f"--script={script}", base_url),
    ]
    before = moment(server_pid)
    finished = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    usage = before.until(moment(server_pid))
    if finished.returncode != 0:
        raise WrkFailed(f"wrk ended with status {finished.returncode}: {finished.stderr.strip()}")
    return replace(parsed(finished.stdout, connections), usage=usage)


def parsed(output: str, connections: int = CONNECTIONS) -> Load:
    """Return the results that wrk printed, with --latency and so many connections.

    Raises WrkFailed.
    """
    rate, requests = _RATE.search(output), _REQUESTS.search(output)
    latency_ms = {p: float(value) * _UNIT_MS[unit] for p, value, unit in _LATENCY.findall(output)}
    if rate is None or requests is None or latency_ms.keys() != {"50", "99"}:
        raise WrkFailed(f"wrk printed something unexpected: {output!r}")
    failures = [*_REFUSED.findall(output), *sum(_SOCKET_ERRORS.findall(output), ())]
    return Load(
        requests=int(requests[1]),
        requests_per_s=float(rate[1]),
        p50_ms=latency_ms["50"],
        p99_ms=latency_ms["99"],
        failed=sum(map(int, failures)),
        recorded=_recorded(output, connections),
    )


def _recorded(output: str, connections: int) -> Recorded | None:
    match = _RECORDED.search(output)
    if match is None:
        return None
    duration_us, requests = int(match[1]), int(match[2])
    numbers = [int(word) for word in match[3].split()]
    printed = dict(zip(numbers[::2], numbers[1::2], strict=True))
    rounds = requests // connections
    latencies_us = uncorrected(printed, duration_us // rounds) if rounds else printed
    timeouts = sum(int(errors[3]) for errors in _SOCKET_ERRORS.findall(output))
    counts = latencies_us.values()
    if sum(counts) != requests - timeouts or min(counts, default=0) < 0:
        return None  # another version than the known one, 4.1, prints it otherwise
    return Recorded(duration_us / 1e6, latencies_us)


def uncorrected(printed: Mapping[int, int], expected_us: int) -> dict[int, int]:
    """Return the histogram (us -> requests) before wrk's correction for requests not sent.

    For each request of n us, n at least twice `expected_us`, wrk adds one of n - expected_us, one
    of n - 2 expected_us, and so on, down to but not including those of `expected_us` or less. It
    goes upwards and never looks at the requests it has added; so going downwards undoes everything.
    """
    counts = dict(printed)
    for us in sorted(printed, reverse=True):
        if us < 2 * expected_us:
            break
        if count := counts[us]:
            for added in range(us - expected_us, expected_us, -expected_us):
                counts[added] = counts.get(added, 0) - count
    return {us: count for us, count in counts.items() if count}
