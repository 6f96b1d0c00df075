from collections import Counter, defaultdict
from datetime import date, timedelta
from statistics import mean

import pytest

from backend.base.errors import InvalidInput
from backend.chain.fields import POSITION, Value
from backend.sources.generated import Generated
from backend.sources.network import AIRPORTS, CARRIERS
from backend.sources.source import BATCH_ROWS
from tests.sources.samples import flights_of

Flights = list[tuple[Value, ...]]


@pytest.fixture(scope="module")
def month() -> Flights:
    return flights_of(Generated(15_500, flights_per_day=500))


def column(flights: Flights, name: str) -> list[Value]:
    return [flight[POSITION[name]] for flight in flights]


def numbers(flights: Flights, name: str) -> list[int]:
    return [value for value in column(flights, name) if isinstance(value, int)]


def test_fewer_flights_are_the_beginning_of_more() -> None:
    more = flights_of(Generated(9000, flights_per_day=1700))
    assert len(more) == 9000
    for count in (0, 1, 999, 1000, 1700, 1701, 4001):
        assert flights_of(Generated(count, flights_per_day=1700)) == more[:count]


def test_the_seed_alone_decides(month: Flights) -> None:
    source = Generated(15_500, flights_per_day=500)
    assert flights_of(source) == flights_of(source) == month
    other = flights_of(Generated(15_500, seed=2, flights_per_day=500))
    assert column(other, "ARR_DELAY") != column(month, "ARR_DELAY")
    assert column(other, "OP_CARRIER_FL_NUM") != column(month, "OP_CARRIER_FL_NUM")


def test_rows_are_numbered_and_progress_runs_to_one() -> None:
    source = Generated(2500, flights_per_day=1300)
    assert source.progress() == 0
    batches = [(list(raw.lines), source.progress()) for raw in source.rows()]
    assert [line for lines, _ in batches for line in lines] == list(range(1, 2501))
    assert max(len(lines) for lines, _ in batches) <= BATCH_ROWS
    assert [share for _, share in batches] == [0.4, 0.52, 0.92, 1.0]
    assert Generated(0).progress() == 1.0


def test_two_readings_at_once_do_not_disturb_each_other() -> None:
    source = Generated(3000, flights_per_day=1000)
    first, second = source.rows(), source.rows()
    pairs = zip(first, second, strict=True)
    assert all(batch.columns == other.columns for batch, other in pairs)


def test_days_follow_each_other_with_fewer_flights_on_saturday(month: Flights) -> None:
    per_day = Counter(str(day) for day in column(month, "FL_DATE"))
    days = [date.fromisoformat(day) for day in per_day]
    assert days == [date(2015, 1, 1) + timedelta(days=n) for n in range(len(days))]
    for day in days[:-1]:
        assert per_day[day.isoformat()] == (450 if day.isoweekday() == 6 else 500)


def test_the_schedule_repeats_and_no_two_flights_of_a_day_are_alike(month: Flights) -> None:
    by_day: dict[Value, list[tuple[Value, ...]]] = defaultdict(list)
    for flight in month:
        by_day[flight[POSITION["FL_DATE"]]].append(flight[3:13])
    assert all(len(set(flights)) == len(flights) for flights in by_day.values())
    assert set(by_day["2015-01-01"]) == set(by_day["2015-01-08"])
    assert set(by_day["2015-01-03"]) < set(by_day["2015-01-01"])
    legs = Counter(flight[:2] for flight in by_day["2015-01-01"])
    assert 1.2 < mean(legs.values()) < 2
    assert max(legs.values()) == 3


def test_some_flights_are_late_early_cancelled_and_diverted_and_each_day_is_another(
    month: Flights,
) -> None:
    delays = column(month, "ARR_DELAY")
    assert len({tuple(delays[start : start + 400]) for start in (0, 500, 950)}) == 3
    on_time = sum(delay < 15 for delay in numbers(month, "ARR_DELAY"))
    cancelled = sum(numbers(month, "CANCELLED"))
    assert 0 < cancelled < delays.count(None) < len(month) - on_time < on_time
    assert min(numbers(month, "ARR_DELAY")) < 0
    assert column(month, "DEP_TIME").count(None) == cancelled


def test_carriers_and_airports_are_real_and_shared_out(month: Flights) -> None:
    carriers = Counter(column(month, "OP_CARRIER_AIRLINE_ID"))
    assert set(carriers) == {carrier.number for carrier in CARRIERS}
    assert carriers.most_common(1)[0][0] == 19393
    origins = Counter(column(month, "ORIGIN"))
    assert len(origins) > 60
    assert set(origins) <= set(AIRPORTS)
    names = ("ORIGIN_AIRPORT_ID", "ORIGIN", "ORIGIN_CITY_NAME", "ORIGIN_STATE_NM")
    places = set(zip(*(column(month, name) for name in names), strict=True))
    assert (13930, "ORD", "Chicago, IL", "Illinois") in places
    assert len(places) == len(origins)


def test_flights_may_span_decades() -> None:
    assert next(Generated(1_000_000_000).rows()).columns[0][0] == 2015
    few = flights_of(Generated(4000, flights_per_day=10))
    assert few[-1][POSITION["YEAR"]] == 2016


@pytest.mark.parametrize("flights", [-1, 10**12])
def test_no_such_number_of_flights_is_made(flights: int) -> None:
    with pytest.raises(InvalidInput, match="flights"):
        Generated(flights)
