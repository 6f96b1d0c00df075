"""The configuration of a cluster on several machines."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from backend.cli import main
from backend.cluster.configuration import BASE, CHAIN, ENGINE
from backend.cluster.engine import VERSION
from backend.cluster.membership import identity_in, membership_in
from tests.api.processes import ROOT
from tests.api.worlds import GOOD, client_of, seal, settings_for
from tests.flights import flights, transactions_in

HOSTS = ("pi0.local", "192.168.1.11", "192.168.1.12", "pi3")


def configure(folder: Path, *arguments: object, **more: str) -> Result:
    """Run the command in this process."""
    runner = CliRunner(env={"FLIGHTCHAIN_DATA": "generate:50", "FLIGHTCHAIN_DIR": "unused", **more})
    given = ["cluster", "configure", *map(str, arguments), "--folder", str(folder)]
    return runner.invoke(main, given, prog_name="python -m backend")


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("configured") / "pis"
    done = configure(folder, *HOSTS, "--peer-port", 27000, FLIGHTCHAIN_MINE_INTERVAL_S="5")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        f"{folder / f'node{i}'}  for {host}" for i, host in enumerate(HOSTS)
    ]
    return folder


def test_each_machine_gets_a_folder_with_keys_peers_chain_and_settings(configured: Path) -> None:
    for i, host in enumerate(HOSTS):
        node = configured / f"node{i}"
        membership = membership_in(node / ENGINE)
        assert identity_in(node / ENGINE, membership).index == i
        assert [member.url for member in membership.members] == [f"http://{h}:8000" for h in HOSTS]
        assert membership.interval_s == 5
        config = (node / ENGINE / "config" / "config.toml").read_text()
        assert 'laddr = "tcp://0.0.0.0:27000"' in config
        assert f'external_address = "{host}:27000"' in config
        peers = [
            f"{one.peer_id}@{h}:27000" for one, h in zip(membership.members, HOSTS, strict=True)
        ]
        assert f'persistent_peers = "{",".join(peers)}"' in config
        for key in (node / ENGINE / "config").glob("*_key.json"):
            assert not key.stat().st_mode & 0o077
        assert transactions_in(node / CHAIN) == 50
        assert (node / "flightchain.env").read_text() == (
            "FLIGHTCHAIN_PORT=8000\nFLIGHTCHAIN_DATA=none\n"
        )


def test_a_reader_knows_the_voters_and_has_no_vote(configured: Path) -> None:
    done = configure(configured, "pi4", "--reader", "--peer-port", 27000)
    assert done.exit_code == 0, done.output
    node = configured / "node4"
    membership = membership_in(node / ENGINE)
    assert identity_in(node / ENGINE, membership).index is None
    assert len(membership.members) == len(HOSTS)
    genesis = [
        (configured / name / ENGINE / "config" / "genesis.json") for name in ("node0", "node4")
    ]
    assert genesis[0].read_bytes() == genesis[1].read_bytes()


def test_a_cluster_goes_on_with_the_ledger_of_a_single_node_and_what_is_pending_there(
    tmp_path: Path,
) -> None:
    single, folder = tmp_path / "single", tmp_path / "pis"
    settings = settings_for(single)
    seal(settings, [flights(30)])
    with client_of(settings) as client:
        assert client.post("/transactions?mode=sync", json=GOOD).status_code == 202
    done = configure(folder, "a", "b", "--chain", single)
    assert done.exit_code == 0, done.output
    assert transactions_in(folder / "node1" / CHAIN) == 31
    assert {path.name for path in folder.iterdir()} == {BASE, "node0", "node1", "hosts.json"}
    begun = json.loads((folder / "node0" / ENGINE / "config" / "genesis.json").read_bytes())
    assert begun["app_state"]["transactions"] == 31


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["pi 0"], "must be a host name or an IPv4 address"),
        (["pi0", "pi0"], "named twice"),
        (["pi0", "--reader"], "no cluster to which"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_left(
    tmp_path: Path, arguments: list[str], reason: str
) -> None:
    folder = tmp_path / "pis"
    done = configure(folder, *arguments)
    assert done.exit_code != 0
    assert reason in done.stderr
    assert not folder.exists()


def test_a_cluster_is_not_configured_over_another(configured: Path) -> None:
    before = sorted(path.name for path in configured.iterdir())
    done = configure(configured, "x", "y")
    assert done.exit_code != 0
    assert "has a cluster" in done.stderr
    assert sorted(path.name for path in configured.iterdir()) == before


def test_scripts_build_the_engine_that_the_code_wants() -> None:
    assert f"COMETBFT_VERSION={VERSION} " in (ROOT / "scripts" / "lib.sh").read_text()
