"""What the application proposes, accepts and appends; a crash anywhere loses nothing."""

import queue
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from backend.base.errors import Damage, FlightchainError, WriteFailed
from backend.chain.block import MAX_TRANSACTIONS
from backend.cluster import signed_transactions
from backend.cluster.application import BAD, MOST_AHEAD, OK, OLD, UNFIT
from backend.cluster.configuration import BASE
from backend.cluster.messages import RECHECK, REJECT
from backend.cluster.signed_transactions import MOST_FLIGHTS, packed
from backend.mempool import Accepted
from backend.storage.block_writer import BlockWriter
from backend.storage.receipt_store import ReceiptWriter
from tests.cases import each_of
from tests.cluster.engine import T0, Engine, Node, begin, finalized, time_of
from tests.flights import flights, on_disk
from tests.storage.chains import block_file, flip


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine(tmp_path, 3) as engine:
        yield engine


def checked(node: Node, tx: bytes, kind: int = 0) -> int:
    code: int = node.ask("check_tx", tx=tx, type=kind)["code"]
    return code


def block_of(*txs: bytes, height: int = 1, at_ms: int = T0) -> dict[str, Any]:
    """A block as the engine gives it to its application."""
    return {"txs": list(txs), "height": height, "time": time_of(at_ms), "proposer_address": b""}


def rejected(node: Node, txs: list[bytes], at_ms: int = T0) -> bool:
    request = block_of(*txs, at_ms=at_ms)
    return bool(node.ask("process_proposal", **request)["status"] == REJECT)


def decide_three(engine: Engine) -> None:
    """Three blocks, with a flight of each node."""
    for i in range(3):
        engine.decide([node.sent(i, 1, T0 + i) for node in engine.nodes], T0 + i)


def test_flights_of_all_nodes_are_mined_in_the_order_of_their_acceptance(engine: Engine) -> None:
    a, b, c = engine.nodes
    engine.decide([c.sent(0, 2, T0 + 2), a.sent(0, 1, T0 + 3), b.sent(0, 2, T0 + 1)], T0 + 5)
    (tip,) = engine.tips()
    for node in engine.nodes:
        contents = on_disk(node.settings.folder)
        assert contents.timestamps == [T0 + 1, T0 + 1, T0 + 2, T0 + 2, T0 + 3]
        receipts = node.end.receipts
        assert [receipts.id_of(1, 0), receipts.id_of(1, 1)] == [0, 1]
        assert [receipts.id_of(2, 0), receipts.id_of(2, 1)] == [2, 3]
        assert [receipts.id_of(0, 0), receipts.id_of(0, 1), receipts.id_of(3, 0)] == [4, None, None]
        assert node.end.store.block(1).header.timestamp == T0 + 5
        assert node.ask("info")["last_block_app_hash"].hex() == tip
        newest = receipts.newest()
        assert newest is not None
        assert (newest.height, newest.hash, newest.proposer) == (1, tip, "node0")
        with receipts._writes() as run:  # after a power cut, a journal that is back would undo it
            assert run("PRAGMA synchronous").get == 3, "EXTRA, which syncs the folder, too"


def test_no_flight_is_mined_twice_however_often_it_is_sent(engine: Engine) -> None:
    node = engine.nodes[1]
    engine.decide([node.sent(0, 3), node.sent(0, 3), node.sent(0, 2)])
    assert engine.decide([node.sent(0, 3), node.sent(2, 4)])["txs"] == []
    engine.decide([node.sent(3, 2), node.sent(3, 1)])
    for member in engine.nodes:
        assert on_disk(member.settings.folder).sizes == [3, 2]
        assert member.application.mined(1) == 5
    assert checked(node, node.sent(4, 1)) == OLD
    assert checked(node, node.sent(5, 1)) == OK


def test_a_block_with_a_gap_a_copy_or_too_much_is_rejected(engine: Engine) -> None:
    a, b = engine.nodes[:2]
    full = [a.sent(i * MOST_FLIGHTS, MOST_FLIGHTS) for i in range(4)]
    assert not rejected(b, full)
    assert rejected(b, [*full, b.sent(0, 1)])
    assert rejected(b, [a.sent(1, 1)])
    assert rejected(b, [a.sent(0, 1), a.sent(0, 1)])
    assert rejected(b, [b"nonsense"])
    assert rejected(b, [a.sent(0, 1, T0 + b.membership.leeway_ms + 1)])
    assert not rejected(b, [a.sent(0, 1, T0 + b.membership.leeway_ms)])
    early_ms, late_ms = T0 - b.membership.leeway_ms - 1, T0 + b.membership.leeway_ms + 1
    for other_ms, fits in ((T0, True), (early_ms, False), (late_ms, False)):
        parts = [Accepted(n, at_ms, flights(1, n)) for n, at_ms in enumerate((T0, other_ms))]
        assert rejected(b, [packed(a.membership.cluster, 0, parts, a.identity.key)]) != fits


def test_a_proposal_takes_what_was_accepted_first_and_no_more_than_a_block_holds(
    engine: Engine,
) -> None:
    a, b = engine.nodes[:2]
    sent = [a.sent(i * MOST_FLIGHTS, MOST_FLIGHTS, T0 + 10 * i) for i in range(5)]
    engine.decide([*reversed(sent), b.sent(0, 1, T0 + 15)], T0 + 50)
    assert on_disk(a.settings.folder).sizes == [3 * MOST_FLIGHTS + 1]
    engine.decide([*sent, b.sent(0, 1, T0 + 15)], T0 + 50)
    assert on_disk(b.settings.folder).sizes == [3 * MOST_FLIGHTS + 1, 2 * MOST_FLIGHTS]
    assert max(on_disk(b.settings.folder).sizes) <= MAX_TRANSACTIONS
    txs = [a.sent(5 * MOST_FLIGHTS, 1), b.sent(1, 1, T0 + 1)]
    asked = {"txs": txs, "max_tx_bytes": len(txs[0]), "time": time_of(T0 + 50)}
    assert a.ask("prepare_proposal", **asked)["txs"] == txs[:1]


def test_flights_of_a_clock_that_was_put_back_stay_in_the_order_of_their_numbers(
    engine: Engine,
) -> None:
    a, b = engine.nodes[:2]
    sent = [a.sent(0, 1, T0 + 20), b.sent(0, 1, T0 + 15), a.sent(1, 1, T0 + 10)]
    engine.decide(sent, T0 + 50)
    assert on_disk(a.settings.folder).timestamps == [T0 + 15, T0 + 20, T0 + 20]
    assert [a.end.receipts.id_of(0, number) for number in range(2)] == [1, 2]


def test_flights_of_a_clock_that_is_ahead_wait_until_their_time_has_come(engine: Engine) -> None:
    ahead, other = engine.nodes[:2]
    hour_ms = 3_600_000
    early = ahead.sent(0, 1, T0 + hour_ms)
    engine.decide([early, other.sent(0, 1)])
    assert (ahead.application.mined(0), ahead.application.mined(1)) == (0, 1)
    assert engine.nodes[2].end.state.timestamp == T0
    engine.decide([early], T0 + hour_ms)
    assert ahead.application.mined(0) == 1


def test_a_flight_that_is_dated_back_before_the_block_below_is_not_proposed_nor_accepted(
    engine: Engine,
) -> None:
    member, other = engine.nodes[:2]
    engine.decide([other.sent(0, 1, T0 + 500_000)], T0 + 500_000)
    earliest_ms = T0 + 500_000 - member.membership.leeway_ms
    for at_ms in (0, earliest_ms - 1):
        old = member.sent(0, 1, at_ms)
        assert checked(other, old) == UNFIT
        assert rejected(other, [old], T0 + 600_000)
        assert engine.decide([old], T0 + 600_000)["txs"] == []
    engine.decide([member.sent(0, 1, earliest_ms)], T0 + 600_000)
    assert member.application.mined(0) == 1


def test_a_block_that_was_decided_before_times_were_checked_is_replayed(engine: Engine) -> None:
    node = engine.nodes[0]
    for member in engine.nodes:
        finalized(member, block_of(node.sent(0, 1, 7)))
        member.ask("commit")
        assert on_disk(member.settings.folder).timestamps == [7]


def test_a_transaction_that_others_could_have_made_is_refused(engine: Engine) -> None:
    a, b = engine.nodes[:2]
    good = a.sent(0, 1)
    for data in (b"", good[:50], good[:-1], good + b"x", bytes([good[0] ^ 1]) + good[1:]):
        assert checked(b, data) == BAD
    for at in (5, 13, 15, 40, 90):  # node, number, count, signature, payload
        assert checked(b, good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :]) == BAD
    assert checked(b, a.sent(MOST_AHEAD, 1)) == UNFIT
    assert checked(b, a.sent(2**53, 1, serial=0)) == BAD
    assert checked(b, good) == OK
    engine.decide([good])
    assert checked(b, good, RECHECK) == OLD


NO_FLIGHTS = (
    *(b"", b"[]", b"7", b"[[7,[]]]", b"[[7,[[]]]]", b"[" * 10**5, b'[[7,[["\xff"]]]]'),
    b"[[7,[[%b]]]]" % (b"9" * 10**5),
)


@each_of("payload", NO_FLIGHTS)
def test_a_member_that_signs_nonsense_stops_no_other(
    engine: Engine, payload: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signed_transactions, "_encode", lambda _: payload)
    nonsense = engine.nodes[0].sent(0, 1)
    assert checked(engine.nodes[1], nonsense) == BAD
    assert rejected(engine.nodes[1], [nonsense])
    assert engine.decide([nonsense])["txs"] == []


def test_peers_are_let_in_while_the_index_of_a_node_is_rebuilt(engine: Engine) -> None:
    node, answers = engine.nodes[0], queue.SimpleQueue[Any]()

    def ask() -> None:
        for path in ("/p2p/filter/addr/127.0.0.1:26656", "/p2p/filter/id/00", "/else"):
            answers.put(node.ask("query", path=path))

    with node.application.paused():
        threading.Thread(target=ask, daemon=True).start()
        codes = [answers.get(timeout=10).get("code", OK) for _ in range(3)]
    assert codes == [OK, OK, BAD]


def test_the_engine_of_another_cluster_is_refused(engine: Engine) -> None:
    with pytest.raises(FlightchainError, match="the engine is of the cluster another, and"):
        engine.nodes[0].ask("init_chain", chain_id="another")


def test_a_node_has_no_snapshots_for_others(engine: Engine) -> None:
    for name in ("flush", "list_snapshots", "load_snapshot_chunk"):
        assert engine.nodes[0].ask(name) == {}


def test_blocks_without_flights_leave_the_chain_as_it_is(engine: Engine) -> None:
    tips = engine.tips()
    for i in range(3):
        engine.decide([], T0 + 60_000 * i)
    assert engine.tips() == tips
    assert {node.end.state.height for node in engine.nodes} == {0}


def test_empty_blocks_are_made_once_an_interval_if_the_cluster_wants_them(tmp_path: Path) -> None:
    with Engine(tmp_path, 1, empty=True) as engine:
        heights = []
        for at_s in (0, 1, 60, 61, 119, 121, 122):
            engine.decide([], T0 + 1000 * at_s)
            heights.append(engine.nodes[0].end.state.height)
    assert heights == [0, 0, 1, 1, 1, 2, 2]


def test_a_node_that_lost_its_chain_is_given_all_of_it(engine: Engine, tmp_path: Path) -> None:
    """It signs no fewer blocks meanwhile: to a witness that is a log that was forged."""
    for i in range(5):
        engine.decide([node.sent(i, 1, T0 + i) for node in engine.nodes], T0 + i, proposer=i % 3)
    node = engine.nodes[2]
    node.close()
    folder = node.settings.folder
    signed = (folder / "checkpoint").read_bytes()
    shutil.rmtree(folder / "blocks")
    (folder / "cluster.sqlite").unlink()
    shutil.copytree(tmp_path / BASE / "blocks", folder / "blocks")
    node.open()
    assert node.ask("info")["last_block_height"] == 0
    begin(node)
    for block in engine.decided:
        assert (folder / "checkpoint").read_bytes() == signed
        finalized(node, block)
        node.ask("commit")
    assert len(engine.tips()) == 1
    assert not [line for line in node.reported if "witnesses" in line]
    engine.decide([engine.nodes[0].sent(5, 1)])
    assert b"\n7\n" in (folder / "checkpoint").read_bytes()
    assert on_disk(folder).sizes == [3] * 5 + [1]
    assert node.end.receipts.id_of(2, 4) == 14


CRASHES = {
    "before the receipts": (ReceiptWriter, "add"),
    "before the block": (BlockWriter, "append"),
    "before the table": (BlockWriter, "commit"),
}


@pytest.mark.parametrize("place", CRASHES)
def test_a_crash_anywhere_in_a_commit_is_made_good_by_the_replay(
    engine: Engine, place: str
) -> None:
    engine.decide([node.sent(0, 2) for node in engine.nodes])
    block = block_of(engine.nodes[1].sent(2, 3), height=2, at_ms=T0 + 1)
    node = engine.nodes[2]
    wanted = finalized(node, block)
    with patch.object(*CRASHES[place], side_effect=WriteFailed("cut")), pytest.raises(WriteFailed):
        node.ask("commit")
    assert node.end.receipts.id_of(1, 2) is None  # while the block is not there, or not for good
    node.close()
    node.open()
    engine.decided.append(block)
    engine.replay(node)
    assert node.end.state.tip_hash == wanted.hex()
    assert node.ask("info")["last_block_height"] == 2
    assert on_disk(node.settings.folder).sizes == [6, 3]
    assert [node.end.receipts.id_of(1, number) for number in (2, 4, 5)] == [6, 8, None]


def test_a_crash_between_the_block_and_the_index_is_made_good_without_a_replay(
    engine: Engine,
) -> None:
    block = block_of(engine.nodes[1].sent(0, 3), at_ms=T0 + 1)
    node = engine.nodes[0]
    wanted = finalized(node, block)
    apply = "backend.cluster.block_appender.IndexFollower.apply"
    with patch(apply, side_effect=WriteFailed("cut")), pytest.raises(WriteFailed):
        node.ask("commit")
    node.close()
    node.open()
    assert node.ask("info")["last_block_height"] == 1
    assert node.end.state.tip_hash == wanted.hex()
    assert node.application.mined(1) == 3


def test_a_torn_tip_is_replayed(engine: Engine) -> None:
    decide_three(engine)
    engine.decide([])  # which makes no block, and is noted above the tip
    node = engine.nodes[1]
    wanted = node.end.state.tip_hash
    node.close()
    (path,) = (node.settings.folder / "blocks").glob("blocks-*.dat")
    path.write_bytes(path.read_bytes()[:-10])
    node.open()
    assert node.ask("info")["last_block_height"] == 2
    engine.replay(node)
    assert node.end.state.tip_hash == wanted


def test_a_damaged_block_stops_the_node_and_is_named(engine: Engine) -> None:
    decide_three(engine)
    node = engine.nodes[1]
    node.close()
    place = node.end.store.place(3)
    flip(block_file(node.settings.folder), place.offset + 40)
    with pytest.raises(Damage, match="block 3"):
        node.open()


def test_a_chain_that_the_cluster_did_not_begin_with_is_refused(engine: Engine) -> None:
    node = engine.nodes[0]
    node.close()
    (node.settings.folder / "blocks").rename(node.settings.folder / "elsewhere")
    with pytest.raises(FlightchainError, match="copy of the chain"):
        node.open()


def test_lost_receipts_are_noticed(engine: Engine) -> None:
    node = engine.nodes[0]
    engine.decide([node.sent(0, 1)])
    node.close()
    (node.settings.folder / "cluster.sqlite").unlink()
    with pytest.raises(Damage, match="ends at block 0"):
        node.open()


def test_the_folder_of_another_node_is_refused(engine: Engine) -> None:
    a, b = engine.nodes[:2]
    b.close()
    b.identity, kept = a.identity, b.identity
    with pytest.raises(Damage, match="needs a folder of its own"):
        b.open()
    b.end.close()
    b.identity = kept
