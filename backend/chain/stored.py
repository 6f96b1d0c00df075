"""Flights whose values have their stored form already, as nearly all have, told in a moment.

`fields` says what any value means, one by one. Here all 19 are held against what may be stored, at
once: kinds and bounds by msgspec, names and codes by their forms. The same few names and codes come
again and again, so those that were found to be in form are remembered. Only plain names are taken:
what is not ASCII may need its normal form. Whatever is not recognised is only slower.
"""

import re
from collections.abc import Mapping
from operator import itemgetter
from typing import Annotated, Any

from msgspec import Meta, convert, defstruct
from msgspec.structs import astuple

from backend.chain.fields import FIELDS, MAX_TEXT_CHARACTERS, POSITION, Field, Value
from backend.chain.prebuilt import prebuilt

REMEMBERED = 4000  # texts of a form, each of at most 100 characters
DATE_CHARACTERS = len("YYYY-MM-DD")

_TIMES = frozenset({None, "2400", *(f"{h:02d}{m:02d}" for h in range(24) for m in range(60))})


class Form:
    """Texts of one form. Safe for threads."""

    def __init__(self, pattern: str) -> None:
        self._has_form = re.compile(pattern, re.ASCII).fullmatch
        self._known: set[str] = set()

    def have(self, texts: tuple[str, ...]) -> bool:
        """Whether all of them have it."""
        if self._known.issuperset(texts):
            return True
        if not all(map(self._has_form, texts)):
            return False
        if len(self._known) > REMEMBERED:
            self._known.clear()
        self._known.update(texts)
        return True


_codes = Form(r"[A-Z0-9]{3,4}")
_names = Form(rf"(?! )[ -~]{{1,{MAX_TEXT_CHARACTERS}}}(?<! )")


def _member(field: Field) -> Any:
    """The name and type of a field, and null if that may be stored."""
    kind: Any = str
    if field.kind == "integer":
        kind = Annotated[int, Meta(ge=field.minimum, le=field.maximum)]
    elif field.kind == "date":
        kind = Annotated[str, Meta(min_length=DATE_CHARACTERS, max_length=DATE_CHARACTERS)]
    return (field.name, kind | None, None) if field.nullable else (field.name, kind)


def _values_of(kind: str) -> Any:
    """What takes the values of a kind out of all 19."""
    return itemgetter(*(POSITION[field.name] for field in FIELDS if field.kind == kind))


_Record = prebuilt(
    defstruct("_Record", map(_member, FIELDS), forbid_unknown_fields=True, kw_only=True)
)
_codes_of, _names_of, _times_of = map(_values_of, ("code", "text", "time"))
_DATE = POSITION["FL_DATE"]


def stored_flight(record: Mapping[str, object]) -> tuple[Value, ...]:
    """The 19 values of `record` if each is what is stored of it; FL_DATE may be in no calendar.

    Raises ValueError if they need a closer look. Whether they agree is not looked at.
    """
    flight = astuple(convert(record, _Record))
    day = flight[_DATE]
    if (
        _names.have(_names_of(flight))
        and _codes.have(_codes_of(flight))
        and _TIMES.issuperset(_times_of(flight))
        and day[4] == "-" == day[7]  # of what the calendar knows, YYYY-MM-DD alone has both
    ):
        return flight
    raise ValueError("a text of another form")
