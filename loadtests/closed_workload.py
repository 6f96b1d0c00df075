"""Makes a closed workload with Locust: N customers, each of whom asks, waits, and thinks.

    locust -f loadtests/closed_workload.py --host http://127.0.0.1:8000        with its web page
    locust -f loadtests/closed_workload.py --host … --headless -u 8 -r 8 --think 0.5 --requests 500
    locust -f loadtests/closed_workload.py --host … --headless --master --expect-workers 2 -u 8 -r 8
    locust -f loadtests/closed_workload.py --worker --master-host …            on other machines

Run it from the project's folder, on every machine. Customers are Locust's users: `-u` says how
many. Each ends after --warm-up and --requests requests, or after --duration. Every request is in
the raw rows; `loadtests.generation.rows` leaves out the warm-up and all requests after the first
customer had finished. Every request has a connection of its own.
"""

from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, islice, zip_longest
from random import Random
from time import monotonic

from loadtests.generation import node, options
from loadtests.generation.asking import Asker
from loadtests.generation.node import Part, Plan, register
from loadtests.generation.rows import closed_index
from loadtests.generation.schedule import Request, mixed

RUN_ID = "closed"
LAWS: dict[str, Callable[[float, Random], float]] = {
    "constant": lambda think_s, random: think_s,
    "exponential": lambda think_s, random: random.expovariate(1 / think_s) if think_s else 0.0,
}
OPTIONS: options.Table = (
    ("--think", 1.0, "mean think time in seconds"),
    ("--law", "constant", f"how think times are distributed: {' or '.join(LAWS)}"),
    ("--warm-up", 0, "requests of each customer that are not counted"),
    ("--requests", 0, "requests of each customer after those; 0: until --duration has passed"),
    ("--duration", 60.0, "seconds after which customers begin no request, if --requests is 0"),
    ("--each-once", 0, "1: customers share the requests of --paths, each is asked once, in order"),
)


def plan_from(chosen: Namespace, host: str, workers: int) -> Plan:
    """Return the plan, the same for all workers. Raises ValueError, OSError, ProgramFailed."""
    options.law_from(chosen.law, LAWS, is_beside=node.is_beside())
    options.require_not_negative(chosen, "think", "warm_up", "requests", "duration")
    choices = options.choices_from(chosen, host)
    shares = options.shares_from(chosen.mix)
    mixed(choices, Random(chosen.seed), shares)  # raises for a share without requests  # noqa: S311  a load, no secrets
    plain = {kind: [(item.path, item.body) for item in items] for kind, items in choices.items()}
    customers, requests = chosen.num_users or 1, chosen.warm_up + chosen.requests
    content = {"choices": plain, "shares": shares, "customers": customers}
    if not chosen.requests:
        return Plan([content] * workers, None, None, chosen.duration)
    return Plan([content] * workers, None, customers * requests, None)


class Customer(node.Customer):
    """Asks as a customer does, who waits for the answer, thinks, and asks again."""

    def turns_of_each(self, chosen: Namespace) -> int:
        """Return the number of requests of each customer, with the warm-up."""
        return int(chosen.warm_up + chosen.requests) if chosen.requests else 0

    def turns(self, mine: Part, customer: int, asker: Asker, random: Random) -> Iterator[float]:
        """Ask at each turn. The next one is due after a think time."""
        chosen = self.environment.parsed_options
        think = LAWS[options.law_from(chosen.law, LAWS, is_beside=node.is_beside())]
        due_s = max(mine.start_s, monotonic())
        choices = {
            kind: [Request(kind, path, body=body) for path, body in items]
            for kind, items in mine.content["choices"].items()
        }
        requests = mixed(choices, random, mine.content["shares"])
        if chosen.each_once:
            in_turn = filter(None, chain.from_iterable(zip_longest(*choices.values())))
            requests = islice(in_turn, customer, None, mine.content["customers"])
        for number, request in enumerate(requests):
            yield due_s
            index = closed_index(customer, number)
            then = partial(self.node.record, mine, index, request.kind, due_s, is_open=False)
            asker.ask(request.path, then, request.body)
            due_s = monotonic() + think(chosen.think, random)


register(Customer, plan_from, OPTIONS, options.PATHS, RUN_ID)
