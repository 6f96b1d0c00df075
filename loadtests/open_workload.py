"""Makes an open workload with Locust: requests arrive by a schedule, answered or not.

    locust -f loadtests/open_workload.py --host http://127.0.0.1:8000          with its web page
    locust -f loadtests/open_workload.py --host … --headless --rate 20 --duration 60 --raw rows.csv
    locust -f loadtests/open_workload.py --host … --headless --master --expect-workers 2 --rate 20
    locust -f loadtests/open_workload.py --worker --master-host …              on other machines

Run it from the project's folder, on every machine. One dispatcher in each Locust process walks
through its part of a schedule that was computed beforehand, from a seed; each arrival is a greenlet
with a connection of its own, closed afterwards. Response times count from the intended arrival,
also in Locust's console and web page. How many users Locust is told to start does not matter. `-t`
is the time of the load, in place of --duration. Given to `-f` together with closed_workload.py,
arrivals come besides the customers, and the users are those.
"""

from argparse import Namespace
from dataclasses import astuple
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from locust import User, task
from locust.dispatch import UsersDispatcher
from locust.exception import StopUser

from loadtests.generation import node, options
from loadtests.generation.asking import asker_to, walk
from loadtests.generation.node import Node, Part, Plan, register
from loadtests.generation.schedule import Arrival, arrivals, load, mixed
from loadtests.models.random_times import deterministic_times, poisson_times

RUN_ID = "open"
LAWS = ("poisson", "deterministic")
OPTIONS: options.Table = (
    ("--rate", 5.0, "arrivals per second"),
    ("--fraction", 0.0, "rate as a fraction of --capacity, in place of --rate"),
    ("--capacity", 0.0, "L, the requests per second at which the service saturates"),
    ("--law", "poisson", f"distribution of arrivals: {' or '.join(LAWS)}"),
    ("--duration", 60.0, "seconds during which requests arrive"),
    ("--arrivals", 0, "number of arrivals, in place of --duration"),
)
FILES: options.Table = (
    *options.PATHS,
    ("--schedule", "", "CSV file of a whole schedule, in place of all these"),
)


def schedule_from(chosen: Namespace, host: str, workers: int) -> list[Arrival]:
    """Return the schedule that the options ask for. Raises ValueError, OSError, ProgramFailed."""
    if chosen.schedule:
        return load(Path(chosen.schedule))
    random = Random(chosen.seed)  # noqa: S311  a load, no secrets
    times_s = _drawn_times(chosen, random, workers)
    choices = options.choices_from(chosen, host)
    return arrivals(times_s, mixed(choices, random, options.shares_from(chosen.mix)))


def _drawn_times(chosen: Namespace, random: Random, workers: int) -> list[float]:
    law = options.law_from(chosen.law, LAWS, is_beside=node.is_beside())
    if chosen.fraction and not chosen.capacity:
        raise ValueError("--fraction needs --capacity, the rate at which the service saturates")
    rates = ("fraction", "capacity") if chosen.fraction else ("rate",)
    options.require_positive(chosen, *rates, "arrivals" if chosen.arrivals else "duration")
    rate_per_s = chosen.fraction * chosen.capacity or chosen.rate
    count = chosen.arrivals or None
    until_s = None if count else chosen.duration
    options.require_sendable(rate_per_s, count, until_s, workers)
    if law == "deterministic":
        return deterministic_times(rate_per_s, count=count, until_s=until_s)
    return poisson_times(rate_per_s, random, count=count, until_s=until_s)


def plan_from(chosen: Namespace, host: str, workers: int) -> Plan:
    """Return a plan that gives every arrival to one worker."""
    schedule = schedule_from(chosen, host, workers)
    parts = [
        [astuple(arrival) for arrival in schedule[position::workers]] for position in range(workers)
    ]
    return Plan(parts, workers, len(schedule), schedule[-1].intended_s)


class OneUserEach(UsersDispatcher):
    """Starts one user on every worker at once, however many are asked for."""

    def new_dispatch(
        self, target_user_count: int, spawn_rate: float, user_classes: Any = None
    ) -> None:
        users = len(self._worker_nodes) if target_user_count else 0
        super().new_dispatch(users, max(spawn_rate, float(users)), user_classes)


class OpenWorkload(User):
    """Dispatches the arrivals of one Locust process."""

    node: Node

    @task
    def walk_schedule(self) -> None:
        """Send every arrival of this process's part at its time, once."""
        mine = self.node.part
        if mine is not None and not mine.users:
            walk_part(self.node, mine)
        raise StopUser


def walk_part(process: Node, mine: Part) -> None:
    """Send every arrival of this part at its time."""
    mine.take_number()
    asker, timeout_s = asker_to(mine.host), process.options.timeout

    def send(arrival: Arrival) -> None:
        due_s = mine.start_s + arrival.intended_s
        then = partial(process.record, mine, arrival.index, arrival.kind, due_s, is_open=True)
        asker(timeout_s=timeout_s).ask(arrival.path, then, arrival.body, due_s)

    schedule = [Arrival(*values) for values in mine.content]
    walk(schedule, mine.start_s, send, lambda: process.is_stopping, process.appointments)
    process.finish_one(mine)


register(OpenWorkload, plan_from, OPTIONS, FILES, RUN_ID, OneUserEach, walk_part)
