"""Makes questions to a service from the flights that it holds, and knows some answers.

Blocks at even distances along the chain are read through the service, flights are drawn from them
with a seed, and each flight becomes one question of each kind: its number and day; its carrier, and
its two cities, over a random interval of days that holds its own day and lies within its month. So
every question has an answer, busy carriers and routes are asked about more often, and questions to
a short and to a long chain are alike.
"""

from calendar import monthrange
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain, product
from random import Random
from typing import Any
from urllib.parse import urlencode

from loadtests.processes import ProgramFailed, Site, answer

PARAMETERS = {
    "filter_transactions": ("OP_CARRIER_FL_NUM", "FL_DATE"),
    "average_delays": ("OP_CARRIER_AIRLINE_ID", "INITIAL_DATE", "FINAL_DATE"),
    "flight_counter": ("ORIGIN_CITY_NAME", "DEST_CITY_NAME", "INITIAL_DATE", "FINAL_DATE"),
}
"""Kind of question -> its parameters, in the order in which the study's ledger takes them."""
KINDS = tuple(PARAMETERS)
FEW_BLOCKS, SAMPLED_BLOCKS = 20, 100
_GIVEN_BY_THE_LEDGER = ("TRANSACTION_ID", "timestamp")
Flight = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """Asks one thing of the service. parameters: in the order of `PARAMETERS`."""

    kind: str
    parameters: Mapping[str, str]

    @property
    def path(self) -> str:
        return f"/{self.kind}?{urlencode(self.parameters)}"

    @property
    def scan_path(self) -> str:
        return f"{self.path}&engine=scan"


Questions = dict[str, list[Question]]  # kind -> questions


def flights_of_block(service: Site, height: int) -> list[Flight]:
    """Return all flights of a block, oldest first. Raises ProgramFailed, OSError."""
    content = service.get(f"/blocks/{height}")
    try:
        return [dict(flight) for flight in content["block"]["transactions"]]
    except (LookupError, TypeError, ValueError) as problem:
        raise _no_service(service, f"/blocks/{height}") from problem


def _height(service: Site) -> int:
    """Return the height of the newest block. Raises ProgramFailed, OSError."""
    tip = service.get("/tip")
    if not isinstance(tip, dict) or type(tip.get("height")) is not int:
        raise _no_service(service, "/tip")
    return int(tip["height"])


def _no_service(service: Site, path: str) -> ProgramFailed:
    return ProgramFailed(f"{service.url}{path} does not answer as a Flightchain does; is it one?")


def all_blocks(service: Site) -> Iterator[list[Flight]]:
    """Return the flights of each block that has some, in order."""
    return (flights_of_block(service, height) for height in range(1, _height(service) + 1))


def as_sent(flight: Flight) -> Flight:
    """Return a flight as it is posted, without the fields that the ledger gives."""
    return {name: value for name, value in flight.items() if name not in _GIVEN_BY_THE_LEDGER}


def sample(service: Site, blocks: int = SAMPLED_BLOCKS) -> list[Flight]:
    """Return the flights of up to `blocks` blocks, the first and the last among them."""
    height = _height(service)
    if height < 1:
        raise ProgramFailed("the chain holds no flights to ask about")
    count = min(blocks, height)
    heights = (1 + round(n * (height - 1) / max(1, count - 1)) for n in range(count))
    return [flight for at in heights for flight in flights_of_block(service, at)]


def drawn(flights: Sequence[Flight], count: int, seed: int) -> Questions:
    """Return `count` questions of each kind about `flights`; the same seed draws the same ones."""
    days = [str(flight["FL_DATE"]) for flight in flights]
    first, last = date.fromisoformat(min(days)), date.fromisoformat(max(days))
    random = Random(seed)  # noqa: S311 - a load, no secrets
    chosen = random.choices(flights, k=count)
    questions: Questions = {kind: [] for kind in KINDS}
    for kind, flight in product(KINDS, chosen):
        has_interval = "INITIAL_DATE" in PARAMETERS[kind]
        interval = _interval(flight["FL_DATE"], first, last, random) if has_interval else {}
        known = flight | interval
        parameters = {name: str(known[name]) for name in PARAMETERS[kind]}
        questions[kind].append(Question(kind, parameters))
    return questions


def _interval(day_text: str, first: date, last: date, random: Random) -> dict[str, str]:
    """Return an interval of days around `day_text`, in its month and within `first` to `last`."""
    day = date.fromisoformat(day_text)
    lowest = max(first, day.replace(day=1))
    highest = min(last, day.replace(day=monthrange(day.year, day.month)[1]))
    initial = date.fromordinal(random.randint(lowest.toordinal(), day.toordinal()))
    final = date.fromordinal(random.randint(day.toordinal(), highest.toordinal()))
    return {"INITIAL_DATE": initial.isoformat(), "FINAL_DATE": final.isoformat()}


def paths(questions: Questions) -> dict[str, list[str]]:
    return {kind: [question.path for question in group] for kind, group in questions.items()}


def in_turns(questions: Questions) -> list[str]:
    """Return the addresses of all questions, one of each kind in turn."""
    return list(chain.from_iterable(zip(*paths(questions).values(), strict=True)))


def tried_out(service: Site, count: int, seed: int) -> Questions:
    """Return `count` questions of each kind. Raises ProgramFailed if one finds no flights."""
    questions = drawn(sample(service), count, seed)
    with service.connection() as connection:
        for question in chain.from_iterable(questions.values()):
            counts = answer(connection, question.path)
            if not counts.get("count", counts.get("flights")):
                raise ProgramFailed(f"GET {question.path} found no flights: {str(counts)[:300]}")
    return questions


# --- known answers ---------------------------------------------------------------------------

KNOWN_MONTH = "ontime-2008-01.csv.xz"
_DAYS, _MONTH = ("2008-01-05", "2008-01-20"), ("2008-01-01", "2008-01-31")
_SOUTHWEST_DELAYS = {
    "average_delay": 2.1094082505222467,
    "flights": 51801,
    "arrived": 51221,
    "cancelled": 521,
}
_KNOWN: tuple[tuple[str, tuple[str, ...], Mapping[str, float]], ...] = (
    ("flight_counter", ("Chicago, IL", "New York, NY", *_DAYS), {"count": 633}),
    ("flight_counter", ("Honolulu, HI", "Kahului, HI", *_MONTH), {"count": 1304}),
    ("average_delays", ("19393", *_DAYS), _SOUTHWEST_DELAYS),
    ("filter_transactions", ("335", "2008-01-03"), {"count": 13}),
    ("filter_transactions", ("511", "2008-01-04"), {"count": 18}),
)
KNOWN_ANSWERS = tuple(
    (Question(kind, dict(zip(PARAMETERS[kind], values, strict=True))), expected)
    for kind, values, expected in _KNOWN
)


def disagreements(service: Site) -> list[str]:
    """Return the answers of the service on the known month that are wrong, with either engine."""
    wrong = []
    for question, expected in KNOWN_ANSWERS:
        for path in (question.path, question.scan_path):
            content = service.get(path)
            answered = {name: content.get(name) for name in expected}
            if answered != expected:
                wrong.append(f"GET {path}: {answered}, not {dict(expected)}")
    return wrong
