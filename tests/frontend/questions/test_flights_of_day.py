"""The order, the days and the outcome of legs."""

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from frontend.questions import flights_of_day
from tests.cases import each_of


def leg(origin: str, dest: str, departed: str | None = None, **more: Any) -> dict[str, Any]:
    known: dict[str, Any] = {"DEP_DELAY": 0, "ARR_TIME": None, "ARR_DELAY": 0, "AIR_TIME": None}
    known |= {"CANCELLED": 0, "ORIGIN": origin, "DEST": dest, "DEP_TIME": departed}
    known |= {"TRANSACTION_ID": 0, **more}
    if departed is None:
        known |= {"CANCELLED": 1, "ARR_DELAY": None, "DEP_DELAY": None}
    return known


def paths(routes: list[list[Any]]) -> list[str]:
    return ["".join([route[0]["ORIGIN"], *(leg["DEST"] for leg in route)]) for route in routes]


ORDERS = [
    ([("B", "C", "0500"), ("A", "B", "0900")], ["BC", "AB"], "it left before the other arrived"),
    ([("B", "C", "0830"), ("A", "B", "0900")], ["ABC"], "the clock goes back on the way west"),
    ([("C", "D", "1500"), ("A", "B", "0700"), ("B", "C", "1100")], ["ABCD"], "by airports"),
    ([("B", "A", "0900"), ("A", "B", "0700")], ["ABA"], "there and back, by departure"),
    ([("B", "A", "1800"), ("A", "B", "2100")], ["BAB"], "the other way round"),
    ([("A", "C", "1500"), ("A", "B", None), ("B", "A", "1200")], ["ABAC"], "cancelled"),
    (
        [("X", "A", "0600"), ("A", "C", "1500"), ("A", "B", None), ("B", "A", "1200")],
        ["XABAC"],
        "what goes on before what ends",
    ),
    ([("B", "C", None), ("A", "B", None)], ["ABC"], "all cancelled"),
    ([("X", "Y", "1000"), ("A", "B", "0600"), ("B", "A", "0800")], ["ABA", "XY"], "two routes"),
    ([("A", "B", "0600"), ("A", "B", "0700")], ["AB", "AB"], "the same twice"),
    ([("A", "A", "0600"), ("A", "B", "0700")], ["AAB"], "back to where it left"),
    ([("Y", "Z", "0841"), ("X", "Y", "2347")], ["YZ", "XY"], "of the night before"),
    ([], [], "none"),
]


@each_of(("given_legs", "expected", "why"), ORDERS)
def test_legs_are_chained_by_airports_then_by_departure(
    given_legs: list[tuple[str, str, str | None]], expected: list[str], why: str
) -> None:
    assert paths(flights_of_day.routes([leg(*row) for row in given_legs])) == expected, why


def test_the_schedule_decides_and_not_the_delay() -> None:
    late = leg("A", "B", "1200", DEP_DELAY=360)  # was to leave at 0600
    back = leg("B", "A", "1100")
    assert paths(flights_of_day.routes([back, late])) == ["ABA"]


AIRPORTS = st.sampled_from("ABCD")
TIMES = st.none() | st.integers(0, 1439).map(lambda minute: f"{minute // 60:02}{minute % 60:02}")


@given(st.lists(st.tuples(AIRPORTS, AIRPORTS, TIMES), max_size=9))
def test_every_route_is_a_chain(given_legs: list[tuple[str, str, str | None]]) -> None:
    flights = [leg(*row, TRANSACTION_ID=place) for place, row in enumerate(given_legs)]
    routes = flights_of_day.routes(flights)
    ids = sorted(flight["TRANSACTION_ID"] for route in routes for flight in route)
    assert ids == list(range(len(flights)))
    for route in routes:
        for flight, following in pairwise(route):
            assert flight["DEST"] == following["ORIGIN"]
            if flight["DEP_TIME"] and following["DEP_TIME"]:
                assert int(following["DEP_TIME"]) >= int(flight["DEP_TIME"]) - 100


TIMES_AND_DAYS = [
    ("0517", 2, "0830", 227, 0, 0),
    ("2330", 0, "0730", 300, 0, 1),  # over night to the east
    ("1500", 0, "0400", 480, 0, 1),  # far to the east
    ("2103", 0, "2211", 240, 0, 0),  # to the west, the clock goes with it
    ("0900", 0, "0850", 45, 0, 0),  # a short flight over the edge of a zone
    ("0900", 0, "0850", None, 0, 0),
    ("2330", 0, "0030", None, 0, 1),
    ("0100", 200, "0220", 60, 1, 1),  # left after midnight, because it was late
    ("2330", 1400, "0530", 300, 0, 1),
    ("0010", 1500, "0530", 300, 2, 2),
    ("2355", -10, "0105", 50, -1, 0),  # left before the day on which it was to
    ("2400", 1, "0100", 50, 1, 1),
    ("2400", 0, "0100", 50, 0, 0),
    ("2200", 0, "2400", 100, 0, 1),
    ("1000", None, "1100", 40, 0, 0),
]


@each_of(("departed", "delay", "arrived", "air_time", "departure", "arrival"), TIMES_AND_DAYS)
def test_days_are_counted_from_the_day_of_the_flight(
    departed: str, delay: int, arrived: str, air_time: int | None, departure: int, arrival: int
) -> None:
    flight = leg("A", "B", departed, DEP_DELAY=delay, ARR_TIME=arrived, AIR_TIME=air_time)
    assert (flights_of_day.departure_day(flight), flights_of_day.arrival_day(flight)) == (
        departure,
        arrival,
    )


@each_of(
    ("origin", "dest", "day", "departed", "arrived", "air_time", "arrival"),
    [
        ("JFK", "LAX", "2013-07-01", "2103", "2356", 330, 0),
        ("LAX", "JFK", "2013-07-01", "2200", "0630", 300, 1),
        ("GUM", "HNL", "2013-07-01", "0700", "1830", None, -1),  # over the date line
        ("HNL", "GUM", "2013-07-01", "1500", "1835", 440, 1),
        ("JFK", "BOS", "2013-07-01", "0800", "0730", 40, 1),  # it waited for most of a day
        ("SFO", "PHX", "2013-03-09", "2330", "0120", 90, 1),  # before the clocks change
        ("SFO", "PHX", "2013-07-01", "2330", "0115", 90, 1),  # and after it
        ("ORD", "MKE", "2013-11-03", "0130", "0110", 25, 0),  # while the clocks go back
        ("EWR", "SFO", "2013-07-01", "2200", "0110", None, 1),
        ("OGG", "PDX", "2008-01-04", "1615", "0150", 560, 1),  # its time in the air is too long
        ("HNL", "SMF", "2008-01-04", "1333", "2107", 550, 0),
    ],
)
def test_the_day_of_arrival_follows_from_time_zones(
    origin: str, dest: str, day: str, departed: str, arrived: str, air_time: int, arrival: int
) -> None:
    flight = leg(
        origin, dest, departed, FL_DATE=day, DEP_DELAY=0, ARR_TIME=arrived, AIR_TIME=air_time
    )
    assert flights_of_day.arrival_day(flight) == arrival


def test_a_flight_arrives_after_the_day_on_which_it_was_to_leave_by_its_delay() -> None:
    times = {"DEP_DELAY": 0, "ARR_TIME": "0930", "AIR_TIME": 40}
    flights = [
        leg("JFK", "BOS", "0830", FL_DATE="2013-07-01", **times, ARR_DELAY=delay)
        for delay in (-10, 1430, None)
    ]
    assert list(map(flights_of_day.arrival_day, flights)) == [0, 1, 0]


def test_scheduled_times_are_actual_ones_without_delay() -> None:
    flight = leg("JFK", "LAX", "0005", DEP_DELAY=20, ARR_TIME="0311", ARR_DELAY=-14)
    assert flights_of_day.scheduled(flight, "DEP") == "23:45"
    assert flights_of_day.scheduled(flight, "ARR") == "03:25"
    assert flights_of_day.scheduled(leg("JFK", "LAX", "0005", ARR_TIME=None), "ARR") == ""
    for arrived, delay, day in (("0025", 10, 1), ("2355", -10, 1), ("0005", 10, 0)):
        flight = leg(
            "JFK",
            "BOS",
            "2250",
            DEP_DELAY=0,
            ARR_TIME=arrived,
            ARR_DELAY=delay,
            FL_DATE="2013-07-01",
        )
        assert flights_of_day.scheduled_day(flight, "ARR") == day
        assert flights_of_day.scheduled_day(flight, "DEP") == 0


def test_a_day_is_said_unless_it_is_the_day_of_the_flight() -> None:
    words = [flights_of_day.day_in_words(days) for days in (-1, 0, 1, 2)]
    assert words == ["the day before", "", "next day", "2 days later"]


ON_TIME, LATE, EARLY = (leg("A", "B", "0600", ARR_DELAY=delay) for delay in (14, 15, -14))
CANCELLED, DIVERTED = leg("A", "B"), leg("A", "B", "0600", ARR_DELAY=None)

OUTCOMES = [
    ([], "No flight", ""),
    ([ON_TIME], "On time, 14 min late", "on_time"),
    ([leg("A", "B", "0600", ARR_DELAY=0)], "On time", "on_time"),
    ([LATE], "Late 15 min", "late"),
    ([EARLY], "Early 14 min", "on_time"),
    ([CANCELLED], "Cancelled", "cancelled"),
    ([DIVERTED], "No arrival recorded", "no_arrival"),
    ([{**DIVERTED, "ARR_TIME": "0900"}], "No arrival delay recorded", "no_arrival"),
    ([ON_TIME, EARLY], "Both legs on time", "on_time"),
    ([ON_TIME, EARLY, EARLY], "All 3 legs on time", "on_time"),
    ([ON_TIME, LATE, CANCELLED], "1 of 3 legs cancelled, 1 late, 1 on time", "cancelled"),
    ([LATE, DIVERTED], "1 of 2 legs with no arrival recorded, 1 late", "no_arrival"),
]


@each_of(("flights", "words", "worst"), OUTCOMES)
def test_outcomes_in_words(flights: list[dict[str, Any]], words: str, worst: str) -> None:
    assert (flights_of_day.outcome_of_all(flights), flights_of_day.worst(flights)) == (words, worst)
