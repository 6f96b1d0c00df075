"""What of the chain a text in the search field may name."""

import pytest

from frontend.search.meanings import Block, BlockHash, Meaning, Transaction, meanings

MEANINGS: dict[str, list[Meaning]] = {
    "335": [Transaction(335), Block(335)],
    "  335 ": [Transaction(335), Block(335)],
    "123456": [Transaction(123456), Block(123456)],
    "123,456": [Transaction(123456), Block(123456)],
    "#335": [Transaction(335), Block(335)],
    "transaction 335": [Transaction(335)],
    "transaction id 335": [Transaction(335)],
    "id 335": [Transaction(335)],
    "Block #335": [Block(335)],
    "block 1,335": [Block(1335)],
    "height 335": [Block(335)],
    "block height 335": [Block(335)],
    "flight 335": [],
    "WN 335": [],
    "0A" * 32: [BlockHash("0a" * 32)],
    "0012ab34cd56…": [BlockHash("0012ab34cd56")],
    "hash 0012AB34CD5...": [BlockHash("0012ab34cd5")],
    "block 0012ab34": [BlockHash("0012ab34")],
    "0012ab3": [],
    "00123456": [Transaction(123456), Block(123456), BlockHash("00123456")],
    "2013-01-05": [],
    "1,23": [],
    "": [],
    "Chicago": [],
    "٣٣٥": [],
    "9" * 16: [BlockHash("9" * 16)],
    "a" * 5000: [],
}


@pytest.mark.parametrize(("text", "expected"), MEANINGS.items(), ids=lambda one: repr(one)[:40])
def test_a_text_means_this(text: str, expected: list[Meaning]) -> None:
    assert meanings(text) == expected
