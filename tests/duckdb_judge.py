"""Asks DuckDB, over a table `flights`, what the service is asked, and compares the answers."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import Any

import duckdb
import pytest

from tests.api.worlds import Json

LEG = ("OP_CARRIER_AIRLINE_ID", "ORIGIN", "DEST", "DEP_DELAY", "ARR_DELAY")


def require_agreement(
    database: duckdb.DuckDBPyConnection,
    ask: Callable[..., Json],
    questions: int,
    *,
    leg: Sequence[str] = LEG,
    ends: Sequence[str] = ("ORIGIN", "DEST"),
) -> None:
    """Ask so many random questions of each kind. leg: of a flight. ends: how routes are named."""
    chance = random.Random(questions)

    def judge(condition: str, *values: Any, what: Sequence[str] = ("count(*)",)) -> list[Any]:
        sql = f"SELECT {', '.join(what)} FROM flights WHERE {condition}"
        return database.execute(sql, list(values)).fetchall()

    def sample(*names: str) -> list[Any]:
        known = sorted(judge("true", what=[f"DISTINCT {', '.join(names)}"]))
        return chance.choices(known, k=questions)

    (((first, last),)) = judge("true", what=["min(FL_DATE)", "max(FL_DATE)"])
    between = "FL_DATE BETWEEN ? AND ?"
    for number, day in sample("OP_CARRIER_FL_NUM", "FL_DATE"):
        answer = ask("filter_transactions", OP_CARRIER_FL_NUM=number, FL_DATE=str(day))
        legs = [tuple(flight[name] for name in leg) for flight in answer["flights"]]
        rows = judge("OP_CARRIER_FL_NUM = ? AND FL_DATE = ?", number, day, what=leg)
        assert Counter(legs) == Counter(rows)
    for (carrier,) in sample("OP_CARRIER_AIRLINE_ID"):
        days = _interval(chance, first, last)
        answer = ask("average_delays", OP_CARRIER_AIRLINE_ID=carrier, **days)
        condition = f"OP_CARRIER_AIRLINE_ID = ? AND {between}"
        what = ("count(*)", "count(ARR_DELAY)", "coalesce(sum(CANCELLED), 0)", "avg(ARR_DELAY)")
        ((*counts, mean),) = judge(condition, carrier, *days.values(), what=what)
        assert [answer["flights"], answer["arrived"], answer["cancelled"]] == counts
        assert answer["average_delay"] == (None if mean is None else pytest.approx(mean))
    for route in sample(*ends):
        days = _interval(chance, first, last)
        condition = f"{ends[0]} = ? AND {ends[1]} = ? AND {between}"
        counted = judge(condition, *route, *days.values())
        answer = ask("flight_counter", **dict(zip(ends, route, strict=True)), **days)
        assert counted == [(answer["count"],)]


def _interval(chance: random.Random, first: date, last: date) -> dict[str, str]:
    """Days of which some are before the first flight, or after the last."""
    start = first + timedelta(chance.randrange(-5, (last - first).days + 1))
    end = start + timedelta(chance.randrange(120))
    return {"INITIAL_DATE": start.isoformat(), "FINAL_DATE": end.isoformat()}
