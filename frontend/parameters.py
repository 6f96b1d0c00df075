"""Drops the parameters of an address that no page knows.

Links from newsletters, social networks and advertisements come with parameters of their own, such
as `utm_source`, `fbclid` and `gclid`. They say nothing about the ledger, so a page is the same
with and without them, and no link of a page repeats them. A parameter that another page knows is
kept, so that the page can refuse it: it may change what the visitor believes to be shown. Twins
(`.json`, `.csv`), proofs and the log are for programs and take only what they know.
"""

import re
from urllib.parse import unquote_plus

from frontend.evidence import DIGEST, PARAMETERS, TIP_HASH
from frontend.lab import closed_network_form, open_queue_form

KNOWN = frozenset(
    {
        *PARAMETERS,
        *("engine", "as_of", TIP_HASH, DIGEST, "group_by", "distribution", "format"),
        *("before", "limit", "hash", "height", "offset", "check"),
        *("by", "sort", "order", "page", "ORIGIN", "DEST"),
        *open_queue_form.FIELDS,
        *closed_network_form.FIELDS,
    }
)
"""The parameters of all pages in `PAGES`."""

PAGES = re.compile(
    r"/(filter_transactions|average_delays|flight_counter|rankings|route|report|airports/\w+|blocks(/\d+)?|transactions/\d+"
    r"|lab/calculator/(open|closed))"
)
"""Pages that read parameters and refuse those that they do not know."""


def known_of(path: str, query: str) -> str:
    """Return the query string of a page at `path` without what no page knows."""
    if not query or PAGES.fullmatch(path) is None:
        return query
    parts = query.split("&")
    return "&".join(part for part in parts if unquote_plus(part.partition("=")[0]) in KNOWN)
