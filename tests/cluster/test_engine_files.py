"""Each file of an engine that is not as it must be is named, with the remedy."""

import json
import re
import shutil
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import structs

from backend.base.errors import Damage, FlightchainError, NotFound, TryLater
from backend.base.files import FileLock
from backend.base.settings import Settings
from backend.cluster import node_status
from backend.cluster.block_appender import BlockAppender
from backend.cluster.configuration import ENGINE, bring_up_to_date
from backend.cluster.engine_files import NEVER_AGAIN, REBUILD, check_engine, require_sound
from backend.cluster.membership import identity_in, membership_in
from backend.cluster.node_status import ClusterStatus, StatusReader
from backend.ledger.ledger import Ledger
from backend.sealing.miner_status import LOCK_NAME
from tests.api.processes import ROOT
from tests.api.worlds import seal
from tests.cluster.engine import make, quiet
from tests.flights import flights
from tests.submitting import add

REACHED = 41


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster of four nodes, and another one in `other`. Not to be changed."""
    folder = tmp_path_factory.mktemp("clusters")
    make(folder, 4)
    make(folder / "other", 2, begins_ms=1_600_000_000_000)
    return folder


@pytest.fixture
def home(clusters: Path, tmp_path: Path) -> Path:
    """The engine of the first node of a copy of these."""
    for name in ("node0", "other/node0"):
        shutil.copytree(clusters / name, tmp_path / name)
    return tmp_path / "node0" / ENGINE


def start(home: Path) -> None:
    """What a node reads before it starts its engine."""
    membership = membership_in(home)
    identity = identity_in(home, membership)
    chain = Settings(dir=str(home.parent / "chain"))
    with closing(BlockAppender(chain, membership, quiet)) as end:
        end.open(identity.index, home)
    bring_up_to_date(home, quiet)
    require_sound(home, membership, identity, REACHED)


def removed(path: Path) -> None:
    path.unlink()


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def unreadable(path: Path) -> None:
    path.unlink()
    path.mkdir()


def foreign(path: Path) -> None:
    """Replaces a file by that of the other cluster."""
    tail = path.relative_to(path.parents[3])
    shutil.copy(path.parents[3] / "other" / tail, path)


COPY = "put back a copy"
FILES = {
    "config/genesis.json": "put back",
    "config/config.toml": COPY,
    "config/node_key.json": COPY,
    "config/priv_validator_key.json": COPY,
    "config/log.key": "copy of another node's file",
    "data/priv_validator_state.json": COPY,
}
HARMLESS = {  # nobody can tell whose votes a file counts; without a key a node takes one of its own
    ("data/priv_validator_state.json", foreign),
    ("config/log.key", removed),
}


def test_lost_receipts_are_named_by_verify(home: Path) -> None:
    settings = Settings(dir=str(home.parent / "chain"), cluster=str(home))
    check_engine(settings)
    seal(settings, [flights(1)])
    with pytest.raises(FlightchainError, match=r"cluster\.sqlite is missing .* rebuild the node's"):
        check_engine(settings)


@pytest.mark.parametrize("harm", [removed, emptied, truncated, unreadable, foreign])
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_not_as_it_must_be_is_named_with_its_remedy(
    home: Path, name: str, harm: Callable[[Path], None]
) -> None:
    """When the node starts, and when somebody has it verified."""
    start(home)
    settings = Settings(dir=str(home.parent / "chain"), cluster=str(home))
    check_engine(settings)
    harm(home / name)
    if (name, harm) in HARMLESS:
        start(home)
        check_engine(settings)
        return
    with pytest.raises(FlightchainError, match=Path(name).name):
        check_engine(settings)
    with pytest.raises(FlightchainError) as caught:
        start(home)
    message = str(caught.value)
    assert Path(name).name in message
    wanted = "own key" if (name, harm) == ("config/node_key.json", foreign) else FILES[name]
    assert wanted in message, message


@pytest.mark.parametrize("harm", [removed, emptied, truncated, unreadable])
@pytest.mark.parametrize("name", ["config/genesis.json", "config/node_key.json"])
def test_a_worker_starts_without_them_answers_what_it_can_and_says_so(
    home: Path, name: str, harm: Callable[[Path], None]
) -> None:
    start(home)
    settings = Settings(dir=str(home.parent / "chain"), cluster=str(home))
    path, whole = home / name, (home / name).read_bytes()
    harm(path)
    with closing(Ledger(settings, quiet)) as ledger:
        assert ledger.tip().height == 0
        (message,) = [reason for reason in ledger.not_ready() if path.name in reason]
        assert "put back a copy" in message
        with pytest.raises(TryLater, match=path.name):
            add(ledger.submitter, flights(1)[0])
        with pytest.raises(TryLater, match=path.name):
            ledger.accepted_as("node0-1")
        if path.is_dir():
            path.rmdir()
        path.write_bytes(whole)
        assert not [reason for reason in ledger.not_ready() if path.name in reason]
        with pytest.raises(NotFound, match="with an older copy of its folder: add it again"):
            ledger.accepted_as("node0-1")
        with pytest.raises(NotFound, match="ask the node that accepted it"):
            ledger.accepted_as("node1-1")


def test_the_remedy_for_a_lost_vote_is_what_the_file_may_hold(home: Path) -> None:
    path = home / "data" / "priv_validator_state.json"
    for text in ("", "{}", '{"height":"7"}', "[]"):
        path.write_text(text)
        with pytest.raises(FlightchainError, match="vote twice at one height") as caught:
            start(home)
    written = str(caught.value).partition("write this into it: ")[2]
    assert json.loads(written) == {"height": "42", "round": NEVER_AGAIN, "step": 3}
    path.write_text(written)
    start(home)


def test_an_engine_that_would_wait_until_the_cluster_was_made_is_not_started(home: Path) -> None:
    path = home / "config" / "genesis.json"
    genesis = json.loads(path.read_bytes())
    path.write_text(json.dumps({**genesis, "genesis_time": "2126-11-30T15:34:48.123456Z"}))
    with pytest.raises(FlightchainError, match="was made at 2126-11-30 15:34; set the clock"):
        start(home)


def test_a_cluster_whose_others_cannot_decide_alone_does_not_wait_for_ever(tmp_path: Path) -> None:
    make(tmp_path, 3)
    home = tmp_path / "node0" / ENGINE
    (home / "data" / "priv_validator_state.json").unlink()
    with pytest.raises(FlightchainError, match=r'into it: \{"height": "41", "round": 0'):
        start(home)


def test_why_a_node_has_ended_is_said_until_it_runs_again(tmp_path: Path) -> None:
    reader = StatusReader(tmp_path)
    assert reader.refusal().endswith("nothing is accepted")
    node_status.end(tmp_path, "node_key.json is empty")
    node_status.begin(tmp_path)  # it was started, and has not come so far that it tells how it does
    assert reader.refusal().endswith("nothing is accepted: node_key.json is empty")
    node_status.end(tmp_path, "")
    assert reader.refusal().endswith("nothing is accepted")
    (tmp_path / node_status.FILE_NAME).write_bytes(b'{"node": "\xff"}')
    assert reader.refusal().endswith("nothing is accepted")


def test_a_node_that_was_killed_a_moment_ago_accepts_nothing(tmp_path: Path) -> None:
    fresh = ClusterStatus("node0", 7, [], 10, 10, False, 0, "", time.monotonic())
    node_status.FILE.write_unsynced(tmp_path, fresh)
    assert StatusReader(tmp_path).refusal().endswith("nothing is accepted")
    with FileLock(tmp_path / LOCK_NAME):
        assert StatusReader(tmp_path).refusal() == ""
        old = structs.replace(fresh, written_s=fresh.written_s - node_status.FRESH_S)
        node_status.FILE.write_unsynced(tmp_path, old)  # as by one that hangs
        assert StatusReader(tmp_path).refusal().endswith("nothing is accepted")


@pytest.mark.parametrize("name", ["log.key", "blocks"])
def test_a_node_does_not_start_with_a_part_of_another_ledger_and_changes_nothing(
    home: Path, name: str
) -> None:
    start(home)
    chain, other = home.parent / "chain", home.parents[1] / "other" / "node0"
    start(other / ENGINE)
    if name == "blocks":
        shutil.rmtree(chain / name)
        shutil.copytree(other / "chain" / name, chain / name)
    else:
        shutil.copy(other / "chain" / name, chain / name)
    before = {path: path.read_bytes() for path in chain.glob("log.*")}
    with pytest.raises(Damage, match="one of them is another ledger's, and nothing is sealed"):
        start(home)
    assert {path: path.read_bytes() for path in chain.glob("log.*")} == before


def test_the_remedy_names_the_document_that_has_its_steps() -> None:
    (document,) = re.findall(r"\S+\.md", REBUILD)
    assert "engine/data" in (ROOT / document).read_text("utf-8")
