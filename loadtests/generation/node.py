"""Does what open and closed workloads share in a Locust process (local, master or worker).

When the test starts, the master, or the only process, makes the plan of the run, and sends each
worker its part with the time of the common start before Locust tells the workers to start their
users. Users then work on the part. Every answer becomes a raw row and, with the same response time,
a request in Locust's own console and web page; a greenlet does that, one answer at a time, while
nothing is to be sent. Workers send a few rows at a time to the master; only the master, or the only
process, writes the file, as rows come.

The test ends when every user of every part has done its work, or a worker is lost: Locust quits if
it is headless, and stops the test if it has a web page, where another test can be started; its run
has an id of its own.

Clocks of several machines must agree (NTP), because the start is then taken from the time of day.
"""

import gc
import json
import logging
import signal
import time
from argparse import Namespace
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from math import inf
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, cast

import gevent
from gevent.event import Event
from locust import User, events, task
from locust.dispatch import UsersDispatcher
from locust.env import Environment
from locust.exception import StopUser
from locust.runners import MasterRunner, WorkerRunner

from loadtests.generation import options
from loadtests.generation.asking import Asker, asker_to
from loadtests.generation.client import STOPPED, Answer
from loadtests.generation.rows import Row, row_file
from loadtests.generation.waiting import Appointments, sleep_precisely, wait_until
from loadtests.processes import ProgramFailed, is_of_network
from loadtests.servers.timing import boot_id
from loadtests.tables import TableError, TableWriter

PART_MESSAGE, ROWS_MESSAGE = "flightchain-part", "flightchain-rows"
LOCAL_START_DELAY_S, DISTRIBUTED_START_DELAY_S = 0.2, 1.5
FLUSH_EVERY_S = 1.0
ROWS_TOGETHER = 20  # that a worker sends in one message
MOST_UNNOTED = 2000  # answers; beyond, they are noted even if something is to be sent
PROGRESS_EVERY_S = 10.0

log = logging.getLogger("locust.flightchain")

# Takes options, URL of the service and number of workers. Returns the work of each, as plain data.
Planner = Callable[[Namespace, str, int], "Plan"]


@dataclass(frozen=True, slots=True)
class Plan:
    """Holds the work of all workers. parts: one for each, of types that msgpack can encode.

    users: of all workers; None: as many as Locust is to start. requests, until_s: number of all,
    and about how long the run takes, for the progress; None if it has no end.
    """

    parts: Sequence[Any]
    users: int | None
    requests: int | None
    until_s: float | None


@dataclass(slots=True)
class Part:
    """Holds the work of this process. users: started here so far. stopped: requests unanswered.

    start_s, unix_s: when the run starts, on CLOCK_MONOTONIC of the machine `boot`, and by the day.
    parts, position: the number of all parts, and the place of this one among them.
    """

    run: str
    host: str
    boot: str
    start_s: float
    unix_s: float
    parts: int
    position: int
    content: Any
    users: int = 0
    finished: int = 0
    stopped: int = 0
    rows: list[Row] = field(default_factory=list)

    def take_number(self) -> int:
        """Return the number of a new user, which no other user of any part has."""
        self.users += 1
        return (self.users - 1) * self.parts + self.position


@dataclass(slots=True)
class _Run:
    """Holds what the collecting process knows of a run. finished: users, by part position."""

    id: str
    plan: Plan
    start_s: float
    workers: Sequence[str] = ()
    rows: int = 0
    finished: dict[int, int] = field(default_factory=dict)
    is_over: bool = False


_Answered = tuple[Part, int, str, float, Answer, bool]  # as `Node.record` takes them


def _worker_ids(runner: Any) -> list[str]:
    """Return the ids of the workers that a master can send to; none if this is no master."""
    if not isinstance(runner, MasterRunner):
        return []
    clients = runner.clients
    return [client.id for client in (*clients.ready, *clients.spawning, *clients.running)]


def _opened(path: Path) -> TableWriter[Row]:
    """Open the file of --raw. Ends this program with a sentence if it cannot be written to."""
    try:
        return row_file(path)
    except (OSError, TableError) as problem:
        raise SystemExit(f"error: --raw: {problem}") from None


def _every(pause_s: float, act: Callable[[], None]) -> None:
    while True:
        gevent.sleep(pause_s)
        act()


def _hear_ctrl_c() -> None:
    """Let Ctrl-C raise KeyboardInterrupt where Locust waits for the end of the run.

    Else Python raises it in whatever greenlet runs, and those of Locust that print or keep
    statistics drop it, so that the run goes on.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        gevent.signal_handler(signal.SIGINT, gevent.get_hub().parent.throw, KeyboardInterrupt)


_workloads: list[str] = []  # run ids of the locustfiles of this process
_nodes: list["Node"] = []


def is_beside() -> bool:
    """Return whether several workloads run together, because Locust was given several files."""
    return len(_workloads) > 1


def register(
    user: Any,
    planner: Planner,
    shown: options.Table,
    files: options.Table,
    run_id: str,
    dispatcher: type[UsersDispatcher] = UsersDispatcher,
    alone: Callable[["Node", Part], None] | None = None,
) -> None:
    """Make a locustfile a workload: with its options, and a `Node` as the attribute of its user.

    alone: does all the work of a part without a user, where another workload has the users.
    """
    _workloads.append(run_id)

    def begin(environment: Environment, **_event: object) -> None:
        if not _nodes:
            _hear_ctrl_c()
        beside = alone if is_beside() else None
        if beside:
            environment.user_classes.remove(user)
        elif not is_beside():
            environment.dispatcher_class = dispatcher
        user.node = Node(environment, planner, run_id, beside)
        _nodes.append(user.node)

    events.init_command_line_parser.add_listener(
        lambda parser, **_event: options.add(parser, shown, files, run_id)
    )
    events.init.add_listener(begin)


class Node:
    """Plans, loads and collects in a Locust process. `part`: its work, None until a test starts."""

    def __init__(
        self,
        environment: Environment,
        planner: Planner,
        workload: str,
        alone: Callable[["Node", Part], None] | None = None,
    ) -> None:
        """Attach to Locust's events; call this in its `init` event. Raises OSError, ValueError."""
        self.environment, self._planner, self._alone = environment, planner, alone
        self._workload = workload if is_beside() else ""
        self._runner = cast("Any", environment.runner)  # local, master or worker
        self.options = cast("Any", environment.parsed_options)  # Locust's, and the workload's
        self._is_worker = isinstance(environment.runner, WorkerRunner)
        self.part: Part | None = None
        self.is_stopping = False
        self.appointments = Appointments()
        self._answers, self._answered = deque[_Answered](), Event()
        self._lone: gevent.Greenlet | None = None  # works where another workload has the users
        self._run: _Run | None = None
        self._runs_started = 0
        keeps_rows = self.options.raw and not self._is_worker
        self._file = _opened(Path(self.options.raw)) if keeps_rows else None
        self._runner.register_message(PART_MESSAGE + self._workload, self._on_part)
        self._runner.register_message(ROWS_MESSAGE + self._workload, self._on_rows)
        events = environment.events
        events.test_start.add_listener(self._on_test_start)
        events.test_stopping.add_listener(self._on_test_stopping)
        events.test_stop.add_listener(self._on_test_stop)
        events.quit.add_listener(self._on_quit)
        sleep_precisely()
        gevent.spawn(self._note_answers)
        gevent.spawn(_every, FLUSH_EVERY_S, self._flush)
        gevent.spawn(_every, FLUSH_EVERY_S, self._look_for_workers)
        gevent.spawn(_every, PROGRESS_EVERY_S, self._say_progress)
        if self.options.headless and not self._is_worker and environment.host:
            self._prepare()

    def _prepare(self) -> None:
        """Read, before Locust's clock runs, what questions are drawn from, and take its time limit.

        A run without a number of requests ends by itself, a time after its start.
        """
        with suppress(OSError, ValueError, ProgramFailed):  # said when the test starts
            self._planned(self.options.expect_workers)
        limits = ("requests", "arrivals", "interactions", "schedule")
        if self.options.run_time and not any(getattr(self.options, n, 0) for n in limits):
            self.options.duration, self.options.run_time = float(self.options.run_time), None

    # --- the process that plans and collects -------------------------------------------------

    def _on_test_start(self, **_event: object) -> None:
        self.is_stopping = False
        if self._is_worker:
            return
        try:
            self._begin()
        except OSError as problem:
            where = f"no service answers at {self.environment.host}: "
            self._fail(f"{where if is_of_network(problem) else ''}{problem}")
        except (ValueError, ProgramFailed) as problem:
            self._fail(str(problem))

    def _begin(self) -> None:
        runner, options = self._runner, self.options
        if not self.environment.host:
            raise ValueError("no service given; use for example --host http://127.0.0.1:8000")
        ids = _worker_ids(runner)
        workers: list[str | None] = [*ids] if isinstance(runner, MasterRunner) else [None]
        plan = self._planned(len(workers))
        if plan.users is not None and self._alone is None:
            runner.target_user_count = plan.users
        self._runs_started += 1
        name = self._workload or options.run_id  # each of several workloads has its own
        run = name if self._runs_started == 1 else f"{name}-{self._runs_started}"
        delay_s = DISTRIBUTED_START_DELAY_S if ids else LOCAL_START_DELAY_S
        start_s, unix_s = monotonic() + delay_s, time.time() + delay_s
        start = {"boot": boot_id(), "start_s": start_s, "unix_s": unix_s}
        self._run = _Run(run, plan, start_s, ids)
        if options.facts:  # for the program that started this one; the file is always complete
            unfinished = Path(f"{options.facts}.unfinished")
            facts = {"run": run, "requests": plan.requests, **start}
            unfinished.write_text(json.dumps(facts), encoding="utf-8")
            unfinished.rename(options.facts)
        common = {"run": run, "host": self.environment.host, "parts": len(workers), **start}
        for position, (worker, content) in enumerate(zip(workers, plan.parts, strict=True)):
            part = {**common, "position": position, "content": content}
            runner.send_message(PART_MESSAGE + self._workload, part, worker)

    def _planned(self, workers: int) -> Plan:
        """Plan a run. Raises as planners do, and ValueError for numbers that are not finite."""
        options.require_finite(self.options)
        return self._planner(self.options, self.environment.host or "", workers)

    def _on_rows(self, msg: Any, **_event: object) -> None:
        self._keep([Row(*values) for values in msg.data.pop("rows")], **msg.data)

    def _keep(self, rows: Sequence[Row], run: str, position: int, finished: int) -> None:
        """Write rows of a part, and end the run if all its users have finished."""
        if self._file is not None:
            self._file.add(*rows)
        if self._run is None or run != self._run.id:
            return
        self._run.rows += len(rows)
        self._run.finished[position] = finished
        users = len(self._run.plan.parts) if self._alone else self._runner.target_user_count
        if not self._run.is_over and sum(self._run.finished.values()) == users:
            self._end()

    def _fail(self, message: str) -> None:
        log.error("error: %s", message)
        self.environment.process_exit_code = 1
        self._end()

    def _end(self) -> None:
        if self._run is not None:
            self._run.is_over = True
        if any(node._under_way() for node in _nodes) and not self.environment.process_exit_code:
            return  # the other workload of two goes on
        gevent.spawn(self._runner.quit if self.options.headless else self._runner.stop)

    def _under_way(self) -> _Run | None:
        run = self._run
        return None if run is None or run.is_over or self.is_stopping else run

    def _look_for_workers(self) -> None:
        """End the run if a worker is lost, because no other worker has its part."""
        run = self._under_way()
        if run and (lost := sorted(set(run.workers) - set(_worker_ids(self._runner)))):
            self._fail(f"{run.id}: worker {lost[0]} is lost, so the run ends")

    def _say_progress(self) -> None:
        if run := self._under_way():
            total = "" if run.plan.requests is None else f" of {run.plan.requests}"
            left = ""
            if run.plan.until_s is not None:
                left_s = max(0.0, run.start_s + run.plan.until_s - monotonic())
                left = f", about {left_s:.0f} s left"
            log.info("%s: %d%s answered%s", run.id, run.rows, total, left)

    # --- the process that loads --------------------------------------------------------------

    def _on_part(self, msg: Any, **_event: object) -> None:
        self.part = part = Part(**msg.data)
        if part.boot != boot_id():
            part.start_s = monotonic() + part.unix_s - time.time()
        gc.collect()  # and what is there now is never collected, so that this never delays a run
        gc.freeze()
        if self._alone:
            self._lone = gevent.spawn(self._alone, self, part)

    def record(
        self, part: Part, index: int, kind: str, due_s: float, answer: Answer, *, is_open: bool
    ) -> None:
        """Record the answer to the request due at `due_s`, when there is time for that."""
        self._answers.append((part, index, kind, due_s, answer, is_open))
        self._answered.set()

    def _note_answers(self) -> None:
        while True:
            self._answered.wait()
            self._answered.clear()
            while self._answers:
                if len(self._answers) < MOST_UNNOTED:
                    self.appointments.wait_for_gap()
                self._note_next()
                gevent.sleep(0)

    def _note_next(self) -> None:
        """Make the next answer a raw row, and a request in Locust's console.

        A request that the end of the run stopped is only a row: the server has not failed it.
        """
        if not self._answers:
            return
        part, index, kind, due_s, answer, is_open = self._answers.popleft()
        server = answer.reported
        times_s = due_s, answer.sent_s, server.start_s, answer.done_s, server.service_s
        row = Row(part.run, index, kind, *times_s, answer.status, server.worker)
        row = row.since(part.start_s)
        part.rows.append(row)
        if not self._is_worker or len(part.rows) >= ROWS_TOGETHER:
            self._send(part)
        if answer.problem == STOPPED:
            part.stopped += 1
            return
        problem = answer.problem or f"answered with status {answer.status}"
        self.environment.events.request.fire(
            request_type=answer.method,
            name=kind,
            response_time=(row.open_response_s if is_open else row.closed_response_s) * 1e3,
            response_length=answer.body_bytes,
            response=None,
            context={},
            exception=None if row.succeeded else ProgramFailed(problem),
        )

    def finish_one(self, part: Part) -> None:
        """Note that a user of `part` has done all its work."""
        self._note_all()
        part.finished += 1
        self._send(part)

    def _send(self, part: Part) -> None:
        rows, part.rows = part.rows, []
        about = {"run": part.run, "position": part.position, "finished": part.finished}
        if self._is_worker:
            data = about | {"rows": [astuple(row) for row in rows]}
            self._runner.send_message(ROWS_MESSAGE + self._workload, data)
        else:
            self._keep(rows, part.run, part.position, part.finished)

    def _flush(self, **_event: object) -> None:
        if self.part is not None and self.part.rows:
            self._send(self.part)

    def _note_all(self, **_event: object) -> None:
        while self._answers:
            self._note_next()
        self._flush()

    # --- both --------------------------------------------------------------------------------

    def _on_test_stopping(self, **_event: object) -> None:
        self.is_stopping = True

    def _on_test_stop(self, **_event: object) -> None:
        if self._lone is not None:
            self._lone.kill()
        self._note_all()

    def _on_quit(self, **_event: object) -> None:
        self._note_all()
        if self.part is not None and self.part.stopped:
            stopped = f"{self.part.stopped} requests were under way at the stop"
            log.info("%s: %s; their rows have status 0", self.part.run, stopped)
        if self._file is not None:
            self._file.close()


class Customer(User):
    """Takes turns as a Locust user. `node`: that of this process; its part says what to do."""

    abstract = True
    node: Node
    connecting: Mapping[str, Any] = {}  # how its client connects, if not anew for each request

    @task
    def work(self) -> None:
        """Take turns until this customer has had all of its own, or its time is over."""
        mine = self.node.part
        if mine is None:
            raise StopUser
        chosen, customer = self.environment.parsed_options, mine.take_number()
        asker = asker_to(mine.host)(timeout_s=chosen.timeout, **self.connecting)
        random = Random(f"{chosen.seed}/{customer}")  # noqa: S311  a load, no secrets
        most = self.turns_of_each(chosen)
        until_s = inf if most else mine.start_s + chosen.duration
        for done, due_s in enumerate(self.turns(mine, customer, asker, random)):
            if most and done == most:
                break
            wait_until(due_s)
            if self.node.is_stopping or monotonic() >= until_s:
                break
        asker.close()
        self.node.finish_one(mine)
        raise StopUser

    def turns_of_each(self, chosen: Namespace) -> int:
        """Return the number of turns of each customer; 0: until --duration has passed."""
        raise NotImplementedError

    def turns(self, mine: Part, customer: int, asker: Asker, random: Random) -> Iterator[float]:
        """Yield when the next turn is due, take it when resumed, and go on so without end."""
        raise NotImplementedError
