"""Headers, hashes and the proof of work."""

import json
from collections.abc import Callable
from dataclasses import asdict, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chain.block import (
    NO_PREVIOUS,
    Header,
    HeaderError,
    decode_header,
    header_from,
    leading_zero_bits,
    mined,
)
from backend.chain.canonical import sha256_hex
from tests.chain import independent
from tests.chain.files import chain_bytes

HEADER_BYTES = [data for data, _ in chain_bytes()]
HEADER = header_from(HEADER_BYTES[2])

digests = st.binary(min_size=32, max_size=32).map(bytes.hex)
numbers = st.integers(-(2**53) + 1, 2**53 - 1)
headers = st.builds(
    Header,
    **{field.name: numbers if field.type is int else digests for field in fields(Header)},
)


@given(header=headers)
def test_a_header_is_read_back_from_its_canonical_bytes(header: Header) -> None:
    data = header.canonical()
    assert header_from(data) == header
    assert header.hash() == sha256_hex(data)


@given(st.sampled_from(HEADER_BYTES), st.integers(0, 700), st.integers(0, 3), st.binary(max_size=3))
def test_no_other_bytes_are_the_same_header(good: bytes, at: int, cut: int, put: bytes) -> None:
    at = min(at, len(good))
    spoiled = good[:at] + put + good[at + cut :]
    try:
        header = header_from(spoiled)
    except HeaderError:
        return
    assert header.canonical() == spoiled
    assert (header == header_from(good)) == (spoiled == good)


NO_HEADERS = [
    b'{"zone":' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"zone":' + b'{"":' * 5000 + b"0" + b"}" * 5000 + b"}",
    b"[" * 100_000,
    b'{"body_hash":"\xff"}',
    b'{"body_hash":"\xed\xa0\x80"}',
    b'{"\xff":1}',
]


@pytest.mark.parametrize("read", [decode_header, header_from])
@pytest.mark.parametrize("data", NO_HEADERS, ids=lambda data: ascii(data[:20]))
def test_what_a_reader_of_json_may_choke_on_is_a_header_error(
    read: Callable[[bytes], Header], data: bytes
) -> None:
    with pytest.raises(HeaderError, match=r"^not a header: "):
        read(data)


def test_a_header_may_be_read_whatever_its_form() -> None:
    loose = json.dumps({"zone": "UTC", **asdict(HEADER)}, indent=1).encode()
    assert decode_header(loose) == HEADER
    with pytest.raises(HeaderError, match=r"^not a header in canonical form$"):
        header_from(loose)


@pytest.mark.parametrize(
    ("start", "bits"),
    [
        ("f", 0),
        ("8", 0),
        ("7", 1),
        ("1", 3),
        ("0f", 4),
        ("01", 7),
        ("00f", 8),
        ("001", 11),
        (NO_PREVIOUS, 256),
    ],
)
def test_zero_bits_are_counted_from_the_left(start: str, bits: int) -> None:
    hash_hex = start.ljust(64, "a")
    assert leading_zero_bits(hash_hex) == independent.zero_bits(hash_hex) == bits


@pytest.mark.parametrize("bits", [0, 1, 5, 9])
def test_mining_finds_the_smallest_nonce(bits: int) -> None:
    header = mined(replace(HEADER, difficulty_bits=bits, nonce=12345))
    members = asdict(header)
    hashes = [
        independent.sha256_hex(independent.canonical({**members, "nonce": nonce}))
        for nonce in range(header.nonce + 1)
    ]
    good = [nonce for nonce, digest in enumerate(hashes) if independent.zero_bits(digest) >= bits]
    assert good == [header.nonce]
    assert header.hash() == hashes[-1]
    assert replace(header, nonce=HEADER.nonce, difficulty_bits=HEADER.difficulty_bits) == HEADER


def test_mining_is_not_misled_by_a_nonce_in_a_text() -> None:
    header = replace(HEADER, body_hash='"nonce":0', difficulty_bits=6)
    assert leading_zero_bits(mined(header).hash()) >= 6
