"""The interactions of the customers of studies 003 and 004, with a ledger of flights. Pure.

Mixed (study 003, a bookstore): 60 % of interactions read, 30 % look and add a little, 10 % add a
few. Itinerary (study 004, a travel agency): nine requests that belong together. `BOOKSTORE` and
`TRAVEL_AGENCY` say which interaction stands for which, and why.

Customers do different things: each takes flights of its own from the pool, in turn, so that none is
added twice before the pool is used up. The same seed makes the same interactions, and those of a
customer do not depend on how many others there are.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, islice
from random import Random
from typing import NamedTuple, TypeVar

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


class Counterpart(NamedTuple):
    """A part of a study, and what stands for it here."""

    theirs: str
    ours: str
    why: str


BOOKSTORE = (
    Counterpart(
        "Customer interaction, 60 %: look at editor picks, buy 5 books",
        "reading: the three questions, one after the other",
        "This is the frequent business of the service. Asking a ledger does not change it, so "
        "unlike a purchase this writes nothing.",
    ),
    Counterpart(
        "Stock replenishment, 30 %: find the 5 books with the fewest copies, add copies",
        "frequent: look up the newest block, add one flight, on the disk before the answer",
        "It looks at the present state, then writes a little. Nothing in a ledger is changed, so "
        "it adds a flight.",
    ),
    Counterpart(
        "New acquisition, 10 %: add 5 new books",
        "rare: a batch of 5 new flights, all or none",
        "Several new records at once.",
    ),
    Counterpart(
        "0, 100 and 1000 books",
        "a ledger of 0, 100 and 1000 full blocks",
        "This is what grows with use. Each block holds 1000 flights.",
    ),
    Counterpart(
        "Local against RPC",
        "the ledger's own methods, called by threads of one process, against HTTP",
        "Neither has what only the other needs: parameters and bodies are parsed and checked in "
        "both, the miner runs in both.",
    ),
)
TRAVEL_AGENCY = (
    Counterpart("start", "begin: ask for the tip", "The state in which the itinerary begins."),
    Counterpart(
        "queryCustomer",
        "query: the mean delay of the carrier in the month",
        "It asks about the airline of the journey.",
    ),
    Counterpart(
        "queryFlight, queryCar, queryRoom",
        "query: the flight of that number on that day, three times",
        "As in the study's test of one resource manager: three pairs on flights.",
    ),
    Counterpart(
        "reserveFlight, reserveCar, reserveRoom",
        "reserve: add the leg, on the disk before the answer",
        "A write that belongs to the item that was looked at.",
    ),
    Counterpart(
        "commit",
        "commit: ask for the last leg",
        "Each leg is durable once it is answered. There is no transaction over several requests: "
        "legs that were added stay.",
    ),
)


def sent_form(flight: Flight) -> str:
    """A flight as it is posted: JSON in ASCII, without the fields that the ledger gives."""
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
    """`count` interactions of each customer, kinds drawn by their shares.

    questions: those that are asked. new: the pool of flights to add. Raises ValueError for an
    unknown kind or an empty pool.
    """
    if unknown := sorted(shares.keys() - SHARES.keys()):
        raise ValueError(f"there is no kind {unknown[0]!r}; there are {', '.join(SHARES)}")
    if not new:
        raise ValueError("there are no flights to be added")
    found = []
    for customer in range(customers):
        own = _own(new, customer, customers)
        random = Random(f"{seed} mixed {customer}")  # noqa: S311  a load, no secrets
        kinds = random.choices(list(shares), list(shares.values()), k=count)
        found.append([Interaction(one, _steps(one, questions, own, random)) for one in kinds])
    return found


def _own(pool: Sequence[Item], customer: int, customers: int) -> Iterator[Item]:
    """The customer's own part of the pool, in turn, without end."""
    return islice(cycle(pool), customer, None, customers)


def _steps(
    kind: str, questions: Questions, new: Iterator[Flight], random: Random
) -> tuple[Step, ...]:
    if kind == READING:
        asked = [random.choice(questions[kind]) for kind in KINDS]
        return tuple(Step(question.kind, "GET", question.path) for question in asked)
    if kind == FREQUENT:
        return Step("newest", "GET", "/tip"), Step("add", "POST", _ADD, sent_form(next(new)))
    lines = "\n".join(sent_form(flight) for flight in islice(new, BATCH_FLIGHTS))
    return (Step("add-5", "POST", _ADD_BATCH, lines),)


# --- study 004 -------------------------------------------------------------------------------


def itineraries(
    questions: Questions, legs: Sequence[Flight], customers: int, count: int
) -> list[list[Interaction]]:
    """`count` itineraries of each customer, over legs of its own.

    questions: about carriers. legs: the pool. Raises ValueError if it is empty.
    """
    if not legs:
        raise ValueError("there are no legs to travel on")
    found = []
    for customer in range(customers):
        asked = _own(questions["average_delays"], customer, customers)
        own = _own(legs, customer, customers)
        found.append([_itinerary(one.path, own) for one in islice(asked, count)])
    return found


def _itinerary(carrier_path: str, legs: Iterator[Flight]) -> Interaction:
    steps = [Step(BEGIN, "GET", "/tip"), Step(QUERY, "GET", carrier_path)]
    for leg in islice(legs, LEGS):
        day, number = leg["FL_DATE"], leg["OP_CARRIER_FL_NUM"]
        path = f"/filter_transactions?OP_CARRIER_FL_NUM={number}&FL_DATE={day}"
        steps += [Step(QUERY, "GET", path), Step(RESERVE, "POST", _ADD, sent_form(leg))]
    return Interaction(ITINERARY, (*steps, Step(COMMIT, "GET", ADDED)))
