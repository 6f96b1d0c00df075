"""kill -9 of any process during import, posting and mining.

Clients post and remember what was acknowledged, imports run meanwhile, and somebody kills:
supervisor, miner, web server, its workers, import, the import's reader.
"""

import random
import time
from collections import Counter
from collections.abc import Iterator

from tests.api.processes import until
from tests.faults.auditing import conclude
from tests.faults.clients import memories, posting
from tests.faults.house import (
    IMPORT,
    MINER,
    PATIENCE_S,
    READER,
    SUPERVISOR,
    WAIT_S,
    WEB,
    WORKER,
    House,
    house_in,
    kill,
    roles_of,
)
from tests.faults.report import Outcome, Task
from tests.flights import transactions_in

CLIENTS = 4
KILLS_A_LIFE = 100  # of one chain, before it is audited and a new one begun
VICTIMS = [SUPERVISOR, MINER, MINER, WEB, WORKER, WORKER, IMPORT, IMPORT, READER]


def run(task: Task) -> Outcome:
    """Kill `task.count` times, and audit every chain."""
    outcome, killed = Outcome(), Counter[str]()
    for life in range(-(-task.count // KILLS_A_LIFE)):
        count = min(KILLS_A_LIFE, task.count - outcome.done)
        with house_in(task.folder / f"kills-{life}") as house:
            killed += _live(house, count, task.chance, outcome)
        task.says(f"{outcome.done} kills, {len(outcome.findings)} findings")
    outcome.notes.append("killed: " + ", ".join(f"{role} {n}" for role, n in killed.most_common()))
    return outcome


def _live(house: House, count: int, chance: random.Random, outcome: Outcome) -> Counter[str]:
    """Kill `count` times while clients post, then audit what is left."""
    killed: Counter[str] = Counter()
    remembered = memories(CLIENTS)
    house.serve()
    with posting(house.port, remembered):
        for role in _victims(chance):
            killed[_kill_one(house, role, chance)] += 1
            if killed.total() == count:
                break
        house.finish_importing()
        mined = transactions_in(house.folder)
        until(lambda: house.is_mining_beyond(mined), 2 * WAIT_S)
    house.kill_all()
    house.restart(outcome)
    conclude(house, remembered, chance, outcome, house.imported())
    outcome.done += count
    return killed


def _victims(chance: random.Random) -> Iterator[str]:
    """Roles without end, each in its share, in random order."""
    while True:
        yield from chance.sample(VICTIMS, len(VICTIMS))


def _keep_busy(house: House, role: str) -> list[int]:
    """Start again what must be started from outside; the processes of `role`."""
    house.keep_serving()
    if role in {IMPORT, READER}:
        house.keep_importing()
    return roles_of(house.folder).get(role, [])


def _kill_one(house: House, role: str, chance: random.Random) -> str:
    """Wait until there is one of `role` and it has had some time, and kill it; what was killed.

    The supervisor pauses longer and longer before it starts a child that keeps dying; rather than
    wait for it this kills the supervisor.
    """
    patience = time.monotonic() + PATIENCE_S
    while not _keep_busy(house, role):
        if role in {MINER, WEB, WORKER} and time.monotonic() > patience:
            role = SUPERVISOR
        time.sleep(0.02)
    while True:
        # An import needs a while before it seals; the others are always at work.
        time.sleep(chance.uniform(0, 0.7 if role == IMPORT else 0.2))
        if pids := _keep_busy(house, role):
            kill([chance.choice(pids)])
            return role
