"""The rules of a block, numbered, in the order in which they are tried.

`check` needs nothing but the block and the state below it; `check_header` tries those that need
no body, in microseconds.

    R0  hash and header_bytes are those of the header (in `check` only)
    R1  version is known
    R2  height follows the block below
    R3  previous_hash is the hash of the block below
    R4  the time does not go back
    R5  difficulty_bits is that of the chain
    R6  the hash starts with difficulty_bits zero bits
    R7  first_transaction follows the block below, without a gap
    R8  at most 1000 transactions; none in genesis
    R9  history_root commits to the hashes of all blocks below
    R10 body_hash is the hash of the body
    R11 the body is the one encoding of its rows: dictionaries in order of first appearance, no
        value twice or unused
    R12 every field of every transaction is valid, and the fields agree
    R13 within the block acceptance times do not go back, and are not after the block's time
    R14 transactions_root is the Merkle root of the transactions
    R15 summary_root is the Merkle root of the cells
"""

from collections.abc import Callable, Iterator

from backend.chain.block import FORMAT_VERSION, MAX_TRANSACTIONS, Block, Header, leading_zero_bits
from backend.chain.canonical import sha256_hex
from backend.chain.columns import (
    COLUMN_NAMES,
    BodyError,
    Columns,
    columns_from,
    decode_body,
    encode_body,
)
from backend.chain.fields import FIELD_NAMES, FIELDS, POSITION, Field, Value
from backend.chain.flight import Flight, disagreement
from backend.chain.state import ChainState, transactions_root
from backend.chain.summary import cells_of, summary_root
from backend.errors import InvalidFlight, RuleViolation, shown

CANCELLED = POSITION["CANCELLED"]

HeaderRule = tuple[str, Callable[[Block, ChainState], str | None]]


def _differs(what: str, found: object, expected: object) -> str | None:
    return None if found == expected else f"{what} is {found}, not {expected}"


HEADER_RULES: tuple[HeaderRule, ...] = (
    ("R1", lambda b, s: _differs("version", b.header.version, FORMAT_VERSION)),
    ("R2", lambda b, s: _differs("height", b.header.height, s.height + 1)),
    ("R3", lambda b, s: _differs("previous_hash", b.header.previous_hash, s.tip_hash)),
    ("R4", lambda b, s: _time_went_back(b.header.timestamp, s.timestamp)),
    ("R5", lambda b, s: _differs("difficulty_bits", b.header.difficulty_bits, s.difficulty_bits)),
    ("R6", lambda b, s: _too_easy(b)),
    ("R7", lambda b, s: _differs("first_transaction", b.header.first_transaction, s.transactions)),
    ("R8", lambda b, s: _wrong_count(b)),
    ("R9", lambda b, s: _differs("history_root", b.header.history_root, s.history.root().hex())),
)


def _time_went_back(found: int, below: int) -> str | None:
    return None if found >= below else f"timestamp {found} is before {below} of the block below"


def _too_easy(block: Block) -> str | None:
    bits = leading_zero_bits(block.hash)
    wanted = block.header.difficulty_bits
    return None if bits >= wanted else f"hash {block.hash} starts with {bits} zero bits of {wanted}"


def _wrong_count(block: Block) -> str | None:
    count, most = block.header.transaction_count, MAX_TRANSACTIONS if block.header.height else 0
    return None if 0 <= count <= most else f"{count} transactions; at most {most} may be there"


def check_header(block: Block, below: ChainState) -> None:
    """R1 to R9. Raises RuleViolation naming the block, the rule and the values."""
    for rule, problem in HEADER_RULES:
        if what := problem(block, below):
            raise RuleViolation(below.height + 1, rule, what)


def check(block: Block, below: ChainState) -> Columns:
    """All rules; the block's transactions if it keeps them.

    Raises RuleViolation naming the block and the first rule it breaks, and where that can be told
    the transaction and the field.
    """
    if (block.header_bytes, block.hash) != _written(block.header):
        what = f"hash {block.hash} or the header's bytes are not those of the header"
        raise RuleViolation(below.height + 1, "R0", what)
    check_header(block, below)
    for rule, what in _body_problems(block):
        raise RuleViolation(below.height + 1, rule, what)
    return decode_body(block.body, block.header.transaction_count)


def _written(header: Header) -> tuple[bytes, str] | None:
    try:
        data = header.canonical()
    except ValueError:  # a number or a text that JSON cannot hold
        return None
    return data, sha256_hex(data)


def _body_problems(block: Block) -> Iterator[tuple[str, str]]:
    header = block.header
    if what := _differs("body_hash", header.body_hash, sha256_hex(block.body)):
        yield "R10", what
        return
    try:
        columns = decode_body(block.body, header.transaction_count)
    except BodyError as error:
        yield "R11", str(error)
        return
    if encode_body(columns_from([columns[name].expanded() for name in COLUMN_NAMES])) != block.body:
        yield "R11", "the body is not the canonical encoding of its rows"
        return
    if what := _invalid_transaction(columns, header.first_transaction):
        yield "R12", what
        return
    if what := _wrong_times(columns, header.first_transaction, header.timestamp):
        yield "R13", what
    root = transactions_root(columns, header.first_transaction).hex()
    if what := _differs("transactions_root", header.transactions_root, root):
        yield "R14", what
    if what := _differs("summary_root", header.summary_root, summary_root(cells_of(columns)).hex()):
        yield "R15", what


def _invalid_transaction(columns: Columns, first: int) -> str | None:
    """The first transaction with an invalid field or a contradiction, in words."""
    for field in FIELDS:
        column = columns[field.name]
        for code, value in enumerate(column.values):
            if (problem := _invalid_value(field, value)) is not None:
                return f"transaction {first + list(column.codes).index(code)}: {problem}"
    flights = zip(*(columns[name].expanded() for name in FIELD_NAMES), strict=True)
    agreed: set[Flight] = set()
    for row, flight in enumerate(flights):
        key = (*flight[:3], flight[CANCELLED])  # all that the rules ask of a flight that flew
        if key in agreed and not flight[CANCELLED]:
            continue
        if clash := disagreement(flight):
            return f"transaction {first + row}: {clash}"
        agreed.add(key)
    return None


def _invalid_value(field: Field, value: Value) -> str | None:
    try:
        stored = field.parse(value)
    except InvalidFlight as problem:
        return str(problem)
    same = stored == value and type(stored) is type(value)
    return None if same else f"{field.name} {shown(value)} is stored instead of {shown(stored)}"


def _wrong_times(columns: Columns, first: int, sealed: int) -> str | None:
    last = 0
    for row, time in enumerate(columns["timestamp"].expanded()):
        if not isinstance(time, int) or not last <= time <= sealed:
            return f"transaction {first + row}: timestamp {time} is not between {last} and {sealed}"
        last = time
    return None
