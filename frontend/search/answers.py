"""Says which pages answer what a text names. Pure: whether they show anything is asked elsewhere.

Each row of `_PAGES` is a kind of page: what a text must name for it, what it uses, and how it is
called. Of the pages that use the most, those that use all are the answer; if there are none, all
of them are, each with what it does not use. Several pages mean that the text has several meanings.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import islice, product
from typing import Any, NamedTuple
from urllib.parse import urlencode

from frontend import filters
from frontend.coverage import Carrier, Coverage, all_days
from frontend.question import CARRIER, DAY, DAYS, KINDS, MOST_ITEMS, NUMBER
from frontend.search.names import Place
from frontend.search.reading import Places, Reading
from frontend.search.times import Days
from frontend.search.vocabulary import (
    BEST_FIRST,
    LEAST_FIRST,
    MANY,
    NOT_RANKED,
    ORDERS,
    SUBJECTS,
    TIMES,
    TOTALS,
    WEEK,
    WORST_FIRST,
)

MOST_MEANINGS = 9  # of the places of a text: three for each end of a route

Pairs = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Lead:
    """A page that may answer. label: the question that it answers. shows: what it shows.

    counted: path and question of the backend's answer that counts the flights to show; None if that
    need not be known. is_shown_empty: whether the page explains why there are
    none. unused: what the text names, and the page says nothing of.
    """

    label: str
    address: str
    shows: str
    counted: tuple[str, Pairs] | None = None
    is_shown_empty: bool = False
    unused: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether the page answers all of the text."""
        return not self.unused

    def as_json(self) -> dict[str, Any]:
        names = ("label", "address", "shows", "is_whole")
        return {name: getattr(self, name) for name in names}


class _Page(NamedTuple):
    """A kind of page. needs: alternatives of what must be named. uses: what of a text it is about.

    path, label: with words of a `_Question` in braces. days: how an address names them, as an
    "interval" if any are named, the "whole" ledger's otherwise, a single "day" as FL_DATE, or
    "none". counted: the question whose answer counts the flights that the page shows.
    """

    path: str
    label: str
    shows: str
    needs: str
    uses: str
    days: str = "interval"
    counted: str = ""

    def fits(self, named: Iterable[str]) -> bool:
        return any({*parts.split()} <= {*named} for parts in self.needs.split("|"))


_SUBJECTS = "carrier airport origin destination route"
_COUNTS = "count cancellations"
_ANYTHING = f"{_SUBJECTS} day month least {_COUNTS}"
_COMPARED = {
    "carrier": "carrier",
    "origin": "airport origin",
    "destination": "airport destination",
    "route": "route",
    "flight": "",
    "days": "day month",
}
"""What is compared -> the words for it."""
_RANKING = "a ranking with the number of flights behind each figure"
_AIRPORT = ("/airports/{airport}", "{place}{phrase}", "flights and delays of this airport")
_PAGES = (
    _Page("/filter_transactions", "Flight {flight}{phrase}", "what happened to it",
        "number one_day", f"number carriers days times {_ANYTHING}", "day", "filter_transactions"),
    _Page("/report", "Flight {flight}{phrase}", "how often it is late", "number",
        f"number carriers days when times {_ANYTHING}", counted="filter_transactions"),
    _Page("/departures", "Departures{of}{where}{at}{phrase}", "the flights, with their times",
        "hour from|hour at|hour to|origin one_day at|origin one_day from",
        "hour from at to carriers days times origin", "day", "average_delays"),
    _Page("/route", "{route}{phrase}", "delays of each carrier, by hour and weekday", "from to",
        f"from to days when times {_SUBJECTS} month least {_COUNTS}", counted="flight_counter"),
    _Page(*_AIRPORT, "at",
        f"at days when times airport carrier origin destination month least {_COUNTS}"),
    _Page(*_AIRPORT, "from", "from days when times airport carrier origin month least"),
    _Page("/airports/{airport}#arrivals", "Flights to {place}{phrase}", _AIRPORT[-1], "to",
        "to days when times airport destination least"),
    _Page("/average_delays", "How late {is_or_was} {carrier}{where}{phrase}?",
        "delays and punctuality",
        "carriers", f"carriers from at to days when times carrier month least {_COUNTS}", "whole",
        "average_delays"),
    *(_Page("/compare", "{shown}{of}{where}{phrase} compared{best_first}",
        "which is better, and by how much",
        f"compared_{what}", f"compared carriers from to at days least count {words}",
        counted="average_delays") for what, words in _COMPARED.items()),
    _Page("/days/{day}", "{day_name}", "the flights and delays of each carrier",
        "one_day totals", f"days times {_COUNTS}", "none"),
    _Page("/days", "{calendar}{of}{where}{phrase}{worst_first}",
        "a calendar, and the worst of them", "day|month ranked|totals",
        f"day month days from at to carriers {_COUNTS}", "whole", "average_delays"),
    _Page("/rankings", "{shown}{of}{where}{phrase}{order}", _RANKING, "ranked",
        f"days carriers from at to least count {_SUBJECTS}", counted="average_delays"),
    _Page("/days/{day}", "{day_name}", "the flights and delays of each carrier", "one_day",
        "days times", "none"),
    _Page("/rankings", "{shown}{phrase}{order}", _RANKING, "days", "days"),
)  # fmt: skip
"""Of pages that use the same of a text, the first is taken."""


def leads(reading: Reading, known: Coverage) -> list[Lead]:
    """Return the pages for a reading; [] if it has unknown words, or days that the ledger lacks."""
    if reading.unknown or not known.first_date or not known.last_date:
        return []
    covered = None
    if reading.days:
        covered = reading.days.within(*map(date.fromisoformat, (known.first_date, known.last_date)))
        if covered is None:
            return []
    named, hidden = _named(reading, known), list(_hidden(reading, covered))
    fitting = [
        (page, named.keys() & {*page.uses.split()})
        for page in _PAGES
        if page.fits([*named, *hidden])
    ]
    best: dict[frozenset[str], _Page] = {}
    for page, used in fitting:
        if not any(used < more for _, more in fitting):
            best.setdefault(frozenset(used), page)
    return [
        lead
        for used, page in best.items()
        for lead in _leads(page, _Question(reading, covered, known, used), named)
    ]


def _named(reading: Reading, known: Coverage) -> dict[str, str]:
    """Return the parts that a reading names, each with its text."""
    ends = {"from": reading.origin, "to": reading.destination, "at": reading.at}
    parts: dict[str, Any] = {
        "number": reading.number,
        "hour": "" if reading.hour is None else f"{reading.hour}:00",
        **{part: places and places[0].label for part, places in ends.items()},
        "carriers": reading.carriers and reading.carriers[0].called,
        "days": reading.days and reading.days.name,
        "when": ", ".join(reading.when),
        "compared": reading.compared and "a comparison",
        **dict(zip(reading.amounts, reading.amounts, strict=True)),
        **{word: f"{word}s" for word in sorted(reading.wanted & SUBJECTS.keys())},
        "times": "weekdays or hours" if TIMES in reading.wanted else "",
        "week": "weeks" if WEEK in reading.wanted else "",
        "least": ", ".join(sorted(reading.wanted & LEAST_FIRST)),
        "cancellations" if "cancelled" in reading.wanted else "count": (
            "how many" if MANY in reading.wanted else ""
        ),
    }
    meant = " and ".join(dict.fromkeys(days.meant for days in reading.all_days if days.meant))
    if meant and known.last_date:
        newest = filters.short_interval(known.last_date, known.last_date)
        parts["meant"] = f"{meant}, because the ledger ends on {newest}"
    others = (str(days.other) for days in reading.all_days if days.other)
    if lacking := [filters.short_interval(day, day) for day in others if not known.covers(day)]:
        parts["other"] = f"{' and '.join(lacking)}, which the ledger does not have"
    return {part: str(text) for part, text in parts.items() if text}


def _hidden(reading: Reading, covered: Days | None) -> Iterator[str]:
    """Yield what a page may need that is no part of a text."""
    if covered and covered.is_one:
        yield "one_day"
    if reading.compared:
        yield f"compared_{reading.compared[0]}"
    if reading.wanted and reading.wanted <= TOTALS:
        yield "totals"
    ranked = reading.wanted - NOT_RANKED
    if ranked and (ranked == reading.wanted or ranked & SUBJECTS.keys()):
        yield "ranked"  # of a period without a subject there is no ranking


# --- a page for each meaning of what is named ----------------------------------------------------


def _leads(page: _Page, question: "_Question", named: dict[str, str]) -> Iterator[Lead]:
    unused = tuple(text for part, text in named.items() if part not in question.used)
    for pairs, words in islice(question.meanings(page), MOST_MEANINGS):
        query = urlencode((*pairs, *question.days(page.days), *question.order(page.path)))
        path, *part = page.path.format(**words).partition("#")
        address = "".join((path, f"?{query}" if query else "", *part))
        is_shown_empty = bool(question.reading.days) or "number" not in question.used
        label, counted = page.label.format(**words), question.counted(page, dict(pairs))
        yield Lead(label, address, page.shows, counted, is_shown_empty, unused)


class _Question(NamedTuple):
    """A reading for a page. covered: its days as far as the ledger has them. used: its parts."""

    reading: Reading
    covered: Days | None
    known: Coverage
    used: frozenset[str]

    def days(self, how: str) -> Pairs:
        """Return the parameters of the days as an address needs them."""
        ends: tuple[str, ...] = ()
        if self.covered:
            ends = (str(self.covered.first), str(self.covered.last))
        if how in {"whole", *KINDS}:
            ends = ends or tuple(all_days(self.known).values())
        names: tuple[str, ...] = (DAY, DAYS[1]) if how == "filter_transactions" else DAYS
        if how == "day" and self.covered and self.covered.is_one:
            names, ends = (DAY,), ends[:1]
        return tuple(zip(names, ends, strict=False)) if how != "none" else ()

    def counted(self, page: _Page, given: Mapping[str, Any]) -> tuple[str, Pairs] | None:
        """Return the question that counts the flights on a page, or of the first of two airports.

        None if that need not be known, or if it is not for all airports that are compared.
        """
        what, *compared = self.reading.compared or ("",)
        has_end = bool(compared and self.used & {"from", "to"})
        if not page.counted or has_end or what not in {"", "origin", "destination"}:
            return None
        if compared:
            given = {**given, **compared[0][0][0].as_end("ORIGIN" if what == "origin" else "DEST")}
        pairs = [(name, given[name]) for name in KINDS[page.counted].parameters if name in given]
        limit = [("limit", 1)] if "number" in self.used else []  # all are counted
        return f"/{page.counted}", (*pairs, *self.days(page.counted), *limit)

    def order(self, path: str) -> Pairs:
        """Return the parameters of the order in which a page ranks."""
        sort, order, _ = _order(self.reading)
        pairs = (("sort", sort), ("order", order)) if sort else ()
        compared = pairs[:1] if sort in BEST_FIRST else ()
        return {"/rankings": pairs, "/days": pairs[:1], "/compare": compared}.get(path, ())

    def meanings(self, page: _Page) -> Iterator[tuple[Pairs, dict[str, str]]]:
        """Yield the parameters of each meaning of what is named, and its words."""
        reading = self.reading
        shown: Iterable[tuple[Pairs, str]] = [((), "")]
        if page.path == "/rankings":
            subject = next((word for word in SUBJECTS if word in reading.wanted), "carrier")
            shown = [((("by", by),), name) for by, name in SUBJECTS[subject]]
        if page.path == "/compare":
            shown = islice(_compared(*reading.compared), MOST_MEANINGS)
        carriers = reading.carriers if "carriers" in self.used else ()
        for (what, name), (origin, destination), carrier in product(
            shown, self._ends(page), carriers or (None,)
        ):
            ends = origin.as_end("ORIGIN") if origin else {}
            ends |= destination.as_end("DEST") if destination else {}
            number = ((NUMBER, reading.number),) if "number" in self.used else ()
            hour = (("hour", reading.hour),) if "hour" in self.used else ()
            who = ((CARRIER, carrier.number),) if carrier else ()
            places = () if "{airport}" in page.path else ends.items()
            yield (
                (*what, *number, *who, *places, *hour),
                self._words(origin, destination, carrier) | {"shown": name},
            )

    def _ends(self, page: _Page) -> list[tuple[Place | None, Place | None]]:
        """Return (origin, destination) in each meaning; airports in place of cities if needed.

        Those of two places come first: few flights stay in one city.
        """
        reading = self.reading
        origins = reading.at if "at" in self.used else reading.origin if "from" in self.used else ()
        destinations = reading.destination if "to" in self.used else ()
        if "{airport}" in page.path:
            origins, destinations = self._airports(origins), self._airports(destinations)
        both = product(origins or (None,), destinations or (None,))
        return sorted(both, key=lambda ends: ends[0] == ends[1])

    def _airports(self, places: Places) -> Places:
        return tuple(
            Place(airport.city, airport.code)
            for place in places
            for airport in self.known.airports
            if airport.code == place.airport or (not place.airport and airport.city == place.city)
        )

    def _words(
        self, origin: Place | None, destination: Place | None, carrier: Carrier | None
    ) -> dict[str, str]:
        """Return what labels and paths say of places, a carrier and the rest of the reading."""
        reading, place = self.reading, origin or destination
        day = self.covered and self.covered.first
        sort, _, order = _order(reading)
        ends = (("from", origin), ("to", destination))
        where = "".join(f" {word} {end.label}" for word, end in ends if end)
        number, name = reading.number or 0, carrier and carrier.called
        return {
            "where": where,
            "route": where.removeprefix(" from "),
            "place": place.label if place else "",
            "airport": place.airport if place else "",
            "of": f" of {name}" if name else "",
            "carrier": name or "",
            "flight": carrier.flight(number) if carrier else f"number {number}",
            "phrase": f" {reading.days.phrase}" if reading.days else "",
            "is_or_was": "was" if reading.days else "is",
            "at": "" if reading.hour is None else f" at {reading.hour}:00",
            "order": order,
            "worst_first": WORST_FIRST[sort],
            "best_first": BEST_FIRST.get(sort, ""),
            "calendar": "Months" if "month" in reading.wanted else "Days",
            "day": str(day or ""),
            "day_name": filters.day(str(day)) if day else "",
        }


def _order(reading: Reading) -> tuple[str, str, str]:
    """Return the sort of a ranking, its order, and that in words."""
    return next(order for words, order in ORDERS if words <= reading.wanted)


def _compared(what: str, *things: Any) -> Iterator[tuple[Pairs, str]]:
    """Yield airports, routes or periods beside each other."""
    for alternatives in product(*map(_items, things)):
        items = list(dict.fromkeys(alternatives))
        pairs = (("what", what), *(("item", item) for item, _ in items))
        names = " and ".join(name for _, name in items)
        if 1 < len(items) <= MOST_ITEMS:
            yield pairs, f"Flights to {names}" if what == "destination" else names


def _items(thing: Any) -> list[tuple[str, str]]:
    """Return (item of the page, name) of each meaning of a thing that is compared."""
    if isinstance(thing, Days):
        return [(thing.name, thing.name)]
    if isinstance(thing[0], Carrier):
        return [(str(carrier.number), carrier.called) for carrier in thing]
    if isinstance(thing[-1], int):
        carriers, number = thing
        return [(f"{carrier.called} {number}",) * 2 for carrier in carriers]
    return [
        (" to ".join(p.airport or p.city for p in ends), " to ".join(p.label for p in ends))
        for ends in product(*thing)
    ]
