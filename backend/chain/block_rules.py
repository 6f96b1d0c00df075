"""Tries the rules of a block, which are numbered in the order in which they are tried.

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

from collections.abc import Callable, Iterator, Sequence
from itertools import compress

from backend.base.errors import InvalidFlight, RuleViolation, shown
from backend.base.words import counted
from backend.chain.block import FORMAT_VERSION, MAX_TRANSACTIONS, Block, Header, leading_zero_bits
from backend.chain.canonical import sha256_hex
from backend.chain.columns import BodyError, Column, Columns, decode_body, encode_body
from backend.chain.fields import FIELDS, Field, Value
from backend.chain.flight import EMPTY_WHEN_CANCELLED, calendar_disagreement, disagreement
from backend.chain.state import ChainState, transactions_root
from backend.chain.summary import cells_of, summary_root

KNOWN_VALUES = 10_000  # that were found valid are remembered for each field

# Without it the check of a block takes 1.36 times the processor time.
_known: dict[str, set[Value]] = {field.name: set() for field in FIELDS}

HeaderRule = tuple[str, Callable[[Block, ChainState], str | None]]


def _differs(what: str, value: object, expected: object) -> str | None:
    return None if value == expected else f"{what} is {value}, not {expected}"


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


def _time_went_back(timestamp: int, below: int) -> str | None:
    return (
        None
        if timestamp >= below
        else f"timestamp {timestamp} is before {below} of the block below"
    )


def _too_easy(block: Block) -> str | None:
    bits = leading_zero_bits(block.hash)
    wanted = block.header.difficulty_bits
    return None if bits >= wanted else f"hash {block.hash} starts with {bits} zero bits of {wanted}"


def _wrong_count(block: Block) -> str | None:
    count, most = block.header.transaction_count, MAX_TRANSACTIONS if block.header.height else 0
    if 0 <= count <= most:
        return None
    return f"{counted(count, 'transaction')}; at most {most:,} may be there"


def check_header(block: Block, below: ChainState) -> None:
    """Try the rules R1 to R9. Raises RuleViolation naming the block, the rule and the values."""
    for rule, problem in HEADER_RULES:
        if what := problem(block, below):
            raise RuleViolation(below.height + 1, rule, what)


def check(block: Block, below: ChainState) -> Columns:
    """Try all rules, and return the block's transactions if it keeps them.

    Raises RuleViolation naming the block and the first rule it breaks, and where that can be told
    the transaction and the field.
    """
    if (block.header_bytes, block.hash) != _written(block.header):
        problem = f"hash {block.hash} or the header's bytes are not those of the header"
        raise RuleViolation(below.height + 1, "R0", problem)
    check_header(block, below)
    height, header = below.height + 1, block.header
    if what := _differs("body_hash", header.body_hash, sha256_hex(block.body)):
        raise RuleViolation(height, "R10", what)
    try:
        columns = decode_body(block.body, header.transaction_count)
    except BodyError as error:
        raise RuleViolation(height, "R11", str(error)) from error
    for rule, problem in _body_problems(block, columns):
        raise RuleViolation(height, rule, problem)
    return columns


def _written(header: Header) -> tuple[bytes, str] | None:
    try:
        data = header.canonical()
    except ValueError:  # a number or a text that JSON cannot hold
        return None
    return data, sha256_hex(data)


def _body_problems(block: Block, columns: Columns) -> Iterator[tuple[str, str]]:
    """Return the rules from R11 on that a block breaks, whose body decodes to `columns`."""
    header = block.header
    if not _is_canonical(block.body, columns):
        yield "R11", "the body is not the canonical encoding of its rows"
    if what := _invalid_transaction(columns, header.first_transaction):
        yield "R12", what
    if what := _wrong_times(columns, header.first_transaction, header.timestamp):
        yield "R13", what
    root = transactions_root(columns, header.first_transaction).hex()
    if what := _differs("transactions_root", header.transactions_root, root):
        yield "R14", what
    if what := _differs("summary_root", header.summary_root, summary_root(cells_of(columns)).hex()):
        yield "R15", what


def _is_canonical(body: bytes, columns: Columns) -> bool:
    """Return whether `body`, from which `columns` were decoded, is the one encoding of its rows."""
    in_order = all(map(_is_in_order_of_appearance, columns.by_name.values()))
    return in_order and encode_body(columns) == body


def _is_in_order_of_appearance(column: Column) -> bool:
    """Return whether the dictionary has each value of the rows once, in order of appearance."""
    distinct = len(column.values)
    appeared = list(dict.fromkeys(column.codes))
    return appeared == list(range(distinct)) and len(set(column.values)) == distinct


def _invalid_transaction(columns: Columns, first: int) -> str | None:
    """Return the first transaction with an invalid field or a contradiction, in words."""
    for field in FIELDS:
        column = columns[field.name]
        if _known[field.name].issuperset(column.values):
            continue
        for code, value in enumerate(column.values):
            if (problem := _invalid_value(field, value)) is not None:
                return f"transaction {first + list(column.codes).index(code)}: {problem}"
        _remember(field, column.values)
    if not _has_contradictions(columns):
        return None
    clashes = ((row, disagreement(flight)) for row, flight in enumerate(columns.rows()))
    return next(f"transaction {first + row}: {clash}" for row, clash in clashes if clash)


def _remember(field: Field, values: Sequence[Value]) -> None:
    """Remember values that were found valid: the same few come again in every block."""
    known = _known[field.name]
    if len(known) + len(values) > KNOWN_VALUES:
        known.clear()
    known.update(values)


def _has_contradictions(columns: Columns) -> bool:
    """Return whether the fields of any transaction contradict each other, by whole columns."""
    days = set(columns.rows(("YEAR", "DAY_OF_WEEK", "FL_DATE")))
    if any(calendar_disagreement(*day) for day in days):
        return True
    cancelled = columns["CANCELLED"].expanded()
    emptied = [columns[name].expanded() for name in EMPTY_WHEN_CANCELLED]
    return any(value is not None for column in emptied for value in compress(column, cancelled))


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
