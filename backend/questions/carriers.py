"""Lists the carriers that report US on-time data: DOT number, two-letter code, name.

A DOT number (OP_CARRIER_AIRLINE_ID) always names the same carrier; a code may pass on to another
carrier: OH was Comair's until 2012 and is PSA's. Names are the latest ones, with earlier names in
brackets.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Carrier:
    """A carrier: its number at the DOT, its code of two letters or digits, and its name."""

    number: int
    code: str
    name: str


CARRIERS: tuple[Carrier, ...] = (
    Carrier(19386, "NW", "Northwest Airlines"),
    Carrier(19393, "WN", "Southwest Airlines"),
    Carrier(19678, "AQ", "Aloha Airlines"),
    Carrier(19690, "HA", "Hawaiian Airlines"),
    Carrier(19704, "CO", "Continental Airlines"),
    Carrier(19790, "DL", "Delta Air Lines"),
    Carrier(19805, "AA", "American Airlines"),
    Carrier(19930, "AS", "Alaska Airlines"),
    Carrier(19977, "UA", "United Airlines"),
    Carrier(20304, "OO", "SkyWest Airlines"),
    Carrier(20355, "US", "US Airways"),
    Carrier(20363, "9E", "Endeavor Air (Pinnacle Airlines)"),
    Carrier(20366, "EV", "ExpressJet Airlines (Atlantic Southeast Airlines)"),
    Carrier(20368, "G4", "Allegiant Air"),
    Carrier(20374, "XE", "ExpressJet Airlines"),
    Carrier(20378, "YV", "Mesa Airlines"),
    Carrier(20398, "MQ", "Envoy Air (American Eagle)"),
    Carrier(20409, "B6", "JetBlue Airways"),
    Carrier(20416, "NK", "Spirit Airlines"),
    Carrier(20417, "OH", "Comair"),
    Carrier(20436, "F9", "Frontier Airlines"),
    Carrier(20437, "FL", "AirTran Airways"),
    Carrier(20452, "YX", "Republic Airways"),
    Carrier(21171, "VX", "Virgin America"),
)
CARRIER: dict[int, Carrier] = {carrier.number: carrier for carrier in CARRIERS}


def code_of(number: int) -> str:
    """Return the two-letter code of a carrier; its number if it is not in the table."""
    carrier = CARRIER.get(number)
    return str(number) if carrier is None else carrier.code
