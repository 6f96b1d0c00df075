"""Says which pages answer what a text names. Pure: whether they show anything is asked elsewhere.

The first row of `_TABLE` whose condition holds for a reading tells its pages. Several pages mean
that the text has several meanings.
"""

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice, product
from typing import Any
from urllib.parse import urlencode

from frontend import filters
from frontend.coverage import Coverage, all_days
from frontend.search.names import Place
from frontend.search.sentences import Places, Reading
from frontend.search.times import Days
from frontend.search.vocabulary import UNRANKED, WEEK

MOST_ENDS = 3  # places that one end of a route may mean
MOST_COMPARED = 6  # carriers on one page
UNSORTED = ("", "", ", ranked")
RANKING_SHOWS = "a ranking with the number of flights behind each figure"

Parameters = Mapping[str, Any]
ANYWHERE: Parameters = {}


@dataclass(frozen=True, slots=True)
class Lead:
    """A page that may answer. label: the question that it answers. shows: what it shows.

    counted: path and question of the backend's answer whose `count` tells whether there are any
    flights to show; None if that is known. A question without days is about all of them.
    is_shown_empty: whether the page explains why there are none. unused: what the text names, and
    the page says nothing of.
    """

    label: str
    address: str
    shows: str
    counted: tuple[str, tuple[tuple[str, Any], ...]] | None = None
    is_shown_empty: bool = False
    unused: tuple[str, ...] = ()


def leads(reading: Reading, known: Coverage) -> list[Lead]:
    """Return the pages for a reading; [] if it has unknown words, or days that the ledger lacks.

    So it is for a week of the days that are named: the text does not tell which days are meant.
    """
    if reading.unknown or not known.first_date or not known.last_date:
        return []
    covered = None
    if reading.days:
        if WEEK in reading.wanted:
            return []
        first, last = map(date.fromisoformat, (known.first_date, known.last_date))
        covered = reading.days.within(first, last)
        if covered is None:
            return []
    question = _Question(reading, covered, known)
    for holds, *answers in _TABLE:
        if holds(reading):
            return [
                replace(lead, unused=_unused(reading, shown, subjects))
                for answer, shown, subjects in answers
                for lead in answer(question)
            ]
    return []


def _unused(reading: Reading, shown: Set[str], subjects: Set[str]) -> tuple[str, ...]:
    """Return what a reading names besides what a page shows. subjects: what the page ranks."""
    ends = (*reading.origin[:1], *reading.destination[:1], *reading.at[:1])
    named = {
        "number": [str(reading.number)] if reading.number else [],
        "places": [place.label for place in ends],
        "carriers": [carrier.called for carrier, *_ in reading.carriers],
    }
    parts = [text for part, texts in named.items() if part not in shown for text in texts]
    return (*parts, *sorted(f"{word}s" for word in reading.wanted & _SUBJECTS.keys() - subjects))


@dataclass(frozen=True, slots=True)
class _Question:
    """A reading. covered: its days as far as the ledger has them; None if it names none."""

    reading: Reading
    covered: Days | None
    known: Coverage

    @property
    def interval(self) -> dict[str, str]:
        """The parameters of the days; none if no days are named."""
        if self.covered is None:
            return {}
        return {
            "INITIAL_DATE": self.covered.first.isoformat(),
            "FINAL_DATE": self.covered.last.isoformat(),
        }

    @property
    def whole_interval(self) -> dict[str, str]:
        """The parameters of the days; of all days if none are named."""
        return self.interval or all_days(self.known)

    @property
    def phrase(self) -> str:
        """The days as the end of a sentence: " in July 2013", or "" if none are named."""
        return f" {self.reading.days.phrase}" if self.reading.days else ""


# --- the pages -----------------------------------------------------------------------------------


def _flight(question: _Question) -> Iterator[Lead]:
    """Yield the report of a flight number, or what happened to it on a day."""
    number, days = question.reading.number or 0, question.covered
    groups = question.reading.carriers or ((None,),)
    for carrier in dict.fromkeys(carrier for group in groups for carrier in group):
        parameters: dict[str, Any] = {"OP_CARRIER_FL_NUM": number}
        label = f"Flight number {number}"
        if carrier is not None:
            parameters["OP_CARRIER_AIRLINE_ID"] = carrier.number
            label = f"Flight {carrier.flight(number)}"
        period: dict[str, Any] = {}
        if days is not None:
            period = {"FL_DATE": days.first.isoformat(), "FINAL_DATE": days.last.isoformat()}
        counted = ("/filter_transactions", (*parameters.items(), *period.items()))
        if days is not None and days.is_one:
            address = _address("/filter_transactions", parameters, FL_DATE=days.first.isoformat())
            shows = "what happened to it"
        else:
            address = _address("/report", parameters, **question.interval)
            shows = "how often it is late"
        yield Lead(f"{label}{question.phrase}", address, shows, counted, is_shown_empty=bool(days))


def _route(question: _Question) -> Iterator[Lead]:
    origins, destinations = question.reading.origin, question.reading.destination
    for origin, destination in product(origins[:MOST_ENDS], destinations[:MOST_ENDS]):
        if origin == destination:
            continue
        ends = {**_end("ORIGIN", origin), **_end("DEST", destination)}
        if question.reading.carriers:
            yield from _carriers(question, ends, f" from {origin.label} to {destination.label}")
            continue
        counted = ("/flight_counter", (*ends.items(), *question.whole_interval.items()))
        yield Lead(
            f"{origin.label} to {destination.label}{question.phrase}",
            _address("/route", ends, **question.interval),
            "delays of each carrier, by hour and weekday",
            counted,
            is_shown_empty=True,
        )


def _end(name: str, place: Place) -> dict[str, str]:
    return {name: place.airport} if place.airport else {f"{name}_CITY_NAME": place.city}


def _airports(question: _Question) -> Iterator[Lead]:
    """Yield the airports of a place, or how late the carriers are there that are named with it."""
    reading = question.reading
    for place in _airports_of(reading.at or reading.origin or reading.destination, question.known):
        if reading.carriers:
            end, word = ("DEST", "to") if reading.destination else ("ORIGIN", "from")
            yield from _carriers(question, _end(end, place), f" {word} {place.label}")
            continue
        address = _address(f"/airports/{place.airport}", question.interval)
        yield Lead(f"{place.label}{question.phrase}", address, "flights and delays of this airport")


def _airports_of(places: Places, known: Coverage) -> list[Place]:
    airports: dict[Place, None] = {}
    for place in places:
        for airport in known.airports:
            if airport.code == place.airport or (not place.airport and airport.city == place.city):
                airports[Place(airport.city, airport.code, airport.flights)] = None
    return list(airports)


def _carriers(question: _Question, ends: Parameters = ANYWHERE, where: str = "") -> Iterator[Lead]:
    """Yield how late a carrier is; several carriers are compared. ends, where: of a route."""
    for carriers in islice(product(*question.reading.carriers), MOST_COMPARED):
        compared = list(dict.fromkeys(carriers))[:MOST_COMPARED]
        if not compared:
            continue
        numbers = [("OP_CARRIER_AIRLINE_ID", carrier.number) for carrier in compared]
        pairs = [*numbers, *ends.items(), *question.whole_interval.items()]
        address = f"/average_delays?{urlencode(pairs)}"
        shows = "delays and punctuality"
        if len(compared) > 1:
            names = " and ".join(carrier.called for carrier in compared)
            yield Lead(f"{names} compared{where}{question.phrase}", address, shows)
        else:
            is_or_was = "was" if question.reading.days else "is"
            label = f"How late {is_or_was} {compared[0].called}{where}{question.phrase}?"
            yield Lead(label, address, shows)


def _rankings(question: _Question) -> Iterator[Lead]:
    wanted = question.reading.wanted
    sort, order, how = next((row for words, row in _ORDERS if words <= wanted), UNSORTED)
    subject = next((word for word in _SUBJECTS if word in wanted), "carrier")
    for by, name in _SUBJECTS[subject]:
        parameters: dict[str, str] = {"by": by, **question.interval}
        if sort:
            parameters |= {"sort": sort, "order": order}
        label = f"{name}{question.phrase}{how}"
        yield Lead(label, _address("/rankings", parameters), RANKING_SHOWS)


def _days(question: _Question) -> Iterator[Lead]:
    if (days := question.covered) is None:
        return
    if days.is_one:
        iso = days.first.isoformat()
        yield Lead(filters.day(iso), f"/days/{iso}", "the flights and delays of each carrier")
    else:
        address = _address("/rankings", {"by": "carrier"}, **question.interval)
        yield Lead(f"Carriers{question.phrase}{UNSORTED[-1]}", address, RANKING_SHOWS)


def _address(path: str, given: Parameters, **more: Any) -> str:
    parameters = {**given, **more}
    return f"{path}?{urlencode(parameters)}" if parameters else path


# --- the tables ----------------------------------------------------------------------------------

_SUBJECTS: dict[str, tuple[tuple[str, str], ...]] = {  # the first word asked for -> `by`, name
    "route": (("route", "Routes"),),
    "origin": (("origin", "Airports by departures"),),
    "destination": (("destination", "Airports by arrivals"),),
    "airport": (("origin", "Airports by departures"), ("destination", "Airports by arrivals")),
    "carrier": (("carrier", "Carriers"),),
}

_DELAY, _PUNCTUALITY = "average_delay", "on_time_share_of_arrived"
_ORDERS: tuple[tuple[set[str], tuple[str, str, str]], ...] = (  # words -> sort, order, name
    ({"least", "cancelled"}, ("cancelled", "ascending", ", least cancelled first")),
    ({"cancelled"}, ("cancelled", "descending", ", most cancelled first")),
    ({"worst", "on_time"}, (_PUNCTUALITY, "ascending", ", least punctual first")),
    ({"least", "on_time"}, (_PUNCTUALITY, "ascending", ", least punctual first")),
    ({"on_time"}, (_PUNCTUALITY, "descending", ", most punctual first")),
    ({"least", "delays"}, (_DELAY, "ascending", ", best first")),
    ({"most", "delays"}, (_DELAY, "descending", ", worst first")),
    ({"worst"}, (_DELAY, "descending", ", worst first")),
    ({"best"}, (_DELAY, "ascending", ", best first")),
    ({"busiest"}, ("flights", "descending", ", most flights first")),
    ({"most"}, ("flights", "descending", ", most flights first")),
    ({"quietest"}, ("flights", "ascending", ", fewest flights first")),
    ({"least"}, ("flights", "ascending", ", fewest flights first")),
)


def _names_a_ranking(reading: Reading) -> bool:
    """Return whether something is ranked; of a period without a subject there is no ranking."""
    ranked = reading.wanted - {UNRANKED, WEEK}
    return bool(ranked) and (ranked == reading.wanted or bool(ranked & _SUBJECTS.keys()))


_ALL = frozenset(_SUBJECTS)
_ARRIVALS = _ALL - {"carrier"}  # arrivals at an airport are not shown by carrier
_ROUTE = (_route, {"places", "carriers"}, _ALL)
_AIRPORTS = (_airports, {"places", "carriers"}, _ALL)

_Answer = tuple[Callable[[_Question], Iterator[Lead]], Set[str], Set[str]]
_TABLE: tuple[tuple[Callable[[Reading], object], *tuple[_Answer, ...]], ...] = (
    (
        lambda reading: reading.number and reading.origin and reading.destination,
        (_flight, {"number", "carriers"}, _ALL),
        _ROUTE,
    ),
    (
        lambda reading: reading.number and (reading.at or reading.origin or reading.destination),
        (_flight, {"number", "carriers"}, _ALL),
        _AIRPORTS,
    ),
    (lambda reading: reading.number, (_flight, {"number", "carriers"}, _ALL)),
    (lambda reading: reading.origin and reading.destination, _ROUTE),
    (lambda reading: reading.at or reading.origin, _AIRPORTS),
    (lambda reading: reading.destination, (_airports, {"places", "carriers"}, _ARRIVALS)),
    (lambda reading: reading.carriers, (_carriers, {"carriers"}, {"carrier"})),
    (_names_a_ranking, (_rankings, _ALL, _ALL)),
    (lambda reading: reading.days and reading.wanted <= {UNRANKED}, (_days, _ALL, _ALL)),
)
"""The first row that holds for a reading tells its pages: what makes them, what of a reading they
show, and what they rank. A number beside a place may be a flight's, or a time of day."""
