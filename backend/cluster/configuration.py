"""Makes the configuration of a cluster: for each node a folder that can be copied to its machine.

    NODE/engine/config/   genesis.json (the same for all), config.toml, node_key.json and, for a
                          voter, priv_validator_key.json
    NODE/engine/data/     what the engine keeps
    NODE/chain/           the chain that all begin with, a copy of the base
    NODE/flightchain.env  the settings of the service
    base/                 the chain that all begin with, for nodes that are added later

Keys are made here, so whoever makes the configuration has seen them all.
"""

import base64
import json
import re
import shutil
import tomllib
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from backend.base import files
from backend.base.errors import FlightchainError, InvalidSetting
from backend.base.file_names import bare_name
from backend.base.words import Report
from backend.chain.json_objects import Json
from backend.cluster.engine_files import CONFIG_ERRORS, KEY_NAME, STATE_NAME, config_unusable
from backend.cluster.log_key import common_key_in, common_key_path
from backend.cluster.membership import (
    LEEWAY_MS,
    MOST_MEMBERS,
    READERS_NAME,
    address_of,
    node_key_in,
)
from backend.storage.block_store import BlockStore
from backend.storage.layout import BLOCKS_FOLDER
from backend.trust.log import checkpoints
from backend.trust.log.secret_keys import LOG, key_in, new_key, secret_key
from backend.trust.log.successions import SUCCESSIONS_NAME, add_succession

ENGINE, CHAIN, BASE, SETTINGS_NAME = "engine", "chain", "base", "flightchain.env"
POWER = 10  # of each voter
MOST_STRANGERS = 200  # connections whose peers have not proved yet that they are members
_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}", re.ASCII)
_ADDRESS = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,250}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class Host:
    """Where a node runs.

    name: small letters, digits and _; another is InvalidInput, because a folder gets it. host: its
    address for peers and clients. peer_port, port: of the engine and of the service. bind: the
    address that the engine listens on. votes: whether the node has a vote.
    """

    name: str
    host: str
    peer_port: int
    port: int
    bind: str = "0.0.0.0"  # noqa: S104  peers come from other machines
    votes: bool = True

    def __post_init__(self) -> None:
        bare_name(self.name, _NAME)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"


def hosts_at(
    addresses: Sequence[str], port: int, peer_port: int, known: Sequence[Host] = ()
) -> list[Host]:
    """Return nodes after those that are `known`, each on a machine of its own.

    Raises InvalidSetting.
    """
    names = {host.host: host.name for host in known}
    for address in addresses:
        if address in names:
            raise InvalidSetting("host", address, f"is {names[address]} already")
        if not _ADDRESS.fullmatch(address):
            raise InvalidSetting("host", address, "must be a host name or an IPv4 address")
        if addresses.count(address) > 1:
            raise InvalidSetting("host", address, "is named twice")
    return [
        Host(f"node{i}", address, peer_port, port)
        for i, address in enumerate(addresses, len(known))
    ]


def make_cluster(folder: Path, hosts: Sequence[Host], interval_s: float, *, empty: bool) -> None:
    """Make the folders of all nodes in `folder`, which has the chain they begin with in `base`.

    interval_s, empty: as the settings of a single node say. Raises FlightchainError.
    """
    names = [host.name for host in hosts]
    if not 0 < len(hosts) <= MOST_MEMBERS or len(set(names)) < len(names):
        raise FlightchainError(
            f"a cluster must have 1 to {MOST_MEMBERS} nodes with different names, not "
            f"{len(hosts)}: {', '.join(names[:MOST_MEMBERS])}"
        )
    for host in hosts:
        _make_node(folder, host)
    share_log_key(folder, hosts)
    genesis = json.dumps(_genesis(folder, hosts, interval_s, empty=empty), indent=1)
    for host in hosts:
        _configure(folder, host, hosts, genesis)


def add_reader(folder: Path, host: Host, hosts: Sequence[Host]) -> None:
    """Make the folder of a node without a vote, which follows the cluster of `hosts`."""
    first = folder / hosts[0].name / ENGINE / "config" / "genesis.json"
    genesis = first.read_text("utf-8")
    _make_node(folder, host)
    _configure(folder, host, hosts, genesis)


def share_log_key(folder: Path, hosts: Sequence[Host], *, new: bool = False) -> None:
    """Give every node the same key for the log of the cluster in `folder`; a new one if `new`.

    A node takes it when it starts. If it is not new, it is the key that the first node has for the
    cluster, or has signed its chain with, or that of the chain with which all begin.
    """
    base, first = folder / BASE, folder / hosts[0].name
    with closing(BlockStore(base)) as store:
        origin = checkpoints.origin_of(store.place(0).hash.hex())
    key = common_key_in(first / ENGINE) or key_in(first / CHAIN) or secret_key(base, LOG, origin)
    key = key.without_predecessors()  # the node knows which its chain had
    if new:
        old, key = key, new_key(key.verifier.name, LOG)
        add_succession(base, old, key)  # for nodes that never had the old one
    data = str(key).encode()
    for host in hosts:
        path = common_key_path(folder / host.name / ENGINE)
        if not (path.exists() and path.read_bytes() == data):
            files.write_new(path, data, files.LOCK_MODE)
        if (base / SUCCESSIONS_NAME).exists():
            successions = (base / SUCCESSIONS_NAME).read_bytes()
            files.write_new(path.with_name(SUCCESSIONS_NAME), successions)


def admit_readers(folder: Path, hosts: Sequence[Host]) -> None:
    """Let every node of a cluster talk to those that have no vote."""
    readers = [peer_id(folder, host) for host in hosts if not host.votes]
    for host in hosts:
        path = folder / host.name / ENGINE / "config" / READERS_NAME
        if readers and path.parent.exists():
            _write(path, "".join(f"{reader}\n" for reader in readers))


def _make_node(folder: Path, host: Host) -> None:
    """Make the folder of a node with what concerns it alone."""
    node = folder / host.name
    if node.exists():
        raise FlightchainError(f"{node} exists already, and is kept; choose another --folder")
    for part in ("config", "data"):
        files.make_folder(node / ENGINE / part)
    state = json.dumps({"height": "0", "round": 0, "step": 0})
    _write(node / ENGINE / "data" / STATE_NAME, state)
    _write_key(node / ENGINE, "node_key.json", with_address=False)
    _write_key(node / ENGINE, KEY_NAME, with_address=True)
    shutil.copytree(folder / BASE / BLOCKS_FOLDER, node / CHAIN / BLOCKS_FOLDER)
    _write(node / SETTINGS_NAME, f"FLIGHTCHAIN_PORT={host.port}\nFLIGHTCHAIN_DATA=none\n")


def _write_key(home: Path, name: str, *, with_address: bool) -> None:
    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes_raw()
    key_file: Json = {"priv_key": _typed("PrivKeyEd25519", key.private_bytes_raw() + public)}
    if with_address:
        key_file["address"] = address_of(public).upper()
        key_file["pub_key"] = _typed("PubKeyEd25519", public)
    _write(home / "config" / name, json.dumps(key_file, indent=1), files.LOCK_MODE)


def _typed(kind: str, data: bytes) -> Json:
    return {"type": f"tendermint/{kind}", "value": base64.b64encode(data).decode()}


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    files.write_new(path, text.encode(), mode)


def _genesis(folder: Path, hosts: Sequence[Host], interval_s: float, *, empty: bool) -> Json:
    with closing(BlockStore(folder / BASE)) as store:
        height, tip = store.height(), store.place(store.height())
    keys = [_public(folder, host) for host in hosts]
    name = sha256(b"".join([tip.hash, *keys])).hexdigest()[:12]
    return {
        "genesis_time": datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "chain_id": f"flightchain-{name}",
        "initial_height": "1",
        "consensus_params": {
            "block": {"max_bytes": str(4 * 2**20), "max_gas": "-1"},
            "evidence": {
                "max_age_num_blocks": "100000",
                "max_age_duration": str(48 * 3600 * 10**9),
                "max_bytes": str(2**20),
            },
            "validator": {"pub_key_types": ["ed25519"]},
            "version": {"app": "0"},
            "abci": {"vote_extensions_enable_height": "0"},
        },
        "validators": [
            {"name": host.name, "pub_key": _voter_key(folder, host), "power": str(POWER)}
            for host in hosts
        ],
        "app_hash": "",
        "app_state": {
            "height": height,
            "hash": tip.hash.hex(),
            "transactions": tip.next_transaction,
            "interval_s": interval_s,
            "empty": empty,
            "members": [
                {"name": host.name, "key": key.hex(), "url": host.url}
                for host, key in zip(hosts, keys, strict=True)
            ],
        },
    }


def _public(folder: Path, host: Host) -> bytes:
    return node_key_in(folder / host.name / ENGINE).public_key().public_bytes_raw()


def _voter_key(folder: Path, host: Host) -> Json:
    path = folder / host.name / ENGINE / "config" / KEY_NAME
    key: Json = json.loads(path.read_bytes())["pub_key"]
    return key


def peer_id(folder: Path, host: Host) -> str:
    """Return the id of a node among the engine's peers."""
    return address_of(_public(folder, host))


def _configure(folder: Path, host: Host, hosts: Sequence[Host], genesis: str) -> None:
    """Write what the engine of a node must know of the cluster of `hosts`."""
    own = folder / host.name / ENGINE / "config"
    _write(own / "genesis.json", genesis)
    interval_s = float(json.loads(genesis)["app_state"]["interval_s"])
    written = config(
        host.name,
        f"tcp://{host.bind}:{host.peer_port}",
        f"{host.host}:{host.peer_port}",
        ",".join(f"{peer_id(folder, peer)}@{peer.host}:{peer.peer_port}" for peer in hosts),
        f"{interval_s:g}s",
        shares_address=host.host == host.bind,
    )
    _write(own / "config.toml", written)


def bring_up_to_date(home: Path, report: Report) -> None:
    """Add the settings to the engine's configuration that it lacks because it is older than these.

    A file that a person has changed stays as it is, and is reported. Raises FlightchainError.
    """
    path = home / "config" / "config.toml"
    try:
        text = path.read_text("utf-8")
        present = tomllib.loads(text)
        p2p = present["p2p"]
        newest = config(
            present["moniker"],
            p2p["laddr"],
            p2p["external_address"],
            p2p["persistent_peers"],
            present["consensus"]["create_empty_blocks_interval"],
            shares_address=p2p["allow_duplicate_ip"],
        )
    except CONFIG_ERRORS as error:
        raise config_unusable(path, error) from error
    lines = iter(newest.splitlines())
    if all(line in lines for line in text.splitlines()):
        if newest != text:
            _write(path, newest)
    elif not present.get("filter_peers"):
        report(
            f"{path} was changed by hand and stays as it is, but lacks `filter_peers = true`: "
            "strangers can keep this node from catching up; add it above [p2p]"
        )


def config(
    name: str,
    address: str,
    external_address: str,
    peers: str,
    interval: str,
    *,
    shares_address: bool,
) -> str:
    """Return the engine's configuration; what is not named has the engine's defaults.

    A block is proposed as soon as there are transactions, which `outbox` sends every interval, and
    an empty one after an interval without any, so that the time in headers stays current. A block
    whose time is further ahead of a node's clock than a flight's may be is refused.

    Strangers are refused (`Admission`), and must not take the places of members meanwhile.
    shares_address: whether nodes are at the same address; if not, an address has one connection.
    """
    ids = ",".join(peer.partition("@")[0] for peer in peers.split(","))
    return f"""\
moniker = "{name}"
abci = "socket"
filter_peers = true

[p2p]
laddr = "{address}"
external_address = "{external_address}"
persistent_peers = "{peers}"
persistent_peers_max_dial_period = "5s"
unconditional_peer_ids = "{ids}"
private_peer_ids = "{ids}"
max_num_inbound_peers = {MOST_STRANGERS}
handshake_timeout = "5s"
pex = false
addr_book_strict = false
allow_duplicate_ip = {"true" if shares_address else "false"}
flush_throttle_timeout = "10ms"
send_rate = 51200000
recv_rate = 51200000

[mempool]
max_tx_bytes = 1048576
max_txs_bytes = 67108864

[consensus]
timeout_propose = "1s"
timeout_propose_delta = "500ms"
timeout_prevote = "500ms"
timeout_precommit = "500ms"
timeout_commit = "100ms"
skip_timeout_commit = true
block_time_tolerance = "{LEEWAY_MS // 1000}s"
create_empty_blocks = true
create_empty_blocks_interval = "{interval}"
peer_gossip_sleep_duration = "10ms"

[storage]
discard_abci_responses = true

[tx_index]
indexer = "null"
"""
