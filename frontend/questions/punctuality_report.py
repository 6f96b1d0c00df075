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
from frontend.questions.flights_of_day import Leg, scheduled, status_of

SIGNS = {"on_time": "●", "late": "▲", "cancelled": "✕", "no_arrival": "○", "": "·"}
"""How a day looks in the calendar, by the status of the leg that went worst; "": no flight."""
MOST_SCHEDULES = 12


class Schedule(NamedTuple):
    """A route and a time at which it was scheduled, as "06:15"; "" if that is not known."""

    origin: str
    dest: str
    time: str
    flights: int
    first: str
    last: str

    @property
    def route(self) -> str:
        return f"{self.origin} to {self.dest}"


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
    def figures(self) -> Json:
        return figures_of(self.legs)

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
        days: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
        for leg in self.legs:
            days[leg["ORIGIN"], leg["DEST"], scheduled(leg, "DEP")].append(leg["FL_DATE"])
        rows = [Schedule(*key, len(flown), min(flown), max(flown)) for key, flown in days.items()]
        return sorted(rows, key=lambda row: (row.first, not row.time, row.time))

    @property
    def schedules_shown(self) -> list[Schedule]:
        """The most common of `schedules`, in their order."""
        common = sorted(self.schedules, key=lambda row: -row.flights)[:MOST_SCHEDULES]
        return [row for row in self.schedules if row in common]

    def calendar(self) -> Iterator[Month[list[Leg]]]:
        return months(self.days)


def figures_of(legs: Sequence[Leg]) -> Json:
    """Return the figures of flights with their distribution, as `/average_delays` names them.

    p90: the least delay in minutes that at least 90 % of the arrivals do not exceed.
    """
    delays = sorted(leg["ARR_DELAY"] for leg in legs if leg["ARR_DELAY"] is not None)
    departures = [leg["DEP_DELAY"] for leg in legs if leg["DEP_DELAY"] is not None]
    on_time = sum(status_of(leg) == "on_time" for leg in legs)
    cancelled, arrived = sum(leg["CANCELLED"] for leg in legs), len(delays)
    p90 = delays[math.ceil(0.9 * arrived) - 1] if delays else None
    return {
        "flights": len(legs),
        "arrived": arrived,
        "cancelled": cancelled,
        "no_arrival": len(legs) - arrived - cancelled,
        "average_delay": fmean(delays) if delays else None,
        "average_departure_delay": fmean(departures) if departures else None,
        "on_time_share_of_arrived": on_time / arrived if arrived else None,
        "on_time_share_of_scheduled": on_time / len(legs) if legs else None,
        "distribution": {"median": median(delays) if delays else None, "p90": p90},
    }


def punctuality_reports(legs: Iterable[Leg], known: Coverage) -> list[PunctualityReport]:
    """Return a report for each carrier that uses the number, the most flights first."""
    by_carrier: defaultdict[int, list[Leg]] = defaultdict(list)
    for leg in legs:
        by_carrier[leg["OP_CARRIER_AIRLINE_ID"]].append(leg)
    reports = [PunctualityReport(known.carrier(n), legs) for n, legs in by_carrier.items()]
    return sorted(reports, key=lambda report: (-len(report.legs), report.carrier.label))
