"""Runs a cluster on one machine, each node a service of its own, for trying and for tests.

The folder holds what `configuration` makes, `hosts.json`, and for each node `pid` and `log`. A node
is the supervisor (`python -m backend serve`) with all its processes.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import SystemRandom

from backend.base import files
from backend.base.errors import FlightchainError, InvalidInput
from backend.base.http_requests import NoAnswer, ask
from backend.base.settings import PREFIX, PROJECT
from backend.base.state_file import StateFile
from backend.base.words import printable
from backend.chain.json_objects import Json, object_of
from backend.cluster import configuration
from backend.cluster.configuration import BASE, CHAIN, ENGINE, Host
from backend.cluster.engine_files import STATE_NAME
from backend.cluster.log_key import common_key_in, common_key_path
from backend.serving.ports import why_not_free
from backend.storage.genesis import genesis_in
from backend.storage.layout import BLOCKS_FOLDER
from backend.storage.receipt_store import FILE_NAME as RECEIPTS_NAME
from backend.trust.log import checkpoints
from backend.trust.log.checkpoints import Checkpoint
from backend.trust.log.notes import Note, NoteError, signed_at

HOSTS_NAME, PID_NAME, LOG_NAME = "hosts.json", "pid", "log"
HOSTS = StateFile(HOSTS_NAME, list[Host])
LOOPBACK = "127.0.0.1"
PORTS = range(20_000, 32_768)  # below those that Linux gives to connections, which would take them
STOP_WITHIN_S = 60.0
ANSWER_WITHIN_S = 2.0
LOG_TAIL_BYTES = 4096
RESTARTED = b"; starting it again in"  # a line of the supervisor, after that which says why


def free_ports(count: int) -> list[int]:
    """Return ports of loopback that nobody listens on now."""
    candidates = SystemRandom().sample(PORTS, len(PORTS))
    return list(islice((port for port in candidates if not why_not_free(LOOPBACK, port)), count))


def hosts_on_loopback(count: int, port: int, peer_port: int, first: int = 0) -> list[Host]:
    """Return nodes `first` and after. port, peer_port: of node 0, then the next; 0: free ones."""
    ports = free_ports(2 * count)
    return [
        Host(
            f"node{i}",
            LOOPBACK,
            peer_port + i if peer_port else ports.pop(),
            port + i if port else ports.pop(),
            LOOPBACK,
        )
        for i in range(first, first + count)
    ]


class LocalCluster:
    """The cluster in `folder`."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        """environment: settings of all nodes, besides those of this process."""
        self.folder = folder.absolute()
        self._environment = dict(environment or {})
        self._processes: list[subprocess.Popen[bytes]] = []  # that were started here

    @property
    def hosts(self) -> list[Host]:
        """The nodes in their order; none if there is no cluster. Raises FlightchainError."""
        try:
            return HOSTS.load(self.folder)
        except FileNotFoundError:
            return []
        except (ValueError, InvalidInput) as error:
            path = self.folder / HOSTS_NAME
            raise FlightchainError(f"{path} is damaged ({error}); put back a copy") from error

    @property
    def voters(self) -> list[Host]:
        return [host for host in self.hosts if host.votes]

    def make(self, hosts: list[Host], interval_s: float, *, empty: bool) -> None:
        """Make the configuration of new nodes, which begin with the chain in `base`."""
        configuration.make_cluster(self.folder, hosts, interval_s, empty=empty)
        HOSTS.write(self.folder, hosts)

    def add(self, host: Host) -> None:
        """Make the configuration of a node that only reads."""
        hosts = self.hosts
        host = replace(host, votes=False)
        configuration.add_reader(self.folder, host, hosts)
        HOSTS.write(self.folder, [*hosts, host])
        configuration.admit_readers(self.folder, self.hosts)
        configuration.share_log_key(self.folder, self.hosts)

    def node(self, name: str) -> Host:
        """Return a node by its name or its number. Raises FlightchainError."""
        for host in self.hosts:
            if name in {host.name, host.name.removeprefix("node")}:
                return host
        names = ", ".join(host.name for host in self.hosts)
        raise FlightchainError(f"{self.folder} has no node {name}, but {names}")

    def start(self, host: Host) -> None:
        """Start a node, unless it runs."""
        if self.pid(host) is not None:
            return
        node = self.folder / host.name
        inherited = {name: value for name, value in os.environ.items() if name != f"{PREFIX}DATA"}
        settings = {
            "DIR": node / CHAIN,
            "CLUSTER": node / ENGINE,
            "HOST": host.host,
            "PORT": host.port,
            "DATA": "none",
        }
        environment = inherited | {PREFIX + name: str(value) for name, value in settings.items()}
        with (node / LOG_NAME).open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "backend", "serve"],
                cwd=PROJECT,
                env=environment | self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._processes.append(process)
        files.write_new(node / PID_NAME, f"{process.pid} {_started(process.pid)}\n".encode())

    def pid(self, host: Host) -> int | None:
        """Return the process of a node; None if it does not run."""
        try:
            text = (self.folder / host.name / PID_NAME).read_text(encoding="ascii")
        except FileNotFoundError:
            return None
        pid, _, started = text.rstrip().partition(" ")  # it may have ended before it was looked at
        return int(pid) if started and _started(int(pid)) == started else None

    def _processes_of(self, host: Host) -> list[int]:
        """Return a node's process and those below it; none if it does not run."""
        pid = self.pid(host)
        return [] if pid is None else [pid, *_descendants(pid)]

    def stop(self, hosts: list[Host]) -> None:
        """End nodes in order, and wait until they have ended. Raises FlightchainError."""
        trees = list(map(self._processes_of, hosts))
        _signal([pid for tree in trees for pid in tree[:1]], signal.SIGTERM)
        self._reap([pid for tree in trees for pid in tree], "do not end")

    def kill(self, host: Host) -> None:
        """Kill all processes of a node at once, as a power cut does. Raises FlightchainError."""
        self.send(host, signal.SIGSTOP)  # so that none is started again meanwhile
        tree = self._processes_of(host)
        _signal(tree, signal.SIGKILL)
        self._reap(tree, f"of {host.name} do not die")

    def rebuild(self, host: Host, *, engine: bool = False) -> Path:
        """Put aside what a node that does not run has of the chain. Returns the folder for that.

        engine: whether the engine's data are put aside, too, but for the newest vote. When it is
        started it gets everything from them or from the others, from the chain in `base` on. What
        it has accepted stays. Raises FlightchainError.
        """
        if self.pid(host) is not None:
            raise FlightchainError(f"{host.name} runs; kill it first")
        chain = self.folder / host.name / CHAIN
        aside = chain.with_name(f"aside-{time.time_ns()}")
        files.make_folder(aside)
        for name in (BLOCKS_FOLDER, "index", RECEIPTS_NAME):
            if (chain / name).exists():
                files.rename(chain / name, aside / name)
        shutil.copytree(self.folder / BASE / BLOCKS_FOLDER, chain / BLOCKS_FOLDER)
        data = self.folder / host.name / ENGINE / "data"
        for path in sorted(data.iterdir()) if engine else []:
            if path.name != STATE_NAME:
                files.rename(path, aside / path.name)
        return aside

    def send(self, host: Host, number: signal.Signals) -> None:
        _signal(self._processes_of(host), number)

    def _reap(self, pids: list[int], what: str) -> None:
        """Wait until processes have ended, also those that would stay as zombies of this one."""
        until = time.monotonic() + STOP_WITHIN_S
        while running := [pid for pid in pids if _started(pid)]:
            if time.monotonic() > until:
                raise FlightchainError(f"processes {running} {what}")
            time.sleep(0.02)
        self._processes = [process for process in self._processes if process.poll() is None]

    def answer(self, host: Host, path: str = "/tip") -> Json:
        """Return the JSON that a node answers with, be it a problem. Raises NoAnswer."""
        body = ask(host.url + path, within_s=ANSWER_WITHIN_S).body
        if (answer := object_of(body)) is None:
            raise NoAnswer(f"{host.url}{path} answers with no JSON object: {body[:80]!r}")
        return answer

    def refusal(self, host: Host) -> str:
        """Return why a node is not ready; "" if it is."""
        try:
            answer = self.answer(host, "/health/ready")
        except NoAnswer as error:
            return self._silence(host, error)
        return "" if answer.get("status") == "ready" else _problem(answer)

    def status_line(self, host: Host) -> str:
        """Return a line that says how a node does, whatever it answers."""
        name = f"{host.name}  {host.url}"
        try:
            tip = self.answer(host)
        except NoAnswer as error:
            return f"{name}  {self._silence(host, error)}"
        checkpoint = self._checkpoint(host)
        if self._is_foreign(host, checkpoint):
            return f"{name}  does not run here: another service answers at its address"
        try:
            cluster = tip["cluster"]
            return (
                f"{name}  block {tip['height']} {tip['hash'][:16]}  "
                f"{tip['transactions']} transactions, {tip['pending']} pending, "
                f"{cluster['votes']} of {cluster['votes_total']} votes; "
                f"{self.refusal(host) or 'ready'}{self._other_key(host, checkpoint)}"
            )
        except (KeyError, TypeError):
            refusal = self.refusal(host)
            return f"{name}  cannot show its tip: {_problem(tip)}" + (refusal and f"; {refusal}")

    def _silence(self, host: Host, error: NoAnswer) -> str:
        """Return what can be said of a node that does not answer."""
        state = "does not run here" if self.pid(host) is None else "runs"
        last = self.last_message(host)
        return f"{state}: {error}{last and f'; the last line of its log: {last}'}"

    def _checkpoint(self, host: Host) -> tuple[Note, Checkpoint] | None:
        """Return what a node has signed last; None if it shows nothing of the kind."""
        try:
            answer = ask(f"{host.url}/log/checkpoint", within_s=ANSWER_WITHIN_S)
            return checkpoints.in_note(answer.body)
        except (NoAnswer, NoteError):
            return None

    def _is_foreign(self, host: Host, checkpoint: tuple[Note, Checkpoint] | None) -> bool:
        """Return whether what answers at the address of a node belongs to something else."""
        genesis = genesis_in(self.folder / BASE)
        if checkpoint and genesis and not checkpoints.is_origin_of(checkpoint[1].origin, genesis):
            return True
        return host.bind == LOOPBACK and self.pid(host) is None  # else it may run elsewhere

    def _other_key(self, host: Host, checkpoint: tuple[Note, Checkpoint] | None) -> str:
        """Say that a node signs with another key than it would after a start; "" if not."""
        path = common_key_path(self.folder / host.name / ENGINE)
        try:
            key = common_key_in(self.folder / host.name / ENGINE)
            if not (key and checkpoint) or signed_at(checkpoint[0], key.verifier) is not None:
                return ""
        except (FlightchainError, NoteError) as error:
            return f"; {error}"
        return f", but signs the log with another key than {path}: stop and start this node"

    def last_message(self, host: Host) -> str:
        """Return the last line of a node's log; "" without one."""
        try:
            lines = (self.folder / host.name / LOG_NAME).read_bytes()[-LOG_TAIL_BYTES:].splitlines()
        except OSError:
            return ""
        messages = [line for line in lines if RESTARTED not in line] or lines
        return printable(messages[-1].decode(errors="replace")) if messages else ""

    def wait_until_ready(self, hosts: list[Host], within_s: float) -> None:
        """Return when all nodes are ready.

        Raises FlightchainError if that takes too long, or if the process of one has ended.
        """
        begun_s = time.monotonic()
        while refused := [f"{host.name}: {why}" for host in hosts if (why := self.refusal(host))]:
            waited_s = time.monotonic() - begun_s
            if waited_s > within_s or None in map(self.pid, hosts):
                raise FlightchainError(f"not ready after {waited_s:.0f} s: {'; '.join(refused)}")
            time.sleep(0.2)


def _problem(answer: Json) -> str:
    """Return what an answer says is wrong, in its own words where it has some."""
    return str(answer.get("detail") or answer.get("title") or answer)


def _started(pid: int) -> str:
    """Return when a process was started, in ticks since the machine was; "" without it.

    With the pid that names it for good.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()
    return "" if fields[0] in {"Z", "X"} else fields[19]


def _descendants(pid: int) -> Iterator[int]:
    for listing in Path("/proc").glob(f"{pid}/task/*/children"):
        with suppress(OSError):
            for child in map(int, listing.read_text(encoding="ascii").split()):
                yield child
                yield from _descendants(child)


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
