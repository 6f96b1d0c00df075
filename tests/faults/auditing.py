"""Holds a chain on disk, and the answers about it, against what clients remember."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast
from urllib.parse import urlencode

from backend.base.errors import FlightchainError
from backend.chain.canonical import canonical
from backend.chain.fields import FIELD_NAMES
from backend.chain.flight import Flight, as_mapping
from backend.chain.merkle import leaf_hash
from backend.verify.audit import verify
from tests.api.worlds import Json, answer_of, client_of, questions_about, settings_for
from tests.faults.clients import Memory, Receipt
from tests.faults.house import House
from tests.faults.report import Outcome
from tests.flights import OnDisk, flight, on_disk

QUESTIONS = 12  # asked of each engine
INDEX_AGREES = "the index agrees with every block"


def conclude(
    house: House,
    memories: Sequence[Memory],
    chance: random.Random,
    outcome: Outcome,
    imported: Sequence[Flight] = (),
) -> None:
    """End a running service, and hold its chain and answers against memories, as in `audit`."""
    if house.stop() != 0 or not house.seal_the_rest():
        outcome.add("refused", f"the service does not end well\n{house.log()}")
    flights = audit(house.folder, memories, outcome, imported)
    with client_of(settings_for(house.folder)) as client:

        def ask(path: str) -> Json:
            response = client.get(path)
            assert response.status_code == 200, response.text
            return cast("Json", response.json)

        compare_answers(ask, flights, chance, outcome)


def audit(
    folder: Path, memories: Sequence[Memory], outcome: Outcome, imported: Sequence[Flight] = ()
) -> list[Flight]:
    """Hold a chain that nobody writes to, nothing pending, against memories; its flights.

    imported: rows that must be there exactly once and in this order. Findings go to `outcome`.
    """
    try:
        verified = verify(folder)
    except FlightchainError as error:
        outcome.add("lost", f"{folder}: the chain does not verify: {error}")
        return []
    if verified.index != INDEX_AGREES:
        outcome.add("wrong", f"{folder}: {verified.index}")
    contents = on_disk(folder)
    _compare_receipts(contents, memories, outcome)
    _compare_rows(contents.flights, memories, imported, outcome)
    return contents.flights


def _compare_receipts(chain: OnDisk, memories: Sequence[Memory], outcome: Outcome) -> None:
    for memory in memories:
        outcome.acknowledged += len(memory.acknowledged)
        for text, times in Counter(memory.unexpected).items():
            outcome.add("refused", f"{times} times: {text}")
        for receipt in memory.acknowledged:
            if problem := _problem(chain, receipt):
                outcome.add("lost", f"transaction {receipt.transaction_id}: {problem}")


def _problem(chain: OnDisk, receipt: Receipt) -> str:
    """Returns what became of a flight that was acknowledged; empty if it is where it must be."""
    place, sent = receipt.transaction_id, flight(receipt.serial)
    if place >= len(chain.flights):
        return f"the chain ends before it, at {len(chain.flights)}"
    if chain.flights[place] != sent:
        return f"another flight has its id: {chain.flights[place]}"
    transaction = {
        "TRANSACTION_ID": place,
        "timestamp": chain.timestamps[place],
        **as_mapping(sent),
    }
    if leaf_hash(canonical(transaction)).hex() != receipt.content_hash:
        return "its content hash is not the one that was acknowledged"
    return ""


def says_lost(row: Json) -> bool:
    """Returns whether an entry says in words that it stands for a flight that was lost."""
    return "lost" in str(row["ORIGIN_CITY_NAME"])


def _compare_rows(
    flights: Sequence[Flight],
    memories: Sequence[Memory],
    imported: Sequence[Flight],
    outcome: Outcome,
) -> None:
    position = {row: place for place, row in enumerate(flights)}
    if doubled := len(flights) - len(position):
        outcome.add("doubled", f"{doubled} flights are in the chain twice")
    own = set(imported)
    if [row for row in flights if row in own] != list(imported):
        outcome.add("lost", "the imported rows are not there once each, in their order")
    submitted = {row for memory in memories for row in memory.flights()}
    for row in position.keys() - own - submitted:
        outcome.add("wrong", f"nobody submitted {row}")


# --- answers ---------------------------------------------------------------------------------


def compare_answers(
    ask: Callable[[str], Json],
    flights: Sequence[Flight],
    chance: random.Random,
    outcome: Outcome,
) -> None:
    """Ask both engines the three questions and hold them against a plain loop over `flights`.

    ask: the answer at a path of the service.
    """
    rows = [as_row(place, row) for place, row in enumerate(flights)]
    for engine in ("index", "scan"):
        for row in chance.sample(rows, min(QUESTIONS, len(rows))):
            for path, wanted in asked_about(row, rows):
                got = ask(f"{path}&engine={engine}")
                if wrong := differing(got, wanted):
                    outcome.add("wrong", f"{path}&engine={engine}: {wrong}")


def as_row(place: int, row: Flight) -> Json:
    """A flight with its id, by names."""
    return {"TRANSACTION_ID": place, **dict(zip(FIELD_NAMES, row, strict=True))}


def asked_about(row: Json, rows: Sequence[Json]) -> list[tuple[str, Json]]:
    """The three questions about `row`, and what a plain loop over `rows` finds."""
    return [
        (f"/{route}?{urlencode(asked)}", answer_of(route, rows, asked))
        for route, asked in questions_about(row).items()
    ]


def with_ids(answer: Json) -> Json:
    """An answer whose flights, if it has any, are told by their ids."""
    flights = answer.get("flights")
    if isinstance(flights, list):
        return {**answer, "flights": [leg["TRANSACTION_ID"] for leg in flights]}
    return answer


def differing(got: Json, wanted: Json) -> str:
    """Returns what an answer says otherwise than it must; empty if it is right."""
    answer, wanted = with_ids(got), with_ids(wanted)
    wrong = [name for name in wanted if answer.get(name) != wanted[name]]
    return "; ".join(f"{name} {answer.get(name)} instead of {wanted[name]}" for name in wrong)
