"""Build, check, apply: what is built is accepted, and nothing else that looks like it."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.base.errors import RuleViolation
from backend.chain import block_rules
from backend.chain.block import MAX_TRANSACTIONS, Block
from backend.chain.columns import columns_of, decode_body
from backend.chain.fields import FIELD_NAMES, FIELDS
from backend.chain.flight import Flight, flight_of
from backend.chain.merkle import frontier_of
from backend.chain.state import ChainState, Content, content_of, empty_state, genesis
from tests.chain.files import chain_bytes
from tests.chain.strategies import LAST_TIME, batches
from tests.effort import tries

Batch = tuple[list[Flight], list[int]]
EXAMPLE: Flight = tuple(field.example for field in FIELDS)
CHAIN = chain_bytes()


def started(bits: int = 0) -> ChainState:
    return empty_state(bits).applied(genesis(1000, bits))


def content(flights: list[Flight], accepted: list[int]) -> Content:
    return content_of(columns_of(flights, accepted))


def examples(count: int, timestamp: int = 2000) -> Content:
    return content([EXAMPLE] * count, [timestamp] * count)


@given(steps=st.lists(st.tuples(st.integers(0, LAST_TIME), batches()), max_size=3))
@settings(max_examples=tries(15, exploring=300))
def test_what_is_built_is_accepted(steps: list[tuple[int, Batch]]) -> None:
    first = genesis(1000, 3)
    state = empty_state(3).applied(first)
    for timestamp, (flights, accepted) in steps:
        built = state.build(timestamp, content(flights, accepted))
        assert block_rules.check(built, state).count == len(flights)
        state = state.applied(built)


def test_applied_is_the_state_after_the_block() -> None:
    state = started(4)
    built = state.build(3000, examples(3))
    after = state.applied(built)
    assert after == ChainState(
        height=1,
        tip_hash=built.hash,
        timestamp=3000,
        transactions=3,
        difficulty_bits=4,
        history=frontier_of([bytes.fromhex(state.tip_hash), bytes.fromhex(built.hash)]),
    )
    assert after.build(3000, examples(2)).header.first_transaction == 3


TIMES = [(0, 0, 1000), (1000, 999, 1000), (2000, 1000, 2000), (1500, 1700, 1700)]


@pytest.mark.parametrize(("clock", "accepted", "expected"), TIMES)
def test_the_time_of_a_block_never_goes_back(clock: int, accepted: int, expected: int) -> None:
    state = started()
    built = state.build(clock, examples(1, accepted))
    assert built.header.timestamp == expected
    block_rules.check(built, state)


def test_a_full_block_is_accepted_and_one_more_transaction_is_refused() -> None:
    state = started()
    assert block_rules.check(state.build(2000, examples(MAX_TRANSACTIONS)), state).count == 1000
    with pytest.raises(ValueError, match="1,001 transactions; this block may hold 1,000"):
        state.build(2000, examples(MAX_TRANSACTIONS + 1))


def test_no_genesis_with_transactions_is_built() -> None:
    with pytest.raises(ValueError, match="1 transaction; this block may hold 0"):
        empty_state(0).build(2000, examples(1))


BACK = [
    [1001, 1000],
    [1000, 1002, 1001],
    [0, 2**53 - 1, 1],
    [1000, 1001, 1000],
    [-1, 1000],
]


@pytest.mark.parametrize("accepted", BACK)
def test_acceptance_times_that_go_back_are_not_built(accepted: list[int]) -> None:
    with pytest.raises(ValueError, match="the acceptance times go back"):
        started().build(5000, content([EXAMPLE] * len(accepted), accepted))


@pytest.mark.parametrize("bits", [-1, 65, 256])
def test_a_difficulty_that_nobody_could_mine_is_refused(bits: int) -> None:
    with pytest.raises(ValueError, match="difficulty_bits must be between 0 and 64"):
        empty_state(bits)


def test_genesis_is_empty_and_has_the_time_it_was_given() -> None:
    first = genesis(1234, 2)
    assert (first.header.height, first.header.timestamp) == (0, 1234)
    assert block_rules.check(first, empty_state(2)).count == 0
    assert genesis(1235, 2).hash != first.hash
    assert genesis(0, 2).header.timestamp == 0


@given(batch=batches())
def test_a_content_may_come_from_the_body_of_another_block(batch: Batch) -> None:
    state, original = started(), content(*batch)
    built = state.build(2000, original)
    again = Content(decode_body(built.body, original.columns.count), built.body, original.cells)
    assert state.build(2000, again) == built


UNWRITABLE: list[dict[str, Any]] = [{"nonce": 2**53}, {"body_hash": "\ud800"}]


@pytest.mark.parametrize("member", UNWRITABLE, ids=ascii)
def test_a_header_that_no_bytes_can_hold_is_not_that_of_a_block(member: dict[str, Any]) -> None:
    good = started().build(2000, examples(1))
    with pytest.raises(RuleViolation, match="block 1 breaks rule R0: "):
        block_rules.check(replace(good, header=replace(good.header, **member)), started())


def test_the_header_alone_is_not_held_against_its_bytes() -> None:
    good = started().build(2000, examples(1))
    block_rules.check_header(replace(good, header_bytes=b""), started())
    assert verdict_of(replace(good, header_bytes=b""), started()) == "R0"


@given(batch=batches(), grown=st.sampled_from(["\u0958" * 50, "e\u0301" * 100, "\xa0x\u3000y "]))
def test_a_flight_that_is_accepted_can_be_mined_into_a_block_that_is_accepted(
    batch: Batch, grown: str
) -> None:
    some, accepted = batch
    record = {**dict(zip(FIELD_NAMES, EXAMPLE, strict=True)), "DEST_CITY_NAME": grown}
    built = started().build(2000, content([*some, flight_of(record)], [*accepted, LAST_TIME]))
    assert verdict_of(built, started()) == "accepted"


def verdict_of(block: Block, state: ChainState) -> str:
    try:
        block_rules.check(block, state)
    except RuleViolation as problem:
        return problem.rule
    return "accepted"


@given(data=st.data())
def test_a_spoiled_block_is_a_violation_and_never_fails_otherwise(data: st.DataObject) -> None:
    body = CHAIN[2][1]
    at, put = data.draw(st.integers(0, len(body))), data.draw(st.binary(max_size=2))
    wrong = body[:at] + put + body[at + data.draw(st.integers(0, 2)) :]
    state = started()
    original = content_of(decode_body(body, 6))
    forged = state.build(LAST_TIME, replace(original, body=wrong))
    verdict = verdict_of(forged, state)
    assert verdict in ({"accepted"} if wrong == body else {"R11", "R12", "R13", "R14"})
