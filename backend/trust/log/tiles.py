"""Tiles: rows of 256 hashes, and bundles of 256 entries (C2SP tlog-tiles).

A tile is named by its level and its index, written in groups of three digits, of which all but the
last begin with `x`: tile 1234067 of level 0 is `0/x001/x234/067`. While it is not full its name
ends with its width, `.p/7`. Bundles of entries stand at the level `entries`.
"""

import re
from dataclasses import dataclass

from backend.trust.log.tree import TILE_WIDTH, HistoryTree

ENTRIES = -1  # the level of bundles
MAX_LEVEL = 63
_NAME = re.compile(
    r"(?P<level>entries|0|[1-9][0-9]?)/(?P<groups>(?:x[0-9]{3}/){0,6}[0-9]{3})"  # up to 2**64
    r"(?:\.p/(?P<width>[1-9][0-9]{0,2}))?"
)


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile, or at the level ENTRIES a bundle. width: how many hashes or entries it has."""

    level: int
    index: int
    width: int = TILE_WIDTH

    @property
    def name(self) -> str:
        digits = f"{self.index:03d}"
        digits = digits.rjust(-(-len(digits) // 3) * 3, "0")
        groups = [digits[at : at + 3] for at in range(0, len(digits), 3)]
        path = "/".join([*(f"x{group}" for group in groups[:-1]), groups[-1]])
        level = "entries" if self.level == ENTRIES else str(self.level)
        return f"{level}/{path}" + ("" if self.is_full else f".p/{self.width}")

    @property
    def is_full(self) -> bool:
        """Whether the tile will never have more entries."""
        return self.width == TILE_WIDTH


def parse(name: str) -> Tile | None:
    """Return the tile of this name; None if there is no such name."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    level = ENTRIES if match["level"] == "entries" else int(match["level"])
    index = int(match["groups"].replace("/", "").replace("x", ""))
    tile = Tile(level, index, int(match["width"] or TILE_WIDTH))
    return tile if tile.name == name and level <= MAX_LEVEL else None


def is_there(tile: Tile, size: int) -> bool:
    """Return whether a tree of `size` entries has a tile, be it partial, of this length."""
    last = tile.index * TILE_WIDTH + tile.width
    return last << 8 * max(0, tile.level) <= size


def content(tree: HistoryTree, tile: Tile) -> bytes:
    """Return the bytes of a tile that is there. Raises NotFound, Damage."""
    first = tile.index * TILE_WIDTH
    if tile.level == ENTRIES:
        return b"".join(
            len(entry).to_bytes(2, "big") + entry for entry in tree.entries(first, tile.width)
        )
    return b"".join(tree.hashes(tile.level, first, tile.width))
