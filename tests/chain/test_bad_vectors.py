"""What must be refused, from files: by the named rule, with the named error."""

import re
from dataclasses import replace

import pytest

from backend.base.errors import RuleViolation
from backend.chain import block_rules, merkle
from backend.chain.block import Header, HeaderError, block_of, decode_header, header_from
from backend.chain.block_rules import HEADER_RULES
from backend.chain.columns import BodyError, Columns, columns_of, decode_body
from backend.chain.merkle import ProofError
from backend.chain.state import ChainState, content_of, empty_state, genesis
from tests.cases import each_of
from tests.chain import inclusion
from tests.chain.files import (
    Entry,
    block_from,
    body_of,
    chain_bytes,
    given_block,
    hashes,
    header_bytes_of,
    load,
)
from tests.chain.independent import EXAMPLE

BLOCKS, BODIES, HEADERS = load("bad_blocks"), load("bad_bodies"), load("bad_headers")
INCLUSION, CONSISTENCY = load("bad_inclusion"), load("bad_consistency")
DIFFICULTY_BITS: int = load("chain")["difficulty_bits"]


def rule_number(entry: Entry) -> int:
    return int(entry["rule"][1:])


def state_of(height: int) -> ChainState:
    """The state after the first `height` blocks of the chain."""
    state = empty_state(DIFFICULTY_BITS)
    for header_bytes, body in chain_bytes()[:height]:
        state = state.applied(block_from(header_bytes, body))
    return state


def some_columns(count: int) -> Columns:
    *flight, time = EXAMPLE.values()
    assert isinstance(time, int)
    return columns_of([tuple(flight)] * count, [time] * count)


def test_every_rule_has_a_block_that_breaks_it() -> None:
    assert {entry["rule"] for entry in BLOCKS} == {f"R{n}" for n in range(16)}


def test_every_numbered_rule_of_the_documents_is_one_of_these() -> None:
    documented = re.findall(r"^    (R\d+) +", block_rules.__doc__ or "", re.MULTILINE)
    assert documented == [f"R{n}" for n in range(16)]
    assert [rule for rule, _ in HEADER_RULES] == documented[1:10]


@each_of("entry", BLOCKS)
def test_a_bad_block_breaks_its_rule_and_the_message_says_how(entry: Entry) -> None:
    block = given_block(entry)
    with pytest.raises(RuleViolation) as caught:
        block_rules.check(block, state_of(entry["blocks_below"]))
    assert caught.value.rule == entry["rule"]
    place = entry["blocks_below"]  # not the height that the block claims
    assert caught.value.height == place
    assert str(caught.value).startswith(f"block {place} breaks rule {entry['rule']}:")
    for fragment in entry["says"]:
        assert fragment in caught.value.what


@each_of("entry", [e for e in BLOCKS if 1 <= rule_number(e) <= 9])
def test_the_header_alone_shows_the_first_nine_rules(entry: Entry) -> None:
    block = block_of(header_from(entry["header"].encode()), b"not looked at")
    with pytest.raises(RuleViolation) as caught:
        block_rules.check_header(block, state_of(entry["blocks_below"]))
    assert caught.value.rule == entry["rule"]


@each_of("entry", HEADERS)
def test_a_malformed_header_is_a_header_error(entry: Entry) -> None:
    with pytest.raises(HeaderError, match=f"^{entry['says']}"):
        header_from(header_bytes_of(entry))


@each_of("entry", HEADERS)
def test_reading_a_header_loosely_fails_with_a_header_error_or_not_at_all(entry: Entry) -> None:
    try:
        header = decode_header(header_bytes_of(entry))
    except HeaderError as problem:
        assert str(problem).startswith("not a header")
    else:
        assert isinstance(header, Header)


@each_of("entry", [e for e in BODIES if not e["decodable"]])
def test_a_malformed_body_is_a_body_error(entry: Entry) -> None:
    with pytest.raises(BodyError, match=r"not a body of \d+ transactions: "):
        decode_body(body_of(entry), entry["count"])


@each_of("entry", BODIES)
def test_a_block_with_a_malformed_body_breaks_rule_11(entry: Entry) -> None:
    state = empty_state(0).applied(genesis(0, 0))
    content = replace(content_of(some_columns(entry["count"])), body=body_of(entry))
    block = state.build(2**53 - 1, content)
    with pytest.raises(RuleViolation, match="breaks rule R11: "):
        block_rules.check(block, state)


@each_of("entry", INCLUSION)
def test_a_bad_inclusion_proof_is_refused(entry: Entry) -> None:
    leaf, top = bytes.fromhex(entry["leaf"]), bytes.fromhex(entry["root"])
    proof = hashes(entry["proof"])
    with pytest.raises(ProofError):
        inclusion.verify_inclusion(leaf, entry["index"], entry["size"], proof, top)


@each_of("entry", CONSISTENCY)
def test_a_bad_consistency_proof_is_refused(entry: Entry) -> None:
    old_root, new_root = bytes.fromhex(entry["old_root"]), bytes.fromhex(entry["new_root"])
    proof = hashes(entry["proof"])
    with pytest.raises(ProofError):
        merkle.verify_consistency(entry["old"], entry["new"], old_root, new_root, proof)
