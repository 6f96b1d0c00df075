"""What answers by groups cost (row 15), against what could be asked before there were any.

All are about the days of one month, or most of them, and the times are the index's, from
Server-Timing: each is the least of several, on a service that keeps no answers.
"""

from calendar import monthrange
from collections.abc import Iterator
from datetime import date
from urllib.parse import urlencode

from loadtests.bench.figures import Figure, short
from loadtests.bench.session import Bench, load_now, timed_ms
from loadtests.processes import Service
from loadtests.questions import flights_of_block

TIMES = 20
SOME_DAYS = 25  # which are no whole month
MOST_FACTOR = 2.0
BEFORE = "a carrier by day, with its distribution"


def breakdowns(bench: Bench) -> Iterator[Figure]:
    """Each kind of question, and how many times the time of `BEFORE` it takes."""
    chain = bench.chains.month()
    with (
        bench.service(chain, answer_cache_bytes=0) as service,
        service.connection() as connection,
    ):
        bench.say(f"asking by groups of {chain.label}")
        times_ms = {
            what: min(timed_ms(connection, path, "index")[0] for _ in range(TIMES))
            for what, path in _questions(service).items()
        }
    before_ms = times_ms.pop(BEFORE)
    raw = {"index_ms": {BEFORE: before_ms, **times_ms}, "load": load_now()}
    yield Figure(15, f"index: {BEFORE}, ms", short(before_ms), raw=raw)
    for what, took_ms in times_ms.items():
        yield Figure(
            15,
            f"index: {what}, times as long",
            f"{short(took_ms / before_ms)} ({short(took_ms)} ms)",
            f"at most {MOST_FACTOR:g}",
            took_ms <= MOST_FACTOR * before_ms,
            raw={"index_ms": took_ms},
        )


def _questions(service: Service) -> dict[str, str]:
    """What is asked -> its address, about the flight in the middle of the ledger and its month."""
    tip = service.get("/tip")["height"]
    flight = flights_of_block(service, (tip + 1) // 2)[0]
    month = flight["FL_DATE"][:7]
    first = date.fromisoformat(f"{month}-01")
    last = first.replace(day=monthrange(first.year, first.month)[1])
    days = {"INITIAL_DATE": first.isoformat(), "FINAL_DATE": last.isoformat()}
    some_days = {
        "INITIAL_DATE": first.replace(day=3).isoformat(),
        "FINAL_DATE": first.replace(day=2 + SOME_DAYS).isoformat(),
    }
    carrier = {"OP_CARRIER_AIRLINE_ID": flight["OP_CARRIER_AIRLINE_ID"]}
    route = {"ORIGIN": flight["ORIGIN"], "DEST": flight["DEST"]}
    airport = {"ORIGIN": flight["ORIGIN"]}
    asked: dict[str, dict[str, object]] = {
        BEFORE: {**carrier, "group_by": "day", "distribution": "true"},
        "all flights by carrier": {"group_by": "carrier"},
        "all flights by hour": {"group_by": "hour"},
        "a carrier by hour": {**carrier, "group_by": "hour"},
        "a route by carrier": {**route, "group_by": "carrier"},
        "a route by hour": {**route, "group_by": "hour"},
        "a route by weekday": {**route, "group_by": "weekday"},
        "a route with its distribution": {**route, "distribution": "true"},
        "an airport by hour": {**airport, "group_by": "hour"},
        "an airport by destination": {**airport, "group_by": "destination"},
        "the ten worst airports": {"group_by": "origin", **_WORST},
        "the ten worst routes": {"group_by": "route", **_WORST},
        "the ten worst routes of a carrier": {**carrier, "group_by": "route", **_WORST},
        f"all flights by hour, {SOME_DAYS} days": {"group_by": "hour", **some_days},
        f"a carrier by hour, {SOME_DAYS} days": {**carrier, "group_by": "hour", **some_days},
        f"a route by hour, {SOME_DAYS} days": {**route, "group_by": "hour", **some_days},
    }
    found = {what: f"/average_delays?{urlencode(days | more)}" for what, more in asked.items()}
    number = {"OP_CARRIER_FL_NUM": flight["OP_CARRIER_FL_NUM"], "FL_DATE": days["INITIAL_DATE"]}
    last_day = {"FINAL_DATE": days["FINAL_DATE"]}
    found["a flight number"] = f"/filter_transactions?{urlencode(number | last_day)}"
    return found


_WORST = {"sort": "average_delay", "order": "descending", "least_flights": 100, "limit": 10}
