"""Workers start again and again while clients post; none may die of anything but a kill.

Two threads that do something for the first time at the same moment can crash a process, and a fresh
worker does everything for the first time. So all workers are killed as soon as they have answered a
little, and the web server's log is searched for other ends than that.
"""

import re
import time

from tests.api.processes import WITHIN_S, Service, until
from tests.faults.clients import memories, posting
from tests.faults.house import kill
from tests.faults.report import Outcome, Task
from tests.units.supervised import serving_confined

CLIENTS = 8
LIVES_S = 0.15  # long enough to answer, short enough that most answers come from fresh workers
ENDED = re.compile(r"Worker \(pid:\d+\) (?:was sent (SIG\w+)|exited with code (\S+))")


def run(task: Task) -> Outcome:
    """Start `task.count` workers under posts, and count those that died by themselves."""
    outcome = Outcome()
    remembered = memories(CLIENTS)
    folder = task.folder / "chain"
    with serving_confined(folder, FLIGHTCHAIN_MEMPOOL_TRANSACTIONS=10**7) as service:
        with posting(service.port, remembered, pause_s=0, mode="async"):
            while outcome.done < task.count:
                time.sleep(LIVES_S)
                outcome.done += _start_new_workers(service)
        ends = [signal or code for signal, code in ENDED.findall(service.said())]
    for end in ends:
        if end != "SIGKILL":
            outcome.add("crashed", f"a worker ended by itself: {end}")
    outcome.acknowledged = sum(len(memory.acknowledged) for memory in remembered)
    for text in (text for memory in remembered for text in memory.unexpected):
        outcome.add("refused", text)
    return outcome


def _start_new_workers(service: Service) -> int:
    """Kill every worker and wait until others are there; how many were killed."""
    old = service.workers()
    kill(old)
    until(lambda: len(set(service.workers()) - set(old)) == service.worker_count, WITHIN_S)
    return len(old)


def judge_log(said: str, outcome: Outcome) -> None:
    """Take down which workers have ended, and what surprised the service."""
    for signal, code in ENDED.findall(said):
        outcome.add("crashed", f"a worker ended: {signal or code}")
    if at := said.find("Traceback") + 1:
        outcome.add("refused", f"in the log: {said[at - 1 : at + 2000]}")
