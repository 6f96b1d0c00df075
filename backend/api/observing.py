"""Makes requests observable: an id, how long each took, and a line in a log.

`docs/reference/rest.md` names the headers, and `docs/reference/settings.md` those of the lab.

- `X-Request-ID` is the client's own if it is 1 to 64 characters of [A-Za-z0-9._-], else one made
  here (from this process and a count; unique, no secret). Errors are logged with it.
- `Server-Timing: total;dur=MS` goes from the call of the application until its headers go out. The
  wait for a thread comes before that, as `wait`. Posts that are answered together wait for each
  other: work that is done for all is in the time of each.
- The access log has a line when a body has gone out or broken off (`is_whole` false). `route` is
  null for a request without a route.

`reception` does all of this for every request, in whichever lane it is answered.
"""

import os
import re
import sys
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import msgspec

from backend.serving.environs import Environ

REQUEST_ID = "flightchain.request_id"  # in the environ
ROUTE = "flightchain.route"  # in the environ: the rule, if it was matched without Flask
PARTS = "flightchain.timing_parts"  # in the environ: more parts of Server-Timing, from a comma on

MAX_LOGGED_CHARACTERS = 1000

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

is_good_id = re.compile(r"[A-Za-z0-9._-]{1,64}").fullmatch
_process = ""
_numbers: "count[int]"

Headers = list[tuple[str, str]]


def _begin_process() -> None:
    """Give this process a name of its own: workers are forked from a process with another name."""
    global _process, _numbers
    _process, _numbers = os.urandom(6).hex(), count(1)


_begin_process()
os.register_at_fork(after_in_child=_begin_process)


def new_request_id() -> str:
    """Return an id for a request that came without one."""
    return f"{_process}-{next(_numbers):x}"


def route_of(environ: Environ) -> str | None:
    """Return the rule of the application that a request has matched; None for an unknown address.

    Call it only while the headers go out: Flask has no request before, and drops it afterwards.
    """
    route: str | None = environ.get(ROUTE)
    if route is not None:
        return route
    # None while Flask has not looked for the route.
    rule = getattr(environ.get("werkzeug.request"), "url_rule", None)
    return None if rule is None else str(rule.rule)


def lab_headers(emulated_disk: int, *, is_lab: bool) -> tuple[tuple[str, str], ...]:
    """Return the headers of every answer of a service in the lab; none elsewhere.

    emulated_disk: K, 0 for a real disk.
    """
    emulated = (("X-Emulated-Disk", str(emulated_disk)),) if emulated_disk else ()
    return (*emulated, ("X-Boot-Id", _BOOT_ID.read_text("ascii").strip())) if is_lab else emulated


def write_line(**members: object) -> None:
    """Write a line of the access log; a full disk or a closed pipe must not spoil the answer."""
    line = msgspec.json.encode({"time": datetime.now(UTC).isoformat(), **members})
    with suppress(OSError, ValueError):
        sys.stderr.flush()
        os.write(sys.stderr.fileno(), line + b"\n")  # in one piece, so that no process cuts it
