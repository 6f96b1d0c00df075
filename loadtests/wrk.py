"""Load from wrk, a compiled load generator: so fast that it leaves the cores to the service.

It is a closed system: 8 connections, kept alive, each of which asks again as soon as it has its
answer. Requests are prepared beforehand and handed over in a Lua script, and the empty endpoint is
asked through the same script, so that both sides of a ratio cost the generator the same.
"""

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CONNECTIONS = 8
THREADS = 1
TIMEOUT_S = 60

_SCRIPT = """\
local paths = {
%s
}
local etags = {
%s
}
local requests = {}
local at = 0

init = function(args)
  for i, path in ipairs(paths) do
    local headers = {}
    if etags[i] then headers["If-None-Match"] = etags[i] end
    requests[i] = wrk.format("GET", path, headers)
  end
end

request = function()
  at = at %% #requests + 1
  return requests[at]
end
"""
_POSTING_SCRIPT = """\
local bodies = {
%s
}
local headers = { ["Content-Type"] = "application/json" }
local at = 0

request = function()
  at = at %% #bodies + 1
  return wrk.format("POST", "%s", headers, bodies[at])
end
"""
_UNIT_MS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0, "h": 3_600_000.0}
_LATENCY = re.compile(r"^\s+(50|99)%\s+([\d.]+)(us|ms|s|m|h) ?$", re.MULTILINE)
_RATE = re.compile(r"^Requests/sec:\s+([\d.]+)$", re.MULTILINE)
_REQUESTS = re.compile(r"^\s+(\d+) requests in ", re.MULTILINE)
_REFUSED = re.compile(r"^\s+Non-2xx or 3xx responses: (\d+)$", re.MULTILINE)
_SOCKET_ERRORS = re.compile(
    r"^\s+Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)$", re.MULTILINE
)


class WrkFailed(Exception):
    """wrk is missing, ended with an error, or said something that cannot be understood."""


@dataclass(frozen=True, slots=True)
class Load:
    """What one run of wrk saw. failed: answers other than 2xx and 3xx, and socket errors."""

    requests: int
    requests_per_s: float
    p50_ms: float
    p99_ms: float
    failed: int


def write_script(path: Path, request_paths: Sequence[str], etags: Sequence[str] = ()) -> Path:
    """The Lua script at `path` that asks for `request_paths` (percent-encoded) in turn.

    etags: what the client has of each path already, to be sent as If-None-Match.
    """
    lines = ",\n".join(f'"{request_path}"' for request_path in request_paths)
    known = ",\n".join(f"'{etag}'" for etag in etags)
    path.write_text(_SCRIPT % (lines, known), encoding="ascii")
    return path


def write_posting_script(path: Path, request_path: str, bodies: Sequence[bytes]) -> Path:
    """The Lua script at `path` that posts `bodies` (JSON in ASCII) to `request_path` in turn."""
    lines = ",\n".join(f"[==[{body.decode('ascii')}]==]" for body in bodies)
    path.write_text(_POSTING_SCRIPT % (lines, request_path), encoding="ascii")
    return path


def load(base_url: str, script: Path, duration_s: int, connections: int = CONNECTIONS) -> Load:
    """Ask the service at `base_url` for `duration_s` seconds. Raises WrkFailed."""
    wrk = shutil.which("wrk")
    if wrk is None:
        raise WrkFailed("the load generator wrk is missing; on Debian: sudo apt install wrk")
    finished = subprocess.run(  # noqa: S603  our own command
        [
            wrk,
            f"--threads={THREADS}",
            f"--connections={connections}",
            f"--duration={duration_s}s",
            f"--timeout={TIMEOUT_S}s",
            "--latency",
            f"--script={script}",
            base_url,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode != 0:
        raise WrkFailed(f"wrk ended with status {finished.returncode}: {finished.stderr.strip()}")
    return parsed(finished.stdout)


def parsed(output: str) -> Load:
    """What wrk printed, with --latency. Raises WrkFailed."""
    rate, requests = _RATE.search(output), _REQUESTS.search(output)
    latency_ms = {p: float(value) * _UNIT_MS[unit] for p, value, unit in _LATENCY.findall(output)}
    if rate is None or requests is None or latency_ms.keys() != {"50", "99"}:
        raise WrkFailed(f"wrk printed something else than expected: {output!r}")
    failures = [*_REFUSED.findall(output), *sum(_SOCKET_ERRORS.findall(output), ())]
    return Load(
        requests=int(requests[1]),
        requests_per_s=float(rate[1]),
        p50_ms=latency_ms["50"],
        p99_ms=latency_ms["99"],
        failed=sum(map(int, failures)),
    )
