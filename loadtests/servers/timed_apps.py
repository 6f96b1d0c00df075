"""Makes WSGI applications that answer GET with JSON and report where the time went.

Every answer has the headers of `loadtests.servers.timing`. Its `Server-Timing` has counts as the
description of an entry without a duration: `disk_reads;desc="503"`. GET /live answers {} if the
server is up.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any
from urllib.parse import parse_qsl

from loadtests.servers.timing import SERVER_TIMING, headers

LIVE = "/live"


@dataclass(frozen=True, slots=True)
class Answer:
    """Holds an answer. body: sent as JSON. counts: entries of Server-Timing."""

    body: object
    counts: Mapping[str, int] = field(default_factory=dict)
    status: str = "200 OK"


StartResponse = Callable[[str, list[tuple[str, str]]], object]
Application = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]
Answering = Callable[[Mapping[str, str]], Answer]  # the parameters of a request -> its answer


def application(routes: Mapping[str, Answering]) -> Application:
    """Return the application that answers on the paths of `routes` and `LIVE`."""
    known = {LIVE: lambda _parameters: Answer({}), **routes}

    def answered(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        start_s = monotonic()
        answering = known.get(environ["PATH_INFO"], lambda _: Answer({}, status="404 Not Found"))
        answer = answering(dict(parse_qsl(environ["QUERY_STRING"])))
        body = json.dumps(answer.body).encode()
        times = dict(headers(start_s))
        for name, number in answer.counts.items():
            times[SERVER_TIMING] += f', {name};desc="{number}"'
        about = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        start_response(answer.status, [*about, *times.items()])
        return [body]

    return answered
