"""Makes the interactions of the customers of studies 003 and 004, with a ledger of flights. Pure.

Mixed (study 003, a bookstore): 60 % of interactions read, 30 % look and add a little, 10 % add a
few. Itinerary (study 004, a travel agency): nine requests that belong together. Reports say which
interaction stands for which, and why.

Customers do different things: each takes flights of its own from the pool, in turn, so that none is
added twice before the pool is used up. The same seed makes the same interactions, and those of a
customer do not depend on how many others there are.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, islice
from random import Random
from typing import TypeVar

from loadtests.generation.interactions import ADDED, Interaction, Step
from loadtests.questions import KINDS, Flight, Questions, as_sent

READING, FREQUENT, RARE, ITINERARY = "reading", "frequent", "rare", "itinerary"
SHARES: Mapping[str, float] = {READING: 60, FREQUENT: 30, RARE: 10}
BATCH_FLIGHTS = 5
LEGS = 3
STEPS: Mapping[str, int] = {READING: 3, FREQUENT: 2, RARE: 1, ITINERARY: 9}
"""How many steps an interaction of each kind has."""

Item = TypeVar("Item")

BEGIN, QUERY, RESERVE, COMMIT = "begin", "query", "reserve", "commit"

_ADD, _ADD_BATCH = "/transactions?mode=sync", "/transactions/batch?mode=sync"


def sent_form(flight: Flight) -> str:
    """Return a flight as it is posted: JSON in ASCII, without the fields that the ledger gives."""
    return json.dumps(as_sent(flight))


# --- study 003 -------------------------------------------------------------------------------


def mixed_interactions(
    questions: Questions,
    new: Sequence[Flight],
    customers: int,
    count: int,
    *,
    seed: int,
    shares: Mapping[str, float] = SHARES,
) -> list[list[Interaction]]:
    """Return `count` interactions of each customer, kinds drawn by their shares.

    questions: those that are asked. new: the pool of flights to add. Raises ValueError for an
    unknown kind or an empty pool.
    """
    if unknown := sorted(shares.keys() - SHARES.keys()):
        raise ValueError(f"there is no kind {unknown[0]!r}; there are {', '.join(SHARES)}")
    if not new:
        raise ValueError("there are no flights to be added")
    sequences = []
    for customer in range(customers):
        own = _own(new, customer, customers)
        random = Random(f"{seed} mixed {customer}")  # noqa: S311  a load, no secrets
        kinds = random.choices(list(shares), list(shares.values()), k=count)
        interactions = (Interaction(kind, _steps(kind, questions, own, random)) for kind in kinds)
        sequences.append(list(interactions))
    return sequences


def _own(pool: Sequence[Item], customer: int, customers: int) -> Iterator[Item]:
    """Return the customer's own part of the pool, in turn, without end."""
    return islice(cycle(pool), customer, None, customers)


def _steps(
    kind: str, questions: Questions, new: Iterator[Flight], random: Random
) -> tuple[Step, ...]:
    if kind == READING:
        drawn = [random.choice(questions[kind]) for kind in KINDS]
        return tuple(Step(question.kind, "GET", question.path) for question in drawn)
    if kind == FREQUENT:
        return Step("newest", "GET", "/tip"), Step("add", "POST", _ADD, sent_form(next(new)))
    lines = "\n".join(sent_form(flight) for flight in islice(new, BATCH_FLIGHTS))
    return (Step("add-5", "POST", _ADD_BATCH, lines),)


# --- study 004 -------------------------------------------------------------------------------


def itineraries(
    questions: Questions, legs: Sequence[Flight], customers: int, count: int
) -> list[list[Interaction]]:
    """Return `count` itineraries of each customer, over legs of its own.

    questions: about carriers. legs: the pool. Raises ValueError if it is empty.
    """
    if not legs:
        raise ValueError("there are no legs to travel on")
    sequences = []
    for customer in range(customers):
        about_carriers = islice(_own(questions["average_delays"], customer, customers), count)
        own_legs = _own(legs, customer, customers)
        sequences.append([_itinerary(question.path, own_legs) for question in about_carriers])
    return sequences


def _itinerary(carrier_path: str, legs: Iterator[Flight]) -> Interaction:
    steps = [Step(BEGIN, "GET", "/tip"), Step(QUERY, "GET", carrier_path)]
    for leg in islice(legs, LEGS):
        day, number = leg["FL_DATE"], leg["OP_CARRIER_FL_NUM"]
        path = f"/filter_transactions?OP_CARRIER_FL_NUM={number}&FL_DATE={day}"
        steps += [Step(QUERY, "GET", path), Step(RESERVE, "POST", _ADD, sent_form(leg))]
    return Interaction(ITINERARY, (*steps, Step(COMMIT, "GET", ADDED)))
