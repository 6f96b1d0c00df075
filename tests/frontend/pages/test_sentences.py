"""Words and links that pages have, and those that they have not, by address."""

from flask.testing import FlaskClient

from tests.cases import each_of
from tests.frontend.pages.reading import require_words, text

DAYS = "INITIAL_DATE=2015-01-02&FINAL_DATE=2015-01-08"
WN = "OP_CARRIER_AIRLINE_ID=19393"
DELAYS = "/average_delays?OP_CARRIER_AIRLINE_ID"
COUNTER = f"/flight_counter?{DAYS}&ORIGIN_CITY_NAME=San Francisco, CA&DEST_CITY_NAME"
NOBODY = "OP_CARRIER_FL_NUM=99999"
LATER = "INITIAL_DATE=2019-01-01&FINAL_DATE=2019-02-01"
OLD, YEAR = "/days/1987-10-01?as_of=3", "INITIAL_DATE=1987-01-01&FINAL_DATE=1987-12-31&as_of=3"

CHANCE = "Chance plays a large part in these figures, because there are fewer than 100 arrivals."

WORDS = {
    f"{DELAYS}=19393&{DAYS}": ["<h1>How late is Southwest Airlines?</h1>"],
    f"{DELAYS}=12345": ["How late is Carrier 12345?", "no flights of Carrier 12345", "any other."],
    f"{DELAYS}=7": ["the carrier 7"],
    f"{DELAYS}=19393&ORIGIN=LOS": ["the airport LOS", "Did you mean", "ORIGIN=LAX"],
    "/filter_transactions?OP_CARRIER_FL_NUM=1&FL_DATE=2015-01-03&OP_CARRIER_AIRLINE_ID=7": [
        "the carrier 7"
    ],
    "/flight_counter?ORIGIN_CITY_NAME=Gotham&DEST=LAX": ["the city Gotham"],
    "/flight_counter?ORIGIN=XYZ&DEST_CITY_NAME=Seatle": ["the airport XYZ", "NAME=Seattle"],
    "/route?ORIGIN=ZZZ&DEST_CITY_NAME=Seatle": ["the airport ZZZ", "NAME=Seattle"],
    f"/route?ORIGIN=LAX&DEST=SEA&{LATER}": ["none later", "Did you mean", "INITIAL_DATE=2015-01"],
    f"/rankings?{LATER}": ["none later"],
    f"{DELAYS}=19393&INITIAL_DATE=2015-01-02&FINAL_DATE=2015-01-02": ['href="/days/2015-01-02"'],
    f"/route?ORIGIN=SFO&DEST=LAX&{DAYS}": [
        "<h1>San Francisco, CA (SFO) to Los Angeles, CA (LAX)</h1>",
        CHANCE,
        "/route?ORIGIN=LAX&DEST=SFO&",
        *("Carriers", "When to fly", "By hour and weekday"),
        *('value="SFO"', 'value="LAX"', 'value="2 to 8 January 2015"'),
        "km (33",
    ],
    "/airports/ANC": [CHANCE],
    "/days/2015-01-03?ORIGIN=ANC": [CHANCE, ">few arrivals</small>"],
    "/departures?ORIGIN=ANC": [CHANCE, ">few arrivals</small>"],
    "/route?ORIGIN=LAX&DEST=ORD": ["The ledger has no flights from"],
    "/route?ORIGIN=LAX&DEST_CITY_NAME=Anchoragex": [">Anchorage, AK</a>?"],
    f"/airports/lax?{DAYS}": [
        "Los Angeles, CA (LAX)</h1>",
        "<title>Los Angeles, CA (LAX), 2 to 8",
        'value="2 to 8 January 2015"',
    ],
    f"{COUNTER}=Los Angeles, CA": ["km (33", "from SFO to LAX, their busiest airports"],
    f"{COUNTER}=qqqqqqqq<b>": ["has the city qqqqqqqq<b>.", "Cities are written as in"],
    f"{COUNTER}=San Francisco, CA": [
        '<p class="figure-large">0</p>',
        *("Show all days.", "The route ends where it begins."),
    ],
    f"/rankings?{DAYS}": [
        *(DELAYS, 'aria-sort="descending"'),
        *("order=ascending&INITIAL_DATE=2015-01-02", "sort=flights&INITIAL_DATE=2015-01-02"),
    ],
    "/rankings?sort=flights&order=ascending": [
        '"sort" value="flights"',
        '"order" value="ascending"',
    ],
    f"/rankings?{WN}": ["> only carrier Southwest Airlines</label>"],
    "/rankings?page=7&sort=flights": [
        'There is no page 7 of this ranking. <a href="/rankings?sort=flights&INITIAL'
    ],
    OLD: ['block <a href="/blocks/3">3</a>', "no flights on this day", f'"/days?{YEAR}">Calendar'],
    "/days/1987-10-01": [
        "from Thursday, 1 January 2015 to Saturday, 10 January 2015, and none earlier"
    ],
    "/days/2015-01-05?ORIGIN=LAX": [
        '"/days/2015-01-04?ORIGIN=LAX" rel="prev"',
        '"/days/2015-01-06?ORIGIN=LAX" rel="next"',
    ],
    "/days/2015-01-01": ['rel="next"'],
    "/departures?FL_DATE=1987-10-01&hour=3": ["no flight is recorded in this hour"],
    f"/report?{NOBODY}": ["How often is flight 99999 late?", "no flights with the number 99999"],
    f"/report?{NOBODY}&{DAYS}": [f'<a href="/report?{NOBODY}">Show all days.</a>'],
    f"/report?{NOBODY}&{WN}": ["<h1>How often is WN 99999 late?</h1>"],
    f"/filter_transactions?{NOBODY}&{WN}&FL_DATE=2013-01-01": [
        "<h1>Flight WN 99999 on Tuesday, 1 January 2013</h1>",
        ">How often is WN 99999 late?</a>",
    ],
    "/report?OP_CARRIER_FL_NUM=1": ["All flights of any carrier:", "By carrier"],
    "/filter_transactions": ["<title>Flight status · Flightchain</title>"],
    "/filter_transactions?OP_CARRIER_FL_NUM=1&FL_DATE=2015-01-01": [
        "<title>Flight 1 on Thursday, 1 January 2015 · Flightchain</title>"
    ],
    "/filter_transactions?OP_CARRIER_FL_NUM=1999&FL_DATE=2015-01-01": [
        "<title>Flight 1999 on Thursday, 1 January 2015: not found · Flightchain</title>"
    ],
    "/compare?what=flight&item=1&item=2": [
        "<h1>Flight number 1 or flight",
        "<title>Flight number 1",
    ],
    "/compare?what=days&item=3 January&item=4 January": [
        "Other days. ",
        "There is no proof of this answer",
    ],
    f"/compare?what=origin&item=LAX&item=SFO&{WN}&{DAYS}": [
        "These are flights of Southwest Airlines, 2 to 8 January 2015.",
    ],
    f"/compare?what=origin&item=LAX&item=SFO&{DAYS}": ["These are flights of 2 to 8 January 2015."],
    "/compare?what=days&item=3 January&item=4 January&item=5 January": [
        "<title>3 January 2015, 4 January 2015 or 5 January 2015 ·",
    ],
    "/days?OP_CARRIER_AIRLINE_ID=12345": ["no flights of Carrier 12345 on these days"],
    f"/departures?ORIGIN=LAX&{WN}&{DAYS}": [
        "<title>Departures of Southwest Airlines from Los Angeles, CA (LAX), 2 to 8 January 2015 ·",
        "<h1>Departures of Southwest Airlines from Los Angeles, CA (LAX)</h1>",
    ],
    "/departures?ORIGIN=ZZZ&hour=8": ["No flight in the ledger has the airport ZZZ."],
    "/compare?what=origin&item=LAX&item=SFO": ["There is no proof of this answer"],
    f"/blocks?hash={'0' * 64}": ["No block has that hash"],
    "/blocks?before=0": ["No block is below that height."],
    "/blocks/0": ["Block 0 (genesis): 0 flights", "block 0 only starts the chain"],
    "/blocks/3": ["the block was sealed while no flights were pending."],
    "/blocks/4?offset=100": ['<a href="/blocks/4#transactions">Show its first flights.'],
}
MISSING = {
    "/average_delays": ["This page as"],  # nothing is asked, so there is no answer in JSON
    f"{DELAYS}=12345": ["<figure"],
    f"{DELAYS}=19393&INITIAL_DATE=2015-01-02&FINAL_DATE=2015-01-02": ['class="line ', "by weekday"],
    "/route?ORIGIN=ORD&DEST=ZZZ": ["of both cities", "DEST_CITY_NAME=&"],
    "/route?ORIGIN=SFO&DEST=SFO": ["other direction"],
    f"{COUNTER}=San Francisco, CA": ["no city called", "In the other direction"],
    "/rankings": ['name="sort"', 'name="order"'],
    "/rankings?page=7&sort=flights": ['<caption id="ranking"'],
    "/days/2015-01-01": ['rel="prev"'],
    "/days/2015-01-10": [".0</td>"],
    "/departures?ORIGIN=ZZZ&hour=8": ["<table"],
    "/departures?FL_DATE=1987-10-01&hour=3": ['href="/transactions/'],
    f"/report?{NOBODY}": ["Show all days."],
    "/filter_transactions?OP_CARRIER_FL_NUM=1&FL_DATE=2015-01-05&as_of=0": [
        *("The ledger has flights of", "Days before and after"),
    ],
    "/compare?what=days&item=3 January&item=4 January": ["/proof?"],
    "/compare?what=origin&item=LAX&item=SFO": ["/proof?"],
}


@each_of("address", [*dict.fromkeys([*WORDS, *MISSING])])
def test_pages_have_these_words_and_not_those(pages: FlaskClient, address: str) -> None:
    require_words(pages, address, WORDS.get(address, ()), MISSING.get(address, ()))


def test_up_to_a_block_without_flights_there_are_no_days(pages: FlaskClient) -> None:
    page = text(pages, "/filter_transactions?as_of=0", 400)
    assert "The ledger held no flights up to block 0." in page
    assert "The ledger has flights of" not in page
