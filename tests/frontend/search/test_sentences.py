"""Which words of a text name something in the ledger."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from frontend.coverage import NOTHING_KNOWN, Carrier
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
    if isinstance(thing, tuple) and isinstance(thing[-1], int):
        return f"{thing[0][0].code}{thing[1]}"
    if isinstance(thing, tuple) and isinstance(thing[0], Carrier):
        return thing[0].code or ""
    if isinstance(thing, tuple):
        return "-".join(places[0].airport or places[0].city for places in thing)
    return thing if isinstance(thing, str) else str(thing.name)


def route(origin: str, destination: str, **more: Any) -> list[dict[str, Any]]:
    return [{"origin": origin, "destination": destination, **more}]


UA, DL = "19977", "19790"
UA1545 = [{"carriers": UA, "number": 1545}]

READINGS: dict[str, list[dict[str, Any]]] = {
    # carriers
    "united": [{"carriers": UA}],
    "United Airlines": [{"carriers": UA}],
    "UNITED AIRLINES": [{"carriers": UA}],
    "ua": [{"carriers": UA}],
    "19977": [{"number": 19977}],
    "carrier 30000": [{"carriers": "30000"}],
    "american": [{"carriers": "19805"}],
    "American Eagle": [{"carriers": "20398"}],
    "jet blue": [{"carriers": "20409"}],
    "delta": [{"carriers": DL}],
    "us": [{"carriers": "20355"}],
    "US Airways": [{"carriers": "20355"}],
    "how late is US in July?": [{"carriers": "20355", "days": "July 2013", "wanted": "delays"}],
    "OH": [{"carriers": "20417 20397"}],
    "united vs delta": [{"compared": "carrier UA DL"}],
    "how late is united in july": [{"carriers": UA, "days": "July 2013", "wanted": "delays"}],
    # flights
    "335": [{"number": 335}],
    "flight 335": [{"number": 335, "wanted": "flight"}],
    "flight number 2013": [{"number": 2013, "wanted": "flight"}],
    "WN 335": [{"carriers": "19393", "number": 335}],
    "wn335": [{"carriers": "19393", "number": 335}],
    "9E 3301": [{"carriers": "20363", "number": 3301}],
    "9e3301": [{"carriers": "20363", "number": 3301}],
    "B6-12": [{"carriers": "20409", "number": 12}],
    "us 12": [{"carriers": "20355", "number": 12}],
    "UA 1545": UA1545,
    "UA1545": UA1545,
    "united 1545": UA1545,
    "United Airlines flight 1545": [{**UA1545[0], "wanted": "flight"}],
    "United's 1545": UA1545,
    "how late is UA 1545?": [{**UA1545[0], "wanted": "delays"}],
    "WN 335 on 5 Jan 2013": [{"carriers": "19393", "number": 335, "days": "5 January 2013"}],
    "335 2013-01-05": [{"number": 335, "days": "5 January 2013"}],
    "united 2013": [{"carriers": UA, "days": "2013"}, {"carriers": UA, "number": 2013}],
    "united in 2013": [{"carriers": UA, "days": "2013"}],
    "9999": [{"number": 9999}],
    # routes
    "Chicago to New York": route("Chicago, IL", "New York, NY"),
    "from Chicago TO  New York": route("Chicago, IL", "New York, NY"),
    "Chicago - New York": route("Chicago, IL", "New York, NY"),
    "Chicago → New York": route("Chicago, IL", "New York, NY"),
    "Chicago->New York": route("Chicago, IL", "New York, NY"),
    "to New York from Chicago": route("Chicago, IL", "New York, NY"),
    "Winston-Salem – Raleigh/Durham": route("Winston-Salem, NC", "Raleigh/Durham, NC"),
    "durham to san juan": route("Raleigh/Durham, NC", "San Juán, PR"),
    "ORD-LGA": route("ORD", "LGA"),
    "ord lga": route("ORD", "LGA"),
    "ORD to LGA": route("ORD", "LGA"),
    "ord-day": route("ORD", "DAY"),
    "ORD to New York": route("ORD", "New York, NY"),
    "New York (JFK) to Los Angeles (LAX)": route("JFK", "LAX"),
    "JFK New York to O\u2019Hare": route("JFK", "ORD"),
    "nyc to la": route("New York, NY", "Los Angeles, CA"),
    "between EWR and ORD": route("EWR", "ORD"),
    "Portland, ME to Portland, OR": route("Portland, ME", "Portland, OR"),
    "Portland to Chicago": route("Portland, OR; Portland, ME", "Chicago, IL"),
    "ORD-LGA, Jan 5 2013": route("ORD", "LGA", days="5 January 2013"),
    "Chicago to New York 1/25/2013": route("Chicago, IL", "New York, NY", days="25 January 2013"),
    "ORD-LGA 1/5/2013": [
        *route("ORD", "LGA", days="5 January 2013"),
        *route("ORD", "LGA", days="1 May 2013"),
    ],
    "3/3": [{"days": "3 March 2013"}],
    "JFK 25/3/2013": [{"at": "JFK", "days": "25 March 2013"}],
    "JFK 3/25": [{"at": "JFK", "days": "25 March 2013"}],
    "JFK 2/30": [{"at": "JFK", "unknown": "2/30"}],
    "flights from JFK to LAX in March": route("JFK", "LAX", days="March 2013"),
    "from JFK to LAX from March to May": route("JFK", "LAX", days="1 March to 31 May 2013"),
    "which airline is best from JFK to LAX": route("JFK", "LAX", wanted="best carrier"),
    "is the evening flight EWR-ORD worse": route("EWR", "ORD", wanted="flight worst"),
    "is the evening flight EWR-ORD worse than the morning one": route(
        "EWR", "ORD", wanted="flight worst"
    ),
    # places
    "Chicago": [{"at": "Chicago, IL"}],
    "chicago, il": [{"at": "Chicago, IL"}],
    "flights to Chicago": [{"destination": "Chicago, IL"}],
    "from ORD": [{"origin": "ORD"}],
    "Fort Worth": [{"at": "Dallas/Fort Worth, TX"}],
    "montrose": [{"at": "Montrose/Delta, CO"}],
    "DAY": [{"at": "DAY"}],
    "which day": [{"wanted": "day"}],
    "to JAN in may": [{"destination": "JAN", "days": "May 2013"}, {"unknown": ""}],
    "united in JAN": [{"carriers": UA, "at": "JAN"}, {"carriers": UA, "days": "January 2013"}],
    "united in jan": [{"carriers": UA, "days": "January 2013"}],
    # times and rankings
    "2013": [{"days": "2013"}, {"number": 2013}],
    "july": [{"days": "July 2013"}],
    "worst route in february": [{"days": "February 2013", "wanted": "route worst"}],
    "march to may": [{"days": "1 March to 31 May 2013"}],
    "march-may": [{"days": "1 March to 31 May 2013"}],
    "between march and may 2013": [{"days": "1 March to 31 May 2013"}],
    "march and may": [{"compared": "days March 2013 May 2013"}],
    "JFK and LGA": [{"compared": "origin JFK LGA"}],
    "JFK LGA EWR": [{"compared": "origin JFK LGA EWR"}],
    "JFK-LAX EWR-LAX": [{"compared": "route JFK-LAX EWR-LAX"}],
    "JFK to LAX vs EWR to LAX": [{"compared": "route JFK-LAX EWR-LAX"}],
    # hours and amounts
    "JFK at 8 am": [{"at": "JFK", "hour": 8}],
    "JFK at 12:30 pm": [{"at": "JFK", "hour": 12}],
    "JFK 23:59": [{"at": "JFK", "hour": 23}],
    "JFK at noon": [{"at": "JFK", "hour": 12}],
    "12 noon united JFK": [{"carriers": UA, "at": "JFK", "hour": 12}],
    "united around midnight from JFK": [{"carriers": UA, "origin": "JFK", "hour": 0}],
    "JFK around 6 o'clock": [{"at": "JFK", "hour": 6}],
    "JFK to LAX at 8 am or 5 pm": route("JFK", "LAX", amounts="8:00 17:00"),
    "top 10 routes": [{"wanted": "best route", "amounts": "10"}],
    "worst time of day": [{"wanted": "unranked worst"}],
    "JFK > LAX": route("JFK", "LAX"),
    "JFK 8": [{"at": "JFK", "number": 8}, {"at": "JFK", "hour": 8}],
    "UA 8 from JFK": [{"carriers": UA, "origin": "JFK", "number": 8}],
    "JFK at 25:00": [{"at": "JFK", "number": 25, "unknown": "00"}],
    "ORD to LGA in 5 hours": route("ORD", "LGA", amounts="in 5 hours"),
    "latest flight from JFK": [{"origin": "JFK", "amounts": "latest flight"}],
    "early flights JFK": [{"at": "JFK", "amounts": "early flights"}],
    "united first": [{"carriers": UA, "amounts": "first"}],
    "worst flight of united": [
        {"carriers": UA, "wanted": "worst", "amounts": "a ranking of single flights"}
    ],
    "which flight from JFK is worst": [
        {"origin": "JFK", "wanted": "worst", "amounts": "a ranking of single flights"}
    ],
    "most delayed flights at JFK": [
        {"at": "JFK", "wanted": "delays most", "amounts": "a ranking of single flights"}
    ],
    "worst flight number 335": [{"number": 335, "wanted": "flight worst"}],
    "routes with the worst flights": [{"wanted": "route worst"}],
    "United vs Chicago": [{"carriers": UA, "at": "Chicago, IL", "amounts": "a comparison"}],
    "UA 15 vs DL 16": [{"compared": "flight UA15 DL16"}],
    "UA15 or DL 16 in July": [{"compared": "flight UA15 DL16", "days": "July 2013"}],
    "UA 15 vs JFK": [{"carriers": UA, "at": "JFK", "number": 15, "amounts": "a comparison"}],
    "UA 15 flights": [{"carriers": UA, "number": 15}],
    "may 2013 to march 2013": [{"unknown": ""}],
    "most punctual airline": [{"wanted": "carrier most on_time"}],
    "july 1 to 7": [{"days": "1 to 7 July 2013"}],
    "between 1 and 7 july": [{"days": "1 to 7 July 2013"}],
    "UA july 4-6": [{"carriers": UA, "days": "4 to 6 July 2013"}],
    "on time": [{"wanted": "on_time"}],
    "on-time airline": [{"wanted": "carrier on_time"}],
    "best time to fly": [{"wanted": "best unranked"}],
    "first week of july": [{"days": "July 2013", "wanted": "week", "amounts": "first"}],
    "best airline in the US": [{"wanted": "best carrier"}],
    "worst route in the United States": [{"wanted": "route worst"}],
    # what names nothing
    "": [],
    "the": [],
    "Timbuktu": [{"unknown": "Timbuktu"}],
    "unted in july": [{"days": "July 2013", "unknown": "unted"}],
    "5 Foo 2013": [
        {"days": "2013", "number": 5, "unknown": "Foo"},
        {"number": 5, "unknown": "Foo "},
    ],
    "2013-02-29": [{"unknown": "2013-02-29"}],
    "#335": [{"unknown": "#335"}],
    "XX 335": [{"number": 335, "unknown": "XX"}],
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
