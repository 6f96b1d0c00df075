"""Runs a node of a cluster in place of the miner: application, engine, outbox and status.

Like the miner it is the only writer of its chain, holds `miner.lock` as long as it runs, and tells
by `miner.json` that it is alive. Whatever fails ends the process; whoever started it starts it
again, and the engine replays what is missing.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from backend.base import files
from backend.base.clock import now_ms
from backend.base.errors import DamagedMempool, FlightchainError, TryLater, WriteFailed
from backend.base.processes.shared_numbers import MinerNumbers
from backend.base.processes.systemd import Notifier
from backend.base.settings import Settings
from backend.base.words import Report, Trouble, counted
from backend.cluster import node_status, put_back
from backend.cluster.application import OK, OLD, Application
from backend.cluster.block_appender import BlockAppender, Built
from backend.cluster.configuration import bring_up_to_date
from backend.cluster.engine import ABCI_SOCKET, Engine
from backend.cluster.engine_files import require_sound
from backend.cluster.engine_watch import EngineStandsStill, Watcher
from backend.cluster.membership import Admission, identity_in, membership_in
from backend.cluster.outbox import Outbox, with_believable_time
from backend.cluster.put_back import OwnFlights
from backend.cluster.signed_transactions import packed
from backend.cluster.socket_server import SocketServer
from backend.index.damage_mark import IndexRebuilder
from backend.mempool import Accepted, Mempool
from backend.sealing.miner_status import INDEXING_S, LOCK_NAME, Announcer
from backend.verify.scrub import scrubbing

POLL_S = 0.05
RETRY_S = 0.5
TRIM_EVERY_S = 30.0


class Node:
    """The node of the chain in `settings.folder` and the engine in `settings.cluster`."""

    def __init__(
        self, settings: Settings, report: Report, notifier: Notifier | None = None
    ) -> None:
        """notifier: is told when the node begins, that it lives, and when it ends."""
        self._settings = settings
        self._report = report
        self._notifier = notifier or Notifier({}, report)
        self._home = home = Path(settings.cluster).absolute()
        self._membership = membership_in(home)
        self._identity = identity_in(home, self._membership)
        self._lock = files.FileLock(settings.folder / LOCK_NAME)
        self._announcer = Announcer(settings.folder, report)
        self._numbers = MinerNumbers()
        self._end = BlockAppender(settings, self._membership, report)
        self._engine = Engine(home)
        self._mempool = Mempool(settings, self._end.receipts.own_mined, report)
        self._outbox: Outbox | None = None
        self._failures: list[Exception] = []
        self._is_stopping = False
        self._status: node_status.ClusterStatus | None = None  # the newest that was written
        self._troubles: defaultdict[str, Trouble] = defaultdict(partial(Trouble, report))
        self._mined_below_tip = 0  # own flights in blocks below the newest one

    def stop(self) -> None:
        """Make `run` return soon. Signal handlers may call this."""
        self._is_stopping = True

    def run(self) -> None:
        """Take part in the cluster until `stop`. Raises what makes it impossible to go on."""
        files.make_folder(self._settings.folder)
        self._lock.acquire(wait=False)
        why = ""  # it ends
        try:
            node_status.begin(self._settings.folder)
            self._announcer.silent()
            self._numbers.start(self._settings)
            application = self._application()
            with scrubbing(self._settings, self._report):
                self._serve(application)
        except FlightchainError as error:
            why = str(error)
            raise
        finally:
            self._notifier.stopping()
            self._announcer.silent()
            node_status.end(self._settings.folder, why)
            self._end.close()
            self._mempool.close()
            self._lock.release()

    def _application(self) -> Application:
        own = self._identity.index
        reached = self._end.open(own, self._home)
        refusal = Admission(self._home, self._membership, self._report).refusal
        compare = OwnFlights(self._settings.folder, own, self._mempool, self._report).compare
        application = Application(
            self._end, self._membership, reached, self._appended, refusal, compare
        )
        if own is not None:
            mined, interval_s = partial(application.mined, own), self._membership.interval_s
            send = partial(self._send, application)
            self._outbox = Outbox(self._mempool, mined, send, interval_s)
        return application

    def _serve(self, application: Application) -> None:
        """Answer the engine until `stop`, and start it again whenever it stands still."""
        watcher = Watcher(self._engine, self._membership, self._identity)
        abci = self._home / ABCI_SOCKET
        bring_up_to_date(self._home, self._report)
        require_sound(self._home, self._membership, self._identity, application.engine_height)
        while not (self._is_stopping or self._failures):
            server = SocketServer(abci, application.handle, self._failures.append)
            try:
                self._engine.start()
                server.start()
                self._notifier.ready()
                self._rounds(watcher, application)
            except EngineStandsStill as error:
                self._report(str(error))
                self._announcer.working()
            finally:
                self._engine.stop()
                server.close()
        if self._failures:
            raise self._failures[0]

    def _rounds(self, watcher: Watcher, application: Application) -> None:
        rebuild = partial(self._rebuild_index, watcher, application)
        rebuilder = IndexRebuilder(self._end.follower.is_marked, rebuild)
        look_s = trim_s = 0.0
        while not (self._is_stopping or self._failures):
            if end := self._engine.end():
                raise FlightchainError(f"the consensus engine in {self._home} {end}")
            now_s = time.monotonic()
            if now_s >= look_s:
                look_s = now_s + node_status.EVERY_S
                self._tell(watcher, application)
            self._patiently("rebuild the index", rebuilder.look)
            if self._outbox is not None:
                self._patiently("send what was accepted", self._outbox.step)
            status = self._status
            # It rebuilds a lost mempool, when the blocks tell which of its flights are mined.
            if now_s >= trim_s and status and not (status.refusal or status.lag_blocks):
                trim_s = now_s + TRIM_EVERY_S
                self._patiently(
                    "trim the mempool", partial(self._mempool.trim, self._mined_below_tip)
                )
            time.sleep(POLL_S)

    def _rebuild_index(self, watcher: Watcher, application: Application) -> None:
        with application.paused():
            self._end.follower.follow(self._tell_of_index)
        watcher.forget()

    def _tell_of_index(self, done: int, to_do: int) -> None:
        """Tell all who ask that this node lives, but accepts nothing while it reads its chain."""
        message = f"this node rebuilds its index: {done:,} of {to_do:,} blocks are read"
        if self._status is not None:
            now_s = time.monotonic()
            changed = msgspec.structs.replace(self._status, refusal=message, written_s=now_s)
            node_status.FILE.write_unsynced(self._settings.folder, changed)
        self._announcer.working(INDEXING_S)
        self._notifier.alive()

    def _tell(self, watcher: Watcher, application: Application) -> None:
        """Tell all who ask that this node lives, and how its cluster does."""
        outbox_waits_s = 0.0 if self._outbox is None else self._outbox.waits_s()
        status = watcher.look(application, outbox_waits_s, time.monotonic())
        if refusal := put_back.refusal(self._settings.folder):
            status = msgspec.structs.replace(status, refusal=refusal)
        node_status.FILE.write_unsynced(self._settings.folder, status)
        self._status = status
        due_s = time.monotonic() if self._outbox is None else self._outbox.due_s
        self._announcer.next_round(max(0.0, due_s - time.monotonic()))
        self._notifier.alive()
        self._numbers.sample(0)

    def _patiently(self, what: str, act: Callable[[], object]) -> None:
        """Do what may fail for a while; report once why it does. what: names it in a report."""
        try:
            act()
            self._troubles[what].end()
        except WriteFailed:
            raise
        except (TryLater, DamagedMempool) as error:
            self._troubles[what].report(f"cannot {what} now: {error}")
            time.sleep(RETRY_S)

    def _believable(self, part: Accepted, application: Application) -> Accepted:
        """Return a part with a time of acceptance that the cluster believes; report a new one."""
        header_ms = application.header_ms  # before there is one, this clock alone is not believed
        believable = with_believable_time(
            part,
            application.earliest_ms,
            max(now_ms(), header_ms) if header_ms else part.timestamp,
            self._membership.leeway_ms,
        )
        if believable is not part:
            count = counted(len(part.flights), "flight")
            self._report(
                f"{count} from number {part.first_transaction} on waited until newer ones were in "
                "blocks, or were accepted by a clock that was ahead; they get the time "
                f"{believable.timestamp} instead of {part.timestamp}"
            )
        return believable

    def _send(self, application: Application, parts: Sequence[Accepted]) -> None:
        identity = self._identity
        assert identity.index is not None
        believable = [self._believable(part, application) for part in parts]
        data = packed(self._membership.cluster, identity.index, believable, identity.key)
        answer = self._engine.send(data)
        if answer["code"] not in {OK, OLD}:
            raise TryLater(f"the application refuses a transaction: {answer['log']}")

    def _appended(self, built: Built) -> None:
        count = built.block.header.transaction_count
        self._numbers.sealed(count, 0.0)
        index = self._identity.index
        own = [run.first for run in built.entry.runs if run.node == index]
        if own:
            self._mined_below_tip = own[0]
        height, proposer = built.entry.height, built.entry.proposer
        message = counted(count, "transaction")
        self._report(f"block {height} with {message} was proposed by {proposer}")
