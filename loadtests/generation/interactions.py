"""Defines interactions: sequences of requests of a customer that are measured as one. Pure.

A step is a request. The next step is sent as soon as the last is answered; a failed step is the
last. Each request has a raw row of kind `INTERACTION:STEP`; `whole` joins the rows of an
interaction into one, so that windows and rules apply to interactions as they do to requests.

On disk, a line for each customer has its interactions as JSON, in the order in which they are done:
`[{"kind": "…", "steps": [{"kind", "method", "path", "body"}, …]}, …]`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec

from loadtests.generation.rows import Row, closed_index, customer_of, number_of
from loadtests.grouping import grouped

STEPS_AT_MOST = 16
SEPARATOR = ":"
ADDED = "{ADDED}"


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Describes a request. body: JSON or, if the path ends in /batch, JSON lines; empty for GET.

    path: ADDED stands for the address of the flight that the interaction added last: of its
    transaction, or of its receipt in a cluster.
    """

    kind: str
    method: str
    path: str
    body: str = ""


class Interaction(msgspec.Struct, frozen=True):
    """Holds steps, in their order. kind: a name without a colon."""

    kind: str
    steps: Annotated[tuple[Step, ...], msgspec.Meta(min_length=1, max_length=STEPS_AT_MOST)]

    def row_kind(self, step: Step) -> str:
        return f"{self.kind}{SEPARATOR}{step.kind}"


Sequences = Sequence[Sequence[Interaction]]  # for each customer, its interactions in order


_decode_own = msgspec.json.Decoder(Annotated[list[Interaction], msgspec.Meta(min_length=1)]).decode


def packed(sequences: Sequences) -> list[str]:
    """Return the interactions of each customer as a text, which can be sent to a worker."""
    return [msgspec.json.encode(own).decode() for own in sequences]


def unpacked(text: str | bytes) -> list[Interaction]:
    own: list[Interaction] = _decode_own(text)
    return own


def save(path: Path, sequences: Sequences) -> None:
    """Write the interactions of all customers. Raises OSError."""
    path.write_text("\n".join(packed(sequences)), encoding="utf-8")


def load(path: Path) -> list[list[Interaction]]:
    """Return the saved interactions of all customers. Raises OSError, ValueError."""
    sequences = []
    for number, text in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            sequences.append(unpacked(text))
        except msgspec.DecodeError as problem:
            raise ValueError(f"{path}, line {number}: no interactions: {problem}") from problem
    if not sequences:
        raise ValueError(f"{path} has no customers")
    return sequences


def step_index(customer: int, number: int, step: int) -> int:
    """Return the index in raw rows of a step (from 0) of a customer's `number`-th interaction."""
    return closed_index(customer, number * STEPS_AT_MOST + step)


def interaction_of(row: Row) -> tuple[int, int]:
    """Return customer and number of the interaction that a raw row is a step of."""
    return customer_of(row), number_of(row) // STEPS_AT_MOST


def step_of(row: Row) -> int:
    """Return the number, from 0, of the step in its interaction that a raw row is of."""
    return number_of(row) % STEPS_AT_MOST


def by_interaction(rows: Iterable[Row]) -> list[list[Row]]:
    """Return the rows of each interaction in the order of steps; interactions by start time."""
    in_order = sorted(rows, key=step_of)
    return sorted(grouped(in_order, interaction_of).values(), key=lambda steps: steps[0].sent_s)


def whole(rows: Iterable[Row], lengths: Mapping[str, int]) -> list[Row]:
    """Return a row for every interaction, as if it had been one request of a closed run.

    lengths: number of steps of each kind. An interaction with fewer steps, all of which succeeded,
    was cut off at the end of the run, and is left out. sent_s is that of the first step, done_s and
    status are those of the last (or the failed) one; service_s is the sum if every row has one.
    """
    joined = []
    for steps in by_interaction(rows):
        first, last, kind = steps[0], steps[-1], steps[0].kind.partition(SEPARATOR)[0]
        services_s = [row.service_s for row in steps if row.service_s is not None]
        if step_of(last) == lengths[kind] - 1 or not last.succeeded:
            index = closed_index(*interaction_of(first))
            service_s = sum(services_s) if len(services_s) == len(steps) else None
            begun = replace(first, index=index, kind=kind, service_s=service_s)
            joined.append(replace(begun, done_s=last.done_s, status=last.status))
    return joined
