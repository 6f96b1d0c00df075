"""Operations: what one method of one route takes and answers, described once, by the handler.

A handler gets the parameters that its operation admits, and the OpenAPI document is made from the
operations of all rows of the table of routes, so the two cannot differ.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from backend.api.reading import given_in
from backend.questions.answer_types import ref
from backend.questions.parameters import Given, Parameter, Schema, require_known
from backend.serving.environs import Environ

# The tags of operations; `openapi.toml` has them in their order, with a line about each.
QUESTIONS = "The three questions"
READING = "Export and suggestions"
ADDING = "Adding flights"
BLOCKS = "Transactions and blocks"
PROOFS = "Proofs and the log"
STUDY = "The study's paths"
OPERATION = "Operation"

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Media:
    """A body of one media type. schema: JSON Schema. example: one that is accepted, or None."""

    schema: Schema
    example: object = None


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of an operation with one status.

    content: media type -> body. headers: names of its headers besides those of every answer.
    may_have: names of headers that it has only at times.
    """

    meaning: str
    content: Mapping[str, Media] = field(default_factory=dict)
    headers: tuple[str, ...] = ()
    may_have: tuple[str, ...] = ()


def in_json(meaning: str, type_name: str, **more: Any) -> Answer:
    """Describe an answer in JSON. type_name: of its body. more: members of `Answer`."""
    return Answer(meaning, {JSON: Media(ref(type_name))}, **more)


@dataclass(frozen=True, slots=True)
class Operation:
    """Describes what one method of one route takes and answers.

    name: the operationId. answers: status -> good answer. in_path: parameters in the path, named as
    there, but in capitals. errors: statuses of problems besides those that every operation may
    answer. body: media type -> request body. has_etag: whether answers have an ETag, hence 304.
    writes: whether it may need a token; always_needs_token: whatever the settings are. takes_key:
    whether it takes flights with an Idempotency-Key, and may answer 422.
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
    always_needs_token: bool = False
    takes_key: bool = False
    known: Collection[str] = field(init=False)  # names of `parameters`

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "known", dict.fromkeys(parameter.name for parameter in self.parameters)
        )

    def given(self, environ: Environ) -> Given:
        """Return the parameters of a request. Raises InvalidQuery for others."""
        if parameters := given_in(environ):
            require_known(parameters, self.known)
        return parameters
