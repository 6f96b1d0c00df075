"""Reads flight numbers as people write them: 1545, UA1545, UA 1545, ua-1545.

Every field for a flight number reads with these functions, so that what one field takes, all take.
"""

import re
from collections.abc import Mapping

from frontend.coverage import Coverage
from frontend.errors import Refused
from frontend.question import CARRIER, NUMBER

CODE = "[A-Za-z][A-Za-z0-9]|[0-9][A-Za-z]"
PATTERN = f"({CODE})?[ \\-]?[0-9]{{1,5}}"
"""What a browser lets a visitor send, as an attribute of an input."""

_is_number = re.compile(r"[0-9]{1,9}", re.ASCII).fullmatch
_with_code = re.compile(rf"({CODE})[ -]?([0-9]{{1,5}})", re.ASCII).fullmatch


def parted(text: str) -> tuple[str, str]:
    """The carrier's code in capitals and the number; ("", text) if there is no code in `text`."""
    match = _with_code(" ".join(text.split()))
    return (match[1].upper(), match[2]) if match else ("", text)


def understood(given: Mapping[str, str], known: Coverage) -> dict[str, str]:
    """Return the fields of a form with the number alone; a code in front of it names the carrier.

    Raises Refused for a code that no carrier in `known` has, and for one of another carrier than
    the form names.
    """
    code, number = parted(given.get(NUMBER, ""))
    if not code:
        return dict(given)
    carrier = next((c for c in known.carriers if c.code == code), None)
    chosen = given.get(CARRIER, "")
    if carrier is None:
        raise _refused(
            given, f"no carrier in this ledger has the code {code}; enter the number alone"
        )
    if chosen not in {"", str(carrier.number)}:
        other = known.carrier(chosen).label if _is_number(chosen) else repr(chosen)
        detail = f"{code} is {carrier.name or carrier.number}, but the carrier chosen is {other}"
        raise _refused(given, detail)
    return {**given, NUMBER: number, CARRIER: str(carrier.number)}


def _refused(given: Mapping[str, str], detail: str) -> Refused:
    return Refused({"field": NUMBER, "value": given[NUMBER], "detail": detail}, 400, None)
