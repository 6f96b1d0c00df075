"""Which words of a text name something in the ledger."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from frontend.coverage import NOTHING_KNOWN
from frontend.search.sentences import MAX_CHARACTERS, Reading, readings
from tests.cases import each_of
from tests.frontend.search.ledger import KNOWN


def plain(reading: Reading) -> dict[str, Any]:
    """What a reading names, as text."""
    found: dict[str, Any] = {
        "carriers": " ".join(str(carrier.number) for carrier in reading.carriers),
        **{
            end: "; ".join(one.airport or one.city for one in getattr(reading, end))
            for end in ("origin", "destination", "at")
        },
        "days": reading.days and reading.days.name,
        "number": reading.number,
        "hour": reading.hour,
        "compared": " ".join(map(shown, reading.compared)),
        "amounts": " ".join(reading.amounts),
        "wanted": " ".join(sorted(reading.wanted)),
    }
    named = {part: value for part, value in found.items() if value not in (None, "", [])}
    return named | (
        {"unknown": " ".join(one.text for one in reading.unknown)} if reading.unknown else {}
    )


def shown(thing: Any) -> str:
    """What is compared, as text."""
    if isinstance(thing, str):
        return thing
    return "-".join(places[0].airport or places[0].city for places in thing)


def route(origin: str, destination: str, **more: Any) -> list[dict[str, Any]]:
    return [{"origin": origin, "destination": destination, **more}]


UA = "19977"

# Only what no text of `test_answers` says, which tells where texts lead.
READINGS: dict[str, list[dict[str, Any]]] = {
    # carriers
    "jet blue": [{"carriers": "20409"}],
    # flights
    "flight number 2013": [{"number": 2013, "wanted": "flight"}],
    "United's 1545": [{"carriers": UA, "number": 1545}],
    "9e3301": [{"carriers": "20363", "number": 3301}],
    "B6-12": [{"carriers": "20409", "number": 12}],
    # routes
    "Chicago - New York": route("Chicago, IL", "New York, NY"),
    "Chicago → New York": route("Chicago, IL", "New York, NY"),
    "Chicago->New York": route("Chicago, IL", "New York, NY"),
    "to New York from Chicago": route("Chicago, IL", "New York, NY"),
    "New York from Chicago": route("Chicago, IL", "New York, NY"),
    "Winston-Salem – Raleigh/Durham": route("Winston-Salem, NC", "Raleigh/Durham, NC"),
    "New York (JFK) to Los Angeles (LAX)": route("JFK", "LAX"),
    "JFK New York to O\u2019Hare": route("JFK", "ORD"),
    "nyc to la": route("New York, NY", "Los Angeles, CA"),
    "ORD-LGA, Jan 5 2013": route("ORD", "LGA", days="5 January 2013"),
    "JFK 2/30": [{"at": "JFK", "unknown": "2/30"}],
    "is the evening flight EWR-ORD worse than the morning one": route(
        "EWR", "ORD", wanted="flight worst"
    ),
    # places
    "from ORD": [{"origin": "ORD"}],
    "Fort Worth": [{"at": "Dallas/Fort Worth, TX"}],
    "montrose": [{"at": "Montrose/Delta, CO"}],
    "to JAN in may": [{"destination": "JAN", "days": "May 2013"}, {"unknown": ""}],
    "united in JAN": [{"carriers": UA, "at": "JAN"}, {"carriers": UA, "days": "January 2013"}],
    "united in jan": [{"carriers": UA, "days": "January 2013"}],
    # times and rankings
    "JFK LGA EWR": [{"compared": "origin JFK LGA EWR"}],
    "JFK-LAX EWR-LAX": [{"compared": "route JFK-LAX EWR-LAX"}],
    "between march and may 2013": [{"days": "1 March to 31 May 2013"}],
    "UA july 4-6": [{"carriers": UA, "days": "4 to 6 July 2013"}],
    "on-time airline": [{"wanted": "carrier on_time"}],
    # hours and amounts
    "JFK at noon": [{"at": "JFK", "hour": 12}],
    "12 noon united JFK": [{"carriers": UA, "at": "JFK", "hour": 12}],
    "united around midnight from JFK": [{"carriers": UA, "origin": "JFK", "hour": 0}],
    "JFK around 6 o'clock": [{"at": "JFK", "hour": 6}],
    "JFK to LAX at 8 am or 5 pm": route("JFK", "LAX", amounts="8:00 17:00"),
    "top 10 routes": [{"wanted": "best route", "amounts": "10"}],
    "worst time of day": [{"wanted": "unranked worst"}],
    "JFK > LAX": route("JFK", "LAX"),
    "JFK at 12:30 pm": [{"at": "JFK", "hour": 12}],
    "JFK 23:59": [{"at": "JFK", "hour": 23}],
    "JFK at 25:00": [{"at": "JFK", "unknown": "at 25:00"}],
    "early flights JFK": [{"at": "JFK", "amounts": "early flights"}],
    "UA 15 flights": [{"carriers": UA, "number": 15}],
    "may 2013 to march 2013": [{"unknown": ""}],
    "on time": [{"wanted": "on_time"}],
    "best time to fly": [{"wanted": "best unranked"}],
    "first week of july": [{"days": "July 2013", "wanted": "week", "amounts": "first"}],
    "best airline in the US": [{"wanted": "best carrier"}],
    "worst route in the United States": [{"wanted": "route worst"}],
    # days that do not exist, or are joined to a number
    "worst route on 31 June": [{"wanted": "route worst", "unknown": "31 June"}],
    "flights on 31 April": [{"unknown": "31 April"}],
    "days of 31 June": [{"wanted": "day", "unknown": "31 June"}],
    "31 February 2013": [{"unknown": "31 February 2013"}],
    "29 Feb 2013": [{"unknown": "29 Feb 2013"}],
    "32 July": [{"unknown": "32 July"}],
    "flight 31 June": [{"wanted": "flight", "unknown": "31 June"}],
    "UA 31 June": [{"carriers": UA, "unknown": "31 June"}],
    "UA 45 July": [{"carriers": UA, "number": 45, "days": "July 2013"}],
    "7 to 1 July": [{"unknown": "7 to 1 July"}],
    "May 5 and 6": [{"days": "5 May 2013", "unknown": "6"}],
    "5 and 6 May": [{"days": "6 May 2013", "unknown": "5"}],
    "7 July to 9": [{"days": "7 July 2013", "unknown": "9"}],
    "JFK to LAX at 13 am": route("JFK", "LAX", unknown="at 13 am"),
    "JFK to LAX at 13:30 pm": route("JFK", "LAX", hour=13),
    # what names nothing
    "5 Foo 2013": [
        {"days": "2013", "number": 5, "unknown": "Foo"},
        {"number": 5, "unknown": "Foo "},
    ],
    "2013-02-29": [{"unknown": "2013-02-29"}],
    "#335": [{"unknown": "#335"}],
    "123456": [{"unknown": "123456"}],
    "٣٣٥": [{"unknown": "٣٣٥"}],
    "12 34": [{"number": 12, "unknown": ""}],
    "ORD to LGA to JFK": [{"unknown": ""}],
    "UA".ljust(MAX_CHARACTERS) + "A": [],
}


@each_of(("text", "expected"), READINGS.items())
def test_a_text_says_this(text: str, expected: list[dict[str, Any]]) -> None:
    assert [plain(one) for one in readings(text, KNOWN)] == expected


def test_an_empty_ledger_names_nothing() -> None:
    assert readings("UA 1545", NOTHING_KNOWN) == []


WORDS = ("UA", "united", "to", "from", "ORD", "new york", "2013", "july", "1545", "-", "☃", "worst")


@given(st.text() | st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_any_text_can_be_read(text: str) -> None:
    for reading in readings(text, KNOWN):
        assert not reading.says_nothing or reading.unknown
