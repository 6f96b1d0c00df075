"""Lists the real airports and carriers of the generated flights.

The airports, in `network.csv`, are the 80 busiest of January 2008, with their BTS numbers and
names; the flights that `generated` makes between them are not real.
"""

import csv
import math
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from backend.sources.airports import airport_of

EARTH_RADIUS_MILES = 3959.0


@dataclass(frozen=True, slots=True, eq=False)
class Airport:
    """An airport. There is one object for each, so that comparing two takes no time.

    code, number, city, state: as BTS writes them. latitude, longitude: degrees. utc_offset_hours:
    the offset of standard time. departures: how many a day, which is its share of the traffic.
    """

    code: str
    number: int
    city: str
    state: str
    latitude: float
    longitude: float
    utc_offset_hours: int
    departures: int

    def miles_to(self, other: "Airport") -> float:
        """Return the great-circle distance in statute miles (haversine formula)."""
        north, north_there = math.radians(self.latitude), math.radians(other.latitude)
        east = math.radians(other.longitude - self.longitude)
        half_chord = (
            math.sin((north_there - north) / 2) ** 2
            + math.cos(north) * math.cos(north_there) * math.sin(east / 2) ** 2
        )
        return 2 * EARTH_RADIUS_MILES * math.asin(math.sqrt(half_chord))


@dataclass(frozen=True, slots=True, eq=False)
class Carrier:
    """A carrier, of which there is one object, too.

    number: its number at the DOT. share: its weight among all flights. lateness: minutes added to
    every arrival delay. hubs: every flight of the carrier starts from or goes to one of these.
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


def _airport(code: str, number: str, *others: str) -> Airport:
    known = airport_of(code)
    assert known is not None
    latitude, longitude, offset, departures = others
    place = (float(latitude), float(longitude))
    return Airport(code, int(number), known.city, known.state, *place, int(offset), int(departures))


with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as _table:
    AIRPORTS = {row[0]: _airport(*row) for row in islice(csv.reader(_table), 1, None)}
"""Code -> airport."""
