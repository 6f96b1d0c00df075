"""Pages of a ledger with a few odd flights: each sentence and number is true of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from backend.chain.fields import Value
from backend.chain.flight import Flight
from tests.api.worlds import Json, new_chain, seal, settings_for
from tests.cases import each_of
from tests.flights import EXAMPLE, changed
from tests.frontend.pages.reading import pages_of, raw, require_words, table, text

CITIES = {
    "BTV": "Burlington, VT",
    "JFK": "New York, NY",
    "LGA": "New York, NY",
    "BOS": "Boston, MA",
}
STATES = {"VT": "Vermont", "NY": "New York", "MA": "Massachusetts"}
DELTA = 19790
RENAMED = "Winthrop, MA"
OH = (20417, 20397)  # carriers that had this code one after the other
SHOW_ALL = '"/days?ORIGIN={}&INITIAL_DATE=2010-03-01&FINAL_DATE=2016-12-31">Show all days.'
ALL_DAYS = "INITIAL_DATE=2010-01-01&FINAL_DATE=2016-12-31"


def odd(number: int, day: str, origin: str = "BTV", dest: str = "JFK", **more: Value) -> Flight:
    """A flight on time at eight, unless something else is said of it."""
    times: dict[str, Value] = {"DEP_TIME": "0800", "DEP_DELAY": 0, "ARR_TIME": "0930"}
    times |= {"ARR_DELAY": 0, "AIR_TIME": 60}
    ends: dict[str, Value] = {}
    for end, code in (("ORIGIN", origin), ("DEST", dest)):
        ends |= {end: code, f"{end}_CITY_NAME": CITIES[code], f"{end}_AIRPORT_ID": None}
        ends[f"{end}_STATE_NM"] = STATES[CITIES[code][-2:]]
    if more.get("CANCELLED"):
        times = dict.fromkeys(times)
    names: dict[str, Value] = {"OP_CARRIER_FL_NUM": number, "OP_CARRIER_AIRLINE_ID": DELTA}
    return changed(EXAMPLE, **{**names, "FL_DATE": day, **times, **ends, **more})


NO_TIMES: Json = dict.fromkeys(("DEP_TIME", "DEP_DELAY", "ARR_TIME", "ARR_DELAY", "AIR_TIME"))
FLIGHTS = [
    odd(1, "2010-03-01"),
    odd(8, "2010-03-02"),
    odd(9, "2016-06-10"),
    odd(9, "2016-06-10", DEP_TIME="1800", ARR_TIME="1955", ARR_DELAY=25),
    odd(9, "2016-06-10", "JFK", "BTV", DEP_TIME="1100"),
    odd(9, "2016-06-10", "LGA", "BTV", DEP_TIME="1400"),
    odd(11, "2016-06-11", **NO_TIMES),
    odd(12, "2016-06-11", DEP_TIME="0810", DEP_DELAY=None),
    odd(13, "2016-06-11"),
    odd(8, "2016-06-13", CANCELLED=1),
    odd(8, "2016-06-17"),
    odd(8, "2016-06-18", CANCELLED=1),
    odd(14, "2016-06-18", CANCELLED=1, DEP_TIME="0905", DEP_DELAY=5),
    odd(15, "2016-07-04", "JFK", "BTV", ARR_DELAY=None, AIR_TIME=None),
    odd(16, "2016-07-05", "BTV", "BOS"),
    odd(16, "2016-07-05", "JFK", "BOS"),
    *(
        odd(
            20, "2016-12-29", "JFK", "BOS", DEP_TIME=left, ARR_TIME=came, DEP_DELAY=20, ARR_DELAY=30
        )
        for left, came in (("0820", "0930"), ("2320", "0030"))
    ),
    odd(19, "2016-12-31", "JFK", "BOS", DEP_TIME="2400", ARR_TIME="0100"),
]


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    folder = tmp_path_factory.mktemp("odd")
    seal(settings_for(folder), [FLIGHTS])
    with pages_of(folder) as pages:
        yield pages


@pytest.fixture(scope="module")
def decades(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """Pages of years of which most have no flights."""
    folder = tmp_path_factory.mktemp("decades")
    flights = [odd(1, "1987-10-01"), odd(1, "2026-02-28")]
    flights.append(odd(2, "2026-02-28", "JFK", "BTV", CANCELLED=1))
    flights += (odd(3, "2026-02-28", OP_CARRIER_AIRLINE_ID=number) for number in OH)
    flights += [odd(4, "2026-02-28", "BOS"), odd(5, "2026-02-28", "BOS", ORIGIN_CITY_NAME=RENAMED)]
    seal(settings_for(folder), [flights])
    with pages_of(folder) as pages:
        yield pages


@each_of(
    ("place", "count"),
    [
        ("ORIGIN=jfk", 1),
        ("ORIGIN=nyc", 2),
        ("ORIGIN=new york, ny", 2),
        ("DEST_CITY_NAME=burlington", 2),
        ("ORIGIN=BTV&DEST=NYC", 2),
        ("ORIGIN=BOS", 0),
        ("", 4),
    ],
)
def test_a_report_and_its_twins_take_places_as_people_write_them(
    few: FlaskClient, place: str, count: int
) -> None:
    asked = f"OP_CARRIER_FL_NUM=DL9&{place}"
    twin = few.get(f"/report.json?{asked}").get_json()
    assert twin["count"] == len(twin["flights"]) == count
    assert len(table(few, f"/report.csv?{asked}")) == count
    page = few.get(f"/report?{asked}", follow_redirects=True).text
    assert (f"{count} scheduled flight" in page) == (count > 0)


@each_of(
    "address",
    [
        "/days{}?ORIGIN=nyc",
        "/days/2016-06-10{}?ORIGIN=nyc",
        "/departures{}?ORIGIN=nyc&FL_DATE=10 June 2016",
        "/rankings{}?ORIGIN=nyc&days=June 2016",
        "/route{}?ORIGIN=nyc&DEST=burlington",
        "/flight_counter{}?ORIGIN=nyc&DEST=burlington",
        "/average_delays{}?OP_CARRIER_AIRLINE_ID=delta&ORIGIN=nyc",
        "/compare{}?what=origin&item=BTV&item=jfk&days=June 2016",
        "/filter_transactions{}?OP_CARRIER_FL_NUM=DL 9&FL_DATE=10 June 2016",
    ],
)
def test_twins_understand_what_their_pages_do(few: FlaskClient, address: str) -> None:
    path, _, query = few.get(address.format("")).headers["Location"].partition("?")
    for form in (".json", ".csv"):
        strict = few.get(f"{path}{form}?{query}").text
        assert few.get(address.format(form)).text == strict
    assert len(strict.splitlines()) > 1


NO_HOUR = "4 flights without a recorded hour are left out here, 2 of them cancelled."
LEFT_OUT = "Months without flights are left out."
IN_2011 = "INITIAL_DATE=2011-01-01&FINAL_DATE=2011-12-31"
SHOW_ALL_OF_DELTA = f'/average_delays?OP_CARRIER_AIRLINE_ID={DELTA}">Show all days.'
JUNE = "INITIAL_DATE=2016-06-01&FINAL_DATE=2016-06-30"
FRIDAY = "/days/2016-06-17"
DIVERTED = "/filter_transactions?OP_CARRIER_FL_NUM=15&FL_DATE=2016-07-04"
USUAL = "/departures?ORIGIN=BTV&DEST=JFK"
REPORT_8 = "/report?OP_CARRIER_FL_NUM=8"
STATUS_20 = "/filter_transactions?OP_CARRIER_FL_NUM=20&FL_DATE=2016-12-29"
DISTANCE = "along the great circle from LGA to BTV"
LGA_TO_BTV = "INITIAL_DATE=2016-06-10&FINAL_DATE=2016-06-10&ORIGIN=LGA&DEST"
BEFORE_FLIGHT_12 = (
    "/filter_transactions?OP_CARRIER_FL_NUM=12&FL_DATE=2010-03-02&FINAL_DATE=2016-06-10"
)
STATUS_13 = "/filter_transactions?OP_CARRIER_FL_NUM=13&FL_DATE=2016-06-11"
COVERED = "March 2010, 1 June to 31 July 2016 and December 2016"
NOT_COVERED = "/filter_transactions?OP_CARRIER_FL_NUM=8&FL_DATE=2013-05-01"
COUNTED = "/flight_counter?ORIGIN=BTV&DEST=JFK"
COUNTED_4_JULY = "/flight_counter?ORIGIN=BTV&DEST=BOS&INITIAL_DATE=2016-07-04&FINAL_DATE=2016-07-05"


@each_of(
    ("address", "sentence"),
    [
        (
            "/departures?ORIGIN=BTV&FL_DATE=2016-06-11",
            "2 flights without a scheduled time</summary>",
        ),
        ("/departures?FL_DATE=2016-06-11&hour=8", "; besides, 2 flights have no recorded hour."),
        ("/departures?FL_DATE=2016-06-18", "1 cancelled flight without a scheduled time"),
        ("/departures?FL_DATE=2016-06-18&hour=9", "scheduled time: it may belong to any hour"),
        ("/departures?FL_DATE=2016-06-11&hour=8", "scheduled time: they may belong to any hour"),
        ("/departures?FL_DATE=2016-06-11&ORIGIN_CITY_NAME=Bostn", ">Boston, MA</a>?"),
        ("/departures?FL_DATE=2017-06-11", "to Saturday, 31 December 2016, and none later."),
        (DIVERTED, "09:30"),
        (DIVERTED, "No arrival delay recorded"),
        (DIVERTED, "it may have reached its destination in the end."),
        ("/days/2016-07-05", ">This day</caption>"),
        (FRIDAY, ">This day and a usual Friday</caption>"),
        ("/filter_transactions?OP_CARRIER_FL_NUM=16&FL_DATE=2016-07-05", ">All flights BTV to BOS"),
        ("/filter_transactions?OP_CARRIER_FL_NUM=16&FL_DATE=2016-07-05", ">All flights JFK to BOS"),
        ("/rankings?by=destination", "BTV?INITIAL_DATE=2010-03-01&FINAL_DATE=2016-12-31#arrivals"),
        (
            "/departures?ORIGIN=BTV&INITIAL_DATE=2016-06-10&FINAL_DATE=2016-06-18",
            NO_HOUR,
        ),
        ("/days/2016-06-11", "2 flights without a recorded hour are left out here."),
        ("/days/2016-06-13", "1 cancelled flight without a recorded hour is left out here."),
        (f"/route?ORIGIN=BTV&DEST=JFK&{ALL_DAYS}", NO_HOUR),
        (f"/airports/BTV?{ALL_DAYS}", NO_HOUR),
        (f"/average_delays?OP_CARRIER_AIRLINE_ID={DELTA}&{ALL_DAYS}", NO_HOUR),
        (f"/average_delays?OP_CARRIER_AIRLINE_ID={DELTA}&{ALL_DAYS}", "(DL), arrivals by delay"),
        (
            f"/rankings?{IN_2011}",
            "The ledger has no flights on these days.",
        ),
        (
            f"/report?OP_CARRIER_FL_NUM=9&OP_CARRIER_AIRLINE_ID={DELTA}&ORIGIN=BOS",
            "(DL) with the number 9 from Boston, MA (BOS) on these days.",
        ),
        (f"/days?{ALL_DAYS}", LEFT_OUT),
        (f"/days?{ALL_DAYS}", "March 2010 Mo"),
        (REPORT_8, LEFT_OUT),
        (f"/average_delays?OP_CARRIER_AIRLINE_ID={DELTA}&{IN_2011}", SHOW_ALL_OF_DELTA),
        (f"/route?ORIGIN=BTV&DEST=JFK&{IN_2011}", '?ORIGIN=BTV&DEST=JFK">Show all days.'),
        (f"/rankings?by=route&{IN_2011}", '"/rankings?by=route">Show all days.'),
        (REPORT_8, "was on time for 50.0\N{NO-BREAK SPACE}% of its 4 scheduled flights"),
        (REPORT_8, "<dd>50.0\N{NO-BREAK SPACE}%</dd>"),
        (REPORT_8, "<dd>100.0\N{NO-BREAK SPACE}%</dd>"),
        ("/report?OP_CARRIER_FL_NUM=9", "25 min late.</p>"),
        ("/report?OP_CARRIER_FL_NUM=20", "30 min late, as did 1 other flight.</p>"),
        (USUAL, "DL 9 – 2 2 50.0\N{NO-BREAK SPACE}% 0"),
        (USUAL, "DL 8 08:00 1 3 33.3\N{NO-BREAK SPACE}% 2"),
        (f"{USUAL}&hour=18", "DL 9 18:00 1 2 50.0\N{NO-BREAK SPACE}% 0"),
        (USUAL, "DL 9 leaves most often, 2 times. 50.0\N{NO-BREAK SPACE}% of all"),
        ("/departures?ORIGIN=LGA&DEST=BTV", "most often, 1 time; its most common time is 14:00."),
        (
            f"{USUAL}&INITIAL_DATE=2016-06-11&FINAL_DATE=2016-06-17",
            "DL 8 and 1 other leave most often, 1 time each.",
        ),
        (STATUS_20, "JFK New York, NY 08:20"),
        (STATUS_20, "20 min late"),
        (STATUS_20, "BOS Boston, MA 09:30"),
        (STATUS_20, "60 min Late 30 min"),
        (STATUS_20, "15 minutes or more after schedule"),
        ("/days?ORIGIN=LGA&INITIAL_DATE=2010-01-01&FINAL_DATE=2010-12-31", "on these days."),
        ("/days?ORIGIN=LGA&INITIAL_DATE=2010-01-01&FINAL_DATE=2010-12-31", SHOW_ALL.format("LGA")),
        ("/days?ORIGIN=BOS", SHOW_ALL.format("BOS")),
        (FRIDAY, "100.0\N{NO-BREAK SPACE}% of 1 flight was on time"),
        (FRIDAY, "The usual Friday is made of 1 other Friday of 2016"),
        (
            f"{COUNTED}&{ALL_DAYS}",
            "were no flights in 2 of 4 months. In 78 other months, the ledger",
        ),
        (f"{COUNTED}&{JUNE}", "On 25 other days, the ledger has no flights at all."),
        (f"{COUNTED}&{JUNE}", "Thu 9 Jun 2016 – Fri 10 Jun 2016 2 Sat"),
        (f"/route?{LGA_TO_BTV}=BTV", f"{DISTANCE}. Dep"),
        (
            f"/route?{LGA_TO_BTV}_CITY_NAME=Burlington%2C+VT",
            f"{DISTANCE}, the busiest airport of Bu",
        ),
        (COUNTED_4_JULY, "There were no flights on 1 of 2 days.</p>"),
        (COUNTED_4_JULY, "Mon 4 Jul 2016 0 Tue 5 Jul 2016 1"),
        (NOT_COVERED, f"The ledger has flights of {COVERED}, but none at all on that day."),
        ("/rankings", f"Of these days, the ledger covers only {COVERED}."),
        (f"{NOT_COVERED}&FINAL_DATE=2013-05-31", "but none at all on these days."),
        (STATUS_13, "Thu 9 Jun No data Fri 10 Jun No flight Sat 11 Jun"),
        (
            "/filter_transactions?OP_CARRIER_FL_NUM=19&FL_DATE=2016-12-31",
            "00:00 scheduled 00:00",
        ),
        (STATUS_20, "00:30 next day"),
        (
            "/filter_transactions?OP_CARRIER_FL_NUM=9&FL_DATE=2016-06-10&FINAL_DATE=2016-06-11",
            '"/report?OP_CARRIER_FL_NUM=9&INITIAL_DATE=2016-06-10&FINAL_DATE=2016-06-11"',
        ),
        (
            f"/compare?what=flight&item=DL8&item=DL9&{JUNE}",
            f'"/report?OP_CARRIER_FL_NUM=8&OP_CARRIER_AIRLINE_ID={DELTA}&{JUNE}"',
        ),
        (
            f"/average_delays?OP_CARRIER_AIRLINE_ID={DELTA}&{JUNE}",
            "Most days rest on fewer than 10 arrivals",
        ),
        (f"/route?ORIGIN=BTV&DEST=JFK&{JUNE}", "Median delay 0.0 min 90th percentile 25 min"),
        ("/report?OP_CARRIER_FL_NUM=15", "Cancelled 0 No arrival recorded 1"),
        (REPORT_8, "Cancelled 2 No arrival recorded 0"),
        (
            "/route?ORIGIN=JFK&ORIGIN_CITY_NAME=Boston, MA&DEST=BTV",
            "Boston, MA (only JFK, which is in New York, NY)",
        ),
        (
            "/departures?ORIGIN=BTV&INITIAL_DATE=2016-06-10&FINAL_DATE=2016-06-11",
            "Hours with fewer than 100 arrivals are marked",
        ),
    ],
)
def test_sentences_are_true_of_few_flights(few: FlaskClient, address: str, sentence: str) -> None:
    require_words(few, address, [sentence])


@each_of(
    ("address", "words"),
    [
        ("/days", "The calendar begins in"),
        (f"/days?{ALL_DAYS}", "May 2010"),
        (f"/days?{JUNE}", LEFT_OUT),
        (NOT_COVERED, "did not fly"),
        (NOT_COVERED, "Days before and after"),
        (BEFORE_FLIGHT_12, "did not fly"),  # it flew on the day after
        ("/report?OP_CARRIER_FL_NUM=1", "The longest delay"),
        (REPORT_8, "By carrier"),
        ("/departures?ORIGIN=BTV&FL_DATE=2016-06-10", "few arrivals"),
        ("/days/2012-05-01", "30 April 2012"),  # years after the day before with flights
        ("/route?ORIGIN=BTV&DEST=JFK&INITIAL_DATE=2016-06-13&FINAL_DATE=2016-06-13", "All hours"),
        (
            f"/compare?what=origin&item=JFK&item=BTV&{IN_2011}",
            "0.0\N{NO-BREAK SPACE}%",  # a share of no flights is a dash
        ),
        (f"/compare?what=origin&item=JFK&item=BTV&{IN_2011}", '"/airports/JFK?'),
        (f"/route?ORIGIN=BTV&DEST=JFK&{ALL_DAYS}", '<td class="n l'),  # no hour has 10 arrivals
        ("/airports/BTV", "holds only departures"),
        ("/rankings?INITIAL_DATE=2017-01-01&FINAL_DATE=2017-12-31", "covers only"),
        ("/days/2010-03-02", "usual Tuesday"),  # another one was in 2016
    ],
)
def test_what_is_not_true_is_not_said(few: FlaskClient, address: str, words: str) -> None:
    require_words(few, address, [], [words])


def test_days_on_which_all_was_cancelled_are_no_days_on_which_it_flew(few: FlaskClient) -> None:
    page = raw(few, "/filter_transactions?OP_CARRIER_FL_NUM=8&FL_DATE=2016-06-15")
    nearest = page.partition("Nearest days on which it flew")[2].partition("</table>")[0]
    assert "17 June 2016" in nearest
    assert "Cancelled" not in nearest


def test_the_twin_of_an_hour_counts_the_flights_of_the_hour(few: FlaskClient) -> None:
    asked = "ORIGIN=BTV&DEST=JFK&INITIAL_DATE=2016-06-01&FINAL_DATE=2016-06-30&hour=18"
    twin = few.get(f"/departures.json?{asked}").get_json()["departures"]
    figures = (
        "flights",
        "groups",
        "arrived",
        "cancelled",
        "average_delay",
        "average_departure_delay",
    )
    assert [twin[name] for name in figures] == [1, 1, 1, 0, 25, 0]
    rows = table(few, f"/departures.csv?{asked}")
    assert [row["departure"] for row in rows] == ["1800"]
    none = few.get(f"/departures.json?{asked[:-2]}3").get_json()["departures"]
    assert [none[name] for name in figures] == [0, 0, 0, 0, None, None]


EMPTY = ("/days/2008-01-03", "/search?q=united", *(f"/{page}" for page in ("days", "rankings")))


def test_a_ledger_without_flights_says_so(tmp_path: Path) -> None:
    new_chain(tmp_path)
    with pages_of(tmp_path) as pages:
        for address in EMPTY:
            shown = text(pages, address)
            assert "There are no flights in this ledger yet." in shown, address
            assert "ask for nothing" not in shown


def test_pages_up_to_a_block_say_which_days_they_count(tmp_path: Path) -> None:
    older, newer = [odd(1, "2010-03-01"), odd(1, "2010-04-02")], [odd(1, "2010-04-30")]
    seal(settings_for(tmp_path), [older, newer])
    days = "as_of=1&INITIAL_DATE=2010-03-01&FINAL_DATE=2010-04-30"
    with pages_of(tmp_path) as pages:
        for page in ("/airports/BTV?", "/route?ORIGIN=BTV&DEST=JFK&"):
            shown = text(pages, page + days)
            assert "April until the 2nd" in shown, page
            assert "then held 2 flights, 1 March to 2 April 2010." in shown, page


def test_a_ledger_of_one_day_names_that_day_once(tmp_path: Path) -> None:
    seal(settings_for(tmp_path), [[odd(1, "2010-03-01")]])
    with pages_of(tmp_path) as pages:
        for question in ("", "?OP_CARRIER_FL_NUM=2&FL_DATE=2010-03-01"):
            shown = text(pages, f"/filter_transactions{question}")
            assert "The ledger has flights of 1 March 2010" in shown
        shown = text(pages, "/days/2010-03-02")
        assert "The ledger has flights of Monday, 1 March 2010, and none later." in shown


@each_of(
    ("address", "words"),
    [
        ("/flight_counter?ORIGIN=BTV&DEST=JFK", "In 38 other years, the ledger has no flights"),
        ("/average_delays?OP_CARRIER_AIRLINE_ID=19790", "1987 from 1 October; 2026 until 28 Feb"),
        ("/report?OP_CARRIER_FL_NUM=1", "October 1987 Mo"),
        (
            "/filter_transactions?OP_CARRIER_FL_NUM=1&FL_DATE=1987-10-01&FINAL_DATE=2026-02-28",
            "Thu 1 Oct 1987 08:00",
        ),
        ("/compare?what=flight&item=Comair 3&item=PSA 3", "Comair 3 or PSA Airlines 3?"),
        ("/airports/BOS", f"name its city {RENAMED}; this page counts them, too."),
        ("/compare?what=origin&item=Boston, MA&item=Winthrop, MA", "All have the same share"),
        ("/search?q=OH 3", "Flight Comair 3 1 flight"),
        ("/search?q=OH 3", "Flight PSA Airlines 3 1 flight"),
        ("/route?ORIGIN=BTV&DEST=JFK", ": 1 flight, 0.0\N{NO-BREAK SPACE}% of all scheduled on"),
    ],
)
def test_a_ledger_of_decades(decades: FlaskClient, address: str, words: str) -> None:
    assert words in text(decades, address)


def test_of_days_without_data_it_is_not_said_that_a_flight_did_not_fly(
    decades: FlaskClient,
) -> None:
    page = "/filter_transactions?OP_CARRIER_FL_NUM=11&FL_DATE=1987-10-01"
    require_words(decades, page, ["Flight numbers with the same beginning"], ["did not fly"])


def test_a_code_of_two_carriers_is_told_with_both(decades: FlaskClient) -> None:
    names = "PSA Airlines (OH) or Comair (OH)"
    shown = text(decades, "/compare?what=carrier&item=OH&item=DL", 400)
    assert f"“OH” is not understood: it may be {names}." in shown
    shown = text(decades, "/compare?what=origin&item=OH&item=BTV", 400)
    assert "“OH” is not understood; write it as in " in shown  # carriers are no airports
    first, other = names.split(" or ")
    assert f"{names}?" in text(decades, f"/compare?what=carrier&item={first}&item={other}")
