"""Reads a text as a question about the ledger. Pure.

`scanning` takes the words that name something: carriers, places, days, a flight number. A word that
is neither that nor filler is `unknown`, and a text with unknown words must not be answered as if
they were not there. A text may have several readings, which `gathering` makes: "united 2013" is a
carrier in a year, or a flight; the 8 of "JFK 8" is a flight number, or an hour.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import MAXYEAR, date
from itertools import chain, islice, product

from frontend.coverage import Coverage
from frontend.search.gathering import Gathering
from frontend.search.names import bare, names_in
from frontend.search.reading import Reading
from frontend.search.scanning import Scanner
from frontend.search.times import HOURS, Days
from frontend.search.vocabulary import FLIGHT

MAX_CHARACTERS = 200
MOST_READINGS = 8


def readings(text: str, known: Coverage, last_year: int = MAXYEAR) -> list[Reading]:
    """Return what `text` may say about the ledger that `known` covers, the most likely first.

    last_year: days without a year are of none after this one.
    """
    text = bare(text)  # which may be longer: a character may stand for a phrase
    if len(text) > MAX_CHARACTERS or known.last_date is None:
        return []
    first, last = map(date.fromisoformat, (known.first_date or known.last_date, known.last_date))
    whole, newest = Days(first, last), min(last, date(last_year, 12, 31))
    scanner = Scanner(text, names_in(known), newest)
    combinations = islice(product(*scanner.parts()), MOST_READINGS)
    gathered = (Gathering(some, whole).reading() for some in combinations)
    if scanner.is_of_arrivals:
        gathered = (reading.of_arrivals for reading in gathered)
    read = dict.fromkeys(chain.from_iterable(map(_with_hour, gathered)))
    return [reading for reading in read if reading.unknown or not reading.says_nothing]


def _with_hour(reading: Reading) -> Iterator[Reading]:
    """Yield a reading, and it with a small number beside a place as an hour of the day."""
    yield reading
    number, has_place = reading.number, reading.at or reading.origin or reading.destination
    is_flight = reading.carriers or FLIGHT in reading.wanted  # "UA 8", "flight 8"
    if number and number < HOURS and has_place and not is_flight and reading.hour is None:
        yield replace(reading, number=None, hour=number)
