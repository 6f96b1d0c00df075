"""The English words that the search understands, and the names that travellers use.

A word of a question either says what is wanted (`WANTED`), joins two things (`FROM`, `TO`, `AND`),
or says nothing that changes the answer (`FILLER`). Everything else has to name something: see
`names` and `times`.
"""

FROM, TO, AND, BETWEEN = "from", "to", "and", "between"

JOINING = {
    **dict.fromkeys(("from", "leaving", "departing", "out"), FROM),
    **dict.fromkeys(("to", "into", "until", "till", "through", "→", "->", "–", "—", "-"), TO),
    **dict.fromkeys(("and", "or", "vs", "versus", "against", "than", "&"), AND),
    "between": BETWEEN,
}

WORST, BEST, BUSIEST, QUIETEST, ON_TIME = "worst", "best", "busiest", "quietest", "on_time"
CARRIER, ROUTE, AIRPORT, ORIGIN, DESTINATION = (
    "carrier",
    "route",
    "airport",
    "origin",
    "destination",
)
DELAYS = "delays"
PERIOD = "period"  # no ranking has periods, but the page of a name shows some

WANTED: dict[str, str] = {  # word -> what it asks for
    **dict.fromkeys(("worst", "latest", "slowest", "worse", "unpunctual"), WORST),
    **dict.fromkeys(("best", "better", "earliest", "good", "fastest"), BEST),
    **dict.fromkeys(("punctual", "reliable", "punctuality", "ontime", "time"), ON_TIME),
    **dict.fromkeys(("busiest", "largest", "biggest", "busy", "popular"), BUSIEST),
    **dict.fromkeys(("quietest", "smallest", "rarest"), QUIETEST),
    **dict.fromkeys(("carrier", "carriers", "airline", "airlines", "company"), CARRIER),
    **dict.fromkeys(("route", "routes", "connection", "connections"), ROUTE),
    **dict.fromkeys(("airport", "airports", "city", "cities"), AIRPORT),
    **dict.fromkeys(("origin", "origins", "departure", "departures"), ORIGIN),
    **dict.fromkeys(("destination", "destinations", "arrival", "arrivals"), DESTINATION),
    **dict.fromkeys(("late", "later", "lateness", "delay", "delays", "delayed"), DELAYS),
    **dict.fromkeys(("day", "days", "week", "weeks", "weekday", "weekdays", "weekend"), PERIOD),
    **dict.fromkeys(("month", "months", "year", "years", "hour", "hours", "when"), PERIOD),
    **dict.fromkeys(("cancelled", "canceled", "cancellations", "ranking", "rankings"), DELAYS),
}

_FILLER = """
    a about afternoon all always am an any are arrive arrives at average averages bad be been
    big by can chart compare compared comparison could depart departs did do does during each early
    evening ever every find flew flies flight flights flown fly flying for friday fridays full
    general get give go goes going had has have how how's hows i if in info information is it
    it's its leave leaves line long look many me mean monday mondays more morning most much my
    night no noon normally number of often on overall per performance please rank ranked really
    record report saturday saturdays say schedule scheduled search see should show status sunday
    sundays tell that the their them there there's they thursday thursdays tuesday tuesdays
    typical typically usual usually was wednesday wednesdays well were what what's whats where
    which who whose why will with you
    """
FILLER = frozenset(_FILLER.split())
"""Words without which a question is the same; an answer shows all weekdays and hours anyway."""

NUMBER_FOLLOWS = frozenset(("flight", "flights", "number", "no"))
YEAR_FOLLOWS = frozenset(("in", "year", "of", "during"))

COMMON = FILLER | WANTED.keys() | JOINING.keys() | {"us", "as", "oh", "ha", "may", "mar", "jan"}
"""Words that are a code only where they are written like one."""

# What travellers say -> what the ledger calls it: the words of a city or carrier, or a code.
NICKNAMES: dict[str, str] = {
    "nyc": "new york",
    "new york city": "new york",
    "la": "los angeles",
    "sf": "san francisco",
    "frisco": "san francisco",
    "vegas": "las vegas",
    "philly": "philadelphia",
    "dc": "washington",
    "washington dc": "washington",
    "nola": "new orleans",
    "slc": "salt lake city",
    "kennedy": "jfk",
    "laguardia": "lga",
    "la guardia": "lga",
    "o'hare": "ord",
    "ohare": "ord",
    "midway": "mdw",
    "dulles": "iad",
    "reagan": "dca",
    "logan": "bos",
    "love field": "dal",
    "hobby": "hou",
    "sky harbor": "phx",
    "jet blue": "jetblue",
    "virgin": "virgin america",
    "air tran": "airtran",
    "sky west": "skywest",
    "express jet": "expressjet",
}

GENERIC = frozenset(
    ("air", "airline", "airlines", "airways", "lines", "line", "inc", "co", "company")
)
"""Words at the end of a carrier's name that people leave out."""
