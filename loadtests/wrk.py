"""Makes load with wrk, a compiled generator: so fast that it leaves the cores to the service.

It is a closed system: 8 connections, kept alive, each of which asks again as soon as it has its
answer. Requests are prepared beforehand and handed over in a Lua script, even where all are equal,
so that both sides of a ratio cost the generator the same.

The latencies that wrk prints are not those that it measured: it adds requests that it thinks a slow
answer kept it from sending, as if it were an open system. So its percentiles are longer than what
was measured, and are compared with those of another load that wrk printed as well.

Source: wrk 4.1.0, src/wrk.c (`main`, `response_complete`) and src/stats.c (`stats_correct`).
"""

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from time import monotonic

from loadtests.machine_samples import Sampler

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
"""
UNIT_MS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0, "h": 3_600_000.0}
_LATENCY = re.compile(r"^\s+99%\s+([\d.]+)(us|ms|s|m|h) ?$", re.MULTILINE)
_RATE = re.compile(r"^Requests/sec:\s+([\d.]+)$", re.MULTILINE)
_REQUESTS = re.compile(r"^\s+(\d+) requests in ", re.MULTILINE)
_REFUSED = re.compile(r"^\s+Non-2xx or 3xx responses: (\d+)$", re.MULTILINE)
_SOCKET_ERRORS = re.compile(
    r"^\s+Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)$", re.MULTILINE
)


class WrkFailed(Exception):
    """Says that wrk is missing, has ended with an error, or has printed something unexpected."""


@dataclass(frozen=True, slots=True)
class Load:
    """Holds the results of a run of wrk. failed: answers other than 2xx and 3xx, socket errors.

    p99_ms: as wrk prints it. server_s: processor time of the server.
    """

    requests: int
    requests_per_s: float
    p99_ms: float
    failed: int
    server_s: float = 0.0


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
    sampler, start_s = Sampler(None, server_pid), monotonic()
    finished = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    used = sampler.sample()
    if finished.returncode != 0:
        raise WrkFailed(f"wrk ended with status {finished.returncode}: {finished.stderr.strip()}")
    server_s = (used.at_s - start_s) * (used.server_cpu or 0.0)
    return replace(parsed(finished.stdout), server_s=server_s)


def parsed(output: str) -> Load:
    """Return the results that wrk printed, with --latency. Raises WrkFailed."""
    rate, requests = _RATE.search(output), _REQUESTS.search(output)
    latency = _LATENCY.search(output)
    if rate is None or requests is None or latency is None:
        raise WrkFailed(f"wrk printed something unexpected: {output!r}")
    failures = [*_REFUSED.findall(output), *sum(_SOCKET_ERRORS.findall(output), ())]
    return Load(
        requests=int(requests[1]),
        requests_per_s=float(rate[1]),
        p99_ms=float(latency[1]) * UNIT_MS[latency[2]],
        failed=sum(map(int, failures)),
    )
