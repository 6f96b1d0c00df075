"""Answers the engine as an application of ABCI 2.0: what to propose, to accept, and to append.

The methods `do_…` are the requests of ABCI. They run one at a time, whatever connection they come
from. Nothing is written before `do_commit`.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from hashlib import sha256
from typing import Any

from backend.base.errors import Damage, FlightchainError
from backend.base.lru import LruCache
from backend.base.version import VERSION
from backend.cluster.block_appender import BlockAppender, Built
from backend.cluster.engine_files import REBUILD
from backend.cluster.membership import Membership
from backend.cluster.messages import ACCEPT, RECHECK, REJECT
from backend.cluster.signed_transactions import BadTransaction, ClusterTransaction, transaction_in
from backend.cluster.transaction_selection import Room, proposed, rows_of

Message = Mapping[str, Any]

OK, BAD, OLD, UNFIT = 0, 1, 2, 3  # codes of transactions
MOST_AHEAD = 100_000  # how far above what is mined a number may be, so that the engine has room
FILTER_ADDRESS, FILTER_ID = "/p2p/filter/addr/", "/p2p/filter/id/"  # as the engine asks
# There are no snapshots, and whoever serves a connection flushes.
NOTHING_TO_DO = frozenset({"flush", "list_snapshots", "load_snapshot_chunk"})
KNOWN_BYTES = 16 * 2**20  # of transactions that were checked and are remembered


class _Known:
    """Checks transactions, and remembers those that were good: each is met several times."""

    def __init__(self, membership: Membership) -> None:
        self._cluster = membership.cluster
        self._keys = membership.keys
        self._good = LruCache[bytes, ClusterTransaction](KNOWN_BYTES, lambda good: len(good.data))

    def read(self, data: bytes) -> ClusterTransaction:
        """Return the transaction in `data`. Raises BadTransaction."""
        name = sha256(data).digest()
        known = self._good.find(name)
        if known is None:
            known = transaction_in(data, self._cluster, self._keys)
            self._good.keep(name, known)
        return known

    def readable(self, data: bytes) -> ClusterTransaction | None:
        """Return the transaction in `data`; None if there is none."""
        try:
            return self.read(data)
        except BadTransaction:
            return None


class Application:
    """The application over the chain that ends in `end`, which must be open.

    engine_height: the height of the engine's block that was committed last.
    """

    def __init__(
        self,
        end: BlockAppender,
        membership: Membership,
        engine_height: int,
        appended: Callable[[Built], None] = lambda built: None,
        peer_refusal: Callable[[str], str] = lambda peer_id: "",
        appending: Callable[[Built], None] = lambda built: None,
    ) -> None:
        """Begin where the chain stands.

        appended: is called for each block when it is in the chain and in the index. peer_refusal:
        says why the engine must not talk to a peer with this id; "" if it may. appending: is called
        for each block before it is written.
        """
        self._end = end
        self._membership = membership
        self.engine_height = engine_height
        self._appended = appended
        self._peer_refusal = peer_refusal
        self._appending = appending
        self._lock = threading.Lock()
        self._known = _Known(membership)
        height = end.state.height
        self._mined = [end.receipts.mined(i, height) for i in range(len(membership.members))]
        self._built: Built | None = None  # between `do_finalize_block` and `do_commit`
        self._finalized = engine_height
        self.header_ms = 0  # the time of the newest block of the engine that was met
        self.decided_s = 0.0  # when it was met, monotonic seconds

    def handle(self, name: str, request: Message) -> Message:
        """Answer a request by its name in `messages.REQUEST`. Raises FlightchainError."""
        if name in NOTHING_TO_DO:
            return {}
        if name == "query":  # it changes nothing, and a peer waits for it
            return self.do_query(request)
        with self._lock:
            answer: Message = getattr(self, f"do_{name}")(request)
            return answer

    def paused(self) -> AbstractContextManager[bool]:
        """Let the engine wait for its answers while the block lasts."""
        return self._lock

    def mined(self, node: int) -> int:
        return self._mined[node]

    @property
    def earliest_ms(self) -> int:
        """Since when a flight of the next block may have been accepted, UTC milliseconds."""
        return self._membership.earliest_ms(self._end.state.timestamp)

    # --- the query connection ------------------------------------------------------------------

    def do_info(self, request: Message) -> Message:  # noqa: ARG002
        """Say up to which block all is on the disk; the engine replays the later ones."""
        tip = bytes.fromhex(self._end.state.tip_hash)
        return {
            "data": "flightchain",
            "version": VERSION,
            "last_block_height": self.engine_height,
            "last_block_app_hash": tip if self.engine_height else b"",
        }

    def do_query(self, request: Message) -> Message:
        """Say whether a peer may be talked to."""
        if request["path"].startswith(FILTER_ADDRESS):
            return {"code": OK}
        if request["path"].startswith(FILTER_ID):
            refusal = self._peer_refusal(request["path"].removeprefix(FILTER_ID))
            return {"code": BAD, "log": refusal} if refusal else {"code": OK}
        return {"code": BAD, "log": "ask the service of a node over HTTP"}

    # --- the mempool connection ----------------------------------------------------------------

    def do_check_tx(self, request: Message) -> Message:
        """Say whether a transaction may wait for a block; again after each block."""
        try:
            transaction = self._known.read(request["tx"])
        except BadTransaction as error:
            return {"code": BAD, "log": str(error)}
        mined = self._mined[transaction.node]
        if transaction.first < mined:
            return {"code": OLD, "log": f"flights below {mined} of this node are mined"}
        if request["type"] != RECHECK and transaction.following > mined + MOST_AHEAD:
            return {"code": UNFIT, "log": f"more than {MOST_AHEAD} flights before it are not mined"}
        if transaction.earliest_ms < self.earliest_ms:
            return {"code": UNFIT, "log": "a flight was accepted long before the newest block"}
        return {"code": OK}

    # --- the consensus connection --------------------------------------------------------------

    def do_init_chain(self, request: Message) -> Message:
        """Begin with the chain that every node has a copy of."""
        state, begun = self._end.state, self._membership
        if (state.height, state.tip_hash) != (begun.height, begun.hash) or self.engine_height:
            raise Damage(
                f"the chain stands at block {state.height}, but the engine begins again with block "
                f"{begun.height}: its data was removed, or is of another cluster; {REBUILD}"
            )
        if request["chain_id"] != begun.cluster:
            raise FlightchainError(
                f"the engine is of the cluster {request['chain_id']}, and the chain of "
                f"{begun.cluster}; {REBUILD}"
            )
        return {"app_hash": bytes.fromhex(state.tip_hash)}

    def do_prepare_proposal(self, request: Message) -> Message:
        """Choose the transactions of a new block."""
        candidates = filter(None, map(self._known.readable, request["txs"]))
        times_ms = self._times_ms(request, self.earliest_ms)
        chosen = proposed(candidates, self._mined, times_ms, request["max_tx_bytes"])
        return {"txs": [transaction.data for transaction in chosen]}

    def do_process_proposal(self, request: Message) -> Message:
        """Accept a block that another node proposed only if each of its transactions fits."""
        fitting = self._fitting(request, self.earliest_ms)
        return {"status": ACCEPT if None not in fitting else REJECT}

    def _times_ms(self, request: Message, earliest_ms: int) -> range:
        """Return when flights of a block may have been accepted."""
        header_ms = _milliseconds(request["time"])
        return range(earliest_ms, self._membership.latest_ms(header_ms) + 1)

    def _fitting(self, request: Message, earliest_ms: int) -> list[ClusterTransaction | None]:
        """Return the transactions of a block in their order; None for one that does not fit."""
        room = Room(self._mined, self._times_ms(request, earliest_ms))
        read = map(self._known.readable, request["txs"])
        return [
            transaction if transaction is not None and room.takes(transaction) else None
            for transaction in read
        ]

    def do_finalize_block(self, request: Message) -> Message:
        """Build the block that a decided one makes. Transactions that do not fit are left out."""
        fitting = self._fitting(request, earliest_ms=0)
        rows = rows_of([transaction for transaction in fitting if transaction is not None])
        self.header_ms = _milliseconds(request["time"])
        self.decided_s = time.monotonic()
        self._finalized = request["height"]
        self._built = None
        if rows.flights or self._wants_empty(self.header_ms):
            proposer = self._membership.proposer(request["proposer_address"])
            self._built = self._end.build(self.header_ms, rows, self._finalized, proposer)
        tip = self._built.block.hash if self._built else self._end.state.tip_hash
        return {
            "tx_results": [
                {"code": UNFIT if transaction is None else OK} for transaction in fitting
            ],
            "app_hash": bytes.fromhex(tip),
        }

    def _wants_empty(self, header_ms: int) -> bool:
        due_ms = self._end.state.timestamp + round(1000 * self._membership.interval_s)
        return self._membership.empty and header_ms >= due_ms

    def do_commit(self, request: Message) -> Message:  # noqa: ARG002
        """Append the block that was finalized, so that it survives whatever comes."""
        built, self._built = self._built, None
        if built is None:
            self._end.receipts.passed(self._finalized, self._end.state.height)
        else:
            self._appending(built)
            self._end.append(built)
            for run in built.entry.runs:
                self._mined[run.node] = run.following
            self._appended(built)
        self.engine_height = self._finalized
        return {"retain_height": 0}  # all are kept, for nodes that begin or catch up


def _milliseconds(time: Message | None) -> int:
    return 0 if time is None else int(time["seconds"]) * 1000 + int(time["nanos"]) // 1_000_000
