"""Lists the carriers that report US on-time data: DOT number, two-letter code, name, years.

A DOT number (OP_CARRIER_AIRLINE_ID) always names the same carrier; a code may pass on to another
carrier: OH was Comair's until 2012 and is PSA's since 2015. So a code needs a year. Names are the
latest ones, with earlier names in brackets. Numbers, codes and years are those of BTS's lookup
tables (L_AIRLINE_ID, L_UNIQUE_CARRIERS, L_CARRIER_HISTORY); they are in `carriers.csv`.
"""

import csv
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

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


def _read() -> tuple[Carrier, ...]:
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as table:
        return tuple(
            Carrier(int(number), code, name, int(first or 0), int(last or _EVER))
            for number, code, name, first, last in islice(csv.reader(table), 1, None)
        )


CODES = _read()
"""Each carrier once, with its latest code, in the order of numbers; then earlier codes of some, and
where a code had several owners, what BTS marks the earlier ones with, such as "OH (1)" for Comair.
"""
CARRIER: dict[int, Carrier] = {}
for _carrier in CODES:
    CARRIER.setdefault(_carrier.number, _carrier)


def carrier_number(code: str, year: int) -> int | None:
    """Return the DOT number of the carrier that had `code` in `year`; None if that is unknown."""
    fits = (
        carrier.number
        for carrier in CODES
        if carrier.code == code and carrier.first <= year <= carrier.last
    )
    return next(fits, None)


def code_and_name(number: int) -> tuple[str | None, str | None]:
    """Return what a carrier is called; None twice if it is not in the table."""
    carrier = CARRIER.get(number)
    return (None, None) if carrier is None else (carrier.code, carrier.name)


def code_of(number: int) -> str:
    """Return the two-letter code of a carrier; its number if it is not in the table."""
    return code_and_name(number)[0] or str(number)
