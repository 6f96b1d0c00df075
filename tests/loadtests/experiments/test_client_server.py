"""Tests what the experiments of the client-server study send, predict and report."""

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from random import Random
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.experiments import client_server, client_server_measurements
from loadtests.experiments.client_server import FULL_SHARES, REQUEST_RATE, rate_figure, rates
from loadtests.experiments.client_server_measurements import (
    ALONE,
    AVERAGE,
    INDEXED,
    KNOWN,
    KNOWN_SERVICE_TIME_S,
    LOAD,
    POINTS,
    POSITION,
    SELECT,
    SERVICE,
    SYSTEMS,
    WRITE,
    Flights,
    Plan,
    PointLine,
    already,
    draw_rows,
    measuring,
    request,
    sizes,
)
from loadtests.experiments.client_server_points import (
    LEAST_NEAR_SATURATION,
    Alone,
    OneRun,
    Point,
    line_through,
    points,
)
from loadtests.experiments.running import analyse, run
from loadtests.generation import rules
from loadtests.generation import run as generation_run
from loadtests.generation.calibration import Calibration
from loadtests.generation.rows import Row
from loadtests.generation.run import SCHEDULES, Generator, RunRecord, Target
from loadtests.generation.schedule import Arrival, Request, save
from loadtests.lab.experiment import Options, Run
from loadtests.lab.generator_check import CHECK, CheckLine
from loadtests.lab.results import Results
from loadtests.models.estimates import Verdict, confidence_interval
from loadtests.models.open_queue import ONE
from loadtests.processes import Site
from tests.loadtests.experiments.made_up import judge, keep, results_of

FLIGHTS = Flights(
    count=10_000,
    carriers={19393: 700, 19790: 300},
    first_day=date(2015, 1, 1),
    last_day=date(2015, 1, 10),
    new={"FL_DATE": "2015-01-01", "ORIGIN_CITY_NAME": "O'Hare \\", "DEP_DELAY": None},
)


def draw(system: str, kind: str, seed: int) -> Request:
    return request(FLIGHTS, kind, SYSTEMS[system].templates[kind], Random(seed))


@given(st.integers(0, 10_000), st.sampled_from([AVERAGE, SELECT]))
def test_statements_stay_within_the_flights_and_say_what_they_work_on(seed: int, kind: str) -> None:
    rows, first = draw_rows(FLIGHTS, kind, Random(seed)).values()
    assert 1 <= rows <= FLIGHTS.count - first
    assert first >= 0
    assert sizes(draw(POSITION, kind, seed).body) == (1.0, rows / 1e3, first / 1e3)


def test_the_number_of_rows_is_exponential() -> None:
    random = Random(1)
    drawn = [draw_rows(FLIGHTS, SELECT, random)["rows"] for _ in range(20_000)]
    mean = sum(drawn) / len(drawn)
    assert mean == pytest.approx(FLIGHTS.count / 20, rel=0.05)
    beyond = sum(rows > mean for rows in drawn) / len(drawn)
    assert beyond == pytest.approx(0.368, abs=0.02)  # 1/e


@given(st.integers(0, 10_000), st.sampled_from([AVERAGE, SELECT]))
def test_sql_and_http_ask_for_the_same_days(seed: int, kind: str) -> None:
    statement = draw(INDEXED, kind, seed).body
    question = dict(parse_qsl(urlsplit(draw(SERVICE, kind, seed).path).query))
    first, last = question["INITIAL_DATE"], question["FINAL_DATE"]
    assert f"= {question['OP_CARRIER_AIRLINE_ID']} " in statement
    assert f"BETWEEN '{first}' AND '{last}'" in statement
    assert FLIGHTS.first_day.isoformat() <= first <= last <= FLIGHTS.last_day.isoformat()


def test_a_flight_is_written_with_every_character_and_without_what_is_not_known() -> None:
    assert draw(INDEXED, WRITE, 1).body == (
        "INSERT INTO flights (FL_DATE, ORIGIN_CITY_NAME, DEP_DELAY) "
        "VALUES ('2015-01-01', 'O\\'Hare \\\\', NULL)"
    )
    posted = draw(SERVICE, WRITE, 1)
    assert posted.path == "/transactions"
    assert json.loads(posted.body) == FLIGHTS.new


@given(st.floats(0.001, 1), st.floats(0.001, 1), st.floats(0.0001, 1))
def test_a_line_through_exact_times_is_found_again(base: float, rows: float, passed: float) -> None:
    known_sizes = [(1.0, float(n), float((7 * n) % 11)) for n in range(12)]
    times_s = [base + rows * n + passed * k for _, n, k in known_sizes]
    line_s, r2 = line_through(times_s, known_sizes)
    assert r2 == pytest.approx(1)
    assert line_s == pytest.approx((base, rows, passed), rel=1e-6)


def test_no_line_where_nothing_varies_or_little_is_explained() -> None:
    assert line_through([1.0, 2.0], [(1.0,), (1.0,)]) == ((), None)
    assert line_through([1.0, 2.0, 3.0], [(1.0, 5.0)] * 3) == ((), None)
    noise = [1.0, 2.0, 1.0, 2.0, 1.0, 2.0]
    assert line_through(noise, [(1.0, float(n)) for n in (0, 0, 1, 1, 2, 2)]) == ((), None)


def test_a_request_alone_takes_what_its_line_says_or_what_was_asked_for() -> None:
    by_rows = Arrival(0, 0.0, AVERAGE, "/flights", body="SELECT * LIMIT 2000 OFFSET 10000")
    along = Alone((0.5,), line_s=(0.01, 0.001, 0.0001), r2=1.0)
    assert along.expected_s(by_rows) == pytest.approx(0.01 + 0.002 + 0.001)
    asleep = Arrival(0, 0.0, "known", "/", 0.25)
    assert Alone((0.5,), overhead_s=0.002).expected_s(asleep) == pytest.approx(0.252)
    write = Arrival(0, 0.0, WRITE, "/")
    assert Alone((0.5, 0.7)).expected_s(write) == pytest.approx(0.6)


def test_what_the_line_leaves_unexplained_is_drawn_and_not_replaced_by_its_mean() -> None:
    alone = Alone((0.1, 0.3), left_s=(-0.1, 0.1))
    drawn_s = alone.draw_s([Arrival(0, 0.0, WRITE, "/")] * 1000, Random(1))
    assert {round(time_s, 6) for time_s in drawn_s} == {0.1, 0.3}
    assert sum(drawn_s) / 1000 == pytest.approx(0.2, abs=0.02)


def one_run(responses_s: Sequence[float], rate_per_s: float, system: str = SERVICE) -> OneRun:
    """A run of requests of 0.1 s of service at one server."""
    schedule = [Arrival(i, i / rate_per_s, "known", "/", 0.1) for i in range(len(responses_s))]
    line = PointLine("r", system, "known", "load", 1, "load", 1, rate_per_s, 0.1, len(responses_s))
    alone = Alone((0.1, 0.1), overhead_s=0.0, left_s=(0.0, 0.0))
    return OneRun(line, schedule, responses_s, alone)


def point(
    responses_s: Sequence[float], rate_per_s: float, system: str = SERVICE, *, runs: int = 1
) -> Point:
    """Equal runs of one server."""
    return Point([one_run(responses_s, rate_per_s, system)] * runs)


def test_a_run_that_is_a_queue_agrees_with_it_and_one_that_is_not_does_not() -> None:
    alone = point([0.1] * 40, 5.0)
    assert alone.queued.verdict is Verdict.AGREES
    slow = point([0.3] * 40, 5.0)
    assert slow.queued.verdict is Verdict.DISAGREES
    none, some, slower = (
        client_server.report(points, [], []) for points in ([], [alone], [alone, slow])
    )
    assert none.findings == [client_server.NONE_COUNTS]
    assert "1 agree, 0 disagree" in some.findings[0]
    assert "1 agree, 1 disagree" in slower.findings[0]
    assert (none.failure, some.failure) == (client_server.NONE_COUNTS, "")
    drawn = {series.name: series for series in client_server.curves([alone], lambda _: 1)}
    for name in ("measured", "replay, m servers"):
        assert drawn[name].ys == pytest.approx([100.0])
    names = [metric.name for metric in client_server.metrics([slow])]
    assert names == ["response_time_mean[r]", "paired_difference[r]"]


def recorded(folder: Path, rejected: str) -> Results:
    """Two repetitions, each of a run alone and one under load, of which one was rejected."""
    results = results_of("request-rate", folder)
    (folder / SCHEDULES).mkdir()
    names = [f"{role}-{rep}" for rep in (1, 2) for role in (ALONE, LOAD)]
    with results.table(POINTS, PointLine) as table:
        for name in names:
            role, rep = name.split("-")
            table.add(PointLine(name, SERVICE, KNOWN, role, 1, role, int(rep), 5.0, 0.1, 40))
            schedule = [Arrival(n, n / 5, KNOWN, "/", 0.1) for n in range(40)]
            save(folder / SCHEDULES / f"{name}.csv", schedule)
    rows = [
        Row(name, n, KNOWN, n / 5, n / 5, None, n / 5 + 0.1, None, 200, "")
        for name in names
        for n in range(40)
    ]
    keep(results, rows)
    judge(results, {name: name != rejected for name in names})
    return results


def test_runs_count_with_their_service_times_alone(tmp_path: Path) -> None:
    for rejected, loads in (("alone-1", ["load-2"]), ("load-1", ["load-2"])):
        alone, load = points(recorded(tmp_path / rejected, rejected))
        assert [run.line.run for run in load.runs] == loads
        assert len(alone.runs) == 2 - (rejected == "alone-1")


def test_a_report_without_a_load_that_counts_is_a_failure() -> None:
    alone = point([0.1] * 40, 5.0)
    alone = Point([replace(run, line=replace(run.line, role=ALONE)) for run in alone.runs])
    report = client_server.report([alone], ["A finding."], [])
    assert report.findings == [report.failure, "A finding."]
    assert report.failure == "No run under load counts, so no model is judged."


def test_a_caption_does_not_repeat_a_finding() -> None:
    system = [point([0.1] * 40, 5.0), point([0.1] * 40, 2.0)]
    (finding,) = client_server.SENTENCES("request_rate", curves=[system])
    assert ": 100 ms alone, 100 ms at λ = 5/s" in finding
    assert "100 ms" not in rate_figure("Figure 2", system).caption


def test_near_saturation_one_run_decides_nothing() -> None:
    busy = 0.9 / KNOWN_SERVICE_TIME_S
    assert point([0.3] * 40, busy).queued.verdict is Verdict.NOT_DECIDED
    assert point([0.3] * 40, busy).response.ends == (None, None)
    several = point([0.3] * 40, busy, runs=LEAST_NEAR_SATURATION)
    assert several.queued.verdict is Verdict.DISAGREES
    assert several.response.ends != (None, None)


def test_an_error_of_the_service_time_widens_the_interval_of_a_single_run() -> None:
    sure = one_run([0.1] * 40, 5.0)
    unsure = replace(sure, alone=replace(sure.alone, left_s=(-0.01, 0.01) * 20))
    assert sure.replayed(ONE)[1] == pytest.approx(0)
    error = confidence_interval(unsure.alone.left_s).half_width / unsure.alone.mean_s
    assert unsure.replayed(ONE)[1] == pytest.approx(error * 0.1, rel=0.3)
    narrow, wide = (Point([run]).queued.difference for run in (sure, unsure))
    assert wide.half_width > narrow.half_width


def test_more_work_than_servers_can_do_has_no_steady_state_and_is_told_in_words() -> None:
    busy, idle = point([0.1] * 40, 30.0), point([0.1] * 40, 5.0)
    assert (busy.steady_s(), busy.steady_s(0.5)) == (None, None)
    (sentence,) = client_server.report([busy, idle], [], []).sections[0].paragraphs
    assert sentence.startswith("No steady state: in r (χ = 1.20) more work arrives")


@pytest.mark.parametrize(("service_s", "highest_per_s"), [(0.04, 0.9 * 3 / 0.04), (0.001, 400.0)])
def test_rates_keep_their_order_and_what_the_generator_was_proven_to_send(
    service_s: float, highest_per_s: float, tmp_path: Path
) -> None:
    errors_s = {50.0: 0.0, 400.0: 0.0, 800.0: 0.01}
    with Results(tmp_path).more(CHECK, CheckLine) as table:
        for rate_per_s, error_s in errors_s.items():
            table.add(CheckLine("generator-1", rate_per_s, 9, error_s, 0.0, 0.0, 0.0))
    pairs = rates(FULL_SHARES, Results(tmp_path), KNOWN, service_s, 3)
    shares, rates_per_s = zip(*pairs, strict=True)
    assert [float(share) for share in shares] == list(FULL_SHARES)
    assert list(rates_per_s) == sorted(set(rates_per_s))
    assert max(rates_per_s) == pytest.approx(highest_per_s)


def test_late_sending_rejects_a_load_and_not_a_run_whose_times_count_from_sending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(_: Generator, target: Target, schedule: Sequence[Arrival], run: str) -> RunRecord:
        rows = [
            Row(run, n, "known", 0.0, 0.01 * n, None, 0.01 * n + 0.04, None, 200, "")
            for n in range(len(schedule))
        ]
        return RunRecord(run, "open", tuple(rows), (), len(rows))

    before = Calibration("before", 9, 0.04, 0.0, None, [0.04] * 9)
    monkeypatch.setattr(Generator, "calibrate", lambda *_, **__: before)
    monkeypatch.setattr(Generator, "open", late)
    monkeypatch.setattr(generation_run, "judge", rules.judge)
    results = results_of("request-rate", tmp_path)
    whole = Run(Options(), results, tmp_path, lambda text: None)
    plan = Plan(calibration=2, load=20, alone=20, alone_s=60)
    with measuring(whole, plan, [1], lambda *_: [("0.5", 12.5)]) as systems:
        systems.measure(KNOWN, already(Site("http://nowhere")))
    reasons = {line["run"].split("-")[2]: line["reasons"] for line in results.rows("runs")}
    assert reasons["alone"] == ""
    assert reasons["0.5"].startswith("dispatch_lag_mean ")


@pytest.mark.long
def test_systems_are_measured_and_their_tables_reported_twice(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(client_server, "QUICK", Plan(calibration=2, alone=4, load=24, alone_s=0.5))
    monkeypatch.setattr(client_server, "QUICK_KINDS", ())
    monkeypatch.setattr(client_server_measurements, "QUICK_FLIGHTS", 3000)
    for name, kinds in {POSITION: (SELECT,), INDEXED: (), SERVICE: ()}.items():
        templates = {kind: SYSTEMS[name].templates[kind] for kind in kinds}
        monkeypatch.setitem(SYSTEMS, name, replace(SYSTEMS[name], templates=templates))
    folder = tmp_path / "results"
    run(REQUEST_RATE, Options(quick=True), folder, lambda text: None)
    results, report = Results(folder), (folder / "report.html").read_text(encoding="utf-8")
    analyse(results)
    assert (folder / "report.html").read_text(encoding="utf-8") == report  # of the files alone
    assert {row["status"] for row in results.rows("requests")} == {"200"}
    points = results.rows("points")
    assert len(points) == 4
    assert ("mariadb-position", "load", "24") in {
        (row["system"], row["role"], row["arrivals"]) for row in points
    }
    with (folder / "schedules" / "mariadb-position-select-0.8-rep01.csv").open() as file:
        statements = [row["body"] for row in csv.DictReader(file)]
    assert len(statements) == 24
    assert all(text.startswith("SELECT * FROM flights LIMIT ") for text in statements)
    assert "Figure 1: each type of request" in report
    assert "Figure 3: MariaDB, as in the study, select" in report
    assert "(1 − χ)² m!" in report  # of what the study prints wrong
    by_servers = client_server.analyse_threads(results).sections[0]
    assert len(by_servers.parts) == len({row["system"] for row in points})
