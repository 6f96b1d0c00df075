"""The words that the search understands, from `vocabulary.toml`.

A word of a question either says what is wanted (`WANTED`), joins two things (`JOINING`), or says
nothing that changes the answer (`FILLER`). Everything else has to name something: see `names` and
`times`.
"""

import tomllib
from pathlib import Path
from typing import Any

_TABLES: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def _turned(table: str, separator: str | None = None) -> dict[str, str]:
    """Return word -> what it stands for."""
    rows = _TABLES[table].items()
    return {word: meaning for meaning, words in rows for word in words.split(separator)}


def _words(name: str) -> frozenset[str]:
    return frozenset(_TABLES[name].split())


FROM, TO, UNTIL, SINCE, ARRIVING = "from", "to", "until", "since", "arriving"
AGAINST = "against"  # also joins what is compared, and asks for a comparison
JOINING = _turned("joining")
BEFORE_ENDS = {FROM: "from", "leaving": "from", TO: "to", UNTIL: "to", ARRIVING: "to"}
"""What stands in front of an end of a route or an interval -> in front of which end."""

TIMES, UNRANKED = "times", "unranked"  # of these there is no ranking; pages of a name show TIMES
FLIGHT, FLIGHTS = "flight", "flights"  # a flight number follows, or which of many flights is asked
WEEK = "week"  # is not ranked either, and no page has weeks
NOT_RANKED = frozenset((TIMES, UNRANKED, FLIGHT, WEEK))
WANTED = _turned("wanted")
COMPARATIVES = {"worse": "worst", "better": "best"}
MANY = "many"  # flights, or cancellations
AMOUNTS = frozenset((MANY, "much", "long"))
TOTALS = frozenset((MANY, "delays", "cancelled", "on_time"))  # of all flights of a period
RANKING = frozenset(("worst", "best", "busiest", "quietest", "most", "least"))
LEAST_FIRST = frozenset(("best", "least", "quietest"))

_DEPARTURES = ("origin", "Airports by departures")
_ARRIVALS = ("destination", "Airports by arrivals")
SUBJECTS: dict[str, tuple[tuple[str, str], ...]] = {  # the first word asked for -> `by`, name
    "route": (("route", "Routes"),),
    "origin": (_DEPARTURES,),
    "destination": (_ARRIVALS,),
    "airport": (_DEPARTURES, _ARRIVALS),
    "carrier": (("carrier", "Carriers"),),
    "day": (),
    "month": (),
}
"""What is ranked, or has a calendar."""

ORDERS = [
    ({*words.split()}, (sort, order, f", {name}")) for words, sort, order, name in _TABLES["orders"]
]
"""Words -> sort, order, name."""
WORST_FIRST = {
    "": "",
    "average_delay": ", most delayed first",
    "on_time_share_of_scheduled": ", least punctual first",
    "cancelled": ", most cancelled first",
    "flights": ", most flights first",
}
"""How a calendar ranks its days by each sort: it has one order."""
BEST_FIRST = {
    "average_delay": ", least delayed first",
    "cancelled": ", least cancelled first",
    "flights": ", most flights first",
}
"""How a comparison ranks by each sort besides that of its own: it has one order, too."""

ARRIVALS, DEPARTURES = _words("arrivals"), _words("departures")
FILLER = _words("filler") | ARRIVALS | DEPARTURES
TIMES_OF_WEEK = _words("times_of_week")
PHRASES = {tuple(words.split()): meaning for words, meaning in _turned("phrases", ", ").items()}
NUMBER_FOLLOWS = _words("number_follows")
YEAR_FOLLOWS = _words("year_follows")
COMMON = FILLER | TIMES_OF_WEEK | WANTED.keys() | JOINING.keys() | _words("common")
NICKNAMES = _turned("nicknames", ", ")
GENERIC = _words("generic")
