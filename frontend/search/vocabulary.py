"""The English words that the search understands, and the names that travellers use.

A word of a question either says what is wanted (`WANTED`), joins two things (`FROM`, `TO`, `AND`),
or says nothing that changes the answer (`FILLER`). Everything else has to name something: see
`names` and `times`.
"""

FROM, TO, AND, BETWEEN = "from", "to", "and", "between"
AGAINST = "against"  # also joins what is compared, and asks for a comparison

JOINING = {
    **dict.fromkeys(("from", "leaving", "departing", "out"), FROM),
    **dict.fromkeys(
        ("to", "into", "arriving", "until", "till", "through", "→", "->", ">", "–", "—", "-"), TO
    ),
    **dict.fromkeys(("and", "or", "than", "&"), AND),
    **dict.fromkeys(("vs", "versus", "against"), AGAINST),
    "between": BETWEEN,
}

UNRANKED = "unranked"  # of weekdays and hours there is no ranking; pages of a name show them
FLIGHT, FLIGHTS = "flight", "flights"  # a flight number follows, or which of many flights is asked
WEEK = "week"  # is not ranked either, and is less than the days that are named with it
NOT_RANKED = frozenset((UNRANKED, FLIGHT, WEEK))

SUBJECTS: dict[str, tuple[tuple[str, str], ...]] = {  # the first word asked for -> `by`, name
    "route": (("route", "Routes"),),
    "origin": (("origin", "Airports by departures"),),
    "destination": (("destination", "Airports by arrivals"),),
    "airport": (("origin", "Airports by departures"), ("destination", "Airports by arrivals")),
    "carrier": (("carrier", "Carriers"),),
    "day": (),
    "month": (),
}
"""What is ranked, or has a calendar."""

WANTED: dict[str, str] = {  # word -> what it asks for
    **dict.fromkeys(("worst", "slowest", "unpunctual"), "worst"),
    **dict.fromkeys(("best", "good", "fastest", "top"), "best"),
    **{word: word for word in ("worse", "better", FLIGHT, FLIGHTS)},
    **dict.fromkeys(("punctual", "reliable", "punctuality", "ontime"), "on_time"),
    **dict.fromkeys(("busiest", "largest", "biggest", "busy", "popular"), "busiest"),
    **dict.fromkeys(("quietest", "smallest", "rarest"), "quietest"),
    **dict.fromkeys(("carrier", "carriers", "airline", "airlines", "company"), "carrier"),
    **dict.fromkeys(("route", "routes", "connection", "connections"), "route"),
    **dict.fromkeys(("airport", "airports", "city", "cities"), "airport"),
    **dict.fromkeys(("origin", "origins", "departure", "departures"), "origin"),
    **dict.fromkeys(("destination", "destinations", "arrival", "arrivals"), "destination"),
    **dict.fromkeys(("late", "later", "lateness", "delay", "delays", "delayed"), "delays"),
    **dict.fromkeys(("day", "days"), "day"),
    **dict.fromkeys(("month", "months"), "month"),
    **dict.fromkeys(("week", "weeks", "weekend", "weekends"), WEEK),
    **dict.fromkeys(("most", "highest"), "most"),
    **dict.fromkeys(("least", "fewest", "lowest"), "least"),
    **dict.fromkeys(("weekday", "weekdays", "time", "times", "when"), UNRANKED),
    **dict.fromkeys(("year", "years", "hour", "hours"), UNRANKED),
    **dict.fromkeys(("ranked", "ranking", "rankings", "rank"), "delays"),
    **dict.fromkeys(("cancelled", "canceled", "cancellation", "cancellations"), "cancelled"),
    **dict.fromkeys(("cancel", "cancels", "cancelling", "canceling"), "cancelled"),
}

COMPARATIVES = {"worse": "worst", "better": "best"}

_DELAY, _PUNCTUALITY = "average_delay", "on_time_share_of_arrived"
ORDERS: tuple[tuple[set[str], tuple[str, str, str]], ...] = (  # words -> sort, order, name
    ({"least", "cancelled"}, ("cancelled", "ascending", ", least cancelled first")),
    ({"cancelled"}, ("cancelled", "descending", ", most cancelled first")),
    ({"worst", "on_time"}, (_PUNCTUALITY, "ascending", ", least punctual first")),
    ({"least", "on_time"}, (_PUNCTUALITY, "ascending", ", least punctual first")),
    ({"on_time"}, (_PUNCTUALITY, "descending", ", most punctual first")),
    ({"least", "delays"}, (_DELAY, "ascending", ", best first")),
    ({"most", "delays"}, (_DELAY, "descending", ", worst first")),
    ({"worst"}, (_DELAY, "descending", ", worst first")),
    ({"best"}, (_DELAY, "ascending", ", best first")),
    ({"busiest"}, ("flights", "descending", ", most flights first")),
    ({"most"}, ("flights", "descending", ", most flights first")),
    ({"quietest"}, ("flights", "ascending", ", fewest flights first")),
    ({"least"}, ("flights", "ascending", ", fewest flights first")),
    (set(), ("", "", ", ranked")),
)
WORST_FIRST = {
    "": "",
    _DELAY: ", worst first",
    _PUNCTUALITY: ", least punctual first",
    "cancelled": ", most cancelled first",
    "flights": ", most flights first",
}
"""How a calendar ranks its days by each sort: it has one order."""
LEAST_FIRST = frozenset(("best", "least", "quietest"))

_FILLER = """
    a about actual afternoon all always am an any are arrive arrives at average averages bad be
    been big book by can chart choose compare compared comparison could data depart departs
    details did direct directly do does during each evening ever every find flew flies flown
    fly flying for friday fridays full general get give go goes going had has have how hows i if
    in info information is it its journey leave leaves like line long look many me mean monday
    mondays more morning much my need night no nonstop normally number of often on one ones overall
    per performance pick plane planes please really record report right saturday saturdays say
    schedule scheduled search see should show statistics stats status sunday sundays take tell
    that the their them there they thursday thursdays travel trip tuesday tuesdays typical
    typically use usual usually want was wednesday wednesdays well were what whats where which
    who whose why will with would you
    """
FILLER = frozenset(_FILLER.split())
"""Words without which a question is the same; an answer shows all weekdays and hours anyway."""

PHRASES: dict[tuple[str, ...], str | None] = {  # words -> what they ask for together, if anything
    ("on", "time"): "on_time",
    **dict.fromkeys((("day", "of", "the", "week"), ("time", "of", "day")), UNRANKED),
    **dict.fromkeys((("time", "of", "the", "day"), ("hour", "of", "the", "day")), UNRANKED),
    **dict.fromkeys((("the", "us"), ("the", "usa"), ("the", "united", "states")), None),
    **dict.fromkeys((("united", "states"), ("usa",)), None),  # every ledger is about its flights
}

NUMBER_FOLLOWS = frozenset(("flight", "flights", "number", "no"))
YEAR_FOLLOWS = frozenset(("in", "year", "of", "during"))

COMMON = FILLER | WANTED.keys() | JOINING.keys() | {"us", "as", "oh", "ha", "may", "mar", "jan"}
"""Words that are a code only where they are written like one."""

_NICKNAMES = {
    "new york": "nyc, new york city",
    "los angeles": "la",
    "san francisco": "sf, frisco",
    "las vegas": "vegas",
    "philadelphia": "philly",
    "washington": "dc, washington dc",
    "new orleans": "nola",
    "salt lake city": "slc",
    "jfk": "kennedy",
    "lga": "laguardia, la guardia",
    "ord": "o'hare, ohare",
    "mdw": "midway",
    "iad": "dulles",
    "dca": "reagan",
    "bos": "logan",
    "dal": "love field",
    "hou": "hobby",
    "phx": "sky harbor",
    "jetblue": "jet blue",
    "virgin america": "virgin",
    "airtran": "air tran",
    "skywest": "sky west",
    "expressjet": "express jet",
}
"""What the ledger calls a city or carrier, or its code -> what travellers call it."""
NICKNAMES = {name: thing for thing, names in _NICKNAMES.items() for name in names.split(", ")}

GENERIC = frozenset(
    ("air", "airline", "airlines", "airways", "lines", "line", "inc", "co", "company")
)
"""Words at the end of a carrier's name that people leave out."""
