"""Makes a reading of the parts of a text. Pure.

How places or days belong together is said by the words between them: the first row of a table whose
pattern fits tells what they are.
"""

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

from frontend.search.reading import (
    AMOUNT,
    ASKED,
    CARRIERS,
    DAYS,
    HOUR,
    JOIN,
    NUMBER,
    PLACES,
    UNKNOWN,
    WHEN,
    Carriers,
    Part,
    Places,
    Reading,
    Token,
)
from frontend.search.times import Days, interval
from frontend.search.vocabulary import (
    AGAINST,
    AMOUNTS,
    ARRIVING,
    BEFORE_ENDS,
    COMPARATIVES,
    FLIGHT,
    FLIGHTS,
    FROM,
    MANY,
    RANKING,
    SINCE,
    SUBJECTS,
    TIMES,
    TO,
    UNTIL,
    WEEK,
)

MOST_RANKED = 100  # that people ask for; a greater number is of a flight

_ENDS = (  # the words in front of each place -> the members of a reading for each of them
    (r"f", ("origin",)),
    (r"t", ("destination",)),
    (r".", ("at",)),
    (r"t[^ta]|[^f]f", ("destination", "origin")),
    (r".[^a]|ba", ("origin", "destination")),
)
_COMPARED = ((r".[ a]*a| {3,}", 1), (r".t(at)+|( t){2,}", 2))
"""The words in front of each place -> of how many places each thing is that is compared."""
_COMPARED_WITH = (
    (r"[^t](?:[ a]*a|  +)t", -1, "destination"),  # "JFK or LGA to ORD", "EWR, JFK, LGA to ORD"
    (r"[^f][ a]*af", -1, "origin"),  # "ORD or LAX from JFK"
    (r"[^t]t[ a]*a", 0, "origin"),  # "JFK to ORD or LAX"
    (r"[^f]f[ a]*a", 0, "destination"),  # "ORD from JFK or LGA"
)
"""The words in front of each place -> which place is one end of all routes, and which end."""


_LETTERS = {NUMBER: "n", DAYS: "d", CARRIERS: "c", PLACES: "p"}
_NUMBER_OF_DAY = re.compile(r"d[aAt][nN]|(?<!c)[nN][aAt]d")  # "May 5 and 6", not "May 5 and UA 6"
_NUMBER_OF_RANKED = re.compile(r"(?<![cF])nR|Rn")  # "5 worst routes", not "flight 5"
_FLIGHTS_COMPARED = re.compile(r"c[nN](a[nN]|[aA]?c[nN])+")
_TWO_QUESTIONS = re.compile(r"pa[^pftA]+p")  # "delays in Chicago, and Delta in Atlanta" is no route


def _letters(parts: tuple[Part, ...]) -> str:
    """Return a letter for each part: of a word that joins its first one, " " for most others."""
    ranked = RANKING | SUBJECTS.keys() | {WEEK}

    def letter(kind: str, value: Any) -> str:
        if kind == ASKED:
            return "F" if value == FLIGHT else "R" if value in ranked else " "
        if kind == NUMBER and value > MOST_RANKED:
            return "N"
        if kind == JOIN:
            return "A" if value == ARRIVING else str(value[:1])
        return _LETTERS.get(kind, " ")

    return "".join(letter(*part) for part in parts)


def _joins(named: list[tuple[Any, str]]) -> str:
    """Return the first letters of the words in front of names; a space where there is none."""
    return "".join(BEFORE_ENDS.get(word, word)[:1] or " " for _, word in named)


class Gathering:
    """The parts of a text by their kinds, of which a reading is made."""

    def __init__(self, parts: tuple[Part, ...], whole: Days) -> None:
        """whole: the days of the ledger."""
        self._parts = parts
        self._letters = _letters(parts)
        self._whole = whole
        self._named: dict[str, list[tuple[Any, str]]] = {kind: [] for kind in (PLACES, DAYS)}
        self._others: dict[str, list[Any]] = {
            kind: [] for kind in (CARRIERS, NUMBER, HOUR, ASKED, WHEN, AMOUNT, UNKNOWN)
        }
        joining = ""
        for kind, value in parts:
            self._add(kind, value, joining)
            joining = value if kind == JOIN else ""

    def _add(self, kind: str, value: Any, joining: str) -> None:
        """Add a part. joining: how it belongs to the one before."""
        if kind == HOUR and joining in {UNTIL, SINCE}:
            kind, value = AMOUNT, f"{joining} {value}:00"
        if kind == CARRIERS and joining == TO and not self._others[CARRIERS]:
            self._others[AMOUNT].append(f"to {value[0].called}")  # FL may be meant for a state
        if kind in self._others:
            self._others[kind].append(value)
        elif kind == DAYS or (
            kind == PLACES and not _is_narrowed(self._named[kind], value, joining)
        ):
            self._named[kind].append((value, joining))

    def reading(self) -> Reading:
        """Return what they say together; what does not fit is an amount or unknown."""
        members, fits = self._members()
        fits &= self._keep_one_number() and not _TWO_QUESTIONS.search(self._letters)
        wanted = self._wanted(is_comparison="compared" in members)
        self._keep_one_hour()
        if not fits:
            self._others[UNKNOWN].append(Token("", 0, 0))
        return Reading(
            **members,
            number=next(iter(self._others[NUMBER]), None),
            hour=next(iter(self._others[HOUR]), None),
            wanted=frozenset(COMPARATIVES.get(word, word) for word in wanted - {FLIGHTS}),
            when=tuple(self._others[WHEN]),
            amounts=tuple(self._others[AMOUNT]),
            unknown=tuple(self._others[UNKNOWN]),
        )

    def _members(self) -> tuple[dict[str, Any], bool]:
        """Return the members for carriers, places and days, and whether these fit together."""
        groups = (
            self._compared_flights() or _of_places(self._named[PLACES]),
            _of_days(self._named[DAYS], self._whole),
            _of_carriers(self._others[CARRIERS]),
        )
        pairs = [pair for members in groups if members for pair in members.items()]
        together = dict(pairs)
        if Part(JOIN, AGAINST) in self._parts and "compared" not in together:
            self._others[AMOUNT].append("a comparison")
        return together, None not in groups and len(pairs) == len({name for name, _ in pairs})

    def _compared_flights(self) -> dict[str, Any]:
        """Return the member that compares flights, whose carriers and numbers it takes."""
        letters = re.sub(r"[dRF/ ]", "", self._letters)
        if not _FLIGHTS_COMPARED.fullmatch(letters) or _NUMBER_OF_DAY.search(self._letters):
            return {}
        flights, carrier = list[tuple[Carriers, int]](), ()
        for kind, value in self._parts:
            if kind == CARRIERS:
                carrier = value
            elif kind == NUMBER:  # of the last carrier, as in "WN 335 vs 511"
                flights.append((carrier, value))
        self._others |= {CARRIERS: [], NUMBER: []}
        return {"compared": ("flight", *flights)}

    def _wanted(self, *, is_comparison: bool) -> set[str]:
        """Return what is asked for, without what no page tells."""
        wanted = {*self._others[ASKED]}
        if is_comparison and "cancelled" in wanted:  # it counts flights, and ranks none of them
            wanted.discard(FLIGHTS)
        if _ranks_flights(wanted) and not self._others[NUMBER]:
            wanted.discard(FLIGHT)
            self._others[AMOUNT].append("a ranking of single flights")
        elif self._others[CARRIERS] and not is_comparison and _ranks_carriers(wanted):
            self._others[AMOUNT].append("a ranking")
        untold = (wanted & AMOUNTS) - _stated(self._parts, wanted)
        self._others[AMOUNT] += [f"how {amount}" for amount in sorted(untold)]
        return wanted - (AMOUNTS if wanted & RANKING else AMOUNTS - {MANY} | untold)

    def _keep_one_hour(self) -> None:
        """Take several hours for amounts."""
        if len(hours := self._others[HOUR]) > 1:
            self._others[AMOUNT] += [f"{hour}:00" for hour in hours]
            hours.clear()

    def _keep_one_number(self) -> bool:
        """Take numbers for unknown that may be of days, and for amounts that say how many.

        Return whether there is one at most.
        """
        numbers = self._others[NUMBER]
        if _NUMBER_OF_RANKED.search(self._letters):
            self._others[AMOUNT] += map(str, numbers)
            numbers.clear()
        elif _NUMBER_OF_DAY.search(self._letters):
            self._others[UNKNOWN] += [Token(str(number), 0, 0) for number in numbers]
            numbers.clear()
        return len(numbers) <= 1


def _of_carriers(carriers: list[Carriers]) -> dict[str, Any]:
    """Return the members of a reading for carriers: several are compared."""
    first, *others = dict.fromkeys(carriers) or [()]
    return {"compared": ("carrier", first, *others)} if others else {"carriers": first}


def _ranks_flights(wanted: set[str]) -> bool:
    """Return whether words ask which of many flights is the worst, or the like: no page tells."""
    is_ranking = wanted & {"worst", "best", "busiest", "quietest"} or (
        wanted & {"most", "least"} and wanted & {"delays", "cancelled", "on_time"}
    )
    return bool(wanted & {FLIGHT, FLIGHTS} and is_ranking and not wanted & SUBJECTS.keys())


def _ranks_carriers(wanted: set[str]) -> bool:
    """Return whether words ask which rank a carrier has: no page of one carrier tells."""
    others = SUBJECTS.keys() - {"carrier"} | {TIMES, WEEK}
    return bool(wanted & {*RANKING, "rank"} and not wanted & others)


def _stated(parts: tuple[Part, ...], wanted: set[str]) -> frozenset[str]:
    """Return the AMOUNTS that a page states: how long delays are, how many flights there are."""
    counted = {after.value for part, after in pairwise(parts) if part == Part(ASKED, MANY)}
    is_of_flights = not (counted & SUBJECTS.keys() or wanted & {"delays", "on_time"})
    is_count = is_of_flights and not ("cancelled" in wanted and wanted & RANKING)
    return frozenset((MANY,) if is_count else AMOUNTS - {MANY} if "delays" in wanted else ())


def _of_places(places: list[tuple[Places, str]]) -> dict[str, Any] | None:
    """Return the members of a reading for places; None if they do not belong together."""
    joins, named = _joins(places), [place for place, _ in places]
    joins = joins.replace("/", "a" if len(places) > 2 else " ")  # "JFK/LGA to LAX", "JFK/LAX"
    for pattern, members in _ENDS:
        if re.fullmatch(pattern, joins):
            return dict(zip(members, named, strict=True))
    for pattern, size in _COMPARED:
        if re.fullmatch(pattern, joins):
            ends = "destination" if joins[0] == "t" else "origin"
            things = [tuple(named[at : at + size]) for at in range(0, len(named), size)]
            return {"compared": ("route" if size > 1 else ends, *things)}
    for pattern, at, end in _COMPARED_WITH:
        if re.fullmatch(pattern, joins):
            other = "origin" if end == "destination" else "destination"
            return {end: named.pop(at), "compared": (other, *((place,) for place in named))}
    return None if places else {}


def _of_days(days: list[tuple[Days, str]], whole: Days) -> dict[str, Any] | None:
    """Return the members of a reading for days; None if they do not belong together."""
    joins, named = _joins(days).replace("/", "a"), [item for item, _ in days]
    meant = _open_ended(*days[0], whole) if len(days) == 1 else None
    if re.fullmatch(r".t|ba", joins):
        meant = interval(*named)
    elif re.fullmatch(r".[ a]*a", joins):
        return {"compared": ("days", *named)}
    return {"days": meant} if meant else None if days else {}


def _open_ended(days: Days, word: str, whole: Days) -> Days | None:
    """Return the days of `whole` that are meant by one name of days with a word in front of it.

    None if there are none. "From July" is July, and "from 4 July" begins then.
    """
    if word in {TO, UNTIL}:
        days = replace(days, first=whole.first)
    elif word == SINCE or (word == FROM and days.is_one):
        days = replace(days, last=whole.last)
    return days if days.first <= days.last else None


def _is_narrowed(places: list[tuple[Places, str]], new: Places, joining: str) -> bool:
    """Narrow the last place if `new` names the same, as in "New York (JFK)"."""
    if not places or joining not in {"", "/"}:
        return False
    before, word = places[-1]
    both = (*before, *new)
    cities = {place.city for place in both if not place.airport}
    airports = tuple(place for place in both if place.airport and place.city in cities)
    if airports:
        places[-1] = (airports, word)
        return True
    return False
