"""Reads the lines of a flight table quickly if its columns are arranged as usual.

In every file of BTS the eight columns that describe a route are side by side, make up most of a
line, and repeat: a month has a few thousand routes. So a line is cut at commas from its left end
to the route and from its right end to the route, and the text between is parsed as CSV only when
it has not been seen before. That takes half the time of a CSV parser, with the same result:

- Cutting at commas is wrong where a cell holds a comma. But such a cell left or right of the route
  pushes a whole cell into the text between, which then has too many cells and is noticed.
- A cell with a quote in it is parsed as CSV. Cells of columns that are not used are not checked; an
  error in them goes unnoticed and does no harm.

If anything in a batch is unusual, `columns` returns None, and the caller reads it as CSV.
"""

import csv
from collections.abc import Sequence

from backend.chain.memo import Memo

_ROUTE = frozenset(
    f"{end}{what}"
    for end in ("ORIGIN", "DEST")
    for what in ("_AIRPORT_ID", "", "_CITY_NAME", "_STATE_NM")
)


class _UnusualError(ValueError):
    """The batch must be read as CSV."""


class RouteLines:
    """Reads lines with `width` cells.

    places: for each field's name the number of its cell. separator: what stands between two cells,
    where the text above says comma.
    """

    def __init__(self, places: dict[str, int], width: int, separator: str = ",") -> None:
        self._separator = separator
        route = {name: place for name, place in places.items() if name in _ROUTE}
        self._first = min(route.values())
        self._after = width - 1 - max(route.values())
        self._route_names = list(route)
        self._route_places = [place - self._first for place in route.values()]
        self._route_width = width - self._first - self._after
        others = {name: place for name, place in places.items() if name not in _ROUTE}
        self._before = {n: place for n, place in others.items() if place < self._first}
        # Counted from the left end of the text that follows the route.
        start = width - self._after
        self._behind = {n: place - start for n, place in others.items() if place >= start}
        self._usual = len(self._before) + len(self._behind) == len(others)
        self._routes = Memo(self._route)
        self._cells = Memo(self._cell)

    def columns(self, lines: Sequence[str]) -> dict[str, Sequence[object]] | None:
        """For each field's name the cells of `lines`, or None if they must be read as CSV."""
        if not self._usual:
            return None
        between = self._separator
        try:
            *left, rest = _cut([line.split(between, self._first) for line in lines], self._first)
            route, *right = _cut([text.rsplit(between, self._after) for text in rest], self._after)
            found = {name: self._plain(left[place]) for name, place in self._before.items()}
            found |= {name: self._plain(right[place]) for name, place in self._behind.items()}
            ends = zip(*map(self._routes.__getitem__, route), strict=True)
            return found | dict(zip(self._route_names, ends, strict=True))
        except (_UnusualError, csv.Error):
            return None

    def _plain(self, column: Sequence[str]) -> Sequence[str]:
        together = "".join(column)
        if "\r" in together:
            raise _UnusualError
        if '"' in together:
            return list(map(self._cells.__getitem__, column))
        return column

    def _route(self, text: str) -> tuple[str, ...]:
        cells = self._parsed(text)
        if len(cells) != self._route_width or "\r" in text:
            raise _UnusualError
        return tuple(cells[place] for place in self._route_places)

    def _cell(self, text: str) -> str:
        cells = self._parsed(text)
        return cells[0] if cells else ""

    def _parsed(self, text: str) -> list[str]:
        return next(csv.reader([text], strict=True, delimiter=self._separator))


def _cut(pieces: list[list[str]], cuts: int) -> list[tuple[str, ...]]:
    """The columns of `pieces`, if every line had at least as many commas as `cuts`."""
    if set(map(len, pieces)) != {cuts + 1}:
        raise _UnusualError
    return list(zip(*pieces, strict=True))
