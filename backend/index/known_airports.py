"""Finds the names of airports in flights that are stored, for files that lack them."""

from collections.abc import Mapping
from functools import cache
from operator import itemgetter

from backend.base.errors import TryLater
from backend.index import completions
from backend.index.queries import IndexReader
from backend.sources.airports import Airport, Lookup


def airports_in(index: IndexReader) -> Lookup:
    """Return what finds airports in the index, which is read when the first is looked up.

    Of several names the one with the most flights counts. Nothing is found without an index.
    """

    @cache
    def known() -> Mapping[str, Airport]:
        try:
            airports, _ = index.snapshot(completions.airports)
        except TryLater:
            return {}
        by_flights = sorted(airports, key=itemgetter(3))
        return {code: Airport(code, city, state) for code, city, state, _ in by_flights}

    return lambda key: known().get(key)
