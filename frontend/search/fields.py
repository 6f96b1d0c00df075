"""Reads what is typed into the fields of a form as the search reads a text.

A field for a place takes a code, a city or what travellers call it; one for days takes all that the
search takes; one for a flight number takes the carrier in front of it. The service takes one
spelling of each: pages lead to the address that has it. What the ledger does not know, or what has
several meanings, as "5/6" does, stays as it was typed, and the service says what is wrong with it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Set

from frontend.coverage import Coverage
from frontend.errors import Refused
from frontend.question import BOTH, CARRIER, DAY, DAYS, ENDS, NUMBER
from frontend.search.finding import readings_with_flights
from frontend.search.names import Place
from frontend.search.reading import Carriers, Reading
from frontend.search.sentences import MAX_CHARACTERS, readings
from frontend.search.times import Days

DAYS_FIELD = "days"  # stands for both ends of an interval
DAY_FIELDS = frozenset((DAYS_FIELD, DAY, *DAYS))
FIELDS = DAY_FIELDS | ENDS.keys() | {CARRIER, NUMBER}
Values = Mapping[str, str]
NOTHING_ELSE: Values = {}
NO_NUMBER = "must be a number such as 1545, alone or behind a carrier of this ledger"

_is_day = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII).fullmatch
_is_number = re.compile(r"[0-9]{1,9}", re.ASCII).fullmatch
_CARRIER_AND_NUMBER = re.compile(  # "UA1545", "Pan Am 5"
    r"(?:flight )?(?:(?P<code>[a-z][a-z0-9]|[0-9][a-z])|(?P<name>.*[^\W\d_]\w*)[ -]+)[1-9]\d{0,4}",
    re.ASCII | re.IGNORECASE,
)


def as_asked(pairs: Iterable[tuple[str, str]], known: Coverage) -> list[tuple[str, str]]:
    """Return the (field, text) pairs of a form as the service takes them, without empty ones."""
    given = [(name, text.strip()) for name, text in pairs if text.strip()]
    values = dict(given)
    return [
        pair
        for name, text in given
        for pair in (
            understood(name, text, known, values) or {DAYS[0] if name == DAYS_FIELD else name: text}
        ).items()
    ]


def understood(
    name: str, text: str, known: Coverage, given: Values = NOTHING_ELSE
) -> dict[str, str]:
    """Return the parameters of the service for the text in a field; {} if it is not understood.

    given: the other fields of the form.
    """
    if name == NUMBER:
        flight = _flight_number({**given, NUMBER: text}, known)
        return {n: value for n, value in flight.items() if n not in given or n == NUMBER}
    if name == CARRIER:
        return _carrier(text, known)
    read = _days if name in DAY_FIELDS else _place
    return read(name, text, given, known)


def _place(name: str, text: str, given: Values, known: Coverage) -> dict[str, str]:
    """Return the one airport or city that a text means; {} if there are none or several."""
    if name not in FIELDS or (name in BOTH and known.airport(text)):
        return {name: text}
    end = name.partition("_")[0]
    if text in known.cities:
        return Place(text).as_end(end)
    places = {r.at for r in readings(text, known) if r == Reading(at=r.at) and len(r.at) == 1}
    place = places.pop()[0] if len(places) == 1 else None
    if place is None or (place.airport and end != name and end in given):
        return {}
    return place.as_end(end)


def route(text: str, known: Coverage) -> dict[str, str]:
    """Return the parameters of the one route that a text names; {} if there are none or several."""
    for reading in readings(text, known):
        ends = reading.origin, reading.destination
        if reading == Reading(origin=ends[0], destination=ends[1]) and {*map(len, ends)} == {1}:
            return ends[0][0].as_end("ORIGIN") | ends[1][0].as_end("DEST")
    return {}


def _days(name: str, text: str, given: Values, known: Coverage) -> dict[str, str]:
    """Return the first and the last day that a text names; {} if there are none or several."""
    if name != DAYS_FIELD and _is_day(text):
        return {name: text}
    meanings = _meanings(text, known)
    if len(meanings) != 1 or meanings[0].meant:
        return {}
    days = meanings[0]
    first, last = (DAY, DAYS[1]) if name == DAY else DAYS
    if name == DAYS_FIELD or (name == DAY and last not in given and not days.is_one):
        return {first: days.first.isoformat(), last: days.last.isoformat()}
    return {name: (days.last if name == last else days.first).isoformat()}


def _meanings(text: str, known: Coverage) -> list[Days]:
    """Return the days that a text may mean if it names nothing else: "5/6" is 6 May or 5 June."""
    read = readings_with_flights(text, known)
    return list(dict.fromkeys(r.days for r in read if r.days and r == Reading(days=r.days)))


def require_clear_days(given: Values, known: Coverage, names: Set[str] = DAY_FIELDS) -> None:
    """Raise Refused for a text in one of the fields that may mean several days."""
    for name, text in given.items():
        meanings = _meanings(text, known) if name in names else []
        if len(meanings) > 1:
            days = " or ".join(meaning.name for meaning in meanings)
            ways = " or ".join(meaning.iso for meaning in meanings)
            detail = f"“{text}” may be {days}; write {ways}"
            raise Refused({"field": name, "value": text, "detail": detail}, 400)


def alternatives(text: str, known: Coverage, *, are_places: bool) -> list[str]:
    """Return the places or carriers that one name in a text may mean; [] if that is clear."""
    for reading in readings(text, known):
        places = reading.at, reading.origin, reading.destination
        for things in places if are_places else (reading.carriers,):
            if len(things) > 1:
                return [thing.label for thing in things]
    return []


def _carrier(text: str, known: Coverage) -> dict[str, str]:
    """Return the number of the one carrier that a text names; {} if there are none or several."""
    if _is_number(text):
        return {CARRIER: text}
    read = readings(text, known)
    carriers = [
        carrier for r in read if r == Reading(carriers=r.carriers) for carrier in r.carriers
    ]
    return {CARRIER: str(carriers[0].number)} if len(carriers) == 1 else {}


def _flights(text: str, known: Coverage) -> Iterator[tuple[int, Carriers]]:
    """Yield each number, and the carriers that may be meant, of a text that names a flight."""
    for r in readings(text, known):
        if r.number and r == Reading(number=r.number, carriers=r.carriers, wanted=r.wanted):
            yield r.number, r.carriers


def _flight_number(given: Values, known: Coverage) -> dict[str, str]:
    """Return the number alone, and the carrier in front of it; {} if that does not fit."""
    text, chosen = given.get(NUMBER, ""), given.get(CARRIER, "")
    if not text or _is_number(text):
        return {name: given[name] for name in (NUMBER, CARRIER) if name in given}
    for number, carriers in _flights(text, known):
        fitting = [
            str(carrier.number) for carrier in carriers if chosen in {"", str(carrier.number)}
        ]
        if len(fitting) == 1:
            return {NUMBER: str(number), CARRIER: fitting[0]}
    return {}


def with_number(given: Values, known: Coverage) -> dict[str, str]:
    """Return the fields of a form with the number alone; what is in front of it names the carrier.

    Raises Refused if that is not one carrier of the ledger, or not the one that is chosen.
    """
    read = _flight_number(given, known)
    if (text := given.get(NUMBER)) and not read:
        detail = _why_no_number(text, given.get(CARRIER, ""), known)
        raise Refused({"field": NUMBER, "value": text, "detail": detail}, 400)
    return {**given, **read}


def _why_no_number(text: str, chosen: str, known: Coverage) -> str:
    """Return what is wrong with a flight number that `_flight_number` does not take."""
    for _, carriers in _flights(text, known):
        if names := " or ".join(carrier.called for carrier in carriers):
            is_other = chosen and chosen not in {str(carrier.number) for carrier in carriers}
            reason = "that is not the carrier that is chosen" if is_other else "choose one of them"
            return f"“{text}” is a flight of {names}; {reason}"
    flight = _CARRIER_AND_NUMBER.fullmatch(text[:MAX_CHARACTERS])
    if flight is None:
        return NO_NUMBER
    name = flight["code"] or flight["name"]
    return f"no carrier of this ledger is called {name}; leave it out, or choose a carrier"
