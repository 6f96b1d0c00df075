"""Defines headers and blocks, how they are hashed, and how a header is mined.

A header is canonical JSON; a block's hash is the SHA-256 of its header and must start with
`difficulty_bits` zero bits. The proof of work covers the header alone. It is the study's ritual:
what protects the ledger is the chain of hashes and whoever kept an older one.
"""

import re
from dataclasses import asdict, dataclass, replace
from hashlib import sha256

import msgspec

from backend.chain.canonical import canonical, sha256_hex

FORMAT_VERSION = 1
MAX_TRANSACTIONS = 1000
NO_PREVIOUS = "0" * 64
HASHES = ("previous_hash", "transactions_root", "body_hash", "summary_root", "history_root")
MAX_DIFFICULTY_BITS = 64


_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)


class HeaderError(ValueError):
    """The bytes are not a header."""


@dataclass(frozen=True, slots=True)
class Header:
    """A block's header. Hashes are 64 hexadecimal digits, lower case.

    version: the number of this format. height: 0 for genesis. previous_hash: the hash of the block
    below (zeros in genesis). timestamp: when the block was sealed, UTC milliseconds.
    first_transaction: the id of the first transaction. transaction_count: how many there are, 0 to
    1000. transactions_root, summary_root, history_root: the Merkle roots of the transactions (a
    leaf is the canonical bytes of one), of the (carrier, day) cells (likewise) and of the hashes of
    all blocks below (a leaf is the 32 bytes of one, genesis first). body_hash: SHA-256 of the
    uncompressed body. difficulty_bits: with how many zero bits the hash must start. nonce: the
    number with which it does.
    """

    version: int
    height: int
    previous_hash: str
    timestamp: int
    first_transaction: int
    transaction_count: int
    transactions_root: str
    body_hash: str
    summary_root: str
    history_root: str
    difficulty_bits: int
    nonce: int

    def canonical(self) -> bytes:
        """Return the bytes that are hashed."""
        return canonical(asdict(self))

    def hash(self) -> str:
        return sha256_hex(self.canonical())


_decode = msgspec.json.Decoder(Header, strict=True).decode


def decode_header(data: bytes) -> Header:
    """Return the header in `data`, whatever its form. Raises HeaderError if there is none."""
    try:
        return _decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise HeaderError(f"not a header: {error}") from error


def header_from(data: bytes) -> Header:
    """Return the header in `data`.

    Raises HeaderError unless `data` is exactly its canonical bytes.
    """
    header = decode_header(data)
    try:
        written = header.canonical()
    except ValueError as error:
        raise HeaderError(f"not a header: {error}") from error
    if written != data:
        raise HeaderError("not a header in canonical form")
    for name in HASHES:
        if not _HASH.fullmatch(getattr(header, name)):
            raise HeaderError(f"{name} is not 64 hexadecimal digits in lower case")
    return header


@dataclass(frozen=True, slots=True)
class Block:
    """A header, its canonical bytes, its hash, and the body it commits to (uncompressed)."""

    header: Header
    header_bytes: bytes
    hash: str
    body: bytes


def block_of(header: Header, body: bytes) -> Block:
    """Return the block of `header` and `body`."""
    data = header.canonical()
    return Block(header, data, sha256_hex(data), body)


def leading_zero_bits(hash_hex: str) -> int:
    """Return how many zero bits a hash starts with."""
    return 4 * len(hash_hex) - int(hash_hex, 16).bit_length()


def mined(header: Header) -> Header:
    """Return `header` with the smallest nonce whose hash starts with `difficulty_bits` zero bits.

    Takes 2^difficulty_bits attempts on average: 256 by default, a fraction of a millisecond.
    """
    before, after = replace(header, nonce=0).canonical().split(b'"nonce":0', 1)
    prefix = sha256(before + b'"nonce":')
    limit = 1 << (256 - header.difficulty_bits)
    nonce = 0
    while True:
        attempt = prefix.copy()
        attempt.update(b"%d%b" % (nonce, after))
        if int.from_bytes(attempt.digest(), "big") < limit:
            return replace(header, nonce=nonce)
        nonce += 1
