"""The ledger of a node: its receipts are held against its blocks, and only the cluster writes."""

import json
import shutil
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from msgspec import structs

from backend.base.errors import Damage, DamagedMempool, FlightchainError, InvalidSetting
from backend.base.files import FileLock
from backend.base.settings import Settings
from backend.chain.flight import as_mapping
from backend.cli.sent_file import sent_file
from backend.cluster.configuration import BASE, ENGINE
from backend.cluster.engine_watch import CATCHES_UP, READS_ONLY
from backend.cluster.node_status import FILE, FILE_NAME, ClusterStatus
from backend.cluster.view import tag_of
from backend.ledger.bts_months import Month
from backend.ledger.file_imports import FileImport, FileImports
from backend.ledger.ledger import Ledger
from backend.mempool.store import require_blocks
from backend.sealing.miner_status import LOCK_NAME
from backend.storage import checked_sqlite
from backend.storage.layout import BLOCKS_FOLDER
from backend.storage.receipt_store import FILE_NAME as RECEIPTS_NAME
from backend.storage.tokens import Tokens
from backend.verify.audit import verify
from backend.verify.backup import back_up
from frontend.adding.uploads import UploadedFile
from tests.api.processes import until
from tests.api.worlds import client_of, problem
from tests.bts_server import Bts
from tests.cases import each_of
from tests.cluster.engine import Engine, make, quiet
from tests.flights import csv_of, flight, flights
from tests.submitting import sealing
from tests.test_cli import call

WRONG = {
    "another hash": "UPDATE block SET hash = substr(hash, 2) || '0' WHERE height = 2",
    "another sender": "UPDATE block SET senders = zeroblob(length(senders)) WHERE height = 2",
    "a flight less": "UPDATE block SET senders = substr(senders, 2) WHERE height = 2",
    "another number": "UPDATE run SET following = following + 1 WHERE height = 2 AND node = 1",
    "a gap in numbers": (
        "UPDATE run SET first = first + 1, following = following + 1 WHERE height = 3 AND node = 0"
    ),
    "no entry": "DELETE FROM block WHERE height = 2",
    "no entry of the newest": "DELETE FROM block WHERE height = 3",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The chain of a node, which three blocks of two nodes are in."""
    with Engine(tmp_path, 2) as engine:
        first, second = engine.nodes
        engine.decide([first.sent(0, 5), second.sent(0, 3)])
        engine.decide([first.sent(5, 2), second.sent(3, 4)])
        engine.decide([first.sent(7, 1)])
    return Path(first.settings.dir)


def test_receipts_that_fit_are_counted(folder: Path) -> None:
    assert "the receipts of 3 blocks fit" in verify(folder).mempool


@each_of("wrong", WRONG)
def test_an_entry_that_does_not_fit_is_named(folder: Path, wrong: str) -> None:
    whole = (folder / RECEIPTS_NAME).read_bytes()
    connection = checked_sqlite.connect(folder / RECEIPTS_NAME)
    connection.execute(WRONG[wrong])
    assert connection.changes() == 1
    connection.close()
    with pytest.raises(Damage, match=f"{RECEIPTS_NAME}: .*block [23]"):
        verify(folder)
    (folder / RECEIPTS_NAME).write_bytes(whole)


def mine(settings: Settings, folder: Path) -> None:
    with sealing(settings, quiet) as sealer:
        sealer.seal_pending()


def copy(settings: Settings, folder: Path) -> None:
    back_up(settings, folder / "copy", report=quiet, progress=lambda done, to_do: None)


@pytest.mark.parametrize("act", [mine, copy])
def test_only_the_cluster_writes_the_ledger_of_a_node(
    act: Callable[[Settings, Path], None], tmp_path: Path
) -> None:
    with Engine(tmp_path, 1) as engine, pytest.raises(FlightchainError, match="cluster"):
        act(engine.nodes[0].settings, tmp_path)


def test_no_month_is_downloaded_for_the_ledger_of_a_node(bts: Bts, tmp_path: Path) -> None:
    month = Month(2008, 1)
    bts.publish(month)
    with Engine(tmp_path, 1) as engine:
        settings = replace(engine.nodes[0].settings, bts_url=bts.url)
        folder = settings.folder
        command = ("import", f"bts:{month}")
        done = call(folder, *command, FLIGHTCHAIN_BTS_URL=bts.url)
        assert (done.returncode, "send files to a node" in done.stderr) == (1, True)
        chosen = {"FLIGHTCHAIN_BTS_URL": bts.url, "FLIGHTCHAIN_DATA": command[1]}
        done = call(folder, "import", "--if-empty", **chosen)
        assert (done.returncode, "send files to a node" in done.stderr) == (1, True)
        headers = {"Authorization": f"Bearer {Tokens(folder).add('operator')}"}
        with client_of(settings) as client:
            refused = problem(client.post(f"/months?MONTH={month}", headers=headers), 400)
            assert (refused["field"], "cluster" in refused["detail"]) == ("MONTH", True)
            assert client.get("/months").get_json()["state"] == "idle"
        assert bts.asked == []
        assert not [path for path in folder.iterdir() if ".zip" in path.name]


def test_a_service_that_does_not_know_of_the_cluster_does_not_start(tmp_path: Path) -> None:
    with Engine(tmp_path, 1) as engine:
        alone = Settings(dir=engine.nodes[0].settings.dir)
        with pytest.raises(InvalidSetting, match="FLIGHTCHAIN_CLUSTER"):
            Ledger(alone, quiet)


def test_nothing_is_accepted_while_the_node_does_not_run(tmp_path: Path) -> None:
    engine = Engine(tmp_path, 1)
    with engine, closing(Ledger(engine.nodes[0].settings, quiet)) as ledger:
        reasons = " ".join(ledger.not_ready())
        assert "start the service" in reasons
        assert "nothing is accepted" in reasons
        assert "miner" not in reasons
        assert getattr(ledger.tip().cluster, "accepts", None) is False


def test_a_node_that_is_given_its_chain_again_is_not_told_that_blocks_are_lost(
    tmp_path: Path,
) -> None:
    with Engine(tmp_path, 1) as engine:
        (node,) = engine.nodes
        engine.decide([node.sent(0, 3)])
        blocks = node.settings.folder / BLOCKS_FOLDER
        shutil.rmtree(blocks)
        shutil.copytree(tmp_path / BASE / BLOCKS_FOLDER, blocks)
        with closing(Ledger(node.settings, quiet)) as ledger:
            reasons = " ".join(ledger.not_ready())
        with pytest.raises(DamagedMempool, match="from the others"):  # of what was posted here
            require_blocks(node.settings.folder, 1, 3)
    assert f"{blocks} lacks blocks" in reasons
    assert "from the others" in reasons
    assert "accept-loss" not in reasons


def test_a_file_sent_to_a_node_that_only_reads_is_stopped_at_once(tmp_path: Path) -> None:
    with Engine(tmp_path, 1) as engine:
        settings, now_s = engine.nodes[0].settings, time.monotonic()
        status = ClusterStatus("", 3, [], 20, 20, True, 9, CATCHES_UP, now_s, reads_only=True)
        FILE.write_unsynced(settings.folder, status)
        imports = FileImports(settings)
        sent = imports.append(imports.begin("f.csv", 1).IMPORT_ID, 0, b"x")
        CliRunner().invoke(sent_file, [sent.IMPORT_ID, "--add"], obj=settings)
        stopped = imports.of(sent.IMPORT_ID)
        assert (stopped.state, stopped.message) == ("stopped", READS_ONLY)


def test_of_a_file_sent_to_a_node_the_cluster_gets_what_its_ledger_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the node is full, it says how much it has taken."""
    monkeypatch.setattr("backend.cli.sent_file.PATIENCE_S", 0)
    status = ClusterStatus("node0", 3, [], 20, 20, False, 0, "", time.monotonic())
    with Engine(tmp_path, 2) as engine:
        first, second = engine.nodes
        engine.decide([second.sent(0, 2, serial=0)])
        settings = replace(first.settings, clock_wait_s=0, min_free_bytes=0)
        FILE.write_unsynced(settings.folder, status)
        imports, body = FileImports(settings), csv_of(flights(5000)).encode()
        import_id = imports.append(imports.begin("f.csv", len(body)).IMPORT_ID, 0, body).IMPORT_ID

        def added(room: int) -> FileImport:
            chosen = replace(settings, mempool_transactions=room)
            for step in ([], ["--add"]):
                CliRunner().invoke(sent_file, [import_id, *step], obj=chosen)
            return imports.of(import_id)

        with FileLock(settings.folder / LOCK_NAME):
            stopped, rest = added(3000), added(9000).added
    assert rest is not None
    before = 4998 - rest.flights
    assert 0 < before < 3000
    assert f"; {before:,} flights were added before that; check it again" in stopped.message
    assert (rest.already_there, rest.first_transaction) == (2 + before, None)
    names = [f"node0-{before}-{tag_of(flight(2 + before))}", f"node0-4997-{tag_of(flight(4999))}"]
    receipts = tuple(f"/receipts/{name}" for name in names)
    assert UploadedFile({"added": msgspec.to_builtins(rest)}).receipts == receipts


def test_a_status_that_does_not_say_whether_its_node_only_reads_is_read(tmp_path: Path) -> None:
    status = ClusterStatus("node0", 3, [], 20, 20, False, 0, "", time.monotonic())
    older = {name: value for name, value in structs.asdict(status).items() if name != "reads_only"}
    (tmp_path / FILE_NAME).write_text(json.dumps(older))
    assert FILE.read(tmp_path) == status


@pytest.mark.parametrize("is_reader", [False, True])
def test_without_a_quorum_a_node_for_reading_is_ready_once_it_has_caught_up(
    tmp_path: Path, is_reader: bool
) -> None:
    engine, why = Engine(tmp_path, 1), "no quorum: this node sees 20 of 40 votes"
    settings = engine.nodes[0].settings
    if is_reader:
        make(tmp_path / "other", 1)
        key = Path("node0", ENGINE, "config", "node_key.json")
        shutil.copy(tmp_path / "other" / key, tmp_path / key)
    status = ClusterStatus("node0", 3, [], 20, 40, False, 0, why, time.monotonic())
    with engine, FileLock(settings.folder / LOCK_NAME), closing(Ledger(settings, quiet)) as ledger:
        FILE.write_unsynced(settings.folder, status)
        assert (why in ledger.not_ready()) == (not is_reader)
        with client_of(settings) as client:
            lines = client.get("/metrics").text.splitlines()
        shown = {"votes": 20, "votes_total": 40, "peers": 0, "lag_blocks": 0, "accepts": 0}
        assert {f"flightchain_cluster_{name} {shown[name]}.0" for name in shown} <= set(lines)
        FILE.write_unsynced(settings.folder, structs.replace(status, catching_up=True))
        until(lambda: why in ledger.not_ready())


def test_a_key_that_is_sent_again_gets_the_same_answer_when_its_flight_is_mined(
    tmp_path: Path,
) -> None:
    """Two flights, of the first of which another node's is in the ledger; then of both, too."""
    status = ClusterStatus("node0", 3, [], 20, 20, False, 0, "", time.monotonic())
    with Engine(tmp_path, 2) as engine:
        first, second = engine.nodes
        engine.decide([second.sent(0, 1, serial=0)])
        settings = replace(first.settings, clock_wait_s=0)
        FILE.write_unsynced(settings.folder, status)
        with FileLock(settings.folder / LOCK_NAME), client_of(settings) as client:

            def answers() -> list[tuple[int | None, int | None]]:
                bodies = [
                    client.post(
                        "/transactions",
                        json=as_mapping(flight(serial)),
                        headers={"Idempotency-Key": f"{serial}"},
                    ).get_json()
                    for serial in range(2)
                ]
                return [(body["TRANSACTION_ID"], body["duplicate_of"]) for body in bodies]

            for _ in range(2):
                assert answers() == [(None, 0), (None, None)]
            engine.decide([first.sent(0, 2), second.sent(1, 2, serial=0)])
            assert answers() == [(1, 0), (2, None)]
