"""Customers for Locust who do several requests that belong together, as in studies 003 and 004.

    locust -f loadtests/interaction_workload.py --host http://127.0.0.1:8000       with its web page
    locust -f loadtests/interaction_workload.py --host … --headless -u 8 -r 8 --duration 30
    locust -f loadtests/interaction_workload.py --host … --headless -u 4 -r 4 --scenario itinerary

Run it from the project's folder; --help tells the rest. Customers are Locust's users: `-u` says how
many. `loadtests.scenarios` has what they do: `mixed` reads and adds flights, `itinerary` is nine
requests with a commit. Flights come from the service itself, and are added to it AGAIN.

Without --interval each customer begins an interaction as soon as the one before is done. With it,
starts are due every T(1 + u), u uniform within ±1 %, the first within the first T; an interaction
that is due while the one before is not done begins as soon as that is (study 004). Every request is
in the raw rows; the time of an interaction is from its first request to the last answer.
"""

import json
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from time import monotonic

import gevent

from loadtests.generation import customers, options
from loadtests.generation.client import JSON, NDJSON, Answer, Client, Origin
from loadtests.generation.interactions import (
    ADDED,
    Interaction,
    Sequences,
    Step,
    from_json,
    load,
    step_index,
)
from loadtests.generation.node import Node, Part, Plan, register
from loadtests.generation.pacing import wait_until
from loadtests.generation.rows import NO_ANSWER
from loadtests.processes import Site
from loadtests.questions import drawn, sample
from loadtests.scenarios import DURABLE, SHARES, itineraries, mixed_interactions

RUN_ID = "interactions"
SCENARIOS = ("mixed", "itinerary")
VARIATION = 0.01
POLL_S = 0.02
SEQUENCE = 200  # a customer repeats so many interactions, if --interactions does not say how many
OK = 200
OPTIONS: options.Table = (
    ("--scenario", "mixed", f"what customers do: {' or '.join(SCENARIOS)}"),
    ("--commit", DURABLE, "state at which an itinerary is done: durable or mined"),
    ("--interval", 0.0, "mean seconds between starts of a customer's interactions; 0: at once"),
    ("--interactions", 0, "number of each customer's; 0: until --duration has passed"),
    ("--duration", 60.0, "seconds after which none begins, if --interactions is 0"),
    ("--keep-alive", 1, "0: a connection of its own for every request"),
)
FILES: options.Table = (("--from-file", "", "JSON lines of interactions, in place of --scenario"),)


def sequences_from(chosen: Namespace, host: str) -> Sequences:
    """The interactions of every customer. Raises ValueError, OSError, ProgramFailed."""
    if chosen.from_file:
        return load(Path(chosen.from_file))
    if chosen.scenario not in SCENARIOS:
        named = ", ".join(SCENARIOS)
        raise ValueError(f"--scenario is {chosen.scenario!r}; it must be one of {named}")
    flights = sample(Site(host), options.SAMPLED_BLOCKS)
    questions = drawn(flights, options.DRAWN_OF_EACH_KIND, chosen.seed)
    Random(chosen.seed).shuffle(flights)  # noqa: S311  a load, no secrets
    customers, count = chosen.num_users or 1, chosen.interactions or SEQUENCE
    if chosen.scenario == "itinerary":
        return itineraries(
            questions, flights, customers=customers, count=count, commit=chosen.commit
        )
    shares = options.shares_from(chosen.mix) or SHARES
    return mixed_interactions(
        questions, flights, customers=customers, count=count, seed=chosen.seed, shares=shares
    )


def plan_from(chosen: Namespace, host: str, workers: int) -> Plan:
    """The plan, which is the same for all workers. Raises ValueError, OSError, ProgramFailed."""
    for name in ("interval", "interactions", "duration"):
        if getattr(chosen, name) < 0:
            raise ValueError(f"--{name} is {getattr(chosen, name)}; not negative")
    sequences = sequences_from(chosen, host)
    content = [[interaction.as_json() for interaction in own] for own in sequences]
    until_s = None if chosen.interactions else chosen.duration
    requests = None
    if chosen.interactions and chosen.from_file:
        requests = sum(len(interaction.steps) for own in sequences for interaction in own)
    return Plan([content] * workers, None, requests, until_s)


class Customer(customers.Customer):
    """A customer, who does a sequence of interactions, and then begins it again."""

    def do_all(self, mine: Part, customer: int) -> None:
        """Do interactions until this customer has done enough, or its time is over."""
        chosen = self.environment.parsed_options
        random = Random(f"{chosen.seed}/{customer}")  # noqa: S311  a load, no secrets
        own: Sequence[Interaction] = [
            from_json(content) for content in mine.content[customer % len(mine.content)]
        ]
        client = Client(
            Origin(mine.host), keep_alive=bool(chosen.keep_alive), timeout_s=chosen.timeout
        )
        due_s = max(mine.start_s + random.random() * chosen.interval, monotonic())
        number = 0
        while not (self.node.is_stopping or _is_done(chosen, number, mine.start_s)):
            wait_until(due_s)
            doing = _Doing(self.node, mine, client, customer, number, chosen.timeout)
            doing.run(own[number % len(own)], due_s)
            due_s = _next_due(due_s, chosen.interval, random)
            number += 1
        client.close()


def _next_due(due_s: float, interval_s: float, random: Random) -> float:
    if not interval_s:
        return monotonic()
    return due_s + interval_s * (1 + random.uniform(-VARIATION, VARIATION))


def _is_done(chosen: Namespace, number: int, start_s: float) -> bool:
    if chosen.interactions:
        return bool(number >= chosen.interactions)
    return bool(monotonic() >= start_s + chosen.duration)


class _Doing:
    """One interaction of one customer. number: its number for the customer, from 0."""

    def __init__(
        self, node: Node, part: Part, client: Client, customer: int, number: int, timeout_s: float
    ) -> None:
        self._node, self._part, self._client = node, part, client
        self._customer, self._number, self._timeout_s = customer, number, timeout_s
        self._added = ""

    def run(self, interaction: Interaction, due_s: float) -> None:
        """Do its steps, until one fails. due_s: when the first was due."""
        needs_address = any(ADDED in step.path for step in interaction.steps)
        for at, step in enumerate(interaction.steps):
            answer = self._step(interaction, at, step, due_s)
            if not 200 <= answer.status < 400:
                return
            if needs_address and step.method == "POST":
                self._added = _address(answer)
            due_s = answer.done_s

    def _step(self, interaction: Interaction, at: int, step: Step, due_s: float) -> Answer:
        """Ask once, or until the state is reached. Every request is a row, and so is giving up."""
        give_up_s = monotonic() + self._timeout_s
        while True:
            answer = self._asked(interaction, at, step, due_s)
            if not step.until or answer.status != OK or _state(answer) == step.until:
                return answer
            if self._node.is_stopping or monotonic() > give_up_s:
                break
            due_s = answer.done_s + POLL_S
            gevent.sleep(max(0.0, due_s - monotonic()))
        problem = f"it was not {step.until} within {self._timeout_s:g} s"
        gave_up = replace(answer, sent_s=answer.done_s, status=NO_ANSWER, problem=problem)
        self._record(interaction, at, step, answer.done_s, gave_up)
        return gave_up

    def _asked(self, interaction: Interaction, at: int, step: Step, due_s: float) -> Answer:
        found: list[Answer] = []

        def note(answer: Answer) -> None:  # at once, because this greenlet may be killed
            found.append(answer)
            self._record(interaction, at, step, due_s, answer)

        path = step.path.replace(ADDED, self._added)
        self._client.ask(path, note, step.body, _content_type(path))
        return found[0]

    def _record(
        self, interaction: Interaction, at: int, step: Step, due_s: float, answer: Answer
    ) -> None:
        index = step_index(self._customer, self._number, at)
        kind = interaction.row_kind(step)
        self._node.record(self._part, index, kind, due_s, answer, is_open=False)


def _address(answer: Answer) -> str:
    """The path at which a flight that was added is found."""
    told = json.loads(answer.body)
    return str(told.get("receipt") or f"/transactions/{told['TRANSACTION_ID']}")


def _content_type(path: str) -> str:
    """The Content-Type of bodies posted to `path`."""
    return NDJSON if path.partition("?")[0].endswith("/batch") else JSON


def _state(answer: Answer) -> str:
    """The `state` in an answer in JSON."""
    return str(json.loads(answer.body).get("state", ""))


register(Customer, plan_from, OPTIONS, FILES, RUN_ID)
