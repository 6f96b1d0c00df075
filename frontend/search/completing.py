"""Makes texts that name something from texts that do not yet, or do not quite. Pure.

`completed` ends the last words of a text that is still being typed. `similar` replaces words that
name nothing by names that are spelled alike, and then leaves them out. `looser` leaves out what a
reading says too much.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import date
from difflib import get_close_matches
from itertools import islice, product

from frontend.coverage import Carrier, Coverage
from frontend.search.names import Names, Place, Thing, bare, names_in
from frontend.search.reading import Reading, Token
from frontend.search.sentences import MAX_CHARACTERS, readings
from frontend.search.times import MONTHS, NAMED
from frontend.search.vocabulary import NOT_RANKED, TIMES

MOST_WORDS = 3  # at the end of a text that may begin a name
MOST_NAMES = 6
MOST_ALIKE = 3
LEAST_LIKENESS = 0.7  # by difflib, from 0 to 1; two letters that changed places in a short name
LEAST_LETTERS = 4  # of a name that may be misspelled
LEAST_BEGUN = 3  # letters inside a text that may begin a name: "no" is not Norfolk

RANKINGS = (  # what is asked for often
    *(f"worst {subject}" for subject in ("route", "airline", "airport")),
    *("best airline", "best route", "busiest route", "busiest airport"),
    *("most punctual airline", "worst day", "worst month"),
)

_WORD = re.compile(r"[^\s-]+")


def completed(text: str, known: Coverage) -> Iterator[str]:
    """Yield longer texts that end with a name which begins with the last words of `text`."""
    text = bare(text)
    if not text or len(text) > MAX_CHARACTERS:
        return
    names = names_in(known)
    starts = [match.start() for match in _WORD.finditer(text)][-MOST_WORDS:]
    for start in starts:
        before, begun = text[:start], text[start:].lower()
        yield from (f"{before}{ranking}" for ranking in RANKINGS if ranking.startswith(begun))
        for thing in names.beginning(begun)[:MOST_NAMES]:
            yield f"{before}{written(thing)}"
        if before.endswith(" "):  # a month goes with something
            yield from (f"{before}{name.title()}" for name in MONTHS if name.startswith(begun))


def similar(text: str, known: Coverage) -> Iterator[str]:
    """Yield texts like `text` in which every word names something, the closest ones first."""
    text, names = bare(text), names_in(known)
    yield from _alike(text, names, known)
    yield from completed(text, known)
    for reading in readings(text, known)[:1]:
        if runs := _runs(reading.unknown, text):
            alike = [_alike(text[start:end], names, known) for start, end in runs]
            for chosen in (*islice(product(*alike), MOST_NAMES), ("",) * len(runs)):
                yield _with(text, runs, chosen)


def looser(reading: Reading, known: Coverage) -> Iterator[Reading]:
    """Yield what a reading says in the newest year, without its days, carrier or period, or back.

    Hours and weekdays alone are looked for at the largest airports, whose pages have them.
    """
    if reading.days and known.last_date:
        with suppress(ValueError):
            newest_year = date.fromisoformat(known.last_date).year
            yield replace(reading, days=reading.days.in_year(newest_year))
        yield replace(reading, days=None)
    if reading.number and reading.carriers:
        yield replace(reading, days=None, carriers=())
    if reading.origin and reading.destination:
        yield replace(reading, origin=reading.destination, destination=reading.origin)
    names = (reading.origin, reading.destination, reading.at, reading.carriers, reading.number)
    if not any(names) and (reading.hour is not None or reading.when or TIMES in reading.wanted):
        for airport in known.airports[:MOST_ALIKE]:
            yield replace(reading, origin=(Place(airport.city, airport.code, airport.flights),))
    if unranked := reading.wanted & NOT_RANKED:
        yield replace(reading, wanted=reading.wanted - unranked)


def written(thing: Thing) -> str:
    """Return a name that the search understands: "United Airlines", "Chicago, IL" or "ORD"."""
    if isinstance(thing, Carrier):
        name = (thing.name or "").partition("(")[0].strip()
        return name or f"carrier {thing.number}"
    return thing.airport or thing.city


def _runs(unknown: tuple[Token, ...], text: str) -> list[tuple[int, int]]:
    """Return (start, end) of each piece of `text` in which all words are unknown."""
    runs: list[tuple[int, int]] = []
    for word in unknown:
        if word.end and runs and not text[runs[-1][1] : word.start].strip(" ,"):
            runs[-1] = (runs[-1][0], word.end)
        elif word.end:
            runs.append((word.start, word.end))
    return runs


def _alike(text: str, names: Names, known: Coverage) -> list[str]:
    """Return names and times spelled like `text`, and cities that begin so or are in that state."""
    spelled = [*map(" ".join, names.all), *MONTHS, *NAMED]
    spelled = [name for name in spelled if len(name.replace(" ", "")) >= LEAST_LETTERS]
    close = get_close_matches(text.lower(), spelled, n=MOST_ALIKE, cutoff=LEAST_LIKENESS)
    begun = [written(thing) for thing in names.beginning(text) if len(text) >= LEAST_BEGUN]
    in_state = [airport.city for airport in known.airports if airport.state.lower() == text.lower()]
    return list(dict.fromkeys([*close, *begun, *in_state]))[:MOST_NAMES]


def _with(text: str, runs: list[tuple[int, int]], names: tuple[str, ...]) -> str:
    """Return `text` with names in place of its `runs`."""
    for (start, end), name in reversed(list(zip(runs, names, strict=True))):
        text = f"{text[:start]}{name}{text[end:]}"
    return text
