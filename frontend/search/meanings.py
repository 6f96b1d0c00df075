"""Tells what a text may name in the chain: an id, a height, or the beginning of a hash. Pure.

Whether it exists is asked elsewhere. `meanings` compares the text with a table of patterns; every
row that fits adds a meaning, so that "335" may be a transaction and a block. That it may be a
flight number, too, is what `sentences` says.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction by its id."""

    id: int


@dataclass(frozen=True, slots=True)
class Block:
    """A block by its height."""

    height: int


@dataclass(frozen=True, slots=True)
class BlockHash:
    """A block by its hash or the beginning of it: 8 to 64 hex digits in small letters."""

    digits: str


Meaning = Transaction | Block | BlockHash


def meanings(text: str) -> list[Meaning]:
    """Everything of the chain that `text` may name, in the order of the table."""
    text = " ".join(text.split())
    found = ((pattern.fullmatch(text), meaning) for pattern, meaning in _PATTERNS)
    return [meaning(match[1]) for match, meaning in found if match]


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.ASCII | re.IGNORECASE)


_NUMBER = r"#?(\d{1,3}(?:,\d{3}){1,4}|\d{1,15})"  # as pages show it, or plain


def _number(text: str) -> int:
    return int(text.replace(",", ""))


_PATTERNS: tuple[tuple[re.Pattern[str], Callable[[str], Meaning]], ...] = (
    (
        _pattern(rf"(?:(?:transaction|tx) (?:id )?|id )?{_NUMBER}"),
        lambda text: Transaction(_number(text)),
    ),
    (
        _pattern(rf"(?:block (?:height )?|height )?{_NUMBER}"),
        lambda text: Block(_number(text)),
    ),
    (
        _pattern(r"(?:block |hash )?([0-9a-f]{8,64})(?:…|\.{2,3})?"),  # as pages shorten it
        lambda text: BlockHash(text.lower()),
    ),
)
