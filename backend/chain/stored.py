"""Flights whose values have their stored form already, as nearly all have, told in a moment.

`fields` says what any value means, one by one. Here all 19 are held against what may be stored, at
once: kinds, bounds and lengths by msgspec, texts by one regular expression. Only plain texts are
taken: what is not ASCII may need its normal form. Whatever is not recognised is only slower.
"""

import re
from collections.abc import Mapping
from operator import itemgetter
from typing import Annotated, Any

import msgspec

from backend.chain.fields import FIELDS, MAX_TEXT_CHARACTERS, POSITION, Field, Value

_PATTERNS = {  # of what is never null
    "date": r"\d{4}-\d{2}-\d{2}",
    "code": r"[A-Z0-9]{3,4}",
    "text": rf"(?! )[ -~]{{1,{MAX_TEXT_CHARACTERS}}}(?<! )",
}
_TIMES = frozenset({None, "2400", *(f"{h:02d}{m:02d}" for h in range(24) for m in range(60))})


def _member(field: Field) -> Any:
    """The name and type of a field, and null if that may be stored."""
    meta = msgspec.Meta(ge=field.minimum, le=field.maximum)
    kind: Any = Annotated[int, meta] if field.kind == "integer" else str
    return (field.name, kind | None, None) if field.nullable else (field.name, kind)


def _values_of(fields: list[Field]) -> Any:
    """What takes the values of these fields out of all 19."""
    return itemgetter(*(POSITION[field.name] for field in fields))


_Record = msgspec.defstruct(
    "_Record", map(_member, FIELDS), forbid_unknown_fields=True, kw_only=True
)
_texts = [field for field in FIELDS if field.kind in _PATTERNS]
_texts_of = _values_of(_texts)
_times_of = _values_of([field for field in FIELDS if field.kind == "time"])
_are_plain = re.compile("\n".join(_PATTERNS[field.kind] for field in _texts), re.ASCII).fullmatch


def stored_flight(record: Mapping[str, object]) -> tuple[Value, ...]:
    """The 19 values of `record` if each is what is stored of it; FL_DATE may be in no calendar.

    Raises ValueError if they need a closer look. Whether they agree is not looked at.
    """
    flight = msgspec.structs.astuple(msgspec.convert(record, _Record))
    if _are_plain("\n".join(_texts_of(flight))) and _TIMES.issuperset(_times_of(flight)):
        return flight
    raise ValueError("a text of another form")
