"""What of the chain a text in the search field may name."""

import pytest

from frontend.search.finding import named_in_chain

Meanings = list[tuple[str, str]]
TRANSACTION, BLOCK, HASH = "transaction", "block", "hash"

MEANINGS: dict[str, Meanings] = {
    "335": [(TRANSACTION, "335"), (BLOCK, "335")],
    "  335 ": [(TRANSACTION, "335"), (BLOCK, "335")],
    "123456": [(TRANSACTION, "123456"), (BLOCK, "123456")],
    "123,456": [(TRANSACTION, "123456"), (BLOCK, "123456")],
    "#335": [(TRANSACTION, "335"), (BLOCK, "335")],
    "transaction 335": [(TRANSACTION, "335")],
    "transaction id 335": [(TRANSACTION, "335")],
    "id 335": [(TRANSACTION, "335")],
    "Block #335": [(BLOCK, "335")],
    "block 1,335": [(BLOCK, "1335")],
    "height 335": [(BLOCK, "335")],
    "block height 335": [(BLOCK, "335")],
    "flight 335": [],
    "WN 335": [],
    "0A" * 32: [(HASH, "0a" * 32)],
    "0012ab34cd56…": [(HASH, "0012ab34cd56")],
    "hash 0012AB34CD5...": [(HASH, "0012ab34cd5")],
    "block 0012ab34": [(HASH, "0012ab34")],
    "0012ab3": [],
    "00123456": [(TRANSACTION, "00123456"), (BLOCK, "00123456"), (HASH, "00123456")],
    "2013-01-05": [],
    "1,23": [],
    "": [],
    "Chicago": [],
    "٣٣٥": [],
    "9" * 16: [(HASH, "9" * 16)],
    "a" * 5000: [],
}


@pytest.mark.parametrize(("text", "expected"), MEANINGS.items(), ids=lambda one: repr(one)[:40])
def test_a_text_means_this(text: str, expected: Meanings) -> None:
    assert named_in_chain(text) == expected
