"""All nodes sign the log with one key, so that proofs and checkpoints of one are those of any."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from backend.base.errors import FlightchainError
from backend.cli.commands import main
from backend.cluster.configuration import Host, share_log_key
from backend.cluster.log_key import common_key_path
from backend.trust.log import CHECKPOINT_NAME, KEY_NAME, VERIFIER_NAME
from tests.api.worlds import client_of
from tests.cluster.engine import Engine, Node
from tests.trust.proofs.proofs import Judge, fetched

HOSTS = [Host(f"node{i}", "127.0.0.1", 1, 2) for i in range(2)]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine(tmp_path, 2) as engine:
        yield engine


def chain(node: Node) -> Path:
    return node.settings.folder


def key_of(node: Node) -> str:
    return (chain(node) / VERIFIER_NAME).read_text().strip()


def restart(engine: Engine) -> None:
    for node in engine.nodes:
        node.close()
        node.open()


def verdicts(engine: Engine, folder: Path, key: str) -> list[str]:
    """Returns what `verify.py` with this key says of a proof from each node."""
    judge, verdicts = Judge(folder, key), []
    for node in engine.nodes:
        with client_of(node.settings) as client:
            verdicts.append(judge.of(fetched(client, "/transactions/0/proof"))["verdict"])
    return verdicts


def test_a_proof_from_one_node_is_verified_with_the_key_of_another(
    engine: Engine, tmp_path: Path
) -> None:
    engine.decide([node.sent(0, 3) for node in engine.nodes])
    a, b = engine.nodes
    assert key_of(a) == key_of(b)
    assert (chain(a) / KEY_NAME).stat().st_mode & 0o077 == 0
    assert (chain(a) / CHECKPOINT_NAME).read_bytes() == (chain(b) / CHECKPOINT_NAME).read_bytes()
    assert verdicts(engine, tmp_path, key_of(a)) == ["verified", "verified"]


def test_nodes_with_keys_of_their_own_get_a_common_one_which_those_sign(
    engine: Engine, tmp_path: Path
) -> None:
    for node in engine.nodes:
        node.close()
        for path in (
            common_key_path(node.home),
            chain(node) / KEY_NAME,
            chain(node) / VERIFIER_NAME,
            chain(node) / CHECKPOINT_NAME,
        ):
            path.unlink()
        node.open()
    engine.decide([node.sent(0, 3) for node in engine.nodes])
    own = [key_of(node) for node in engine.nodes]
    assert own[0] != own[1]
    assert verdicts(engine, tmp_path, own[0]) == ["verified", "refused"]
    assert "a key of its own" in engine.nodes[0].reported[-1]
    share_log_key(tmp_path, HOSTS)
    restart(engine)
    assert [key_of(node) for node in engine.nodes] == [own[0], own[0]]
    assert verdicts(engine, tmp_path, own[0]) == ["verified", "verified"]
    assert verdicts(engine, tmp_path, own[1])[1] == "verified"


def test_a_new_common_key_is_signed_by_the_old_one_on_every_node(
    engine: Engine, tmp_path: Path
) -> None:
    engine.decide([node.sent(0, 3) for node in engine.nodes])
    old = key_of(engine.nodes[0])
    share_log_key(tmp_path, HOSTS, new=True)
    for name in (KEY_NAME, VERIFIER_NAME, CHECKPOINT_NAME):  # as on a new machine
        (chain(engine.nodes[1]) / name).unlink()
    restart(engine)
    new = {key_of(node) for node in engine.nodes}
    assert new.isdisjoint({old})
    assert len(new) == 1
    assert verdicts(engine, tmp_path, old) == ["verified", "verified"]
    restart(engine)
    assert {key_of(node) for node in engine.nodes} == new


@pytest.mark.parametrize(
    ("command", "remedy"),
    [
        (["rotate-key"], "scripts/cluster log-key --new"),
        (["rebuild-successions", __file__], "put a copy of another node's log.successions there"),
    ],
)
def test_a_single_node_does_not_change_what_all_share(
    engine: Engine, command: list[str], remedy: str
) -> None:
    runner = CliRunner(env={"FLIGHTCHAIN_DIR": str(chain(engine.nodes[0]))})
    done = runner.invoke(main, ["log", *command])
    assert done.exit_code != 0
    assert remedy in done.stderr


@pytest.mark.parametrize("text", ["", "PRIVATE+KEY+x", "another ledger"])
def test_a_common_key_that_is_none_of_this_log_stops_the_node_and_says_what_to_do(
    engine: Engine, tmp_path: Path, text: str
) -> None:
    node = engine.nodes[1]
    node.close()
    if text == "another ledger":
        with Engine(tmp_path / "other", 1, begins_ms=1_600_000_000_000) as other:
            text = common_key_path(other.nodes[0].home).read_text()
    common_key_path(node.home).write_text(text)
    with pytest.raises(FlightchainError, match=r"log\.key is .*put a copy of .*another node"):
        node.open()
    node.end.close()
