"""Makes up months of flights in the shape of real years, as files that BTS might have published.

Months follow each other as in reality: more flights from year to year, fewer on Saturdays and in
winter, flight numbers that are given up and new ones, carriers and airports that come and go, good
days and stormy ones. The order in a file is that of BTS: by carrier, day and airport. The same seed
makes the same months.
"""

import csv
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from math import cos, pi
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from pyarrow.csv import write_csv

from loadtests.processes import PROJECT

FIRST_YEAR = 1999
FIRST_A_DAY, GROWTH = 15_000, 1.03  # flights on most days of the first month; times as many a year
SUMMER = 0.04  # by which there are more flights in July than in spring, and fewer in January
WEEKDAYS = (0.99, 0.98, 0.99, 1.0, 1.0, 0.87, 0.95)  # shares of the schedule, Monday first
GIVEN_UP = 0.03  # share of the schedule that changes from month to month
STAYS = 0.55  # share of carriers and airports that are there all the time
MONTHS = 160  # in which the others come and go
CARRIERS, HUBS, AIRPORTS = 24, 6, 340
CANCELLED, DIVERTED = 0.018, 0.002
STORMS = (18, 20, 22, 24, 26, 28, 30, 35, 45, 80)  # mean of the late ones' minutes; one each day
DAY_MINUTES = 1440

_LEG = [("carrier", "i4"), ("number", "i4"), ("origin", "i4"), ("destination", "i4")]
_LEG += [("departure", "i4"), ("minutes", "i4")]
Numbers = Any  # a numpy array; its element type and shape are those of the line that makes it


@dataclass(frozen=True, slots=True)
class MadeMonth:
    """Holds a month and its schedule: a row for each flight that leaves on most of its days."""

    year: int
    month: int
    legs: Numbers

    def __str__(self) -> str:
        return f"{self.year}-{self.month:02}"

    def write(self, path: Path) -> None:
        """Write its flights as CSV with titles of BTS."""
        random = np.random.default_rng([self.year, self.month])
        days = monthrange(self.year, self.month)[1]
        flown = [self._flown(random, day) for day in range(1, days + 1)]
        day = np.repeat(np.arange(1, days + 1), [len(rows) for rows in flown])
        rows = np.concatenate(flown)
        storms = random.choice(STORMS, days + 1)
        order = np.lexsort((rows["destination"], rows["origin"], day, rows["carrier"]))
        day, rows = day[order], rows[order]
        columns = self._days(day) | _routes(rows) | _times(random, rows, storms[day])
        write_csv(pa.table(columns), path)

    def _flown(self, random: Generator, day: int) -> Numbers:
        share = WEEKDAYS[date(self.year, self.month, day).weekday()]
        return self.legs[random.random(len(self.legs)) < share]

    def _days(self, day: Numbers) -> dict[str, Any]:
        dates = [date(self.year, self.month, at + 1) for at in range(day.max())]
        weekdays = np.array([at.isoweekday() for at in dates])
        return {
            "Year": np.full(len(day), self.year),
            "Month": np.full(len(day), self.month),
            "DayofMonth": day,
            "DayOfWeek": weekdays[day - 1],
            "FlightDate": pa.array([at.isoformat() for at in dates]).take(pa.array(day - 1)),
        }


def months(seed: int) -> Iterator[MadeMonth]:
    """Yield month after month, without end."""
    random = np.random.default_rng(seed)
    carriers, airports = _presence(random, CARRIERS), _presence(random, AIRPORTS)
    traffic = 1 / (3 + np.arange(AIRPORTS))
    size = 1 / (2 + np.arange(CARRIERS))
    hubs = random.integers(0, 40, (CARRIERS, HUBS))
    airports[:, :60] = [[0], [MONTHS]]
    legs: Numbers = np.empty(0, _LEG)
    for at in range(MONTHS):
        year, month = FIRST_YEAR + at // 12, 1 + at % 12
        season = 1 - SUMMER * cos(2 * pi * (month - 1) / 12)
        wanted = round(FIRST_A_DAY * GROWTH ** (at / 12) * season)
        carrier_there, airport_there = ((p[0] <= at) & (at < p[1]) for p in (carriers, airports))
        stays = carrier_there[legs["carrier"]] & (random.random(len(legs)) >= GIVEN_UP)
        stays &= airport_there[legs["origin"]] & airport_there[legs["destination"]]
        legs = random.permutation(legs[stays])[:wanted]
        new = np.empty(wanted - len(legs), _LEG)
        new["carrier"] = _drawn(random, size * carrier_there, len(new))
        hub = hubs[new["carrier"], random.integers(0, HUBS, len(new))]
        spoke = _drawn(random, traffic * airport_there, len(new))
        spoke = np.where(spoke == hub, (hub + 1) % 40, spoke)
        outward = random.random(len(new)) < 0.5
        new["origin"], new["destination"] = np.where(outward, (hub, spoke), (spoke, hub))
        most = 500 + 13_000 * size[new["carrier"]]
        new["number"] = 1 + (most * random.random(len(new))).astype(int)
        new["departure"] = 5 * random.integers(60, 276, len(new))
        new["minutes"] = 30 + (hub * 37 + spoke * 11) % 270
        legs = np.concatenate([legs, new])
        yield MadeMonth(year, month, legs)


def _presence(random: Generator, count: int) -> Numbers:
    """Return the first month of each, and the month from which on it is gone."""
    ends = np.sort(random.integers(0, MONTHS, (2, count)), axis=0)
    stays = (random.random(count) < STAYS) | (ends[1] - ends[0] < 6)
    return np.where(stays, [[0], [MONTHS]], ends)


def _drawn(random: Generator, weights: Numbers, count: int) -> Numbers:
    return random.choice(len(weights), count, p=weights / weights.sum())


def _routes(rows: Numbers) -> dict[str, Any]:
    with (PROJECT / "backend/sources/airports.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    table = [table[at] for at in np.random.default_rng(0).permutation(len(table))[:AIRPORTS]]
    columns = {"AirlineID": 19_386 + 37 * rows["carrier"], "FlightNum": rows["number"]}
    for end, places in (("Origin", rows["origin"]), ("Dest", rows["destination"])):
        titles = {"AirportID": "number", "": "code", "CityName": "city", "State": "state"}
        for title, name in titles.items():
            words = pa.array([airport[name] for airport in table])
            columns[end + title] = words.take(pa.array(places))
    return columns


def _times(random: Generator, rows: Numbers, storm: Numbers) -> dict[str, Any]:
    """Return departures, arrivals and what became of flights. storm: mean delay of the late."""
    count = len(rows)
    early = (-10 + 10 * random.random(count) ** 1.5).astype(int)
    late = (storm * random.exponential(size=count)).astype(int)
    delay = np.where(random.random(count) < 0.6, early, late)
    lost = random.integers(0, 15, count) + random.integers(0, 15, count) - 18
    fate = random.random(count)
    cancelled, not_arrived = fate < CANCELLED, fate < CANCELLED + DIVERTED
    arrival = rows["departure"] + rows["minutes"] + 25 + delay + lost
    return {
        "DepTime": _clock(rows["departure"] + delay, cancelled),
        "DepDelay": pa.array(delay, mask=cancelled),
        "ArrTime": _clock(arrival, not_arrived),
        "ArrDelay": pa.array(delay + lost, mask=not_arrived),
        "Cancelled": cancelled.astype(int),
        "AirTime": pa.array(rows["minutes"] + lost // 3, mask=not_arrived),
    }


def _clock(minutes: Numbers, missing: Numbers) -> Any:
    # Not made on import: to make its first array, pyarrow imports pandas if it is there.
    clock = pa.array([f"{minute // 60:02}{minute % 60:02}" for minute in range(DAY_MINUTES)])
    return clock.take(pa.array(minutes % DAY_MINUTES, mask=missing))
