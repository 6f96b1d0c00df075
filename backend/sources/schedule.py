"""Makes the schedule of the generated flights: each flight number has the same route every day."""

from functools import cache
from itertools import accumulate, pairwise
from random import Random
from typing import NamedTuple

from backend.sources.network import AIRPORTS, CARRIERS, Airport, Carrier

DAY_MINUTES = 24 * 60

_SHORTEST_MILES = 90
_MILES_PER_MINUTE = 7.7
_CLIMB_MINUTES, _TAXI_MINUTES, _TURNAROUND_MINUTES = 18, 25, 45
_FIRST_DEPARTURE, _LAST_DEPARTURE = 5 * 60, 23 * 60
_STOPS = (2, 2, 2, 3, 3, 4)

_PLACES = tuple(AIRPORTS.values())
_TRAFFIC = [*accumulate(airport.departures for airport in _PLACES)]
_SHARES = [*accumulate(carrier.share for carrier in CARRIERS)]
_miles = cache(Airport.miles_to)


class Leg(NamedTuple):
    """A scheduled flight. departure, arrival: local times, in minutes of the day, 0 to 1439."""

    carrier: Carrier
    flight_number: int
    origin: Airport
    destination: Airport
    departure: int
    arrival: int
    air_minutes: int


def schedule(random: Random, legs_a_day: int) -> list[Leg]:
    """Return the legs of a day, sorted by departure.

    No carrier leaves an airport twice a day under one flight number.
    """
    used = dict.fromkeys(CARRIERS, 0)
    legs: list[Leg] = []
    while len(legs) < legs_a_day:
        carrier = random.choices(CARRIERS, cum_weights=_SHARES)[0]
        used[carrier] += 1
        legs += _journey(random, carrier, used[carrier])
    return by_departure(legs[:legs_a_day])


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
        airport = (
            _hub(random, carrier) if at_hub else random.choices(_PLACES, cum_weights=_TRAFFIC)[0]
        )
        near = bool(stops) and _miles(airport, stops[-1]) < _SHORTEST_MILES
        if airport not in stops and not near:
            stops.append(airport)
            at_hub = not at_hub
        elif at_hub and len(stops) > 1:
            break  # a carrier with few hubs may have none left for this journey
    return stops


def _hub(random: Random, carrier: Carrier) -> Airport:
    return AIRPORTS[random.choice(carrier.hubs)]
