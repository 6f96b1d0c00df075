"""A cluster in one process: real nodes of the application, and an engine that only decides.

The engine is a list of decided blocks. It asks one node to propose, all to agree, and has all
append; a node that is opened again is given what it lacks, as CometBFT does.
"""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from backend.base.settings import Settings
from backend.cluster.application import Application
from backend.cluster.block_appender import BlockAppender
from backend.cluster.configuration import BASE, CHAIN, ENGINE, Host, make_cluster
from backend.cluster.membership import Identity, Membership, identity_in, membership_in
from backend.cluster.messages import ACCEPT
from backend.cluster.signed_transactions import packed
from backend.mempool import Accepted
from backend.storage.block_writer import BlockWriter
from tests.flights import flights
from tests.storage.chains import NOTHING_PENDING

T0 = 1_700_000_000_000
Message = dict[str, Any]


def quiet(line: str) -> None:
    """A report that nobody reads."""


def make_base(folder: Path, begins_ms: int = T0) -> None:
    """Make the chain that a cluster begins with: genesis, of the time `begins_ms`."""
    base = Settings(dir=str(folder / BASE))
    with closing(BlockWriter(base, lambda: begins_ms, quiet, NOTHING_PENDING)) as writer:
        writer.acquire(wait=False)


def make(
    folder: Path,
    count: int = 4,
    interval_s: float = 60.0,
    *,
    empty: bool = False,
    begins_ms: int = T0,
) -> None:
    """Make a cluster whose chain has nothing but genesis, of the time `begins_ms`."""
    make_base(folder, begins_ms)
    hosts = [Host(f"node{i}", "127.0.0.1", 26600 + i, 8000 + i) for i in range(count)]
    make_cluster(folder, hosts, interval_s, empty=empty)


def time_of(milliseconds: int) -> Message:
    """A time as the engine sends it."""
    seconds, rest = divmod(milliseconds, 1000)
    return {"seconds": seconds, "nanos": rest * 1_000_000}


class Node:
    """The application of one node, open or not."""

    def __init__(self, folder: Path, index: int) -> None:
        self.home = home = folder / f"node{index}" / ENGINE
        self.settings = Settings(dir=str(folder / f"node{index}" / CHAIN), cluster=str(home))
        self.reported: list[str] = []
        self.membership: Membership = membership_in(home)
        self.identity: Identity = identity_in(home, self.membership)
        self.open()

    def open(self) -> None:
        """Start the node."""
        self.end = BlockAppender(self.settings, self.membership, self.reported.append)
        reached = self.end.open(self.identity.index, self.home)
        self.application = Application(self.end, self.membership, reached)

    def close(self) -> None:
        """End the node; what it did not commit is lost."""
        self.end.close()

    def sent(self, first: int, count: int, at_ms: int = T0, *, serial: int | None = None) -> bytes:
        """A transaction with flights that this node accepted under the numbers from `first` on.

        serial: of the first flight; by default no other node has accepted these.
        """
        assert self.identity.index is not None
        serial = 100_000 * self.identity.index + first if serial is None else serial
        parts = [Accepted(first, at_ms, flights(count, serial))]
        return packed(self.membership.cluster, self.identity.index, parts, self.identity.key)

    def ask(self, name: str, **request: Any) -> Message:
        """Returns what the application answers."""
        return dict(self.application.handle(name, request))


class Engine:
    """Decides blocks for `nodes`."""

    def __init__(self, folder: Path, count: int = 4, **options: Any) -> None:
        make(folder, count, **options)
        self.nodes = [Node(folder, i) for i in range(count)]
        self.decided: list[Message] = []
        for node in self.nodes:
            begin(node)

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *error: object) -> None:
        for node in self.nodes:
            node.close()

    def decide(self, txs: Sequence[bytes], at_ms: int = T0, proposer: int = 0) -> Message:
        """Decide a block of what fits of `txs`, and have all nodes append it. Returns it."""
        node = self.nodes[proposer]
        proposal = node.ask(
            "prepare_proposal", txs=list(txs), max_tx_bytes=4 * 2**20, time=time_of(at_ms)
        )
        return self.append(proposal["txs"], at_ms, proposer)

    def append(self, txs: Sequence[bytes], at_ms: int = T0, proposer: int = 0) -> Message:
        """Have all nodes accept and append a block of exactly `txs`."""
        address = bytes.fromhex(self.nodes[0].membership.members[proposer].voter)
        block = {
            "txs": list(txs),
            "height": len(self.decided) + 1,
            "time": time_of(at_ms),
            "proposer_address": address,
        }
        for node in self.nodes:
            assert node.ask("process_proposal", **block)["status"] == ACCEPT
        hashes = {finalized(node, block) for node in self.nodes}
        assert len(hashes) == 1
        for node in self.nodes:
            node.ask("commit")
        self.decided.append(block)
        return block

    def replay(self, node: Node) -> None:
        """Give a node that was opened again what it lacks."""
        reached = node.ask("info")["last_block_height"]
        if not reached:
            begin(node)
        for block in self.decided[reached:]:
            finalized(node, block)
            node.ask("commit")

    def tips(self) -> set[str]:
        """The tips of all nodes."""
        return {node.end.state.tip_hash for node in self.nodes}


def begin(node: Node) -> None:
    """Start the chain of a new cluster."""
    cluster = node.membership.cluster
    answer = node.ask("init_chain", chain_id=cluster)
    assert answer["app_hash"].hex() == node.membership.hash


def finalized(node: Node, block: Message) -> bytes:
    """The hash of the state after a block."""
    app_hash: bytes = node.ask("finalize_block", **block)["app_hash"]
    return app_hash
