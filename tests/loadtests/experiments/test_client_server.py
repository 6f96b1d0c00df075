"""What the three experiments of the client-server study ask, predict and tell."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from random import Random
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.experiments.client_server import asked, telling
from loadtests.experiments.client_server.alone import Alone, Line, line_through
from loadtests.experiments.client_server.asked import AVERAGE, SELECT, WRITE, Flights, sizes
from loadtests.experiments.client_server.predicting import LEAST_NEAR_SATURATION, OneRun, Point
from loadtests.experiments.client_server.systems import KNOWN_SERVICE_TIME_S
from loadtests.experiments.request_rate import FULL_SHARES, MOST_PER_S, rates
from loadtests.generation.rows import Row
from loadtests.generation.schedule import Arrival
from loadtests.models import replay
from loadtests.models.estimates import Verdict

FLIGHTS = Flights(
    count=10_000,
    carriers={19393: 700, 19790: 300},
    first_day=date(2015, 1, 1),
    last_day=date(2015, 1, 10),
    one={"FL_DATE": "2015-01-01", "ORIGIN_CITY_NAME": "O'Hare \\", "DEP_DELAY": None},
)


@given(st.integers(0, 10_000), st.sampled_from([AVERAGE, SELECT]))
def test_statements_stay_within_the_flights_and_say_what_they_work_on(seed: int, kind: str) -> None:
    for drawn in (asked.BY_POSITION[kind], asked.BY_KEY[kind]):
        rows, passed = asked.rows_drawn(FLIGHTS, kind, Random(seed))
        assert 1 <= rows <= rows + passed <= FLIGHTS.count
        told = sizes(drawn(FLIGHTS, Random(seed)).body)
        assert told[:2] == (1.0, rows / 1e3)
        assert told[2:] in {(), (passed / 1e3,)}


def test_the_number_of_rows_is_exponential() -> None:
    random = Random(1)
    drawn = [asked.rows_drawn(FLIGHTS, SELECT, random)[0] for _ in range(20_000)]
    mean = sum(drawn) / len(drawn)
    assert mean == pytest.approx(FLIGHTS.count / 20, rel=0.05)
    beyond = sum(rows > mean for rows in drawn) / len(drawn)
    assert beyond == pytest.approx(0.368, abs=0.02)  # 1/e


@given(st.integers(0, 10_000))
def test_sql_and_http_ask_for_the_same_days(seed: int) -> None:
    over_http = asked.OF_SERVICE[AVERAGE](FLIGHTS, Random(seed))
    statement = asked.BY_DAYS[AVERAGE](FLIGHTS, Random(seed)).body
    given_ = {name: values[0] for name, values in parse_qs(urlsplit(over_http.path).query).items()}
    assert f"= {given_['OP_CARRIER_AIRLINE_ID']} " in statement
    days = f"BETWEEN '{given_['INITIAL_DATE']}' AND '{given_['FINAL_DATE']}'"
    assert days in statement
    assert FLIGHTS.first_day.isoformat() <= given_["INITIAL_DATE"] <= given_["FINAL_DATE"]
    assert given_["FINAL_DATE"] <= FLIGHTS.last_day.isoformat()


def test_a_flight_is_written_with_every_character_and_without_what_is_not_known() -> None:
    statement = asked.BY_DAYS[WRITE](FLIGHTS, Random(1)).body
    assert statement == (
        "INSERT INTO flights (FL_DATE, ORIGIN_CITY_NAME, DEP_DELAY) "
        "VALUES ('2015-01-01', 'O''Hare \\\\', NULL)"
    )


@given(st.floats(0.001, 1), st.floats(0.001, 1), st.floats(0.0001, 1))
def test_a_line_through_exact_times_is_found_again(base: float, rows: float, passed: float) -> None:
    places = [(1.0, float(n), float((7 * n) % 11)) for n in range(12)]
    times_s = [base + rows * n + passed * k for _, n, k in places]
    line = line_through(times_s, places)
    assert line is not None
    assert line.r2 == pytest.approx(1)
    assert line.coefficients_s == pytest.approx((base, rows, passed), rel=1e-6)


def test_no_line_where_nothing_varies_or_little_is_explained() -> None:
    assert line_through([1.0, 2.0], [(1.0,), (1.0,)]) is None
    assert line_through([1.0, 2.0, 3.0], [(1.0, 5.0)] * 3) is None
    noise = [1.0, 2.0, 1.0, 2.0, 1.0, 2.0]
    assert line_through(noise, [(1.0, float(n)) for n in (0, 0, 1, 1, 2, 2)]) is None


def test_a_request_alone_takes_what_its_line_says_or_what_was_asked_for() -> None:
    line = Line((0.01, 0.001, 0.0001), 1.0)
    by_rows = Arrival(0, 0.0, AVERAGE, "/flights", body="SELECT * LIMIT 2000 OFFSET 10000")
    assert Alone((0.5,), line, None, ()).of(by_rows) == pytest.approx(0.01 + 0.002 + 0.001)
    asleep = Arrival(0, 0.0, "known", "/", 0.25)
    assert Alone((0.5,), None, 0.002, ()).of(asleep) == pytest.approx(0.252)
    write = Arrival(0, 0.0, WRITE, "/")
    assert Alone((0.5, 0.7), None, None, ()).of(write) == pytest.approx(0.6)


def test_what_the_line_leaves_unexplained_is_drawn_and_not_replaced_by_its_mean() -> None:
    alone = Alone((0.1, 0.3), None, None, (-0.1, 0.1))
    drawn = alone.drawn([Arrival(0, 0.0, WRITE, "/")] * 1000, Random(1))
    assert {round(each_s, 6) for each_s in drawn} == {0.1, 0.3}
    assert sum(drawn) / 1000 == pytest.approx(0.2, abs=0.02)


def one_run(responses_s: Sequence[float], rate_per_s: float, reasons: str = "") -> OneRun:
    """A run of requests of 0.1 s of service."""
    gap_s = 1 / rate_per_s
    rows = tuple(
        Row("r", i, "known", i * gap_s, i * gap_s, None, i * gap_s + r, None, 200, "")
        for i, r in enumerate(responses_s)
    )
    schedule = tuple(Arrival(i, i * gap_s, "known", "/", 0.1) for i in range(len(responses_s)))
    alone = Alone((0.1, 0.1), None, 0.0, (0.0, 0.0))
    return OneRun("r", rate_per_s, rows, schedule, alone, reasons)


def point(
    responses_s: Sequence[float],
    rate_per_s: float,
    system: str = "service",
    reasons: str = "",
    runs: int = 1,
) -> Point:
    """Equal runs of one server."""
    run = one_run(responses_s, rate_per_s, reasons)
    return Point((run,) * runs, runs, system, "known", "load", 1, 2)


def test_a_run_that_is_a_queue_agrees_with_it_and_one_that_is_not_does_not() -> None:
    alone = point([0.1] * 40, 5.0)
    assert alone.queued.verdict is Verdict.AGREES
    slow = point([0.3] * 40, 5.0)
    assert slow.queued.verdict is Verdict.DISAGREES
    rejected = point([0.1] * 40, 5.0, reasons="a loud neighbour")
    assert rejected.queued.verdict is None
    assert telling.verdicts_told([rejected]) == "No run counts, so no model is judged."
    assert "1 of 2 runs were rejected" in next(telling.rejected_told([alone, rejected]))
    assert telling.metrics([rejected]) == []
    drawn = telling.measured_series([alone, rejected], [1, 2])
    assert [one.name for one in telling.measured_series([rejected], [1])] == ["rejected"]
    assert [one.ys for one in drawn] == [pytest.approx([100.0, None]), pytest.approx([100.0])]
    assert "1 agree, 1 disagree" in telling.verdicts_told([alone, slow])
    names = [one.name for one in telling.metrics([slow])]
    assert names == ["response_time_mean[r]", "paired_difference[r]"]


def test_near_saturation_one_run_decides_nothing() -> None:
    busy = 0.9 / KNOWN_SERVICE_TIME_S
    assert point([0.3] * 40, busy).queued.verdict is Verdict.NOT_DECIDED
    assert point([0.3] * 40, busy).response.low is None
    several = point([0.3] * 40, busy, runs=LEAST_NEAR_SATURATION)
    assert several.queued.verdict is Verdict.DISAGREES
    assert several.response.low is not None


def test_an_error_of_the_service_time_widens_the_interval_of_a_single_run() -> None:
    sure = one_run([0.1] * 40, 5.0)
    unsure = replace(sure, alone=replace(sure.alone, left_s=(-0.01, 0.01) * 20))
    one, other = (each.replayed(replay.fcfs) for each in (sure, unsure))
    assert one.moved_s == pytest.approx(0)
    assert other.moved_s == pytest.approx(unsure.alone.error * 0.1, rel=0.3)
    assert other.difference.half_width > one.difference.half_width


def test_more_work_than_servers_can_do_has_no_steady_state_and_is_told_in_words() -> None:
    found = point([0.1] * 40, 30.0)
    assert (found.markov_s, found.general_s) == (None, None)
    assert "No steady state" in next(telling.unstable_told([found]))
    assert not list(telling.unstable_told([point([0.1] * 40, 5.0)]))


def test_cores_are_no_model_of_a_server_that_sleeps() -> None:
    assert point([0.1] * 40, 5.0, system="known").shared is None
    assert point([0.1] * 40, 5.0).shared is not None


@given(st.floats(1e-4, 1.0), st.integers(1, 4))
def test_rates_keep_their_order_and_what_the_generator_can_send(service_s: float, m: int) -> None:
    found = list(rates(service_s, m, quick=False))
    per_s = [rate_per_s for _, rate_per_s in found]
    assert [share for share, _ in found] == list(FULL_SHARES)
    assert per_s == sorted(set(per_s))
    assert max(per_s) <= MOST_PER_S * 1.000001
    assert max(per_s) <= max(FULL_SHARES) * m / service_s * 1.000001


def test_the_studys_formula_is_shown_right_and_as_printed() -> None:
    rows = telling.study_section().parts[0].rows  # type: ignore[union-attr]
    assert [row[2] for row in rows[:2]] == [None, None]  # λ = 5/s is too much for one and two
    assert rows[2][2] == pytest.approx(1.202247191)
    assert rows[2][3] == pytest.approx(2.5e8, rel=0.05)
    assert rows[3][2] == pytest.approx(0.606618901)
