"""The vector files, as the tests read them."""

import base64
import json
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from backend.chain.block import Block, block_of, header_from

Entry = dict[str, Any]

FOLDER = Path(__file__).parent / "vectors"


def load(name: str) -> Any:
    """What `vectors/NAME.json` holds."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def body_of(entry: Entry) -> bytes:
    """The body of an entry, inflated if need be."""
    if "body" in entry:
        return base64.b64decode(entry["body"], validate=True)
    return zlib.decompress(base64.b64decode(entry["body_zlib"], validate=True))


def header_bytes_of(entry: Entry) -> bytes:
    """The bytes of an entry of `bad_headers`."""
    return bytes.fromhex(entry["hex"]) if "hex" in entry else entry["text"].encode()


def hashes(texts: list[str]) -> list[bytes]:
    """Hashes from hexadecimal."""
    return [bytes.fromhex(text) for text in texts]


def chain_bytes() -> list[tuple[bytes, bytes]]:
    """Header and body of every block of `chain`."""
    return [(entry["header"].encode(), body_of(entry)) for entry in load("chain")["blocks"]]


def given_block(entry: Entry) -> Block:
    """The block of an entry of `bad_blocks`; for R0, with what is given beside its header."""
    block = block_from(entry["header"].encode(), body_of(entry))
    if entry["rule"] != "R0":
        return block
    return replace(block, header_bytes=entry["header_bytes"].encode(), hash=entry["hash"])


def block_from(header_bytes: bytes, body: bytes) -> Block:
    """A block as it comes from a disk or a wire."""
    return block_of(header_from(header_bytes), body)
