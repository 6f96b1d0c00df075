"""Finds which meanings of a search exist in the ledger, their pages, and what these show."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from frontend import filters
from frontend.backend_client import Backend, Json, by_height
from frontend.coverage import Coverage
from frontend.errors import Refused
from frontend.question import CARRIER, NUMBER
from frontend.search import completing
from frontend.search.answers import Lead, leads
from frontend.search.names import bare
from frontend.search.reading import Reading
from frontend.search.sentences import MAX_CHARACTERS, readings
from frontend.search.times import Days

MOST_SUGGESTIONS = 8
MOST_COMPLETIONS = 7
MOST_NUMBERS = 20  # with the same beginning that are suggested
MOST_DIGITS = 5  # of a flight number
MOST_READ = 60  # texts that are tried, as each may be a question to the backend
NO_FLIGHTS = "there are no such flights in this ledger"
DAMAGED = "it is damaged"
BAD_INPUT = {400, 422}
_DIGITS_AT_END = re.compile(
    rf"(?P<before>.*?)(?<!\d)(?<!in )(?P<digits>[1-9]\d{{0,{MOST_DIGITS - 1}}})", re.ASCII
)


def named_in_chain(text: str) -> list[tuple[str, str]]:
    """Return (kind, digits) of each transaction, block and hash of a block that a text may name."""
    matches = [(kind, pattern.fullmatch(" ".join(text.split()))) for kind, pattern in IN_CHAIN]
    return [(kind, match[1].replace(",", "").lower()) for kind, match in matches if match]


_NUMBER = r"#?(\d{1,3}(?:,\d{3}){1,4}|\d{1,15})"  # as pages show it, or plain
_PART_OF = r"(?:(?:(?:flights|transactions|hash|proof) (?:in|of|for) (?:the )?)(?=block|t))?"
IN_CHAIN = tuple(
    (kind, re.compile(pattern, re.ASCII | re.IGNORECASE))
    for kind, pattern in (
        (
            "transaction",
            rf"{_PART_OF}(?:(?:transaction|tx) ?(?:(?:id|number|no\.?) )?|id )?{_NUMBER}",
        ),
        ("block", rf"{_PART_OF}(?:block ?(?:(?:height|number|no\.?) )?|height )?{_NUMBER}"),
        (
            "hash",
            r"(?:block )?(?:with )?(?:hash )?(?:0x)?([0-9a-f]{8,64})(?:…|\.{2,3})?",
        ),  # as pages shorten it
        ("tip", r"()(?:the )?(?:tip|(?:newest|latest|last|current|top) block)"),
    )
)


def readings_with_flights(text: str, known: Coverage) -> list[Reading]:
    """Return what `text` may say. Days without a year are in the latest one with flights.

    Raises BackendAway, Refused.
    """
    read = latest = readings(text, known)
    while (days := _first_days(read)) and _is_in_a_gap(days, known):
        earlier = [month for month in known.months() if month < str(days.first.year)]
        if not earlier:
            read = latest
            break
        read = readings(text, known, int(max(earlier)[:4]))
    read = read or latest
    compared = [tuple(_in_year_with_flights(item, known) for item in r.compared) for r in read]
    return [replace(r, compared=items) for r, items in zip(read, compared, strict=True)]


def _first_days(read: Iterable[Reading]) -> Days | None:
    return next((days for reading in read for days in reading.all_days), None)


def _is_in_a_gap(days: Days, known: Coverage) -> bool:
    """Return whether days without a year are of one in which their months have no flights."""
    first, last = str(days.first)[:7], str(days.last)[:7]
    has_none = not (days.has_year or days.meant)
    return has_none and not any(first <= month <= last for month in known.months())


def _in_year_with_flights(item: Any, known: Coverage) -> Any:
    """Return what is compared; a month or day without a year in the latest one with flights."""
    if isinstance(item, Days) and _is_in_a_gap(item, known):
        years = [month[:4] for month in known.months() if month.endswith(f"{item.first:-%m}")]
        with suppress(ValueError):
            return item.in_year(int(max(years, default="")))
    return item


class Finder:
    """Looks meanings up at the backend. Each method raises BackendAway, Refused."""

    def __init__(self, backend: Backend, coverage: Coverage) -> None:
        self._backend = backend
        self._coverage = coverage

    def pages(self, text: str) -> list[Lead]:
        """Return the pages for everything that `text` means, each address once.

        What travellers ask for comes before transactions and blocks.
        """
        pages = [page for reading in self._read(text) for page in self._shown(reading)]
        for kind, digits in named_in_chain(text):
            pages += getattr(self, f"_{kind}")(digits)
        return _first(pages, len(pages))

    def _shown(self, reading: Reading) -> list[Lead]:
        """Return the pages for a reading; if none has flights, the one that explains that.

        A place is one of departure, and one of arrival if nothing leaves it in this ledger.
        """
        for direction in dict.fromkeys((reading, reading.of_arrivals)):
            if pages := self._named(direction):
                return pages
        return self._explained(reading)

    def _named(self, reading: Reading) -> list[Lead]:
        """Return the pages for what a reading names, if they have flights to show."""
        counted = [(lead, self._count(lead)) for lead in leads(reading, self._coverage)]
        return [_with_count(lead, count) for lead, count in counted if count != 0]

    def _explained(self, reading: Reading) -> list[Lead]:
        """Return the page that explains why there are no flights such as the reading names.

        There is none for a flight number that is used on no day at all.
        """
        explained = [lead for lead in leads(reading, self._coverage) if lead.is_shown_empty]
        if reading.number and not self._named(replace(reading, days=None)):
            return []
        return [_with_count(lead, 0) for lead in explained[:1]]

    def _count(self, lead: Lead) -> int | None:
        """Return how many flights a page has to show; None if that is not known.

        A question that is refused has none. Damaged blocks cannot be counted.
        """
        if lead.counted is None:
            return None
        path, question = lead.counted
        try:
            answer = self._backend.get(path, dict(question))
        except Refused as error:
            if error.damaged_blocks:
                return None
            if error.status not in BAD_INPUT:
                raise
            return 0
        count: int = answer["count"] if "count" in answer else answer["flights"]
        return count

    # --- finds of which there is one

    def _transaction(self, digits: str) -> Iterator[Lead]:
        def in_words(answer: Json) -> str:
            flight, block = answer["transaction"], answer["block"]
            where = f"in block {block['height']:,}" if block else "pending"
            name = self._coverage.carrier(flight[CARRIER]).flight(flight[NUMBER])
            route = f"from {flight['ORIGIN_CITY_NAME']} to {flight['DEST_CITY_NAME']}"
            return f"{name} {route} on {filters.day(flight['FL_DATE'])}, {where}"

        return self._if_there(
            f"Transaction {int(digits)}", f"/transactions/{int(digits)}", in_words
        )

    def _block(self, digits: str) -> Iterator[Lead]:
        label, address = f"Block {int(digits):,}", f"/blocks/{int(digits)}"
        return self._if_there(label, address, _sealed, limit=0)

    def _tip(self, _: str) -> Iterator[Lead]:
        return self._block(self._backend.get("/tip")["height"])

    def _hash(self, digits: str) -> Iterator[Lead]:
        for header in by_height(self._backend.get("/blocks", {"hash": digits})):
            height = header["height"]
            shows = DAMAGED if "detail" in header else _sealed({"block": header})
            yield Lead(f"Block {height:,}", f"/blocks/{height}", shows)

    def _if_there(
        self, label: str, address: str, shows: Callable[[Json], str], **parameters: Any
    ) -> Iterator[Lead]:
        """Yield the page of what has an address at the service, if there is such a thing."""
        try:
            yield Lead(label, address, shows(self._backend.get(address, parameters)))
        except Refused as error:
            if error.damaged_blocks:
                yield Lead(label, address, DAMAGED)
            elif error.status not in {400, 404}:
                raise

    # --- what may help when nothing is found

    def not_understood(self, text: str) -> list[str]:
        """Return the words of `text` that name nothing; [] if it may name a part of the chain."""
        read = [] if named_in_chain(text) else self._read(text)
        typed = {bare(word): word for word in re.findall(r"[^\W_]+", text)}  # with their accents
        unknown = (word.text for reading in read[:1] for word in reading.unknown if word.text)
        return list(dict.fromkeys(typed.get(word, word) for word in unknown))

    def missing(self, text: str) -> str:
        """Return that the chain lacks what `text` may name of it; "" if it names nothing there."""
        names = dict(named_in_chain(text))
        things = [
            f"{kind} {int(names[kind])}" for kind in ("transaction", "block") if kind in names
        ]
        if digits := names.get("hash"):
            things.append(f"block whose hash begins with {digits}")
        if not things:
            return ""
        tip = self._backend.get("/tip")
        newest = [f"block is {tip['height']:,}"]
        if tip["transactions"]:
            newest.append(f"the newest transaction in a block is {tip['transactions'] - 1}")
        return f"There is no {' or '.join(things)}. The newest {', and '.join(newest)}."

    def suggestions(self, text: str) -> list[Lead]:
        """Return pages for texts that are similar to `text`, and for less than it says."""
        known = self._coverage
        texts = chain([text], completing.similar(text, known))
        read = (reading for text in texts for reading in self._read(text))
        near = (r for reading in read for r in (reading, *completing.looser(reading, known)))
        return _first(chain(self._pages_of(near), self._numbers(text, 1)), MOST_SUGGESTIONS)

    def completions(self, text: str) -> list[Lead]:
        """Return pages for what `text` means, and for texts that begin like it."""
        texts = completing.completed(text, self._coverage)
        longer = (reading for text in texts for reading in self._read(text))
        return _first(
            chain(self.pages(text), self._numbers(text), self._pages_of(longer)), MOST_COMPLETIONS
        )

    def _pages_of(self, read: Iterable[Reading]) -> Iterator[Lead]:
        """Yield the pages for the first `MOST_READ` readings, each of which is looked up once."""
        for reading in dict.fromkeys(islice(read, MOST_READ)):
            yield from self._named(reading)

    def _read(self, text: str) -> list[Reading]:
        return readings_with_flights(text, self._coverage)

    def _numbers(self, text: str, least: int = MOST_DIGITS) -> Iterator[Lead]:
        """Yield flights whose numbers begin with the digits at the end of `text`.

        least: numbers that have only so many of the digits follow.
        """
        match = _DIGITS_AT_END.fullmatch(text)
        if match is None or len(text) > MAX_CHARACTERS:
            return
        for digits in range(len(match["digits"]), min(least, len(match["digits"])) - 1, -1):
            begun = {"field": "flight_number", "q": match["digits"][:digits], "limit": MOST_NUMBERS}
            for number in self._backend.get("/suggest", begun)["suggestions"]:
                flights = {used[CARRIER]: used["flights"] for used in number["carriers"]}
                for reading in self._read(f"{match['before']}{number['label']}"):
                    yield from self._flights(reading, flights)

    def _flights(self, reading: Reading, flights: Mapping[int, int]) -> Iterator[Lead]:
        """Yield the flights of a number, if only that and carriers are named that use it."""
        named = [carrier.number for carrier in reading.carriers] or [*flights]
        count = sum(flights.get(carrier, 0) for carrier in named)
        flight = Reading(number=reading.number, carriers=reading.carriers, wanted=reading.wanted)
        if count and reading.number and reading == flight:
            yield from (_with_count(lead, count) for lead in leads(reading, self._coverage))


def _first(pages: Iterable[Lead], most: int) -> list[Lead]:
    """Return the first of the pages, each address once."""
    first: dict[str, Lead] = {}
    for page in pages:
        first.setdefault(page.address, page)
        if len(first) == most:
            break
    return list(first.values())


def _with_count(lead: Lead, count: int | None) -> Lead:
    """Return a lead with the number of flights that it shows, if that is what was counted."""
    shows = lead.shows
    is_other = "hour=" in lead.address or lead.address.startswith("/compare")
    if count is not None and not (count and is_other):
        shows = f"{filters.counted(count, 'flight')}: {shows}" if count else NO_FLIGHTS
    unused = f"; not used: {', '.join(lead.unused)}" if lead.unused else ""
    return replace(lead, shows=f"{shows}{unused}")


def _sealed(answer: Json) -> str:
    """Return what a block holds, and when it was sealed."""
    block = answer["block"]
    count = filters.counted(block["transaction_count"], "transaction")
    return f"{count}, sealed {filters.moment(block['timestamp'])}"
