"""The frozen format: what the vector files hold is what `backend.chain` makes and accepts.

Never regenerate a file to make a test here pass: a chain on somebody's disk would not follow.
"""

from backend.chain import block_rules, merkle
from backend.chain.block import header_from
from backend.chain.canonical import canonical, sha256_hex
from backend.chain.columns import (
    COLUMN_NAMES,
    Columns,
    columns_of,
    decode_body,
    encode_body,
    transaction_bytes,
)
from backend.chain.fields import FIELD_NAMES, Value
from backend.chain.flight import flight_of
from backend.chain.merkle import frontier_of
from backend.chain.state import content_of, empty_state, transactions_root
from backend.chain.summary import cells_of, summary_root
from tests.cases import each_of
from tests.chain import inclusion, independent
from tests.chain.files import Entry, block_from, body_of, chain_bytes, hashes, load
from tests.chain.inclusion import consistency_proof

MERKLE = load("merkle")
LEAVES = hashes(MERKLE["leaf_hashes"])
ROOTS = hashes(MERKLE["roots"])


def columns_in(entry: Entry) -> Columns:
    runs = entry["columns, as runs of [value, rows]"]
    by_name = {n: [value for value, count in runs[n] for _ in range(count)] for n in runs}
    rows = list(zip(*(by_name[name] for name in FIELD_NAMES), strict=True))
    return columns_of(rows, by_name["timestamp"])


@each_of("entry", load("canonical"))
def test_canonical_bytes_are_those_of_the_file(entry: Entry) -> None:
    assert canonical(entry["value"]) == entry["canonical"].encode()
    assert independent.canonical(entry["value"]) == entry["canonical"].encode()


@each_of("entry", load("transactions"))
def test_transactions_have_the_canonical_bytes_and_leaf_hash_of_the_file(entry: Entry) -> None:
    transaction: dict[str, Value] = entry["transaction"]
    number, time = transaction["TRANSACTION_ID"], transaction["timestamp"]
    assert isinstance(number, int)
    assert isinstance(time, int)
    flight = flight_of({name: transaction[name] for name in FIELD_NAMES})
    (data,) = transaction_bytes(columns_of([flight], [time]), number)
    assert data == entry["canonical"].encode() == canonical(transaction)
    assert merkle.leaf_hash(data).hex() == entry["leaf_hash"]


def test_leaf_hashes_are_those_of_certificate_transparency() -> None:
    leaves = hashes(MERKLE["leaves"])
    assert len(leaves) == 8
    assert [merkle.leaf_hash(leaf) for leaf in leaves] == LEAVES
    assert [independent.leaf_hash(leaf) for leaf in leaves] == LEAVES


@each_of("size", range(9))
def test_roots_are_those_of_certificate_transparency(size: int) -> None:
    leaves = hashes(MERKLE["leaves"])[:size]
    assert merkle.root(LEAVES[:size]) == ROOTS[size]
    assert frontier_of(leaves).root() == ROOTS[size]
    assert independent.tree_hash(leaves) == ROOTS[size]


@each_of("entry", MERKLE["inclusion"])
def test_inclusion_proofs_are_those_of_the_file(entry: Entry) -> None:
    index, size, proof = entry["index"], entry["size"], hashes(entry["proof"])
    assert merkle.inclusion_proof(LEAVES[:size], index) == proof
    inclusion.verify_inclusion(LEAVES[index], index, size, proof, ROOTS[size])


@each_of("entry", MERKLE["consistency"])
def test_consistency_proofs_are_those_of_the_file(entry: Entry) -> None:
    old, new, proof = entry["old"], entry["new"], hashes(entry["proof"])
    assert consistency_proof(LEAVES[:new], old) == proof
    merkle.verify_consistency(old, new, ROOTS[old], ROOTS[new], proof)


@each_of("entry", load("bodies"))
def test_bodies_are_those_of_the_file(entry: Entry) -> None:
    columns, body = columns_in(entry), body_of(entry)
    assert columns.count == entry["count"]
    assert encode_body(columns) == body
    assert sha256_hex(body) == entry["body_hash"]


@each_of("entry", load("bodies"))
def test_bodies_decode_to_the_columns_of_the_file(entry: Entry) -> None:
    columns, expected = decode_body(body_of(entry), entry["count"]), columns_in(entry)
    for name in COLUMN_NAMES:
        assert columns[name].expanded() == expected[name].expanded()


@each_of("entry", load("bodies"))
def test_bodies_have_the_roots_and_cells_of_the_file(entry: Entry) -> None:
    columns = decode_body(body_of(entry), entry["count"])
    cells = cells_of(columns)
    root = transactions_root(columns, entry["first_transaction"])
    assert root.hex() == entry["transactions_root"]
    assert [cell.canonical().decode() for cell in cells] == entry["cells"]
    assert summary_root(cells).hex() == entry["summary_root"]


def test_the_chain_of_the_file_is_accepted_block_by_block() -> None:
    chain = load("chain")
    state = empty_state(chain["difficulty_bits"])
    for entry in chain["blocks"]:
        block = block_from(entry["header"].encode(), body_of(entry))
        assert block.hash == entry["hash"]
        assert block_rules.check(block, state).count == block.header.transaction_count
        state = state.applied(block)
    assert (state.height, state.transactions) == (4, 307)
    assert state.history == frontier_of(bytes.fromhex(e["hash"]) for e in chain["blocks"])


def test_the_chain_of_the_file_is_what_build_makes_of_its_transactions() -> None:
    chain = load("chain")
    state = empty_state(chain["difficulty_bits"])
    for header_bytes, body in chain_bytes():
        header = header_from(header_bytes)
        columns = decode_body(body, header.transaction_count)
        built = state.build(header.timestamp, content_of(columns))
        assert (built.header_bytes, built.body) == (header_bytes, body)
        state = state.applied(built)
