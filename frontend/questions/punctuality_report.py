"""Sums up all flights of a flight number over some days: how punctual they are. Pure."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, median
from typing import NamedTuple

from frontend.backend_client import Json
from frontend.charts.months import Month, months
from frontend.coverage import Carrier, Coverage
from frontend.questions.flights_of_day import (
    Leg,
    scheduled_departure,
    status_of,
)

SIGNS = {"on_time": "●", "late": "▲", "cancelled": "✕", "no_arrival": "○", "": "·"}
"""How a day looks in the calendar, by the status of the leg that went worst; "": no flight."""
MOST_SCHEDULES = 12


class Schedule(NamedTuple):
    """A route and a time at which it was scheduled. minute: of the day, None if it is not known."""

    origin: str
    dest: str
    minute: int | None
    flights: int
    first: str
    last: str

    @property
    def route(self) -> str:
        return f"{self.origin} to {self.dest}"

    @property
    def time(self) -> str:
        """The scheduled departure, as "06:15"; "" if it is not known."""
        return "" if self.minute is None else f"{self.minute // 60:02}:{self.minute % 60:02}"


@dataclass(frozen=True)
class PunctualityReport:
    """The flights of one carrier's flight number. legs: at least one."""

    carrier: Carrier
    legs: Sequence[Leg]

    @cached_property
    def days(self) -> dict[str, list[Leg]]:
        """The flights of each day that has any, cancelled ones too."""
        days: defaultdict[str, list[Leg]] = defaultdict(list)
        for leg in sorted(self.legs, key=lambda leg: (leg["FL_DATE"], leg["TRANSACTION_ID"])):
            days[leg["FL_DATE"]].append(leg)
        return dict(days)

    @property
    def days_flown(self) -> int:
        """The number of days on which at least one flight was not cancelled."""
        return sum(any(not leg["CANCELLED"] for leg in legs) for legs in self.days.values())

    @cached_property
    def delays(self) -> list[int]:
        """The arrival delays in minutes, the least first."""
        return sorted(leg["ARR_DELAY"] for leg in self.legs if leg["ARR_DELAY"] is not None)

    @cached_property
    def on_time_flights(self) -> int:
        return sum(status_of(leg) == "on_time" for leg in self.legs)

    @property
    def on_time(self) -> float | None:
        """The share of the arrivals that were on time."""
        return self.on_time_flights / len(self.delays) if self.delays else None

    @property
    def on_time_of_scheduled(self) -> float:
        """The share of all flights that were on time; the cancelled ones were not."""
        return self.on_time_flights / len(self.legs)

    @property
    def mean(self) -> float | None:
        return fmean(self.delays) if self.delays else None

    @property
    def median(self) -> float | None:
        return median(self.delays) if self.delays else None

    @property
    def p90(self) -> int | None:
        """The least delay in minutes that at least 90 % of the arrivals do not exceed."""
        return self.delays[math.ceil(0.9 * len(self.delays)) - 1] if self.delays else None

    @property
    def cancelled(self) -> int:
        return sum(leg["CANCELLED"] for leg in self.legs)

    @property
    def figures(self) -> Json:
        """All figures, by the names that `/average_delays` has for them."""
        arrived, departures = len(self.delays), [leg["DEP_DELAY"] for leg in self.legs]
        departures = [minutes for minutes in departures if minutes is not None]
        return {
            "flights": len(self.legs),
            "arrived": arrived,
            "cancelled": self.cancelled,
            "no_arrival": len(self.legs) - arrived - self.cancelled,
            "average_delay": self.mean,
            "average_departure_delay": fmean(departures) if departures else None,
            "on_time_share_of_arrived": self.on_time,
            "on_time_share_of_scheduled": self.on_time_of_scheduled if self.legs else None,
            "distribution": {"median": self.median, "p90": self.p90},
        }

    @property
    def worst(self) -> Leg | None:
        """The flight that arrived latest; the first of several."""
        arrived = [leg for leg in self.legs if leg["ARR_DELAY"] is not None]
        return max(
            arrived, key=lambda leg: (leg["ARR_DELAY"], -leg["TRANSACTION_ID"]), default=None
        )

    @cached_property
    def schedules(self) -> list[Schedule]:
        """Each route with each scheduled departure, in the order of their first days."""
        days: defaultdict[tuple[str, str, int | None], list[str]] = defaultdict(list)
        for leg in self.legs:
            minute = None if leg["DEP_DELAY"] is None else scheduled_departure(leg)
            days[leg["ORIGIN"], leg["DEST"], minute].append(leg["FL_DATE"])
        rows = [Schedule(*key, len(flown), min(flown), max(flown)) for key, flown in days.items()]
        return sorted(rows, key=lambda row: (row.first, row.minute is None, row.minute or 0))

    @property
    def schedules_shown(self) -> list[Schedule]:
        """The most common of `schedules`, in their order."""
        common = sorted(self.schedules, key=lambda row: -row.flights)[:MOST_SCHEDULES]
        return [row for row in self.schedules if row in common]

    def calendar(self) -> Iterator[Month[list[Leg]]]:
        """The flights of each day of each month."""
        return months(self.days)


def punctuality_reports(legs: Iterable[Leg], known: Coverage) -> list[PunctualityReport]:
    """Return a report for each carrier that uses the number, the most flights first."""
    by_carrier: defaultdict[int, list[Leg]] = defaultdict(list)
    for leg in legs:
        by_carrier[leg["OP_CARRIER_AIRLINE_ID"]].append(leg)
    reports = [PunctualityReport(known.carrier(n), legs) for n, legs in by_carrier.items()]
    return sorted(reports, key=lambda report: (-len(report.legs), report.carrier.label))
