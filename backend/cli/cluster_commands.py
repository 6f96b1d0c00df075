"""Defines the commands of `python -m backend cluster`: a cluster on one machine, or on several."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from backend.base.errors import FlightchainError
from backend.base.files import is_locked
from backend.base.progress import counting
from backend.base.settings import PROJECT, Settings, variable
from backend.cli.output import say
from backend.cli.paths import LocalPath, require_no_ledger

READY_WITHIN_S = 120.0
HIGHEST_PORT = 65535
_PORT, _FREE_OR_PORT = click.IntRange(1, HIGHEST_PORT), click.IntRange(0, HIGHEST_PORT)
_FOLDER = click.option(
    "--folder",
    type=LocalPath(),
    default=PROJECT / "chain_data" / "cluster",
    help="Folder of all nodes (chain_data/cluster).",
)
_CHAIN = click.option(
    "--chain",
    type=LocalPath(exists=True, file_okay=False),
    help="Ledger to begin with: the folder of a service, which must be stopped.",
)


@click.group()
def cluster() -> None:
    """Run or configure nodes that keep the same ledger."""


@cluster.command()
@click.argument("nodes", type=click.IntRange(1, 64))
@_FOLDER
@click.option(
    "--port", type=_FREE_OR_PORT, default=8000, show_default=True, help="Port of node 0; 0: any."
)
@click.option(
    "--peer-port",
    type=_FREE_OR_PORT,
    default=26600,
    show_default=True,
    help="Port of node 0 for its peers; 0: any.",
)
@_CHAIN
@click.pass_obj
def up(
    settings: Settings, nodes: int, folder: Path, port: int, peer_port: int, chain: Path | None
) -> None:
    """Start a cluster of NODES on this machine.

    If there is none, it is made, with the ledger of --chain or what FLIGHTCHAIN_DATA names. A
    cluster that exists keeps its ports and its chain, and its nodes that do not run are started.
    The command ends when the cluster is ready.
    """
    from backend.cluster.configuration import admit_readers, share_log_key
    from backend.cluster.engine import program
    from backend.cluster.local import hosts_on_loopback

    for option, first in (("--port", port), ("--peer-port", peer_port)):
        if first and (last := first + nodes - 1) > HIGHEST_PORT:
            raise click.UsageError(
                f"{option} {first}: the last of {nodes} nodes would need port {last}, but the "
                f"highest is {HIGHEST_PORT}; choose a lower one"
            )
    local = _local(folder, is_here=True)
    _require_kept(local)
    hosts = local.hosts or hosts_on_loopback(nodes, port, peer_port)
    _require_ports(local, hosts)
    program()
    if not local.hosts:
        _make_base(settings, folder, chain)
        local.make(hosts, settings.mine_interval_s, empty=bool(settings.mine_empty))
    admit_readers(local.folder, local.hosts)  # what a cluster lacks that is older than these
    share_log_key(local.folder, local.hosts)
    for host in local.hosts:
        local.start(host)
    local.wait_until_ready(local.voters, READY_WITHIN_S)
    if nodes != len(local.voters):
        say(f"the cluster in {folder} keeps its {len(local.voters)} voters, whatever NODES says")
    _show(local)


def _require_kept(local: Any) -> None:
    """Raise FlightchainError for an option that a cluster would ignore, as it is made already."""
    context = click.get_current_context()
    for host in local.hosts[:1]:
        kept = {"port": host.port, "peer_port": host.peer_port, "chain": None}
        for name, value in kept.items():
            is_given = context.get_parameter_source(name) == ParameterSource.COMMANDLINE
            if is_given and context.params[name] not in {0, value}:
                raise FlightchainError(
                    f"the cluster in {local.folder} keeps its ports and its chain; leave out "
                    f"--{name.replace('_', '-')}, or choose another --folder"
                )


def _require_ports(local: Any, hosts: list[Any]) -> None:
    """Raise FlightchainError if something else has a port of a node that is to be started."""
    from backend.service.supervisor import require_port

    new = " and --folder, as a cluster keeps its ports" if local.hosts else ""
    for host in hosts:
        if local.pid(host) is None:
            for port, option in ((host.port, "--port"), (host.peer_port, "--peer-port")):
                remedy = f"stop the program that uses it, or choose another {option}{new}"
                require_port(host.host, port, remedy)


def _local(folder: Path, *, is_made: bool = False, is_here: bool = False) -> Any:
    """Return the cluster in a folder.

    Raises FlightchainError if it must be made, and is not, or be here, and is configured for other
    machines.
    """
    from backend.cluster.local import LOOPBACK, LocalCluster

    local = LocalCluster(folder)
    if is_made and not local.hosts:
        raise FlightchainError(f"{folder} has no cluster; make one first, or name its --folder")
    if is_here and any(host.bind != LOOPBACK for host in local.hosts):
        raise FlightchainError(
            f"the nodes in {folder} are for machines of their own; docs/how-to/cluster.md says "
            "what to do there"
        )
    return local


def _make_base(settings: Settings, folder: Path, chain: Path | None) -> None:
    """Make the chain that all nodes begin with: that of `chain`, or as `scripts/run` would."""
    from backend.cluster.configuration import BASE
    from backend.cluster.log_key import take_key
    from backend.sealing.miner_status import LOCK_NAME
    from backend.verify.backup import restore

    require_no_ledger(folder)
    if chain and is_locked(chain / LOCK_NAME):
        raise FlightchainError(
            f"a service runs on the ledger in {chain}; stop it first, or the cluster lacks flights "
            "that it accepts meanwhile"
        )
    folder = folder.absolute()  # the commands below run elsewhere
    base, copy = folder / BASE, folder / "copy"
    if chain is None:
        _run(base, "import", "--if-empty")
    else:
        folder.mkdir(parents=True, exist_ok=True)
        _run(chain.absolute(), "backup", str(copy))
        at_base = replace(settings, dir=str(base), cluster="none")
        restore(at_base, copy, watched=partial(counting, unit="block"), report=say)
        shutil.rmtree(copy)
        take_key(chain.absolute(), base)
    _run(base, "mine", "--once")  # what is pending


def _run(folder: Path, *command: str) -> None:
    done = subprocess.run(  # noqa: S603  our own commands
        [sys.executable, "-m", "backend", *command],
        cwd=PROJECT,
        env=os.environ | {variable("dir"): str(folder), variable("cluster"): "none"},
        stdout=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode:
        raise FlightchainError(
            f"the first chain of the cluster was not made, because `{' '.join(command)}` failed"
        )


@cluster.command()
@click.argument("hosts", nargs=-1, required=True, metavar="HOST...")
@_FOLDER
@click.option("--port", type=_PORT, default=8000, show_default=True, help="Port of each service.")
@click.option("--peer-port", type=_PORT, default=26656, show_default=True, help="Port for peers.")
@click.option("--reader", is_flag=True, help="Configure one more node, without a vote.")
@_CHAIN
@click.pass_obj
def configure(
    settings: Settings,
    hosts: tuple[str, ...],
    folder: Path,
    port: int,
    peer_port: int,
    reader: bool,
    chain: Path | None,
) -> None:
    """Make the configuration of a cluster on several machines.

    HOST is the address or name by which the other machines reach a machine. The command makes a
    folder for each machine; copy it there. It holds secret keys. Nothing is started.
    """
    from backend.cluster.configuration import hosts_at, peer_id
    from backend.cluster.membership import READERS_NAME

    local = _local(folder)
    known = local.hosts
    if reader != bool(known):
        raise FlightchainError(
            f"{folder} has a cluster already; choose another --folder, or add --reader to "
            "configure one more node of it"
            if known
            else f"{folder} has no cluster to add a reader to; leave out --reader to make one"
        )
    new_hosts = hosts_at(hosts, port, peer_port, known)
    if reader:
        for host in new_hosts:
            local.add(host)
    else:
        _make_base(settings, folder, chain)
        local.make(new_hosts, settings.mine_interval_s, empty=bool(settings.mine_empty))
    for host in new_hosts:
        click.echo(f"{folder / host.name}  for {host.host}")
    for host in new_hosts if reader else []:
        click.echo(
            f"add its id to the file engine/config/{READERS_NAME} of every other node, or they "
            f"refuse it: {peer_id(folder, host)}"
        )


@cluster.command()
@_FOLDER
def status(folder: Path) -> None:
    """Show the status of each node."""
    _show(_local(folder, is_made=True))


def _show(local: Any) -> None:
    for host in local.hosts:
        click.echo(local.status_line(host))


@cluster.command()
@_FOLDER
def down(folder: Path) -> None:
    """Stop all nodes. Their folders stay."""
    local = _local(folder, is_made=True)
    local.stop(local.hosts)


@cluster.command()
@_FOLDER
def add(folder: Path) -> None:
    """Add a node without a vote, which answers questions."""
    from backend.cluster.local import hosts_on_loopback

    local = _local(folder, is_made=True, is_here=True)
    (host,) = hosts_on_loopback(1, 0, 0, first=len(local.hosts))
    local.add(host)
    local.start(host)
    click.echo(f"{host.name}  {host.url}")


@cluster.command("log-key")
@click.option("--new", is_flag=True, help="Make a new key, which the old one signs.")
@_FOLDER
def log_key(folder: Path, new: bool) -> None:
    """Give all nodes one key that signs the log.

    Nodes take it at their next start. If they have keys of their own, the key of the first node is
    taken. For nodes on machines of their own, first copy there the files that the command names.
    """
    from backend.cluster.configuration import ENGINE, share_log_key
    from backend.cluster.log_key import common_key_path

    local = _local(folder, is_made=True)
    share_log_key(local.folder, local.hosts, new=new)
    for host in local.hosts:
        click.echo(f"{common_key_path(local.folder / host.name / ENGINE)}  for {host.host}")


@cluster.command()
@click.argument("node")
@_FOLDER
def kill(node: str, folder: Path) -> None:
    """Kill all processes of NODE at once.

    NODE is a name or a number; `up` starts it again.
    """
    local = _local(folder, is_made=True, is_here=True)
    local.kill(local.node(node))


@cluster.command()
@click.argument("node")
@click.option(
    "--engine", is_flag=True, help="Also put aside its engine's data, which are damaged, too."
)
@_FOLDER
def rebuild(node: str, folder: Path, engine: bool) -> None:
    """Give NODE, whose chain is damaged, a new chain.

    NODE must not run. The command puts its chain aside, keeps the flights that it accepted, and
    starts it.
    """
    local = _local(folder, is_made=True, is_here=True)
    host = local.node(node)
    aside = local.rebuild(host, engine=engine)
    local.start(host)
    click.echo(f"{host.name} fetches its chain; what it had is in {aside}")


COMMANDS = [cluster]
