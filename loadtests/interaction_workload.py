"""Lets customers for Locust do several requests that belong together, as in studies 003 and 004.

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
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import cycle
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

from loadtests.generation import interactions, node, options
from loadtests.generation.asking import Asker
from loadtests.generation.interactions import ADDED, Interaction
from loadtests.generation.node import Part, Plan, register
from loadtests.questions import drawn
from loadtests.scenarios import SHARES, itineraries, mixed_interactions

RUN_ID = "interactions"
SCENARIOS = ("mixed", "itinerary")
VARIATION = 0.01
SEQUENCE = 200  # a customer repeats so many interactions, if --interactions does not say how many
OPTIONS: options.Table = (
    ("--scenario", "mixed", f"what customers do: {' or '.join(SCENARIOS)}"),
    ("--interval", 0.0, "mean seconds between starts of a customer's interactions; 0: at once"),
    ("--interactions", 0, "number of each customer's; 0: until --duration has passed"),
    ("--duration", 60.0, "seconds after which none begins, if --interactions is 0"),
)
FILES: options.Table = (("--from-file", "", "JSON lines, one a customer, in place of --scenario"),)


def sequences_from(chosen: Namespace, host: str) -> interactions.Sequences:
    """Return the interactions of every customer. Raises ValueError, OSError, ProgramFailed."""
    if chosen.from_file:
        return interactions.load(Path(chosen.from_file))
    if chosen.scenario not in SCENARIOS:
        named = ", ".join(SCENARIOS)
        raise ValueError(f"--scenario is {chosen.scenario!r}; it must be one of {named}")
    flights = options.flights_of(host)
    questions = drawn(flights, options.DRAWN_OF_EACH_KIND, chosen.seed)
    Random(chosen.seed).shuffle(flights)  # noqa: S311  a load, no secrets
    given = questions, flights, chosen.num_users or 1, chosen.interactions or SEQUENCE
    if chosen.scenario == "itinerary":
        return itineraries(*given)
    shares = options.shares_from(chosen.mix) or SHARES
    return mixed_interactions(*given, seed=chosen.seed, shares=shares)


def plan_from(chosen: Namespace, host: str, workers: int) -> Plan:
    """Return the plan, the same for all workers. Raises ValueError, OSError, ProgramFailed."""
    options.require_not_negative(chosen, "interval", "interactions", "duration")
    if (customers := chosen.num_users or 1) * chosen.interactions > options.MOST_PLANNED:
        most = f"{customers} customers can do at most {options.MOST_PLANNED // customers} each"
        raise ValueError(f"--interactions is {chosen.interactions}; {most}")
    sequences = sequences_from(chosen, host)
    until_s = None if chosen.interactions else chosen.duration
    requests = None
    if chosen.interactions and chosen.from_file:
        requests = sum(len(interaction.steps) for own in sequences for interaction in own)
    return Plan([interactions.packed(sequences)] * workers, None, requests, until_s)


class Customer(node.Customer):
    """Does a customer's sequence of interactions, and then begins it again."""

    connecting: Mapping[str, Any] = {"keep_alive": True}

    def turns_of_each(self, chosen: Namespace) -> int:
        return int(chosen.interactions)

    def turns(self, mine: Part, customer: int, asker: Asker, random: Random) -> Iterator[float]:
        """Do an interaction at each turn. The next one is due at once, or after an interval."""
        chosen = self.environment.parsed_options
        content = mine.content[customer % len(mine.content)]
        own = interactions.unpacked(content)
        due_s = max(mine.start_s + random.random() * chosen.interval, monotonic())
        for number, interaction in enumerate(cycle(own)):
            yield due_s
            index_of = partial(interactions.step_index, customer, number)
            self._do(interaction, mine, index_of, asker, due_s)
            if chosen.interval:
                due_s += chosen.interval * (1 + random.uniform(-VARIATION, VARIATION))
            else:
                due_s = monotonic()

    def _do(
        self,
        interaction: Interaction,
        mine: Part,
        index_of: Callable[[int], int],
        asker: Asker,
        due_s: float,
    ) -> None:
        """Do the steps of an interaction, until one fails. due_s: when the first was due."""
        needs_address = any(ADDED in step.path for step in interaction.steps)
        added = ""  # address of the flight that was added last
        for at, step in enumerate(interaction.steps):
            kind, path = interaction.row_kind(step), step.path.replace(ADDED, added)
            record = partial(self.node.record, mine, index_of(at), kind, due_s, is_open=False)
            answer = asker.ask(path, record, step.body)
            if not 200 <= answer.status < 400:
                return
            if needs_address and step.method == "POST":
                receipt = json.loads(answer.body)
                added = receipt.get("receipt") or f"/transactions/{receipt['TRANSACTION_ID']}"
            due_s = answer.done_s


register(Customer, plan_from, OPTIONS, FILES, RUN_ID)
