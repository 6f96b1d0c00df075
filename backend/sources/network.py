"""Lists airports and carriers, and makes a schedule between them, for the generated flights.

The airports, in `network.csv`, are the 80 busiest of January 2008, with their BTS numbers and
names; the flights are not real. Each flight number has the same route every day.
"""

import csv
import math
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import accumulate, islice, pairwise
from pathlib import Path
from random import Random
from typing import NamedTuple

from backend.sources.airports import airport_of

EARTH_RADIUS_MILES = 3959.0
DAY_MINUTES = 24 * 60

_SHORTEST_MILES = 90
_MILES_PER_MINUTE = 7.7
_CLIMB_MINUTES, _TAXI_MINUTES, _TURNAROUND_MINUTES = 18, 25, 45
_FIRST_DEPARTURE, _LAST_DEPARTURE = 5 * 60, 23 * 60
_STOPS = (2, 2, 2, 3, 3, 4)


class Airport(NamedTuple):
    """An airport: its number, code, city and state as BTS writes them, and its place in degrees.

    utc_offset_hours: the offset of standard time. departures: how many a day, which is its share of
    the traffic.
    """

    number: int
    code: str
    city: str
    state: str
    latitude: float
    longitude: float
    utc_offset_hours: int
    departures: int


class Carrier(NamedTuple):
    """A carrier, by its number at the DOT.

    share: its weight among all flights. lateness: minutes added to every arrival delay. hubs: every
    flight of the carrier starts from or goes to one of these.
    """

    number: int
    share: int
    lateness: int
    hubs: tuple[str, ...]


CARRIERS: tuple[Carrier, ...] = (
    Carrier(19393, 20, 0, ("MDW", "LAS", "BWI", "DEN", "PHX", "DAL", "HOU", "OAK")),  # Southwest
    Carrier(19790, 15, -3, ("ATL", "DTW", "MSP", "SLC", "JFK")),  # Delta
    Carrier(19805, 12, 1, ("DFW", "ORD", "MIA", "LAX", "CLT")),  # American
    Carrier(20366, 10, 3, ("ATL", "IAH", "ORD", "EWR")),  # ExpressJet
    Carrier(20304, 10, 2, ("SLC", "DEN", "LAX", "SFO", "ORD")),  # SkyWest
    Carrier(19977, 9, 1, ("ORD", "IAH", "DEN", "EWR", "SFO", "IAD")),  # United
    Carrier(20355, 7, -1, ("CLT", "PHL", "PHX", "DCA")),  # US Airways
    Carrier(20398, 6, 4, ("DFW", "ORD")),  # Envoy
    Carrier(20409, 5, 2, ("JFK", "BOS", "FLL", "MCO")),  # JetBlue
    Carrier(19930, 3, -4, ("SEA", "PDX", "ANC")),  # Alaska
    Carrier(20416, 2, 8, ("FLL", "DTW", "LAS")),  # Spirit
    Carrier(20436, 2, 6, ("DEN", "MCO")),  # Frontier
    Carrier(19690, 1, -5, ("HNL", "OGG", "LIH")),  # Hawaiian
    Carrier(21171, 1, 0, ("SFO", "LAX")),  # Virgin America
)


def _airports() -> Iterator[Airport]:
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as table:
        for code, number, latitude, longitude, *counts in islice(csv.reader(table), 1, None):
            known = airport_of(code)
            assert known is not None
            yield Airport(int(number), *known, float(latitude), float(longitude), *map(int, counts))


AIRPORTS = {airport.code: airport for airport in _airports()}
_PLACES = tuple(AIRPORTS.values())
_TRAFFIC = [*accumulate(airport.departures for airport in _PLACES)]
_SHARES = [*accumulate(carrier.share for carrier in CARRIERS)]


@cache
def _miles(origin: Airport, destination: Airport) -> float:
    """Return the great-circle distance in statute miles (haversine formula)."""
    north, north_there = math.radians(origin.latitude), math.radians(destination.latitude)
    east = math.radians(destination.longitude - origin.longitude)
    half_chord = (
        math.sin((north_there - north) / 2) ** 2
        + math.cos(north) * math.cos(north_there) * math.sin(east / 2) ** 2
    )
    return 2 * EARTH_RADIUS_MILES * math.asin(math.sqrt(half_chord))


class Leg(NamedTuple):
    """A scheduled flight. departure, arrival: local times, in minutes of the day, 0 to 1439."""

    carrier: Carrier
    flight_number: int
    origin: Airport
    destination: Airport
    departure: int
    arrival: int
    air_minutes: int


@lru_cache(maxsize=1)  # it takes longer than thousands of flights, and a source may be read again
def schedule(seed: str, legs_a_day: int) -> Sequence[Leg]:
    """Return the legs of a day, sorted by departure.

    No carrier leaves an airport twice a day under one flight number.
    """
    random = Random(seed)  # noqa: S311 - made-up flights, no secrets
    used = dict.fromkeys(CARRIERS, 0)
    legs: list[Leg] = []
    while len(legs) < legs_a_day:
        carrier = random.choices(CARRIERS, cum_weights=_SHARES)[0]
        used[carrier] += 1
        legs += _journey(random, carrier, used[carrier])
    return tuple(by_departure(legs[:legs_a_day]))


def by_departure(legs: list[Leg]) -> list[Leg]:
    """Sort `legs` by departure."""
    return sorted(legs, key=lambda leg: (leg.departure, leg.carrier.number, leg.flight_number))


def _journey(random: Random, carrier: Carrier, flight_number: int) -> list[Leg]:
    """Return one to three legs under one flight number, as many as leave before the day ends."""
    legs: list[Leg] = []
    stops = _stops(random, carrier)
    clock = random.randrange(_FIRST_DEPARTURE, _LAST_DEPARTURE, 5)
    for origin, destination in pairwise(stops):
        if clock > _LAST_DEPARTURE:
            break
        air_minutes = _CLIMB_MINUTES + int(_miles(origin, destination) / _MILES_PER_MINUTE)
        shift = 60 * (destination.utc_offset_hours - origin.utc_offset_hours)
        arrival = clock + air_minutes + _TAXI_MINUTES + shift
        times = (clock, arrival % DAY_MINUTES, air_minutes)
        legs.append(Leg(carrier, flight_number, origin, destination, *times))
        clock = arrival + _TURNAROUND_MINUTES
    return legs


def _stops(random: Random, carrier: Carrier) -> list[Airport]:
    """Return two to four airports; every second one is a hub, and none is too near the next."""
    count, at_hub = random.choice(_STOPS), random.random() < 0.5
    stops: list[Airport] = []
    while len(stops) < count:
        hub = AIRPORTS[random.choice(carrier.hubs)] if at_hub else None
        airport = hub or random.choices(_PLACES, cum_weights=_TRAFFIC)[0]
        near = bool(stops) and _miles(airport, stops[-1]) < _SHORTEST_MILES
        if airport not in stops and not near:
            stops.append(airport)
            at_hub = not at_hub
        elif at_hub and len(stops) > 1:
            break  # a carrier with few hubs may have none left for this journey
    return stops
