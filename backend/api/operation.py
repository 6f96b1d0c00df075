"""Operations: what one method of one route takes and answers, said once, beside the view.

A view reads its parameters through its operation, and the OpenAPI document is made from the
operations of all views, so the two cannot differ. `OPERATION(view)` is the view, with its operation
noted; `operation_of` finds it again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from flask import request

from backend.api.reading import parameters, query_string
from backend.parameters import Parameter, Schema, require_known

QUESTIONS = "The three questions"
READING = "Export and suggestions"
ADDING = "Adding flights"
BLOCKS = "Transactions and blocks"
STUDY = "The study's paths"
OPERATION = "Operation"

TAGS = {
    QUESTIONS: "What happened to a flight, how late a carrier was, how many flights went.",
    READING: "Many flights at once, and completions of what somebody types.",
    ADDING: "Flights one by one or many at once. May need a token.",
    BLOCKS: "The ledger itself.",
    STUDY: "The addresses of the study's own service, for its load scripts. Blocks are mined by "
    "the miner alone: `GET /mine` is 405.",
    OPERATION: "Whether the service works, its numbers, and this document.",
}
"""The groups of operations in the order of the README, with a line about each."""

JSON = "application/json"

View = TypeVar("View", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Media:
    """A body of one media type. schema: JSON Schema. example: one that is accepted, or None."""

    schema: Schema
    example: object = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One status that an operation answers.

    content: media type -> body. headers: names of headers that it has besides those of every
    answer. may_have: of those that it has at times.
    """

    meaning: str
    content: Mapping[str, Media] = field(default_factory=dict)
    headers: tuple[str, ...] = ()
    may_have: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """What one method of one route takes and answers.

    name: the operationId. answers: status -> good answer. in_path: parameters in the path, by the
    names that it has in capitals. errors: statuses of problems besides those that every operation
    may answer. body: media type -> request body. has_etag: answers are versioned, hence 304.
    writes: it may need a token. takes_key: it may come with an Idempotency-Key.
    """

    name: str
    tag: str
    summary: str
    answers: Mapping[int, Answer]
    parameters: tuple[Parameter[Any], ...] = ()
    in_path: tuple[Parameter[Any], ...] = ()
    errors: tuple[int, ...] = ()
    body: Mapping[str, Media] = field(default_factory=dict)
    has_etag: bool = False
    writes: bool = False
    takes_key: bool = False

    def __call__(self, view: View) -> View:
        """Note that `view` is this operation."""
        vars(view)[_NOTED] = self
        return view

    def given(self) -> dict[str, str]:
        """Parameter name -> text, of the request in hand. Raises InvalidQuery for unknown ones."""
        return self.given_in(query_string(request.environ))

    def given_in(self, query: str) -> dict[str, str]:
        """The same, of a query string."""
        found = parameters(query)
        if found:
            require_known(found, [parameter.name for parameter in self.parameters])
        return found


_NOTED = "operation"


def operation_of(view: Callable[..., Any]) -> Operation:
    """The operation that `view` is. Raises KeyError if it is none."""
    noted: Operation = vars(view)[_NOTED]
    return noted
