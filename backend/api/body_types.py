"""Types of answers about blocks, transactions, added flights, proofs and the service itself.

`questions.answer_types` has those of questions, and says how types and OpenAPI belong together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields as fields_of
from typing import Annotated, Any, Literal, get_args

from msgspec import UNSET, Meta, UnsetType, defstruct

from backend.chain.block import Header as ChainHeader
from backend.chain.fields import Value
from backend.ledger.file_imports import FileImport
from backend.ledger.ledger import DamagedBlock, Tip
from backend.ledger.month_fetch import MonthFetch
from backend.questions.answer_types import (
    Answer,
    AverageDelays,
    Count,
    Coverage,
    Departures,
    FlightCount,
    Hash,
    Legs,
    Milliseconds,
    Suggestion,
    Suggestions,
    TransactionRow,
    ref,
)
from backend.trust.proofs import Witnesses

Base64Hash = Annotated[str, Meta(pattern="^[A-Za-z0-9+/]{43}=$", description="SHA-256")]
State = Literal["pending", "mined"]
IdWhenMined = Annotated[
    Count | None, Meta(description="null in a cluster until the flight is mined")
]

# --- blocks and transactions ---------------------------------------------------------------------


class Place(Answer):
    """The block that holds a transaction."""

    height: Count
    hash: Hash


class TransactionState(Answer):
    """A transaction, and its block once it is mined."""

    state: State
    transaction: TransactionRow
    block: Place | None


class AcceptedState(Answer):
    """The flight of a receipt of a cluster."""

    state: State
    transaction: Annotated[Mapping[str, Value], Meta(extra_json_schema=ref("AcceptedTransaction"))]
    block: Place | None


class Transactions(Answer):
    """Transactions in the order of their ids."""

    transactions: Sequence[TransactionRow]


_HEADER = [(field.name, Hash if field.type is str else Count) for field in fields_of(ChainHeader)]
Header = defstruct("Header", [*_HEADER, ("hash", Hash)], bases=(Answer,), kw_only=True)
Block = defstruct(
    "Block", [("transactions", Sequence[TransactionRow])], bases=(Header,), kw_only=True
)


class BlockFound(Answer):
    """A block."""

    block: Block  # type: ignore[valid-type]


class Headers(Answer):
    """Headers of blocks, newest first."""

    blocks: list[Header]  # type: ignore[valid-type]
    next: Annotated[str | None, Meta(description="the address of the next page")]
    damaged: list[DamagedBlock] | UnsetType = UNSET


# --- adding flights ------------------------------------------------------------------------------


class Error(Answer, kw_only=True):
    """What is wrong with a flight."""

    table: Annotated[str, Meta(description="of an archive")] | UnsetType = UNSET
    row: Annotated[Count, Meta(description="its line")] | UnsetType = UNSET
    field: str
    value: Any
    detail: str


Durable = Annotated[bool, Meta(description="false: a power cut may still lose it")]
ReceiptAddress = Annotated[
    str,
    Meta(
        description="only in a cluster, where a flight gets its id when it is mined: the address "
        "that shows the flight before and after that"
    ),
]


ConflictsWith = Annotated[
    Count | None, Meta(description="an older record of the flight, which contradicts this one")
]


class Receipt(Answer, kw_only=True):
    """What was accepted."""

    TRANSACTION_ID: IdWhenMined
    state: State
    timestamp: Milliseconds
    durable: Durable
    receipt: ReceiptAddress | UnsetType = UNSET
    content_hash: Annotated[
        Hash | None,
        Meta(description="leaf hash of the transaction (RFC 6962); null as long as it has no id"),
    ]
    duplicate_of: Annotated[
        Count | None, Meta(description="an older record of the flight, which says the same")
    ]
    conflicts_with: ConflictsWith


class Duplicate(Answer):
    """A flight that was accepted, and an older record of it, which says the same."""

    TRANSACTION_ID: IdWhenMined
    duplicate_of: Count


_Flight = Annotated[Mapping[str, Value], Meta(extra_json_schema=ref("StoredFlight"))]


class Conflicting(Answer):
    """A flight of a batch that contradicts a record of the same flight."""

    TRANSACTION_ID: Annotated[
        Count | None, Meta(description="of the record; null for one of a row before")
    ]
    BLOCK_HEIGHT: Annotated[Count | None, Meta(description="null while the record is pending")]
    fields: Annotated[list[str], Meta(description="the fields in which both differ")]
    flight: _Flight
    stored: _Flight


class Understood(Answer, kw_only=True):
    """What the body of a batch was taken for."""

    kind: str
    source: Annotated[str, Meta(description="where people get such files")]
    columns: Annotated[dict[str, str], Meta(description="title of the column of each field")]
    derived: Annotated[dict[str, str], Meta(description="fields by what they are derived from")]
    left_empty: Annotated[list[str], Meta(description="fields that the body lacks")]
    not_used: Annotated[
        list[str],
        Meta(
            description="titles of its other columns; those that resemble a lacking field come "
            "first"
        ),
    ]
    dates: Annotated[
        str | None, Meta(description="how days are written; null if that makes no difference")
    ]
    dates_written: Annotated[
        str | None, Meta(description="the same in words, such as `day, month, year`")
    ]
    emptied: Annotated[
        dict[str, Count],
        Meta(description="how many cells of each field were emptied, as they cannot be right"),
    ]
    repeated_headers: Annotated[Count, Meta(description="lines left out that repeat the header")]
    files_without_rows: Annotated[Count, Meta(description="files in an archive that are left out")]
    sample: Annotated[
        list[Mapping[str, Any]] | UnsetType,
        Meta(description="the first rows, in a dry run; an invalid value is shown as it was sent"),
    ] = UNSET


class BatchRead(Answer, kw_only=True):
    """What both answers to a batch say of its rows."""

    accepted: Count
    duplicates: Count
    already_there: Annotated[
        Count,
        Meta(
            description="with `duplicates=skip` or in a file that was sent: flights left out "
            "because the ledger or an earlier row has them"
        ),
    ]
    conflicts: Annotated[
        Count,
        Meta(description="flights that contradict the ledger; left out with `duplicates=skip`"),
    ]
    conflicting: Annotated[list[Conflicting], Meta(description="the first hundred of them")]
    rejected: Count
    rejected_cancelled: Annotated[
        Count, Meta(description="rows among them whose flight was cancelled")
    ]
    rejected_not_arrived: Annotated[
        Count,
        Meta(description="rows among them whose flight has no arrival delay for another reason"),
    ]
    errors: list[Error]
    understood: Understood


class BatchReceipt(BatchRead, kw_only=True):
    """What was accepted of a batch, and what was not."""

    first_transaction: IdWhenMined
    last_transaction: IdWhenMined
    state: State
    timestamp: Milliseconds
    durable: Durable
    receipt: ReceiptAddress | UnsetType = UNSET
    last_receipt: (
        Annotated[str, Meta(description="likewise of the last flight, if there are several")]
        | UnsetType
    ) = UNSET
    duplicate_of: Annotated[list[Duplicate], Meta(description="of the first hundred duplicates")]


class BatchTried(BatchRead, kw_only=True):
    """What would be accepted of a batch."""

    dry_run: bool
    duplicate_of: Annotated[list[Count], Meta(description="of the first hundred duplicates")]


class Tried(Answer):
    """What would be accepted of a flight."""

    dry_run: bool
    accepted: Count
    duplicate_of: Count | None
    conflicts_with: ConflictsWith
    flight: _Flight


# --- proofs, operation ---------------------------------------------------------------------------

Path = list[Base64Hash]


class Proof(Answer):
    """Base of the proofs in one object; `scripts/verify.py` reads them."""

    flightchain_proof: Literal[1]
    kind: str
    size: Annotated[Count, Meta(description="the proof covers blocks 0 to size - 1")]
    consistency: Annotated[
        Path, Meta(description="from the tree of `size` to that of the checkpoint")
    ]
    checkpoint: Annotated[str, Meta(description="a signed note (C2SP tlog-checkpoint)")]
    key: Annotated[str, Meta(description="the verifier key of the log")]
    successions: Annotated[
        list[str], Meta(description="signatures of older keys for the keys that followed")
    ]


class TransactionProof(Proof):
    """Proves that a transaction is in the log."""

    kind: Literal["transaction"]
    transaction: Annotated[str, Meta(description="the canonical bytes")]
    path: Annotated[Path, Meta(description="from the transaction to transactions_root")]
    header: Annotated[str, Meta(description="the canonical header of its block")]
    history: Annotated[Path, Meta(description="from the hash of the block to the root")]


class ConsistencyProof(Proof, rename={"from_size": "from"}):
    """Proves that a log has only grown."""

    kind: Literal["consistency"]
    from_size: Count
    from_root: Base64Hash
    root: Base64Hash
    path: Path


class Cheat(Answer):
    """An attempt to cheat, and the checks that notice it."""

    name: str
    what: str
    verify: Annotated[str | None, Meta(description="what `verify` says; null: it notices nothing")]
    witness: Annotated[
        str | None, Meta(description="what a witness says; null: it notices nothing")
    ]


class Cheats(Answer):
    """The attempts to cheat, in order."""

    cheats: list[Cheat]


class Start(Answer):
    """Where to begin."""

    service: str
    version: str
    docs: Annotated[str, Meta(description="a page that describes all addresses")]
    openapi: Annotated[str, Meta(description="the same for programs")]
    questions: list[str]


class Live(Answer):
    """The service answers, and says what runs."""

    status: str
    version: str
    commit: Annotated[str, Meta(description="first digits of the commit, or `unknown`")]


class Status(Answer):
    """Whether the service works."""

    status: str


class Problem(Answer):
    """What went wrong (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    field: Annotated[str, Meta(description="the field that is wrong")] | UnsetType = UNSET
    value: Annotated[Any, Meta(description="the value of the field, as it was given")] = UNSET
    errors: Annotated[
        list[Error] | UnsetType, Meta(description="the first hundred, if there are more")
    ] = UNSET
    readings: Annotated[
        dict[str, str] | UnsetType,
        Meta(description="what the day in `value` means, by the value of `dates`: YYYY-MM-DD"),
    ] = UNSET
    rows_read: Annotated[Count | UnsetType, Meta(description="rows of a batch that were read")] = (
        UNSET
    )
    rejected: Annotated[Count | UnsetType, Meta(description="those of them that are bad")] = UNSET
    stopped: Annotated[
        bool | UnsetType,
        Meta(description="whether reading stopped there, because there were a hundred bad rows"),
    ] = UNSET
    reasons: list[str] | UnsetType = UNSET
    damaged_blocks: Annotated[list[Count], Meta(description="heights of blocks")] | UnsetType = (
        UNSET
    )


ANSWERS: tuple[type[Any], ...] = (
    *(Legs, Departures, AverageDelays, FlightCount, Coverage, Suggestions),
    *get_args(Suggestion),
    *(BlockFound, Headers, Tip, TransactionState, AcceptedState, Transactions),
    *(Receipt, BatchReceipt, BatchTried, Tried, TransactionProof, ConsistencyProof),
    *(Witnesses, Cheats, Start, Live, FileImport, MonthFetch, Status, Problem),
)
"""The types of whole bodies; those of their members follow from these."""
