"""Where a chain stands, and the three things one can do there: build, check and apply.

`ChainState` is a value: `build` makes the next block from a time and transactions, `check` (in
`block_rules`) accepts or rejects a block, `applied` is the state after it. None of them knows a
file or a clock, so the local miner, an import and any other engine use the same three.
"""

from dataclasses import dataclass

from backend.base.words import counted
from backend.chain import merkle
from backend.chain.block import (
    FORMAT_VERSION,
    MAX_DIFFICULTY_BITS,
    MAX_TRANSACTIONS,
    NO_PREVIOUS,
    Block,
    Header,
    block_of,
    mined,
)
from backend.chain.canonical import sha256_hex
from backend.chain.columns import Columns, columns_of, encode_body, transaction_bytes
from backend.chain.merkle import Frontier
from backend.chain.summary import Cell, cells_of, summary_root


@dataclass(frozen=True, slots=True)
class Content:
    """The transactions of a block, their encoding, and their summary."""

    columns: Columns
    body: bytes
    cells: list[Cell]


def content_of(columns: Columns) -> Content:
    """Return the content that `columns` make."""
    return Content(columns, encode_body(columns), cells_of(columns))


@dataclass(frozen=True, slots=True)
class ForeseenRoot:
    """The Merkle root that a block's transactions have if the first one's id is `first`."""

    first: int
    root: bytes


@dataclass(frozen=True, slots=True)
class ChainState:
    """A chain up to its tip.

    height: the height of the tip, -1 if there is no block. tip_hash, timestamp: the tip's hash and
    time, UTC milliseconds. transactions: how many the chain holds, which is the next id.
    difficulty_bits: those of every block. history: the frontier of the Merkle tree over the hashes
    of all blocks.
    """

    height: int
    tip_hash: str
    timestamp: int
    transactions: int
    difficulty_bits: int
    history: Frontier

    def build(
        self, timestamp: int, content: Content, foreseen: ForeseenRoot | None = None
    ) -> Block:
        """Build and mine the next block.

        timestamp: UTC milliseconds; raised to the tip's and to the last transaction's if below.
        content: its transactions, at most 1000. foreseen: the root of `content`, made before the
        first id was known; unused if that is another.
        Raises ValueError for more transactions than the block may hold, or for acceptance times
        that go back or are negative.
        """
        columns = content.columns
        most = MAX_TRANSACTIONS if self.height >= 0 else 0
        if columns.count > most:
            raise ValueError(
                f"{counted(columns.count, 'transaction')}; this block may hold {most:,}"
            )
        accepted = [0, *(int(t or 0) for t in columns["timestamp"].values)]
        codes = list(columns["timestamp"].codes)
        if accepted != sorted(accepted) or codes != sorted(codes):
            raise ValueError("the acceptance times go back, or are before 1970")
        if foreseen is not None and foreseen.first == self.transactions:
            root = foreseen.root
        else:
            root = transactions_root(columns, self.transactions)
        header = Header(
            version=FORMAT_VERSION,
            height=self.height + 1,
            previous_hash=self.tip_hash,
            timestamp=max([timestamp, self.timestamp, *accepted]),
            first_transaction=self.transactions,
            transaction_count=columns.count,
            transactions_root=root.hex(),
            body_hash=sha256_hex(content.body),
            summary_root=summary_root(content.cells).hex(),
            history_root=self.history.root().hex(),
            difficulty_bits=self.difficulty_bits,
            nonce=0,
        )
        return block_of(mined(header), content.body)

    def applied(self, block: Block) -> "ChainState":
        """Return the state after `block`, which must have been built or checked here."""
        history = self.history.extended(bytes.fromhex(block.hash))
        return state_at(block.header, block.hash, history)


def state_at(header: Header, tip_hash: str, history: Frontier) -> ChainState:
    """Return the state of a chain whose tip has this header and hash."""
    transactions = header.first_transaction + header.transaction_count
    time, bits = header.timestamp, header.difficulty_bits
    return ChainState(header.height, tip_hash, time, transactions, bits, history)


def empty_state(difficulty_bits: int) -> ChainState:
    """Return the state before genesis.

    Raises ValueError for a difficulty that nobody could mine.
    """
    if not 0 <= difficulty_bits <= MAX_DIFFICULTY_BITS:
        raise ValueError(f"difficulty_bits must be between 0 and {MAX_DIFFICULTY_BITS}")
    return ChainState(-1, NO_PREVIOUS, 0, 0, difficulty_bits, Frontier())


def genesis(timestamp: int, difficulty_bits: int) -> Block:
    """Return block 0: no transactions, and the time that gives this ledger its identity."""
    return empty_state(difficulty_bits).build(timestamp, content_of(columns_of([], [])))


def transactions_root(columns: Columns, first_transaction: int) -> bytes:
    """Return the Merkle root of a block's transactions."""
    return merkle.root(merkle.leaf_hashes(transaction_bytes(columns, first_transaction)))
