"""Lists the carriers that report US on-time data: DOT number, two-letter code, name, years.

A DOT number (OP_CARRIER_AIRLINE_ID) always names the same carrier; a code may pass on to another
carrier: OH was Comair's until 2012 and is PSA's since 2015. So a code needs a year. Names are the
latest ones, with earlier names in brackets. Numbers, codes and years are those of BTS's lookup
tables (L_AIRLINE_ID, L_UNIQUE_CARRIERS, L_CARRIER_HISTORY).
"""

from dataclasses import dataclass

_EVER = 9999


@dataclass(frozen=True, slots=True)
class Carrier:
    """A carrier: its number at the DOT, its code of two letters or digits, and its name.

    first, last: the years in which it had this code, as far as another carrier had it before, or
    the carrier ended.
    """

    number: int
    code: str
    name: str
    first: int = 0
    last: int = _EVER


CARRIERS: tuple[Carrier, ...] = (
    Carrier(19386, "NW", "Northwest Airlines", last=2010),
    Carrier(19391, "PS", "Pacific Southwest Airlines", last=1988),
    Carrier(19393, "WN", "Southwest Airlines"),
    Carrier(19678, "AQ", "Aloha Airlines", last=2008),
    Carrier(19687, "QX", "Horizon Air"),
    Carrier(19690, "HA", "Hawaiian Airlines"),
    Carrier(19704, "CO", "Continental Airlines", last=2012),
    Carrier(19707, "EA", "Eastern Air Lines", last=1991),
    Carrier(19790, "DL", "Delta Air Lines"),
    Carrier(19805, "AA", "American Airlines"),
    Carrier(19822, "PI", "Piedmont Aviation", last=1989),
    Carrier(19930, "AS", "Alaska Airlines"),
    Carrier(19977, "UA", "United Airlines"),
    Carrier(19991, "HP", "America West Airlines", last=2007),
    Carrier(20046, "ZW", "Air Wisconsin Airlines", 1994),
    Carrier(20211, "TW", "Trans World Airlines", last=2001),
    Carrier(20225, "KS", "PenAir (Peninsula Airways)"),
    Carrier(20237, "AX", "Trans States Airlines"),
    Carrier(20253, "9K", "Cape Air"),
    Carrier(20254, "9L", "Colgan Air", last=2012),
    Carrier(20263, "EM", "Empire Airlines", 1993),
    Carrier(20295, "ML", "Midway Airlines", last=1991),
    Carrier(20304, "OO", "SkyWest Airlines"),
    Carrier(20312, "TZ", "ATA Airlines (American Trans Air)", last=2008),
    Carrier(20314, "YX", "Midwest Airlines (Midwest Express)", last=2008),
    Carrier(20355, "US", "US Airways (USAir)", last=2015),
    Carrier(20363, "9E", "Endeavor Air (Pinnacle Airlines)"),
    Carrier(20366, "EV", "ExpressJet Airlines (Atlantic Southeast Airlines)"),
    Carrier(20368, "G4", "Allegiant Air"),
    Carrier(20374, "XE", "ExpressJet Airlines", last=2011),
    Carrier(20378, "YV", "Mesa Airlines"),
    Carrier(20384, "PA", "Pan American World Airways", last=1991),
    Carrier(20397, "OH", "PSA Airlines", 2015),
    Carrier(20398, "MQ", "Envoy Air (American Eagle)"),
    Carrier(20404, "DH", "Independence Air (Atlantic Coast Airlines)", 2002, 2006),
    Carrier(20409, "B6", "JetBlue Airways"),
    Carrier(20416, "NK", "Spirit Airlines"),
    Carrier(20417, "OH", "Comair", last=2012),
    Carrier(20427, "PT", "Piedmont Airlines", 2015),
    Carrier(20436, "F9", "Frontier Airlines", 1994),
    Carrier(20437, "FL", "AirTran Airways", 1994, 2014),
    Carrier(20445, "C5", "CommuteAir"),
    Carrier(20452, "YX", "Republic Airways", 2010),
    Carrier(20500, "G7", "GoJet Airlines"),
    Carrier(21167, "CP", "Compass Airlines", 2007),
    Carrier(21171, "VX", "Virgin America", 2007, 2018),
    Carrier(21634, "KH", "Aloha Air Cargo", 2008),
)
_FORMER_CODES = (
    Carrier(20374, "RU", "ExpressJet Airlines", 1995, 2006),
    Carrier(20397, "16", "PSA Airlines", 2004, 2015),
    Carrier(20427, "17", "Piedmont Airlines", 2005, 2015),
)
# Where a code had several owners, BTS marks the earlier ones, as in "OH (1)" for Comair.
_UNIQUE_CODES = {
    "PS (1)": 19391,
    "ML (1)": 20295,
    "YX (1)": 20314,
    "PA (1)": 20384,
    "OH (1)": 20417,
}
CARRIER: dict[int, Carrier] = {carrier.number: carrier for carrier in CARRIERS}


def carrier_number(code: str, year: int) -> int | None:
    """Return the DOT number of the carrier that had `code` in `year`; None if that is unknown."""
    if code in _UNIQUE_CODES:
        return _UNIQUE_CODES[code]
    for carrier in (*CARRIERS, *_FORMER_CODES):
        if carrier.code == code and carrier.first <= year <= carrier.last:
            return carrier.number
    return None


def code_of(number: int) -> str:
    """Return the two-letter code of a carrier; its number if it is not in the table."""
    carrier = CARRIER.get(number)
    return str(number) if carrier is None else carrier.code
