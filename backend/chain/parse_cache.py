"""Remembers what was made of a value, because columns repeat few distinct values."""

from collections.abc import Callable
from typing import TypeVar

from backend.base.lru import LONGEST_REMEMBERED

CACHE_ENTRIES = 20_000

Key = TypeVar("Key")
Made = TypeVar("Made")


class ParseCache(dict[Key, Made]):
    """Keeps what `make` makes of at most `entries` keys, none of them long.

    `map(cache.__getitem__, column)` is the quickest way to treat a column of few distinct values.
    """

    def __init__(self, make: Callable[[Key], Made], entries: int = CACHE_ENTRIES) -> None:
        super().__init__()
        self._make = make
        self._entries = entries

    def __missing__(self, key: Key) -> Made:
        made = self._make(key)
        if isinstance(key, str) and len(key) > LONGEST_REMEMBERED:
            return made
        if len(self) >= self._entries:
            self.clear()
        self[key] = made
        return made
