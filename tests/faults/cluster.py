"""Rounds of harm to four nodes of a cluster, each of a random kind, with an audit after each.

After a round nothing is pending, all tips are equal, every flight that was acknowledged is mined
once on all nodes, and its receipt leads to it.
"""

import os
import shutil
from collections import Counter
from contextlib import ExitStack

from backend.base.errors import FlightchainError
from backend.cluster.engine import program
from tests.cluster.harms import HARMS, NEED_NETWORKS, endure
from tests.cluster.networks import are_possible
from tests.cluster.world import cluster_in
from tests.faults.disks import mounted
from tests.faults.report import Outcome, Task

DISK_BYTES = 256 * 2**20
ROUNDS_A_LIFE = 50  # of one cluster, before a new one is made


def run(task: Task) -> Outcome:
    """Harm a cluster `task.count` times."""
    try:
        program()
    except FlightchainError as error:
        return Outcome(skipped=str(error))
    outcome, rounds = Outcome(), Counter[str]()
    for life in range(-(-task.count // ROUNDS_A_LIFE)):
        count = min(ROUNDS_A_LIFE, task.count - outcome.done)
        _live(task, life, count, outcome, rounds)
    outcome.notes.append("rounds: " + ", ".join(f"{name} {n}" for name, n in rounds.most_common()))
    return outcome


def _live(task: Task, life: int, count: int, outcome: Outcome, rounds: Counter[str]) -> None:
    folder = task.folder / f"cluster-{life}"
    folder.mkdir()
    names = [name for name in HARMS if name not in _impossible()]
    with ExitStack() as stack:
        disk = None
        if "a full disk" in names:
            size = f"size={DISK_BYTES}"
            disk = stack.enter_context(mounted(folder / "disk", "-t", "tmpfs", "-o", size, "tmpfs"))
        world = stack.enter_context(cluster_in(folder, disk=disk))
        for _ in range(count):
            name = task.chance.choice(names)
            rounds[name] += 1
            try:
                endure(world, name, task.chance)
            except AssertionError as error:
                outcome.add("lost", f"{name}: {error}")
                if disk is not None:  # what is mounted is gone when this ends
                    shutil.copytree(disk, folder / "kept", ignore=shutil.ignore_patterns("*.sock"))
                outcome.acknowledged += len(world.acknowledged)
                return
            outcome.done += 1
            task.says(f"{outcome.done} rounds, the last: {name}")
        outcome.acknowledged += len(world.acknowledged)


def _impossible() -> set[str]:
    """Returns what cannot be done here."""
    impossible = set()
    if os.geteuid() != 0:
        impossible.add("a full disk")  # only root may mount
    if shutil.which("cc") is None:
        impossible.add("a clock ahead")
    if shutil.which("go") is None:
        impossible.add("strangers")
    if not are_possible():
        impossible |= NEED_NETWORKS
    return impossible
