"""What can happen to nodes of a cluster, each with the time in which it lasts and its end."""

import os
import random
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path

from backend.base.http_requests import NoAnswer
from backend.cluster.configuration import CHAIN, ENGINE, Host
from backend.cluster.engine import MODULE, VERSION
from backend.cluster.engine_files import STATE_NAME
from backend.cluster.local import LOG_NAME, LocalCluster
from backend.cluster.put_back import NOTE_NAME
from backend.index import damage_mark
from backend.mempool import FOLDER as MEMPOOL
from backend.storage.layout import BLOCKS_FOLDER
from backend.trust.cheating import Editor
from tests import go_programs
from tests.api.processes import processes_of
from tests.cluster.networks import LEFT, RIGHT
from tests.cluster.world import World, tip_of, until
from tests.faults.clocks import built
from tests.faults.full_disk import fill
from tests.harming import harm
from tests.index.worlds import in_use

AN_HOUR_S = 3600
STRANGER = Path(__file__).parent / "stranger" / "main.go"
STRANGERS, CLAIMED_HEIGHT = 25, 1_000_000  # at each node
FAILED = b"CONSENSUS FAILURE"
EVERYTHING = "/average_delays?INITIAL_DATE=1990-01-01&FINAL_DATE=2100-01-01&engine=scan"

Harm = Callable[[World, random.Random], AbstractContextManager[list[Host]]]
"""While it lasts, the nodes that it yields are harmed."""


@contextmanager
def killed(world: World, chance: random.Random, count: int = 1) -> Iterator[list[Host]]:
    """Nodes are killed."""
    hosts = chance.sample(world.hosts, count)
    for host in hosts:
        world.cluster.kill(host)
    yield hosts


@contextmanager
def two_killed(world: World, chance: random.Random) -> Iterator[list[Host]]:
    """Two of four nodes are killed, so that there is no quorum."""
    with killed(world, chance, 2) as hosts:
        yield hosts


@contextmanager
def all_killed(world: World, chance: random.Random) -> Iterator[list[Host]]:
    """All nodes are killed."""
    with killed(world, chance, len(world.hosts)) as hosts:
        yield hosts


@contextmanager
def stopped(world: World, chance: random.Random) -> Iterator[list[Host]]:
    """All processes of a node are stopped, and go on."""
    host = chance.choice(world.hosts)
    world.cluster.send(host, signal.SIGSTOP)
    try:
        yield [host]
    finally:
        world.cluster.send(host, signal.SIGCONT)


@contextmanager
def cut_off(world: World, chance: random.Random) -> Iterator[list[Host]]:
    """A node is cut off from the network; all its processes run."""
    host = chance.choice(world.hosts)
    assert world.networks is not None
    world.networks.cut(host)
    try:
        yield [host]
        until(lambda: world.post(host) == 503, "a node that is cut off refuses posts")
        heights = {node.name: tip_of(world.cluster, node).get("height", -1) for node in world.hosts}
        assert heights[host.name] < max(heights.values()), "a node that is cut off hears of blocks"
    finally:
        world.networks.mend(host)


@contextmanager
def halved(world: World, chance: random.Random) -> Iterator[list[Host]]:
    """The network falls into two halves, and neither has a quorum."""
    half = chance.sample(world.hosts, len(world.hosts) // 2)
    assert world.networks is not None
    for host in half:
        world.networks.plug(host, RIGHT)
    try:
        yield []
    finally:
        for host in half:
            world.networks.plug(host, LEFT)


@contextmanager
def engine_stopped(world: World, chance: random.Random) -> Iterator[list[Host]]:
    """The engine of a node is stopped, and goes on; its service runs."""
    host = chance.choice(world.hosts)
    engines = _engines(world, host)
    assert engines, f"{host.name} has no engine"
    for pid in engines:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield [host]
    finally:
        for pid in engines:
            if pid in _engines(world, host):
                os.kill(pid, signal.SIGCONT)


def _engines(world: World, host: Host) -> list[int]:
    """The processes of the engine of a node."""
    processes = processes_of(world.cluster.folder / host.name / CHAIN)
    return [pid for pid, arguments in processes.items() if "cometbft" in arguments[0]]


@contextmanager
def consensus_failed(world: World, chance: random.Random) -> Iterator[list[Host]]:
    """A node's engine cannot note its vote: its consensus fails, and its process lives on."""
    host = chance.choice(world.hosts)
    noted = world.cluster.folder / host.name / ENGINE / "data" / STATE_NAME
    kept = noted.with_suffix(".kept")
    noted.rename(kept)
    noted.mkdir()
    log = (world.cluster.folder / host.name / LOG_NAME).read_bytes
    failures = log().count(FAILED)
    try:
        world.post(host)
        until(lambda: log().count(FAILED) > failures, "consensus fails")
        yield [host]
    finally:
        noted.rmdir()
        kept.rename(noted)


@contextmanager
def damaged(world: World, chance: random.Random) -> Iterator[list[Host]]:
    """A bit of a block of a node is turned around; its chain is made anew at the end.

    Nodes of tests do not scrub, so that a reader has to meet the block.
    """
    with _rewritten(world, chance, _flip) as hosts:
        until(partial(_is_named, world, *hosts), "a reader's damaged block is named")
        yield hosts


def _is_named(world: World, host: Host) -> bool:
    with suppress(NoAnswer):
        world.cluster.answer(host, EVERYTHING)
    return "is damaged" in world.cluster.refusal(host)


@contextmanager
def altered(world: World, chance: random.Random) -> Iterator[list[Host]]:
    """Whoever runs a node changes a flight, and makes all blocks above it fit."""
    until(partial(_have_mined, world, world.hosts), "there are flights in blocks")
    with _rewritten(world, chance, _cheat) as hosts:
        yield hosts


@contextmanager
def _rewritten(
    world: World, chance: random.Random, rewrite: Callable[[Path, random.Random], None]
) -> Iterator[list[Host]]:
    host = chance.choice(world.hosts)
    world.cluster.kill(host)
    rewrite(world.cluster.folder / host.name / CHAIN, chance)
    world.cluster.start(host)
    until(lambda: bool(world.cluster.refusal(host)), "the node is not ready")
    try:
        yield [host]
        assert world.cluster.refusal(host), "a node with a wrong chain became ready"
    finally:
        world.cluster.kill(host)
        world.cluster.rebuild(host)


def _flip(chain: Path, chance: random.Random) -> None:
    harm(chance.choice(sorted((chain / BLOCKS_FOLDER).glob("blocks-*.dat"))), "flip", chance)


def _cheat(chain: Path, chance: random.Random) -> None:
    """Only blocks are written: what the node accepted and its receipts stay as they are."""
    scratch = chain.with_name("altered")
    shutil.copytree(chain / BLOCKS_FOLDER, scratch / BLOCKS_FOLDER)
    editor = Editor(scratch)
    height = chance.choice(
        [i for i, block in enumerate(editor.blocks) if block.header.transaction_count]
    )
    editor.change(height, 0, "ARR_DELAY", -59)
    editor.mine_again(height, len(editor.blocks) - 1)
    editor.save()
    shutil.rmtree(chain / BLOCKS_FOLDER)
    shutil.move(scratch / BLOCKS_FOLDER, chain / BLOCKS_FOLDER)
    shutil.rmtree(chain / "index", ignore_errors=True)
    shutil.rmtree(scratch)


@contextmanager
def strangers(world: World, chance: random.Random) -> Iterator[list[Host]]:
    """Many who are no members claim a height that nobody has reached, while a node starts.

    No node takes them for peers, believes them, or starts its engine again because of them.
    """
    program = go_programs.built(
        STRANGER, f"{MODULE.partition('/cmd/')[0]}@v{VERSION}", world.new_folder()
    )
    output = world.cluster.folder / "said-to-strangers"
    logs = {host: (world.cluster.folder / host.name / LOG_NAME) for host in world.hosts}
    begun = {host: log.stat().st_size for host, log in logs.items()}
    processes: list[subprocess.Popen[bytes]] = []

    def said_by(host: Host) -> bytes:
        return logs[host].read_bytes()[begun[host] :]

    try:
        with output.open("wb") as stream:
            for host in world.hosts:
                command = [*world.in_network_of(host), program, *world.peer_address(host)]
                command += [str(STRANGERS), str(CLAIMED_HEIGHT)]
                processes.append(subprocess.Popen(command, stdout=stream))
        host = chance.choice(world.hosts)
        world.cluster.kill(host)
        world.cluster.start(host)
        until(lambda: not world.cluster.refusal(host), "a node starts among strangers")
        until(
            lambda: all(b"is not a member of this cluster" in said_by(one) for one in logs),
            "every node turns strangers away",
        )
        yield []
        assert all(tip_of(world.cluster, one)["cluster"]["lag_blocks"] < 100 for one in world.hosts)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert output.read_bytes() == b"", "a node speaks to strangers"
    for host in logs:
        assert b"stood still" not in said_by(host), f"{host.name} starts again"


@contextmanager
def node_put_back(world: World, chance: random.Random) -> Iterator[list[Host]]:
    """A node runs with an older copy of its folder, and refuses until somebody has read why."""
    host = chance.choice(world.hosts)
    folder = world.cluster.folder / host.name
    world.cluster.kill(host)
    aside = world.new_folder()
    for part in (CHAIN, ENGINE):
        shutil.copytree(folder / part, aside / part, ignore=shutil.ignore_patterns("*.sock"))
    world.cluster.start(host)
    until(lambda: world.post(host) == 202, "a node that was started again accepts")
    world.settle()
    world.cluster.kill(host)
    for part in (CHAIN, ENGINE):
        shutil.rmtree(folder / part)
        shutil.copytree(aside / part, folder / part)
    world.cluster.start(host)
    try:
        until(
            lambda: "put back to an older copy" in world.cluster.refusal(host),
            "a node that was put back says so",
        )
        assert world.post(host) == 503
        yield [host]
        assert world.post(host) == 503
    finally:
        (folder / CHAIN / NOTE_NAME).unlink(missing_ok=True)


@contextmanager
def mempool_lost(world: World, chance: random.Random) -> Iterator[list[Host]]:
    """A node loses its mempool while it makes its chain anew, and misses no flight of a block."""
    host = chance.choice(world.hosts)
    chain = world.cluster.folder / host.name / CHAIN
    until(lambda: world.post(host) == 202, "a node accepts")
    world.settle()
    world.cluster.kill(host)
    shutil.rmtree(chain / MEMPOOL)
    world.cluster.rebuild(host)
    world.cluster.start(host)
    yield [host]
    until((chain / MEMPOOL).exists, "the mempool is rebuilt")
    until(lambda: not world.cluster.refusal(host), "a node without its mempool is ready again")


@contextmanager
def engine_file_damaged(world: World, chance: random.Random) -> Iterator[list[Host]]:
    """A file of a node's engine is damaged, which the node names, and which the remedy mends."""
    host = chance.choice(world.hosts)
    world.cluster.kill(host)
    name = chance.choice(
        ["config/node_key.json", f"data/{STATE_NAME}", "data/blockstore.db/CURRENT"]
    )
    path = world.cluster.folder / host.name / ENGINE / name
    whole = path.read_bytes()
    path.write_bytes(b"")
    world.cluster.start(host)
    try:
        until(lambda: _names(world, host, path), f"a node names {name}")
        yield [host]
    finally:
        refusal = world.cluster.refusal(host)
        world.cluster.kill(host)
        if path.parent.name == "config":
            path.write_bytes(whole)
        elif path.name == STATE_NAME:
            path.write_text(refusal.partition("write this into it: ")[2].partition("}")[0] + "}")
        else:
            world.cluster.rebuild(host, engine=True)


def _names(world: World, host: Host, path: Path) -> bool:
    """Returns whether a node says in `ready`, or `cluster status` for it, which file is wrong.

    Of its databases the engine names what it was doing.
    """
    line = f"{world.cluster.refusal(host)} {world.cluster.status_line(host)}"
    return path.name in line or ("--engine" in line and path.name == "CURRENT")


@contextmanager
def index_damaged(world: World, chance: random.Random) -> Iterator[list[Host]]:
    """A process marks a node's index as wrong; it is rebuilt though no block comes."""
    world.settle()
    host = chance.choice(world.hosts)
    folder = world.cluster.folder / host.name / CHAIN
    damaged, height = in_use(folder), tip_of(world.cluster, host)["height"]
    assert damage_mark.mark(damaged, "a page is not what was written")
    until(lambda: in_use(folder) != damaged, "a damaged index is rebuilt")
    until(lambda: not world.cluster.refusal(host), "a node with a new index is ready")
    assert tip_of(world.cluster, host)["height"] == height, "a block came meanwhile"
    yield []


@contextmanager
def full_disk(world: World, chance: random.Random) -> Iterator[list[Host]]:
    """The disk of the last node, which has one of its own, is full, and has room again."""
    host = world.hosts[-1]
    disk = (world.cluster.folder / host.name).resolve().parent
    fill(disk)
    try:
        yield [host]
    finally:
        (disk / "ballast").unlink()


@contextmanager
def clock_ahead(world: World, chance: random.Random) -> Iterator[list[Host]]:
    """The clock of the service of a node is an hour ahead."""
    host = chance.choice(world.hosts)
    folder = world.cluster.folder
    (folder / "offset").write_text(str(AN_HOUR_S))
    clock = {"LD_PRELOAD": str(built(folder)), "CLOCK_OFFSET": str(folder / "offset")}
    world.cluster.kill(host)
    ahead = LocalCluster(folder, {**world.settings, **clock})
    ahead.start(host)
    try:
        yield [host]
    finally:
        ahead.kill(host)


HARMS: dict[str, Harm] = {
    "one killed": killed,
    "two killed": two_killed,
    "all killed": all_killed,
    "one stopped": stopped,
    "one engine stopped": engine_stopped,
    "one consensus failed": consensus_failed,
    "one cut off": cut_off,
    "two halves": halved,
    "a block damaged": damaged,
    "a block altered": altered,
    "an engine's file damaged": engine_file_damaged,
    "a node put back": node_put_back,
    "a mempool lost": mempool_lost,
    "strangers": strangers,
    "an index damaged": index_damaged,
    "a full disk": full_disk,
    "a clock ahead": clock_ahead,
}
WITHOUT_QUORUM = {"two killed", "all killed", "two halves"}
NEED_NETWORKS = {"one cut off", "two halves"}


def endure(world: World, name: str, chance: random.Random) -> None:
    """Let a harm happen while flights are posted, and settle. Raises AssertionError.

    Only nodes that are not harmed must answer, and they accept unless there is no quorum.
    """
    world.post_everywhere(1)
    with HARMS[name](world, chance) as harmed:
        sound = [host for host in world.hosts if host not in harmed]
        for host in sound:
            wanted = 503 if name in WITHOUT_QUORUM else 202
            until(
                partial(_is_answered, world, host, wanted), f"{name}: posts are answered {wanted}"
            )
        world.post_everywhere(1)
        if name not in WITHOUT_QUORUM:
            until(partial(_have_mined, world, sound), f"{name}: the others mine")
    world.settle()


def _is_answered(world: World, host: Host, status: int) -> bool:
    answer = world.post(host)
    assert answer in {0, 202, 503}, f"{host.name} answers a post with {answer}"
    return answer == status


def _have_mined(world: World, hosts: list[Host]) -> bool:
    return all(tip_of(world.cluster, host).get("pending") == 0 for host in hosts)
