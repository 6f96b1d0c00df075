"""Adds and reads options of the locustfiles beside Locust's own. Its web page shows them, too.

Every default has the type of its option, never None, because the web page keeps the type.
"""

from argparse import Namespace
from collections.abc import Collection, Mapping, Sequence
from http.client import HTTPException
from math import isfinite
from pathlib import Path
from typing import Any

import gevent

from loadtests.generation.client import TIMEOUT_S
from loadtests.generation.rows import CUSTOMERS_AT_MOST
from loadtests.generation.schedule import Request, load_requests
from loadtests.number_format import finite
from loadtests.processes import ProgramFailed, Site
from loadtests.questions import FEW_BLOCKS, drawn, paths, sample

DRAWN_OF_EACH_KIND = 500
MOST_PER_S = 5000  # requests that a Locust process may be asked to send; none sends so many
MOST_PLANNED = 3_000_000  # arrivals or interactions, which are computed before a run, in memory

Table = Sequence[tuple[str, Any, str]]  # option, default, help

COMMON: Table = (
    ("--seed", 1, "seed of all random numbers"),
    ("--mix", "", "shares of kinds of requests, as filter_transactions=60,flight_counter=40"),
    ("--timeout", TIMEOUT_S, "seconds to wait for an answer before giving up"),
)
# Files are chosen when Locust is started and not on its web page, which others may reach.
PATHS: Table = (
    ("--paths", "", "CSV file of requests: kind,path; default: questions drawn from the service"),
)
FILES: Table = (
    ("--raw", "", "CSV file to append a row for every request to; none by default"),
    ("--facts", "", "JSON file to write when the run begins, for other programs"),
)


def add(parser: Any, table: Table, files: Table, run_id: str) -> None:
    """Add the options of `table` and `files` and the common ones to Locust's parser.

    If several locustfiles run together, those that both have are common to them.
    """
    named = ("--run-id", run_id, "name of the run in the raw rows")
    known = set(parser._option_string_actions)  # another locustfile's, if there are several
    for rows, is_shown in (((*table, *COMMON), True), ((*files, *FILES, named), False)):
        for option, default, text in (row for row in rows if row[0] not in known):
            shown = f"{text}; default {default}" if default else text
            parser.add_argument(
                option, default=default, type=type(default), help=shown, include_in_web_ui=is_shown
            )


def require_finite(chosen: Namespace) -> None:
    """Raise ValueError for the first option that is infinite or not a number."""
    for name, value in vars(chosen).items():
        if isinstance(value, float) and not isfinite(value):
            raise ValueError(f"{_option(name)} is {value}; it must be a finite number")


def require_sendable(
    rate_per_s: float, count: int | None, until_s: float | None, processes: int
) -> None:
    """Raise ValueError for more arrivals than can be sent by so many processes, or planned."""
    if rate_per_s > MOST_PER_S * processes:
        raise ValueError(
            f"--rate is {rate_per_s:g}; a Locust process sends fewer than {MOST_PER_S} requests "
            "a second, in time only some hundreds; take a lower rate, or more --processes"
        )
    if count and count > MOST_PLANNED:
        raise ValueError(f"--arrivals is {count}; a schedule has at most {MOST_PLANNED}")
    if until_s and rate_per_s * until_s > MOST_PLANNED:
        raise ValueError(
            f"--duration is {until_s:g}, which is {rate_per_s * until_s:.0f} arrivals; a schedule "
            f"has at most {MOST_PLANNED}, so take a shorter --duration or a lower rate"
        )


def require_positive(chosen: Namespace, *names: str) -> None:
    """Raise ValueError for the first of these options that is not above 0."""
    for name in names:
        if not (value := getattr(chosen, name)) > 0:
            raise ValueError(f"{_option(name)} is {value}; it must be above 0")


def require_not_negative(chosen: Namespace, *names: str) -> None:
    """Raise ValueError for the first of these options below 0, and for no or too many customers."""
    for name in names:
        if not (value := getattr(chosen, name)) >= 0:
            raise ValueError(f"{_option(name)} is {value}; it must not be negative")
    if chosen.num_users == 0:
        raise ValueError("-u is 0; there must be at least 1 customer")
    if (chosen.num_users or 1) > CUSTOMERS_AT_MOST:
        many = f"there are at most {CUSTOMERS_AT_MOST} customers"
        raise ValueError(f"-u is {chosen.num_users}; {many}")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def law_from(text: str, laws: Collection[str], *, is_beside: bool) -> str:
    """Return the law of a workload in `--law`, where two that run together may have one each.

    is_beside: whether there is another; then the first of `laws` is the default. Raises ValueError.
    """
    if own := [law for law in text.split(",") if law in laws]:
        return own[0]
    if is_beside:
        return next(iter(laws))
    raise ValueError(f"--law is {text!r}; it must be one of {', '.join(laws)}")


def shares_from(text: str) -> dict[str, float] | None:
    """Return the weights in a text like `a=60,b=40`; None if it is empty. Raises ValueError."""
    if not text.strip():
        return None
    shares = {}
    for item in text.split(","):
        kind, _, weight = item.partition("=")
        try:
            shares[kind.strip()] = finite(weight)
        except ValueError:
            raise ValueError(f"--mix {text!r}: {item!r} is not like flight_counter=30") from None
    return shares


def choices_from(options: Namespace, host: str) -> Mapping[str, list[Request]]:
    """Return requests to choose from: those of a file, or the three questions about the service.

    Raises ValueError, OSError, and ProgramFailed if the service does not answer as it should.
    """
    if options.paths:
        return load_requests(Path(options.paths))
    questions = drawn(flights_of(host), DRAWN_OF_EACH_KIND, options.seed)
    by_kind = paths(questions).items()
    return {kind: [Request(kind, path) for path in own_paths] for kind, own_paths in by_kind}


_samples: dict[str, "gevent.Greenlet[..., list[Any] | Exception]"] = {}


def flights_of(host: str) -> list[Any]:
    """Return flights of a service, which is asked once.

    Who waits for them may be killed, as a shape does each second that it changes; they are read
    nevertheless, and are there when they are wanted again. Raises ProgramFailed.
    """
    reading = _samples.get(host)
    if reading is None:
        reading = _samples[host] = gevent.spawn(_sampled, host)
    flights: list[Any] | Exception = reading.get()
    if isinstance(flights, Exception):
        _samples.pop(host, None)
        raise flights
    return flights


def _sampled(host: str) -> list[Any] | Exception:
    """Return flights, or why there are none: gevent prints what a greenlet raises."""
    try:
        return sample(Site(host), FEW_BLOCKS)
    except (OSError, HTTPException, ProgramFailed) as problem:
        return problem
