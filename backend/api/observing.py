"""What one can see of a request: its id, how long it took, and a line in a log.

- `X-Request-ID`, in every answer: the client's own if it is 1 to 64 characters of [A-Za-z0-9._-],
  else made here (of this process and a count; unique, no secret). Errors are logged with it.
- `Server-Timing: total;dur=MS`, from the call of the application until its headers go out, and
  `index` or `scan` where a question was asked. Waiting for a thread comes before that, and is
  `wait`. Posts that are answered together wait for each other: what is done for all is part of
  each. A scan also tells its stages (see `backend.storage.scan_costs`): `file`, with the blocks
  read and in how many refills, `decompress`, `hash`, `decode`, `filter`; and how many blocks the
  caches `last` and `random` had.
- `X-Emulated-Disk: K`, in every answer of a service whose disk is emulated, and in no other.
- The access log, if it is on: one line of JSON on standard error for each request, written when its
  body has gone out or broken off (`is_whole` false). `route` is null for what has none.

`reception` does all of it for every request, however quick, and whoever answers it.
"""

import os
import re
import sys
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count

import msgspec

from serving.environs import Environ

REQUEST_ID = "flightchain.request_id"  # in the environ
ROUTE = "flightchain.route"  # in the environ: the rule, if it was met without Flask
PARTS = "flightchain.timing_parts"  # in the environ: more of Server-Timing, with a comma before it

MAX_LOGGED_CHARACTERS = 1000

is_good_id = re.compile(r"[A-Za-z0-9._-]{1,64}").fullmatch
_process = ""
_numbers: "count[int]"

Headers = list[tuple[str, str]]


def _begin_process() -> None:
    """Give this process a name of its own: workers are forked from one that has one already."""
    global _process, _numbers
    _process, _numbers = os.urandom(6).hex(), count(1)


_begin_process()
os.register_at_fork(after_in_child=_begin_process)


def new_request_id() -> str:
    """An id for a request that came without one."""
    return f"{_process}-{next(_numbers):x}"


def route_of(environ: Environ) -> str | None:
    """The rule of the application that a request has met; None for an address that is not ours.

    Only while the headers go out: before there is no request of Flask, and afterwards it lets go.
    """
    route: str | None = environ.get(ROUTE)
    if route is not None:
        return route
    # None while Flask has not looked for the route.
    rule = getattr(environ.get("werkzeug.request"), "url_rule", None)
    return None if rule is None else str(rule.rule)


def emulation_headers(emulated_disk: int) -> tuple[tuple[str, str], ...]:
    """What every answer says of an emulated disk; nothing of a real one."""
    return (("X-Emulated-Disk", str(emulated_disk)),) if emulated_disk else ()


def write_line(**members: object) -> None:
    """A line of the access log; a full disk or a closed pipe must not spoil the answer."""
    line = msgspec.json.encode({"time": datetime.now(UTC).isoformat(), **members})
    with suppress(OSError, ValueError):
        sys.stderr.flush()
        os.write(sys.stderr.fileno(), line + b"\n")  # in one piece, whoever else writes
