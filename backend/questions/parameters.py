"""Defines parameters, which read values from a request or a command line and document themselves.

The check and the documentation come from the same attributes, so that they cannot differ:

    Number      a whole number within bounds
    Choice      one of a few words
    OfField     a value of a field of a flight, read as in a flight record
    Text        any short text
    Hash        a SHA-256 hash in hex

`of` and `find` raise InvalidQuery with the parameter's name, the text as given, and the reason.
`schema` is JSON Schema in the dialect of OpenAPI 3.1.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from backend.base.errors import InvalidFlight, InvalidQuery
from backend.chain.fields import CODE_PATTERN, FIELD, MAX_TEXT_CHARACTERS, Field, Value
from backend.chain.parse_cache import ParseCache

Given = Mapping[str, str]  # parameter name -> text
Schema = dict[str, Any]
Read = TypeVar("Read")

MAX_DIGITS = 15
LARGEST = 10**MAX_DIGITS - 1


@dataclass(frozen=True)
class Parameter(ABC, Generic[Read]):
    """One parameter of a question.

    meaning: one line for the documentation. example: a text that works with the data that
    scripts/run imports. default: the value if it is not given. A parameter without a default has no
    value then, unless it is required.
    """

    name: str
    meaning: str
    example: str
    default: Read | None = None
    required: bool = False

    @abstractmethod
    def parse(self, text: str) -> Read:
        """Return the value that `text` stands for. Raises InvalidQuery."""

    @abstractmethod
    def schema(self) -> Schema:
        """Return the JSON Schema of what `parse` takes, with the default."""

    def find(self, given: Given) -> Read | None:
        """Return the value in `given`; if there is none, the default; if there is none, None."""
        text = given.get(self.name)
        if text is not None:
            return self.parse(text)
        if self.required:
            raise self.missing(None)
        return self.default

    def of(self, given: Given) -> Read:
        """Return the value in `given` or the default. Raises InvalidQuery if there is neither."""
        value = self.find(given)
        if value is None:
            raise self.missing(None)
        return value

    def missing(self, text: str | None) -> InvalidQuery:
        what = "is missing" if self.required else "is empty; leave it out, or give a value"
        return InvalidQuery(self.name, text, f"{what}; for example {self.name}={self.example}")

    def _with_default(self, schema: Schema) -> Schema:
        return schema if self.default is None else {**schema, "default": self.default}


@dataclass(frozen=True)
class Number(Parameter[int]):
    """A whole number from `least` to `most`, written in decimal digits only."""

    least: int = 0
    most: int = LARGEST
    reason: str = ""

    def parse(self, text: str) -> int:
        if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS:
            number = int(text)
            if self.least <= number <= self.most:
                return number
        reason = self.reason or f"must be a whole number from {self.least} to {self.most}"
        raise InvalidQuery(self.name, text, reason)

    def schema(self) -> Schema:
        bounds = {"minimum": self.least, "maximum": self.most}
        return self._with_default({"type": "integer", "format": "int64", **bounds})


@dataclass(frozen=True)
class Choice(Parameter[str]):
    """One of `choices`."""

    choices: tuple[str, ...] = ()

    def parse(self, text: str) -> str:
        if text in self.choices:
            return text
        if self.required or self.default is not None:
            raise InvalidQuery(self.name, text, f"must be one of {', '.join(self.choices)}")
        raise InvalidQuery(self.name, text, f"must be {' or '.join(self.choices)}, or left out")

    def schema(self) -> Schema:
        return self._with_default({"type": "string", "enum": list(self.choices)})


@dataclass(frozen=True)
class OfField(Parameter[Value]):
    """A value of the flight field named `field`; letters of a code may be small.

    A blank text counts as missing. hint: where to look for a value, after one that is none.
    """

    field: str = ""
    hint: str = ""

    def parse(self, text: str) -> Value:
        if not text.strip():
            raise self.missing(text)
        try:
            return _VALUES[self.field][text]
        except InvalidFlight as error:
            raise InvalidQuery(self.name, text, f"{error.reason}{self.hint}") from None

    def schema(self) -> Schema:
        """Return the schema of the stored value; `parse` takes more spellings, as `335.0`."""
        return stored(FIELD[self.field])


@dataclass(frozen=True)
class Text(Parameter[str]):
    """A text that is checked where it is used, also its length. Only a default may be empty."""

    most_characters: int = MAX_TEXT_CHARACTERS

    def parse(self, text: str) -> str:
        return text

    def schema(self) -> Schema:
        least = 0 if self.default == "" else 1
        bounds = {"minLength": least, "maxLength": self.most_characters}
        return self._with_default({"type": "string", **bounds})


@dataclass(frozen=True)
class Hash(Parameter[str]):
    """A SHA-256 hash in 64 hex digits, or its beginning, at least 8 of them."""

    def parse(self, text: str) -> str:
        if not _is_hash(text):
            raise InvalidQuery(self.name, text, "must have 8 to 64 hex digits")
        return text.lower()

    def schema(self) -> Schema:
        return {"type": "string", "pattern": "^[0-9a-fA-F]{8,64}$"}


_is_hash = re.compile(r"[0-9a-fA-F]{8,64}").fullmatch


def stored(field: Field) -> Schema:
    """Return the schema of a field's values as the ledger holds them, without null."""
    if field.kind == "integer":
        return {"type": "integer", "minimum": field.minimum, "maximum": field.maximum}
    return {"type": "string", **_TEXTS[field.kind]}


_TEXTS: dict[str, Schema] = {
    "date": {"format": "date"},
    "time": {"pattern": "^[0-9]{4}$"},
    "code": {"pattern": f"^{CODE_PATTERN}$"},
    "text": {"minLength": 1, "maxLength": MAX_TEXT_CHARACTERS},
}


def _parsed(field: str, text: str) -> Value:
    kind = FIELD[field].kind
    is_code = kind == "code" and text.isascii()  # others have capitals that are ASCII
    value = FIELD[field].parse(text.upper() if is_code else text)
    if kind == "date" and "/" in text:  # and no weekday tells which is the day
        year, month, day = str(value).split("-")
        if month != day <= "12":
            other = f"{year}-{day}-{month}"
            raise InvalidFlight(field, text, f"may be {value} or {other}; write the one you mean")
    return value


# People ask for the same days and cities.
_VALUES: dict[str, ParseCache[str, Value]] = {
    name: ParseCache(partial(_parsed, name), 1000) for name in FIELD
}

Kind = TypeVar("Kind", bound=Parameter[Any])


def by_name(*parameters: Kind) -> dict[str, Kind]:
    """Return the parameters as a dictionary by name."""
    return {parameter.name: parameter for parameter in parameters}


def require_known(given: Given, known: Collection[str]) -> None:
    """Raise InvalidQuery if a parameter's name is not among `known`."""
    for name, text in given.items():
        if name not in known:
            allowed = ", ".join(known) or "none"
            raise InvalidQuery(name, text, f"unknown parameter; allowed: {allowed}")


def require_order(initial_date: str, final_date: str, name: str = "INITIAL_DATE") -> None:
    """Raise InvalidQuery if `initial_date` is after `final_date`; both are ISO dates.

    name: the parameter that gave the first one.
    """
    if initial_date > final_date:
        raise InvalidQuery(name, initial_date, f"is after FINAL_DATE {final_date}")


AS_OF = Number(
    "as_of",
    "Answer for the state of the ledger at this block height instead of the newest.",
    example="337",
    reason="must be a block height, a whole number from 0",
)
FORMAT = Choice(
    "format",
    "The format of the answer. It overrides `Accept`.",
    "csv",
    choices=("ndjson", "csv"),
)
