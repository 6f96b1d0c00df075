"""Takes the words from a text that name something: at each place the longest name. Pure.

Words between names, such as "from", are parts, too. Filler words are left out.
"""

import re
from collections.abc import Iterator
from datetime import date
from typing import Any

from frontend.coverage import Carrier
from frontend.search.names import Names, Place, Words
from frontend.search.reading import (
    AMOUNT,
    ASKED,
    CARRIERS,
    DAYS,
    HOUR,
    JOIN,
    NUMBER,
    PLACES,
    STATE,
    UNKNOWN,
    WHEN,
    Part,
    Token,
)
from frontend.search.times import DASH_OF_INTERVAL, Days, amount_at, hour_at, times_at
from frontend.search.vocabulary import (
    ARRIVALS,
    BEFORE_ENDS,
    COMMON,
    DEPARTURES,
    FILLER,
    GENERIC,
    JOINING,
    MANY,
    NUMBER_FOLLOWS,
    PHRASES,
    RANKING,
    SUBJECTS,
    TIMES_OF_WEEK,
    WANTED,
    YEAR_FOLLOWS,
)

YEARS_OF_A_LEDGER = 40
MOST_DAYS = 31  # of a month

_TOKEN = re.compile(
    rf"->|→| [–—-] |'\d\d\b|#?\d+(?:(?!{DASH_OF_INTERVAL})[-/.]\d+)+"
    r"|#?[^\W_]+(?:'[^\W_]+)?|[^\s\w,.;:?!()\[\]\"“”'/-]"
)
_CODE_AND_NUMBER = re.compile(r"([a-z][a-z0-9]|[0-9][a-z])(\d{1,5})", re.ASCII | re.IGNORECASE)
_FLIGHT_NUMBER = re.compile(r"0*[1-9]\d{0,4}", re.ASCII)
_FOUR_DIGITS = re.compile(r"\d{4}", re.ASCII)


Meanings = tuple[list[Part], int]
"""What begins at a token, in each of its meanings, and the token behind it."""


class Scanner:
    """Goes through a text. is_of_arrivals: whether its words are about arrivals alone."""

    def __init__(self, text: str, names: Names, newest: date) -> None:
        """newest: days without a year are of none after it."""
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
            if _FOUR_DIGITS.fullmatch(self._tokens[at].text) and after_days == at + 1:
                return self._year_or_number(days[0], at, before)
            if self._is_flight_before_days(at, before, after_days):
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

    def _is_flight_before_days(self, at: int, before: str, after_days: int) -> bool:
        """Return whether a number is of a flight although days begin with it, up to `after_days`.

        "UA 2013 July 4" and "UA 15 July 4", but not "UA 15 July" or "UA 15 July 8 am".
        """
        text = self._tokens[at].text
        if not (text.isdigit() and self._is_named_flight(at, before)):
            return False
        if _FOUR_DIGITS.fullmatch(text):
            return True
        if after_days == len(self._tokens) or hour_at(self._text, self._tokens[after_days].start):
            return False
        behind = times_at(self._text, self._tokens[at + 1].start, self._newest)
        return self._up_to_token(behind)[1] > after_days

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
