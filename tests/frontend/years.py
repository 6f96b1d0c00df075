"""A year of answers as the backend gives them, of carriers and cities that are made up."""

import random
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

from frontend.question import CARRIER

CARRIERS = [19393, 19690, 19790, 19805, 19930, 19977, 20304]


def days_from(first: date, count: int) -> list[str]:
    """Return `count` days."""
    return [(first + timedelta(days=number)).isoformat() for number in range(count)]


DAYS = days_from(date(2013, 1, 1), 365)
HOURS = [{"hour": hour} for hour in range(5, 24)]
GROUPS: dict[str, list[dict[str, Any]]] = {
    "weekday": [{"DAY_OF_WEEK": day} for day in range(1, 8)],
    "hour": HOURS,
    "weekday_hour": [{"DAY_OF_WEEK": 1, **hour} for hour in HOURS],
    "month": [{"month": f"2013-{month:02}"} for month in range(1, 13)],
}


class Year:
    """Answers as a ledger that grows by a block with every question. days: those that it covers."""

    def __init__(self, days: Sequence[str] = DAYS) -> None:
        self.days = days
        self.height = 100
        self.asked: list[Mapping[str, str]] = []
        self._random = random.Random(7)

    def __call__(self, path: str, parameters: Mapping[str, str]) -> Any:
        if path == "/coverage":
            return coverage(self.days)
        if path == "/flight_counter" and parameters.get("group_by") == "month":
            return {"by_month": [{"month": month} for month in sorted({d[:7] for d in self.days})]}
        self.height += 1
        self.asked.append(parameters)
        height = int(parameters.get("as_of", self.height))
        answer = self._delays(parameters) if path == "/average_delays" else self._counts(parameters)
        query: dict[str, Any] = dict(parameters)
        if CARRIER in query:
            query[CARRIER] = int(query[CARRIER])
        return {**answer, "as_of": {"height": height, "tip_hash": f"{height:064}"}, "query": query}

    def _delays(self, parameters: Mapping[str, str]) -> Any:
        by = parameters["group_by"]
        if by in GROUPS:
            rows = [{**group, **self._day()} for group in GROUPS[by]]
            return {**self._day(), f"by_{by}": rows, "groups": len(rows), "without_hour": 12}
        days = [{"FL_DATE": day, **self._day()} for day in self.days]
        steps = range(-75, 195, 15)
        ends = [None, *steps[1:], None]
        pairs = pairwise(ends)
        histogram = [{"from": low, "to": high, "flights": 20} for low, high in pairs]
        return {
            **self._day(),
            "arrived": 20 * len(steps),
            "by_day": days,
            "distribution": {"median": -3.5, "p90": 44, "histogram": histogram},
        }

    def _day(self) -> dict[str, Any]:
        flights = self._random.randrange(500, 900)
        arrived = flights - self._random.randrange(90)
        cancelled = self._random.randrange(flights - arrived + 1)
        return {
            "average_delay": self._random.gauss(8, 20),
            "flights": flights,
            "arrived": arrived,
            "cancelled": cancelled,
            "no_arrival": flights - arrived - cancelled,
            "on_time_share_of_arrived": self._random.random(),
            "on_time_share_of_scheduled": self._random.random(),
            "average_departure_delay": self._random.gauss(8, 20),
        }

    def _counts(self, parameters: Mapping[str, str]) -> Any:
        by = parameters.get("group_by")
        if by == "day":
            counts = {day: self._random.randrange(90) for day in self.days}
            rows = [{"FL_DATE": day, "count": count} for day, count in counts.items() if count]
            return {"count": sum(counts.values()), "by_day": rows}
        if by == "carrier":
            rows = [{CARRIER: carrier, "count": 9} for carrier in CARRIERS]
            return {"count": 9 * len(CARRIERS), "by_carrier": rows}
        return {"count": 17}


def coverage(days: Sequence[str] = DAYS) -> Any:
    """Return a coverage of these days: airports of known cities, and one that nobody knows."""
    airports = (("ORD", "Chicago, IL"), ("LGA", "New York, NY"), ("JFK", "New York, NY"),
        ("LAX", "Los Angeles, CA"), ("SEA", "Seattle, WA"), ("MIA", "Miami, FL"),
        ("HNL", "Honolulu, HI"), ("ZZZ", "Nowhere, KS"))  # fmt: skip
    return {
        "flights": 1_000_000,
        "first_date": days[0],
        "last_date": days[-1],
        "carriers": [
            {CARRIER: carrier, "code": f"C{n}", "name": f"Carrier of name {n}", "flights": 9}
            for n, carrier in enumerate(CARRIERS)
        ],
        "airports": [
            {"code": code, "city": city, "state": "", "flights": 100 - number}
            for number, (code, city) in enumerate(airports)
        ],
    }
