"""Recomputes what a block claims: its hash, its zero bits, its links, its Merkle root.

Pure, written from the documents of the format alone, for the JSON that the backend sends. It is a
second opinion: it shares nothing with the code that made the blocks, not even what writes JSON.

- Canonical bytes: JSON as in RFC 8785. For integers, ASCII names, strings and null that is sorted
  names, no spaces, UTF-8.
- Block hash: SHA-256 of the canonical header.
- Merkle root: RFC 6962 section 2.1, over the canonical bytes of each transaction.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec

from frontend.block_rows import is_damaged
from frontend.fields import HEADER_NAMES, TRANSACTION_NAMES
from frontend.words import counted

NO_PREVIOUS = "0" * 64
HASH_BITS = 256

_json = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True)
class Check:
    """A claim of a block that was checked.

    what: the claim. holds: None if there was nothing to compare. result: in words. claimed,
    computed: the two values, if they differ.
    """

    what: str
    holds: bool | None
    result: str
    claimed: str = ""
    computed: str = ""


def canonical(record: Mapping[str, Any], names: Collection[str]) -> bytes:
    """The canonical bytes of the named members of `record`; one that is missing counts as null."""
    if record.keys() != set(names):  # not for transactions, of which a block has a thousand
        record = {name: record.get(name) for name in names}
    try:
        return _json(record)
    except UnicodeEncodeError:  # half a character: no block has one, but an answer may
        return json.dumps(record, sort_keys=True).encode()


def block_hash(header: Mapping[str, Any]) -> str:
    """The hash that a block with this header has."""
    return sha256(canonical(header, HEADER_NAMES)).hexdigest()


def leading_zero_bits(hash_hex: str) -> int:
    """How many zero bits a SHA-256 begins with."""
    return HASH_BITS - int(hash_hex, 16).bit_length()


def leaf_hash(content: bytes) -> bytes:
    """The hash of a leaf with these bytes. A transaction's is the content hash of its receipt."""
    return sha256(b"\x00" + content).digest()


def merkle_root(transactions: Sequence[Mapping[str, Any]]) -> str:
    """The root of the tree over `transactions`; without any, SHA-256 of nothing."""
    level = [leaf_hash(canonical(each, TRANSACTION_NAMES)) for each in transactions]
    if not level:
        return sha256(b"").hexdigest()
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        odd_end = level[len(level) & ~1 :]  # moves up unchanged
        level = [sha256(b"\x01" + left + right).digest() for left, right in pairs] + odd_end
    return level[0].hex()


def header_checks(
    block: Mapping[str, Any], below: Mapping[str, Any] | None, above: Mapping[str, Any] | None
) -> list[Check]:
    """Checks of the header of `block`, with its neighbours' headers (None: there is none).

    A neighbour's hash is computed from its header, too, and not taken from its own claim. There is
    nothing to compare with a neighbour that is damaged.
    """
    computed = block_hash(block)
    return [
        _same("Its hash is the SHA-256 of its header", str(block["hash"]), computed),
        _zero_bits(computed, block["difficulty_bits"]),
        _link_down(block, below),
        _link_up(computed, above),
    ]


def transaction_checks(block: Mapping[str, Any]) -> list[Check]:
    """Checks of all `transactions` of a whole `block`."""
    transactions, count = block["transactions"], block["transaction_count"]
    first = block["first_transaction"]
    ids = [each.get("TRANSACTION_ID") for each in transactions]
    is_run = ids == list(range(first, first + count))
    return [
        Check("Its transactions have the ids that its header states", True, _run(first, count))
        if is_run
        else Check(
            "Its transactions have the ids that its header states",
            False,
            "It holds other transactions.",
            _run(first, count),
            counted(len(ids), "transaction") + (f", ids {ids[0]} to {ids[-1]}" if ids else ""),
        ),
        _same(
            "Its Merkle root is the one computed from its transactions",
            str(block["transactions_root"]),
            merkle_root(transactions),
        ),
    ]


def _run(first: int, count: int) -> str:
    if not count:
        return "It holds none, as the header says."
    return f"{counted(count, 'transaction')}, ids {first} to {first + count - 1}, none missing."


def _same(what: str, claimed: str, computed: str, said: str = "Recomputed; it matches.") -> Check:
    """A check that two values are the same. said: the result in words if they are."""
    if claimed == computed:
        return Check(what, True, said)
    return Check(what, False, "It does not match.", claimed, computed)


def _zero_bits(computed: str, wanted: int) -> Check:
    what = "Its hash begins with as many zero bits as its header requires"
    found = leading_zero_bits(computed)
    if found >= wanted:
        return Check(what, True, f"It begins with {found} zero bits; the header requires {wanted}.")
    return Check(what, False, "It has fewer.", f"{wanted} zero bits", f"{found} zero bits")


def _link_down(block: Mapping[str, Any], below: Mapping[str, Any] | None) -> Check:
    if block["height"] == 0:
        what = "It is the first block, so its previous hash is all zeros"
        return _same(what, str(block["previous_hash"]), NO_PREVIOUS, "It is.")
    what = f"It contains the hash of block {block['height'] - 1}"
    if below is None:
        return Check(what, None, "That block could not be read.")
    if is_damaged(below):
        return Check(what, None, "That block is damaged, so its hash cannot be compared.")
    return _same(what, str(block["previous_hash"]), block_hash(below))


def _link_up(computed: str, above: Mapping[str, Any] | None) -> Check:
    if above is None:
        return Check("The next block contains its hash", None, "This is the newest block.")
    if is_damaged(above):
        what = f"Block {above['height']} contains its hash"
        return Check(what, None, "That block is damaged, so its hash cannot be compared.")
    return _same(
        f"Block {above['height']} contains its hash", str(above["previous_hash"]), computed
    )
