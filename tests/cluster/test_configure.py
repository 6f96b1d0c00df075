"""The configuration of a cluster on several machines."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from backend.base.errors import FlightchainError
from backend.base.files import FileLock
from backend.cli.commands import main
from backend.cluster.configuration import BASE, CHAIN, ENGINE, bring_up_to_date
from backend.cluster.engine import VERSION
from backend.cluster.membership import (
    MOST_NAMED,
    READERS_NAME,
    Admission,
    address_of,
    identity_in,
    membership_in,
    node_key_in,
)
from backend.trust.log import KEY_NAME
from backend.trust.log.rotation import rotate
from backend.trust.log.successions import SUCCESSIONS_NAME
from tests.api.processes import ROOT
from tests.api.worlds import GOOD, client_of, seal, settings_for
from tests.flights import flights, transactions_in

pytestmark = pytest.mark.slow

HOSTS = ("pi0.local", "192.168.1.11", "192.168.1.12", "pi3")


def configure(folder: Path, *arguments: object, **more: str) -> Result:
    """Run the command in this process."""
    runner = CliRunner(env={"FLIGHTCHAIN_DATA": "generate:50", "FLIGHTCHAIN_DIR": "unused", **more})
    given = ["cluster", "configure", *map(str, arguments), "--folder", str(folder)]
    return runner.invoke(main, given, prog_name="python -m backend")


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders made by a command whose folder is that of the caller, not of what it calls."""
    folder = tmp_path_factory.mktemp("configured") / "pis"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder.parent)
        given = (*HOSTS, "--peer-port", 27000)
        done = configure(Path("pis"), *given, FLIGHTCHAIN_MINE_INTERVAL_S="5")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [f"pis/node{i}  for {host}" for i, host in enumerate(HOSTS)]
    return folder


def test_each_machine_gets_a_folder_with_keys_peers_chain_and_settings(configured: Path) -> None:
    for i, host in enumerate(HOSTS):
        node = configured / f"node{i}"
        membership = membership_in(node / ENGINE)
        assert identity_in(node / ENGINE, membership).index == i
        genesis = json.loads((node / ENGINE / "config" / "genesis.json").read_bytes())
        urls = [member["url"] for member in genesis["app_state"]["members"]]
        assert urls == [f"http://{h}:8000" for h in HOSTS]
        assert membership.interval_s == 5
        config = (node / ENGINE / "config" / "config.toml").read_text()
        assert 'laddr = "tcp://0.0.0.0:27000"' in config
        assert f'external_address = "{host}:27000"' in config
        peers = [
            f"{one.peer_id}@{h}:27000" for one, h in zip(membership.members, HOSTS, strict=True)
        ]
        assert f'persistent_peers = "{",".join(peers)}"' in config
        assert "filter_peers = true\n" in config
        assert 'block_time_tolerance = "120s"' in config  # as docs/how-to/cluster.md says
        assert (
            f'unconditional_peer_ids = "{",".join(p.peer_id for p in membership.members)}"'
            in config
        )
        assert "allow_duplicate_ip = false" in config
        assert 'create_empty_blocks_interval = "5s"' in config
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
    evidence = json.loads(genesis[0].read_bytes())["consensus_params"]["evidence"]
    assert evidence["max_age_duration"] == f"{2 * 24 * 3600}{'0' * 9}"  # nanoseconds of two days


def test_a_reader_is_named_to_those_that_would_refuse_it(configured: Path) -> None:
    done = configure(configured, "pi5", "--reader", "--peer-port", 27000)
    (name,) = {path.name for path in configured.glob("node*")} - {f"node{i}" for i in range(5)}
    reader = address_of(node_key_in(configured / name / ENGINE).public_key().public_bytes_raw())
    assert done.stdout.splitlines()[-1].endswith(f": {reader}")
    home, reported = configured / "node0" / ENGINE, list[str]()
    admission = Admission(home, membership_in(home), reported.append)
    voter = membership_in(home).members[1].peer_id
    assert [admission.refusal(peer) for peer in (reader, voter)] == ["", ""]
    strangers = [f"{i:040x}" for i in range(100)]
    assert all("not a member of this cluster" in admission.refusal(peer) for peer in strangers * 2)
    assert len(reported) == MOST_NAMED
    path = home / "config" / READERS_NAME
    assert str(path) in reported[0]
    path.write_text(f"{strangers[1]} {strangers[2]}\n\n{reader}\n")  # as a person may write them
    assert [admission.refusal(peer) for peer in (*strangers[1:3], reader)] == ["", "", ""]
    path.unlink()
    assert "not a member" in admission.refusal(reader)  # no longer a reader


def test_an_older_configuration_is_brought_up_to_date_and_one_that_was_changed_is_not(
    configured: Path, tmp_path: Path
) -> None:
    newest = (configured / "node1" / ENGINE / "config" / "config.toml").read_text()
    added = (
        "filter_peers",
        "unconditional",
        "private",
        "max_num_inbound",
        "handshake_timeout",
        "block",
    )
    lines = [line for line in newest.splitlines() if not line.startswith(added)]
    path, reported = tmp_path / "config" / "config.toml", list[str]()
    path.parent.mkdir()
    for text, wanted in ((newest, newest), ("\n".join(lines) + "\n", newest)):
        path.write_text(text)
        bring_up_to_date(tmp_path, reported.append)
        assert (path.read_text(), reported) == (wanted, [])
    by_hand = "\n".join(["# mine", *lines])
    path.write_text(by_hand)
    bring_up_to_date(tmp_path, reported.append)
    assert path.read_text() == by_hand
    assert "filter_peers" in reported[0]
    for damaged in ("", newest[:100], "moniker = 3"):
        path.write_text(damaged)
        with pytest.raises(FlightchainError, match="put back a copy"):
            bring_up_to_date(tmp_path, reported.append)


def test_a_cluster_goes_on_with_the_ledger_of_a_single_node_and_what_is_pending_there(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    single, folder = tmp_path / "single", tmp_path / "pis"
    settings = settings_for(single)
    seal(settings, [flights(30)])
    with client_of(settings) as client:
        assert client.post("/transactions?mode=sync", json=GOOD).status_code == 202
    key = str(rotate(single).without_predecessors()).encode()
    signed = (single / SUCCESSIONS_NAME).read_bytes()  # the key, by the one before
    done = configure(folder, "a", "b", "--chain", single)
    assert done.exit_code == 0, done.output
    assert KEY_NAME not in done.stderr + capfd.readouterr().err  # it is taken along
    assert transactions_in(folder / "node1" / CHAIN) == 31
    assert {path.name for path in folder.iterdir()} == {BASE, "node0", "node1", "hosts.json"}
    for node in ("node0", "node1"):
        config = folder / node / ENGINE / "config"
        assert (config / KEY_NAME).read_bytes() == key
        assert (config / SUCCESSIONS_NAME).read_bytes() == signed
    begun = json.loads((folder / "node0" / ENGINE / "config" / "genesis.json").read_bytes())
    assert begun["app_state"]["transactions"] == 31


def test_a_cluster_does_not_begin_without_the_ledger_that_is_wanted_or_in_the_folder_of_one(
    tmp_path: Path,
) -> None:
    single, folder = tmp_path / "single", tmp_path / "pis"
    seal(settings_for(single), [flights(3)])
    with FileLock(single / "miner.lock"):
        done = configure(folder, "a", "b", "--chain", single)
    assert done.exit_code == 1
    assert f"a service runs on the ledger in {single}; stop it first" in done.stderr
    assert not folder.exists()
    done = configure(single, "a", "b")
    assert (done.exit_code, f"belongs to the ledger in {single}" in done.stderr) == (1, True)
    done = configure(folder, "a", "b", FLIGHTCHAIN_DATA="/no/such/file")
    assert done.exit_code == 1
    assert "was not made, because `import --if-empty` failed" in done.stderr
    assert not (folder / "node0").exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["pi 0"], "must be a host name or an IPv4 address"),
        (["pi0", "pi0"], "named twice"),
        (["pi0", "--reader"], "no cluster to add a reader to"),
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


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["x", "y"], "has a cluster already; choose another --folder, or add --reader"),
        (["pi3", "--reader"], "host 'pi3': is node3 already"),
    ],
)
def test_a_cluster_is_not_configured_over_another(
    configured: Path, arguments: list[str], reason: str
) -> None:
    before = sorted(path.name for path in configured.iterdir())
    done = configure(configured, *arguments)
    assert done.exit_code != 0
    assert reason in done.stderr
    assert sorted(path.name for path in configured.iterdir()) == before


@pytest.mark.parametrize("command", [["up", "4"], ["add"], ["kill", "1"], ["rebuild", "1"]])
def test_nodes_for_other_machines_are_not_run_here(configured: Path, command: list[str]) -> None:
    before = sorted(configured.rglob("*"))
    done = CliRunner().invoke(main, ["cluster", *command, "--folder", str(configured)])
    assert (done.exit_code, "machines of their own" in done.stderr) == (1, True)
    assert sorted(configured.rglob("*")) == before


def test_scripts_build_the_engine_that_the_code_wants() -> None:
    assert f"COMETBFT_VERSION={VERSION} " in (ROOT / "scripts" / "lib.sh").read_text()
