"""Takes the words from a text that name something: carriers, places, days, a flight number. Pure.

`readings` goes through the words from left to right and takes the longest name at each place.
Filler words are left out. A word that is neither is `unknown`, and a text with unknown words must
not be answered as if they were not there. A text may have several readings: "united 2013" is a
carrier in a year, or a flight; the 8 of "JFK 8" is a flight number, or an hour.

How places or days belong together is said by the words between them: the first row of a table whose
pattern fits tells what they are.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import MAXYEAR, date
from itertools import chain, islice, pairwise, product
from typing import Any, NamedTuple

from frontend.coverage import Carrier, Coverage
from frontend.search.names import Names, Place, Words, bare, names_in
from frontend.search.times import (
    DASH_OF_INTERVAL,
    HOURS,
    Days,
    amount_at,
    hour_at,
    interval,
    times_at,
)
from frontend.search.vocabulary import (
    AGAINST,
    AMOUNTS,
    ARRIVALS,
    ARRIVING,
    BEFORE_ENDS,
    COMMON,
    COMPARATIVES,
    DEPARTURES,
    FILLER,
    FLIGHT,
    FLIGHTS,
    FROM,
    GENERIC,
    JOINING,
    MANY,
    NUMBER_FOLLOWS,
    PHRASES,
    RANKING,
    SINCE,
    SUBJECTS,
    TIMES,
    TIMES_OF_WEEK,
    TO,
    UNTIL,
    WANTED,
    WEEK,
    YEAR_FOLLOWS,
)

MAX_CHARACTERS = 200
MOST_READINGS = 8
YEARS_OF_A_LEDGER = 40
MOST_DAYS = 31  # of a month
MOST_RANKED = 100  # that people ask for; a greater number is of a flight

Carriers = tuple[Carrier, ...]
Places = tuple[Place, ...]


class Token(NamedTuple):
    """A word of a text. start, end: its place in the text without accents."""

    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        return self.text.lower()


class Part(NamedTuple):
    """Says what a word or a name is. kind: of its value, below."""

    kind: str
    value: Any


CARRIERS, PLACES, DAYS, NUMBER, HOUR = "carriers", "places", "days", "number", "hour"
JOIN = "join"  # says how its neighbours belong together: a value of JOINING
ASKED = "asked"  # says what is asked for: a value of WANTED
WHEN = "when"  # on a weekday, or at a time of day
AMOUNT = "amount"  # of hours or flights, or some of many flights, of which no page tells
STATE = "state"  # of the place in front of it
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Reading:
    """Says what a text names. The carrier, and each end of a route, has one or more alternatives.

    at: a place that is no end of a route. compared: what they are, and each of them: carriers, ends
    of a route, routes, flights or days. when: texts such as "Mondays" and "evening". amounts: such
    as "5 hours" and "first flight".
    """

    carriers: Carriers = ()
    origin: Places = ()
    destination: Places = ()
    at: Places = ()
    days: Days | None = None
    number: int | None = None
    hour: int | None = None
    compared: tuple[Any, ...] = ()
    wanted: frozenset[str] = frozenset()
    when: tuple[str, ...] = ()
    amounts: tuple[str, ...] = ()
    unknown: tuple[Token, ...] = ()

    @property
    def says_nothing(self) -> bool:
        """Whether it names nothing and asks for nothing."""
        return replace(self, unknown=(), amounts=()) == Reading()

    @property
    def of_arrivals(self) -> "Reading":
        """It with a place, or airports that are compared, as those of arrival."""
        if self.at:
            wanted = self.wanted - {"destination"}
            return replace(self, at=(), destination=self.at, wanted=wanted)
        if self.compared[:1] == ("origin",) and not self.destination:
            return replace(self, compared=("destination", *self.compared[1:]))
        return self

    @property
    def all_days(self) -> list[Days]:
        """The days that it names, also those that are compared."""
        return [item for item in (self.days, *self.compared) if isinstance(item, Days)]


def readings(text: str, known: Coverage, last_year: int = MAXYEAR) -> list[Reading]:
    """Return what `text` may say about the ledger that `known` covers, the most likely first.

    last_year: days without a year are of none after this one.
    """
    text = bare(text)  # which may be longer: a character may stand for a phrase
    if len(text) > MAX_CHARACTERS or known.last_date is None:
        return []
    first, last = map(date.fromisoformat, (known.first_date or known.last_date, known.last_date))
    whole, newest = Days(first, last), min(last, date(last_year, 12, 31))
    scanner = _Scanner(text, names_in(known), newest)
    combinations = islice(product(*scanner.parts()), MOST_READINGS)
    gathered = (_Gathering(some, whole).reading() for some in combinations)
    if scanner.is_of_arrivals:
        gathered = (reading.of_arrivals for reading in gathered)
    read = dict.fromkeys(chain.from_iterable(map(_with_hour, gathered)))
    return [reading for reading in read if reading.unknown or not reading.says_nothing]


# --- from a text to parts ----------------------------------------------------------------------

_TOKEN = re.compile(
    rf"->|→| [–—-] |'\d\d\b|#?\d+(?:(?!{DASH_OF_INTERVAL})[-/.]\d+)+"
    r"|#?[^\W_]+(?:'[^\W_]+)?|[^\s\w,.;:?!()\[\]\"“”'/-]"
)
_CODE_AND_NUMBER = re.compile(r"([a-z][a-z0-9]|[0-9][a-z])(\d{1,5})", re.ASCII | re.IGNORECASE)
_FLIGHT_NUMBER = re.compile(r"0*[1-9]\d{0,4}", re.ASCII)
_FOUR_DIGITS = re.compile(r"\d{4}", re.ASCII)


Meanings = tuple[list[Part], int]
"""What begins at a token, in each of its meanings, and the token behind it."""


class _Scanner:
    def __init__(self, text: str, names: Names, newest: date) -> None:
        self._text = text
        self._names = names
        self._newest = newest
        self._tokens = list(self._split())
        self._is_shouted = text == text.upper()
        words = [t.word for t in self._tokens if JOINING.get(t.word) not in BEFORE_ENDS]
        self._is_all_codes = all(word in names.codes for word in words)
        asked = {WANTED.get(token.word, token.word) for token in self._tokens}
        self._asks_of_many = bool(asked & (RANKING | SUBJECTS.keys() | {MANY}))
        said = {token.word for token in self._tokens}
        self.is_of_arrivals = bool(said & {*ARRIVALS, "arrival"}) and not said & DEPARTURES

    def _split(self) -> Iterator[Token]:
        """Yield the words of the text; a carrier's code is parted from the number behind it."""
        for match in _TOKEN.finditer(self._text):
            token = match[0].strip().removesuffix("'s")
            start = match.start() + match[0].index(token)
            if start and token.startswith("#"):  # "flight #335", but "#335" is a transaction
                start, token = start + 1, token[1:]
            with_code = _CODE_AND_NUMBER.fullmatch(token)
            if with_code and with_code[1].lower() in self._names.codes:
                middle = start + len(with_code[1])
                yield Token(with_code[1], start, middle)
                start, token = middle, with_code[2]
            yield Token(token, start, start + len(token))

    def parts(self) -> Iterator[list[Part]]:
        """Yield for each name or word what it may be."""
        at, before = 0, list[Part]()
        while at < len(self._tokens):
            parts, after = self._longest(at, before[0].kind if before else "")
            end = self._tokens[at - 1].end if at else 0
            sign = self._text[end : self._tokens[at].start].strip()
            if sign in {"-", "/"}:
                yield [Part(JOIN, JOINING.get(sign, sign))]
            if sign != "-" and self._is_state_of(before, self._words(at, after - at)):
                parts = [Part(STATE, None), *parts]
            if parts:
                yield parts
            at, before = after, parts

    def _is_state_of(self, before: list[Part], words: Words) -> bool:
        """Return whether a place is in front of the name of its state: "Buffalo New York"."""
        places = (place for part in before if part.kind == PLACES for place in part.value)
        return any(self._names.states[place.city] == words for place in places)

    def _longest(self, at: int, before: str) -> Meanings:
        """Return what begins with the token at `at`. before: the kind of what is in front of it."""
        for words, wanted in () if self._is_all_codes else PHRASES.items():
            if words == self._words(at, len(words)):
                return ([Part(ASKED, wanted)] if wanted else []), at + len(words)
        named, after_name = self._name_at(at)
        start = self._tokens[at].start
        days, after_days = self._up_to_token(times_at(self._text, start, self._newest))
        if days and after_days >= after_name:
            if _FOUR_DIGITS.fullmatch(self._tokens[at].text):
                if after_days == at + 1:
                    return self._year_or_number(days[0], at, before)
                if self._is_named_flight(at, before):  # "UA 2013 July 4", but not "2013 July 4"
                    return self._word(at, before), at + 1
            also = named if after_days == after_name else []
            return [*also, *(Part(DAYS, meaning) for meaning in days)], after_days
        if named:
            return named, after_name
        return self._unnamed(at, before, after_days)

    def _unnamed(self, at: int, before: str, after_days: int) -> Meanings:
        """Return what begins with a token that begins no name and no days that exist.

        after_days: the token behind days that do not exist, if it begins such.
        """
        text, start, _ = self._tokens[at]
        is_no_day = text.isdigit() and int(text) > MOST_DAYS  # "UA 45 July", but not "UA 31 June"
        if after_days and not (is_no_day and self._is_named_flight(at, before)):
            return self._impossible(at, after_days), after_days
        is_number = before == CARRIERS and text.isdigit()
        for kind, read in () if is_number else ((HOUR, hour_at), (AMOUNT, amount_at)):
            value, after = self._up_to_token(read(self._text, start))
            if after and value is None:
                return self._impossible(at, after), after
            if after and kind == HOUR and self._is_of_arrival(at):
                return [Part(AMOUNT, f"arrival at {value}:00")], after  # no page has that
            if after:
                return [Part(kind, value)], after
        if self._is_day_of_list(at, before):
            return self._impossible(at, at + 1), at + 1
        return self._word(at, before), at + 1

    def _is_of_arrival(self, at: int) -> bool:
        """Return whether the hour at a token is that of an arrival, by the words around it.

        The nearest word for arrivals or departures in front of it counts, or else the next one.
        """
        around = (token.word for token in (*self._tokens[:at][::-1], *self._tokens[at:]))
        return next((word in ARRIVALS for word in around if word in ARRIVALS | DEPARTURES), False)

    def _up_to_token(self, value_and_end: tuple[Any, int] | None) -> tuple[Any, int]:
        """Return a value, and the token behind its end in the text."""
        value, end = value_and_end or (None, 0)
        return value, sum(token.start < end for token in self._tokens)

    def _name_at(self, at: int) -> Meanings:
        """Return the longest name that begins at `at`, as a carrier and as a place."""
        for length in range(self._names.longest, 0, -1):
            words = self._words(at, length)
            things = self._names.named(words) if words else ()
            if things and (length > 1 or self._is_name(at)):
                kinds = {
                    CARRIERS: tuple(thing for thing in things if isinstance(thing, Carrier)),
                    PLACES: tuple(thing for thing in things if isinstance(thing, Place)),
                }
                after = at + length if kinds[PLACES] else self._behind_company(at + length)
                return [Part(kind, named) for kind, named in kinds.items() if named], after
        return [], at

    def _behind_company(self, at: int) -> int:
        """Return the token behind the rest of a carrier's name: "Airlines Co.", but not "CO"."""
        while (word := self._words(at, 1)) and word[0] in GENERIC:
            if self._names.named(word) and self._tokens[at - 1].word not in GENERIC:
                break
            at += 1
        return at

    def _words(self, at: int, length: int) -> Words:
        tokens = self._tokens[at : at + length]
        return tuple(token.word for token in tokens) if len(tokens) == length else ()

    def _is_name(self, at: int) -> bool:
        """Return whether a single word is meant as a name although it may be a common word."""
        token, following = self._tokens[at], self._tokens[at + 1 : at + 2]
        if token.word not in COMMON or self._is_all_codes:
            return True
        if token.text.isupper() and not self._is_shouted:
            return True
        return token.word not in FILLER | TIMES_OF_WEEK | JOINING.keys() | WANTED.keys() and any(
            _FLIGHT_NUMBER.fullmatch(after.text) and after.start - token.end <= 1
            for after in following
        )

    def _year_or_number(self, year: Days, at: int, before: str) -> Meanings:
        """Return what four digits are: no flight where many are asked for, "worst route 2013"."""
        word = self._tokens[at - 1].word if at else ""
        number = self._flight_number(self._tokens[at])
        if word in YEAR_FOLLOWS or not number:
            return [Part(DAYS, year)], at + 1
        is_year = abs(year.first.year - self._newest.year) <= YEARS_OF_A_LEDGER
        if not is_year or word in NUMBER_FOLLOWS:
            return self._unnamed(at, before, 0)
        is_no_flight = self._asks_of_many and before != CARRIERS
        return [Part(DAYS, year), *(() if is_no_flight else number)], at + 1

    def _impossible(self, at: int, after: int) -> list[Part]:
        """Return the tokens from `at` up to `after` as one that is unknown: "31 April", "13 am"."""
        start, end = self._tokens[at].start, self._tokens[after - 1].end
        return [Part(UNKNOWN, Token(self._text[start:end], start, end))]

    def _is_named_flight(self, at: int, before: str) -> bool:
        """Return whether a carrier or a word such as "flight" stands in front of the token."""
        return before == CARRIERS or (at > 0 and self._tokens[at - 1].word in NUMBER_FOLLOWS)

    def _is_day_of_list(self, at: int, before: str) -> bool:
        """Return whether a number may be a day beside another one: "May 5, 6", "5, 6 May"."""
        text = self._tokens[at].text
        if not text.isdigit() or int(text) > MOST_DAYS:
            return False
        if before == DAYS:
            return self._has_comma_behind(at - 1)
        if self._is_named_flight(at, before) or not self._has_comma_behind(at):
            return False
        return times_at(self._text, self._tokens[at + 1].start, self._newest) is not None

    def _has_comma_behind(self, at: int) -> bool:
        after = self._tokens[at + 1 : at + 2]
        return any(self._text[self._tokens[at].end : t.start].strip() == "," for t in after)

    def _flight_number(self, token: Token) -> list[Part]:
        return [Part(NUMBER, int(token.text))] if _FLIGHT_NUMBER.fullmatch(token.text) else []

    def _word(self, at: int, before: str) -> list[Part]:
        """Return what a word is that begins no name; [] if it is filler."""
        token = self._tokens[at]
        if number := self._flight_number(token):
            carriers = self._names.named(("carrier", token.text))
            is_flight = not carriers or self._is_named_flight(at, before)
            return number if is_flight else [Part(CARRIERS, carriers), *number]
        for kind, words in ((JOIN, JOINING), (ASKED, WANTED)):
            if token.word in words:
                return [Part(kind, words[token.word])]
        if token.word in TIMES_OF_WEEK:
            return [Part(WHEN, token.text)]
        return [] if token.word in FILLER else [Part(UNKNOWN, token)]


# --- from parts to a reading ---------------------------------------------------------------------

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


class _Gathering:
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
        wanted = self._wanted(is_comparison="compared" in members)
        self._keep_one_hour()
        fits &= self._keep_one_number() and not _TWO_QUESTIONS.search(self._letters)
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
    is_mixed = {bool(place.airport) for place in before} != {bool(place.airport) for place in new}
    if airports and is_mixed:
        places[-1] = (airports, word)
        return True
    return False


def _with_hour(reading: Reading) -> Iterator[Reading]:
    """Yield a reading, and it with a small number beside a place as an hour of the day."""
    yield reading
    number, has_place = reading.number, reading.at or reading.origin or reading.destination
    is_flight = reading.carriers or FLIGHT in reading.wanted  # "UA 8", "flight 8"
    if number and number < HOURS and has_place and not is_flight and reading.hour is None:
        yield replace(reading, number=None, hour=number)
