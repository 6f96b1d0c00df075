"""Tells what a text may name in the chain: an id, a height, or the beginning of a hash. Pure.

Whether it exists is asked elsewhere. `meanings` compares the text with a table of patterns; every
row that fits adds a meaning, so that "335" may be a transaction and a block. That it may be a
flight number, too, is what `sentences` says.
"""

import re
from typing import NamedTuple

TRANSACTION, BLOCK, HASH = "transaction", "block", "hash"


class Meaning(NamedTuple):
    """A transaction by its id, a block by its height, or a block by 8 to 64 digits of its hash."""

    kind: str
    digits: str


def meanings(text: str) -> list[Meaning]:
    """Everything of the chain that `text` may name, in the order of the table."""
    text = " ".join(text.split())
    matches = ((pattern.fullmatch(text), kind) for kind, pattern in _PATTERNS)
    return [Meaning(kind, match[1].replace(",", "").lower()) for match, kind in matches if match]


_NUMBER = r"#?(\d{1,3}(?:,\d{3}){1,4}|\d{1,15})"  # as pages show it, or plain
_PATTERNS = tuple(
    (kind, re.compile(pattern, re.ASCII | re.IGNORECASE))
    for kind, pattern in (
        (TRANSACTION, rf"(?:(?:transaction|tx) (?:id )?|id )?{_NUMBER}"),
        (BLOCK, rf"(?:block (?:height )?|height )?{_NUMBER}"),
        (HASH, r"(?:block |hash )?([0-9a-f]{8,64})(?:…|\.{2,3})?"),  # as pages shorten it
    )
)
