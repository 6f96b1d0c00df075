"""Drops the parameters that others put behind an address to follow visitors.

Links from newsletters, social networks and advertisements come with parameters such as `utm_source`
and `fbclid`. They say nothing about the ledger, so a page is the same with and without them, and no
link of a page repeats them. Any other parameter that a page does not take is refused there: it may
change what the visitor believes to be shown. Twins (`.json`, `.csv`), proofs and the log are for
programs and take only what they know.

What is typed into a form leads to the page at the address with the service's own spelling of it,
and a twin takes it, too.
"""

import re
from urllib.parse import quote, unquote_plus, urlencode

from flask import redirect, request
from werkzeug.datastructures import ImmutableMultiDict
from werkzeug.wrappers import Response

from frontend.context import coverage
from frontend.errors import Refused
from frontend.question import CARRIER, ITEM
from frontend.search.fields import FIELDS, as_asked

FOLLOWING = re.compile(
    r"(utm|mtm|gad)_\w+|(fb|g|d|y|tw|tt|sc)clid|msclkid|[gw]braid|gclsrc|_ga|_gl|igsh(id)?"
    r"|mc_[ce]id|mkt_tok|_hs(enc|mi)|li_fat_id|rdt_cid|epik|s_kwcid",
    re.IGNORECASE,
)

TAKEN: dict[str | None, tuple[str, ...]] = {
    **dict.fromkeys(("home", "about", "adding", "cheating", "cluster", "lab", "months"), ()),
    **dict.fromkeys((f"calculator.calculator{twin}" for twin in ("", "_twin_json")), ()),
    "uploading": (),
    "uploading.part": ("NAME", "SIZE", "IMPORT_ID", "OFFSET", "remove"),
    "receipts": ("duplicate_of",),
    "transactions.state": (),
    "search": ("q",),
}
"""The parameters of pages that ask the service no question, by their blueprints or endpoints."""

FOR_PROGRAMS = re.compile(r".*\.(json|csv)|/log/.*|.*/proof|/proofs/.*")


def known_of(path: str, query: str) -> str:
    """Return the query string of a page at `path` without what only follows visitors."""
    if not query or FOR_PROGRAMS.fullmatch(path):
        return query
    parts = query.split("&")
    names = ((part, unquote_plus(part.partition("=")[0])) for part in parts)
    return "&".join(part for part, name in names if not FOLLOWING.fullmatch(name))


def values_of(name: str) -> list[str]:
    """Return the values of a parameter that may be given several times, each once."""
    return list(dict.fromkeys(filter(None, map(str.strip, request.args.getlist(name)))))


def require_single() -> None:
    """Raise Refused for a parameter that is given twice: a page would show one of its values.

    Several carriers or other items are compared.
    """
    for name, texts in request.args.lists():
        if len(texts) > 1 and name not in {CARRIER, ITEM}:
            raise Refused.parameter(name, texts[1], "is given more than once")


def require_taken() -> None:
    """Raise Refused for a parameter of a page that takes none, or only what is in TAKEN."""
    taken = TAKEN.get(request.endpoint, TAKEN.get(request.blueprint))
    for name, text in request.args.items():
        if text and taken is not None and name not in taken:
            reason = f"unknown parameter {name}; this page takes {' and '.join(taken) or 'none'}"
            raise Refused({"field": name, "detail": reason}, 400)


def lead_to_strict_values() -> Response | None:
    """Redirect a page whose fields are not as the service takes them to the address that has it.

    A twin is answered as if it had been asked there: not every program follows.
    """
    given = list(request.args.items(multi=True))
    is_twin = request.path.endswith((".json", ".csv"))
    if not FIELDS & request.args.keys() or (FOR_PROGRAMS.fullmatch(request.path) and not is_twin):
        return None
    asked = as_asked(given, coverage.now())
    if is_twin:
        request.args = ImmutableMultiDict(asked)
        return None
    filled_in = [pair for pair in given if pair[1]]
    return None if asked == filled_in else redirect(f"{quote(request.path)}?{urlencode(asked)}")
