"""Runs from an experiment: real Locust, a server of known service time, what the folder keeps."""

import csv
import signal
import subprocess
import sys
from itertools import islice, pairwise
from math import nan
from pathlib import Path
from random import Random

import pytest

from loadtests import machine_samples
from loadtests.generation.calibration import WARM_UP
from loadtests.generation.rows import Row, closed_window, customer_of, number_of, read_rows
from loadtests.generation.rules import judge
from loadtests.generation.run import Generator, RunRecord, append_verdict
from loadtests.generation.schedule import (
    Arrival,
    Request,
    arrivals,
    demanded,
    gamma_demands,
    load,
    mixed,
)
from loadtests.models.random_times import deterministic_times, poisson_times
from loadtests.process_table import family
from loadtests.processes import PROJECT, ProgramFailed, Service, Site, free_port
from loadtests.tables import TableError
from tests.loadtests.generation.conftest import QUICK, QUICK_S, WITHIN_S, until


def listed_in(folder: Path) -> list[dict[str, str]]:
    with (folder / "runs.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_an_open_run_keeps_every_arrival_at_its_intended_time(
    threads: Service, tmp_path: Path
) -> None:
    random, messages = Random(21), list[str]()
    times_s = poisson_times(40, random, until_s=1.2)
    schedule = arrivals(times_s, demanded(gamma_demands(QUICK_S, 0.3, random)))
    record = Generator(tmp_path, say=messages.append).open(threads, schedule, "open-1")
    rows = sorted(record.rows, key=lambda row: row.index)
    assert [row.index for row in rows] == [arrival.index for arrival in schedule]
    assert [row.intended_s for row in rows] == pytest.approx(times_s, abs=2e-6)
    for row, arrival in zip(rows, schedule, strict=True):
        assert (row.status, row.kind, row.run) == (200, "known", "open-1")
        assert row.server_start_s is not None
        assert row.service_s is not None
        assert arrival.demand_s is not None
        assert row.intended_s <= row.sent_s + 1e-6
        assert row.sent_s <= row.server_start_s <= row.done_s
        assert row.server_start_s + row.service_s <= row.done_s + 2e-6
        assert int(row.worker) in family(threads.pid)
    asked_s, served_s = (
        sum(arrival.demand_s or nan for arrival in schedule),
        sum(row.service_s or nan for row in rows),
    )
    assert served_s > 0.5 * asked_s
    assert load(tmp_path / "schedules" / "open-1.csv") == schedule
    assert read_rows(tmp_path / "requests.csv") == list(record.rows)
    assert machine_samples.read(tmp_path / "samples.csv").keys() == {"open-1"}
    assert record.facts().scheduled == len(schedule) == record.facts().requests
    with pytest.raises(ValueError, match=r"open-1 is in .* already"):
        Generator(tmp_path).open(threads, schedule, "open-1")


def test_a_slow_server_does_not_slow_the_arrivals(fcfs: Service, tmp_path: Path) -> None:
    slow = [Request("known", "/?service_s=0.2", 0.2)] * 10
    schedule = arrivals(deterministic_times(50, count=10), slow)
    record = Generator(tmp_path).open(fcfs, schedule, "slow")
    rows = sorted(record.rows, key=lambda row: row.index)
    assert rows[-1].sent_s < sorted(row.done_s for row in rows)[7], "8 took 1.6 s, arrivals 0.2 s"
    assert rows[-1].open_response_s > 5 * 0.2, "the last has waited for those before it"
    assert sum(row.service_s or 0 for row in rows) <= max(row.done_s for row in rows)


def test_failures_are_rows_and_the_run_is_rejected(threads: Service, tmp_path: Path) -> None:
    paths = ["/?service_s=0", "/?service_s=0&status=503", "/nowhere", "/?service_s=soon"]
    schedule = [Arrival(n, 0.05 * n, "known", path) for n, path in enumerate(paths)]
    record = Generator(tmp_path).open(threads, schedule, "failing")
    statuses = {row.index: row.status for row in record.rows}
    assert statuses == {0: 200, 1: 503, 2: 404, 3: 500}
    verdict = judge(record.facts())
    assert "failed_requests 75 %" in verdict.reasons
    append_verdict(tmp_path, record, verdict)
    (listed,) = listed_in(tmp_path)
    assert (listed["run"], listed["accepted"], listed["requests"]) == ("failing", "no", "4")
    assert listed["reasons"] == verdict.reasons
    assert listed["failed_requests (% of the requests)"] == "75"


def test_nobody_there_is_a_run_of_failures(tmp_path: Path) -> None:
    schedule = [Arrival(n, 0.01 * n, "known", "/") for n in range(3)]
    nowhere = Site(f"http://127.0.0.1:{free_port()}")
    record = Generator(tmp_path).open(nowhere, schedule, "alone")
    assert [row.status for row in record.rows] == [0, 0, 0]
    assert record.samples[0].server_cpu is None


def test_a_closed_run_never_has_more_in_flight_than_customers(
    threads: Service, tmp_path: Path
) -> None:
    choices = {
        kind: [Request(kind, f"/?service_s={demand_s}")]
        for kind, demand_s in (("a", 0.01), ("b", 0.02), ("c", 0.005))
    }
    record = Generator(tmp_path, seed=7).closed(
        threads, choices, "closed-4", customers=4, think_s=0.01, requests=25, warm_up=5
    )
    rows = record.rows
    assert len(rows) == 4 * 30
    for row in rows:
        assert sum(other.sent_s <= row.sent_s < other.done_s for other in rows) <= 4
    for customer in range(4):
        own = sorted((row for row in rows if customer_of(row) == customer), key=number_of)
        assert [number_of(row) for row in own] == list(range(30))
        for row, after in pairwise(own):
            assert after.sent_s - row.done_s >= 0.01 - 2e-6, "the think time"
        drawn = islice(mixed(choices, Random(f"7/{customer}")), 30)
        assert [row.kind for row in own] == [request.kind for request in drawn]
    window = closed_window(rows, warm_up=5)
    assert window.customers == 4
    assert all(number_of(row) >= 5 for row in window.rows)
    assert record.facts().scheduled is None


def test_a_closed_run_for_a_time_ends(threads: Service, tmp_path: Path) -> None:
    record = Generator(tmp_path).closed(
        threads, QUICK, "timed", customers=2, think_s=0.01, duration_s=1.5
    )
    assert record.rows
    assert {customer_of(row) for row in record.rows} <= {0, 1}
    assert max(row.intended_s for row in record.rows) <= 1.5 + 0.01


def test_a_calibration_sees_more_than_the_handler(fcfs: Service, tmp_path: Path) -> None:
    calibration = Generator(tmp_path).calibrate(fcfs, QUICK, "before", requests=20)
    assert calibration.requests == 20
    assert calibration.overhead_s is not None
    assert calibration.overhead_s > 0
    assert calibration.mean_s > 0.5 * QUICK_S
    assert len(read_rows(tmp_path / "requests.csv", "before")) == 20 + WARM_UP


def test_a_calibration_of_failures_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = [Row("r", n, "k", 0.0, 0.0, None, 0.1, None, 500, "") for n in range(12)]
    record = RunRecord("before", "closed", tuple(failed), (), None)
    monkeypatch.setattr(Generator, "closed", lambda *given, **named: record)
    with pytest.raises(
        ProgramFailed, match=r"12 of 12 requests .* the first of them was answered 500\."
    ):
        Generator(tmp_path).calibrate(Site("http://x"), QUICK, "before", requests=2)


INTERRUPTED = """
import sys
from pathlib import Path
from loadtests.generation.run import Generator
from loadtests.generation.schedule import Request, arrivals
from loadtests.models.random_times import deterministic_times
from loadtests.process_table import family
from loadtests.processes import Site

schedule = arrivals(deterministic_times(20, count=9999), [Request("k", "/?service_s=0.01")] * 9999)
try:
    Generator(Path(sys.argv[2])).open(Site(sys.argv[1]), schedule, "cut")
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_ctrl_c_keeps_the_rows_ends_locust_and_lists_the_run(
    threads: Service, tmp_path: Path
) -> None:
    raw = tmp_path / "requests.csv"
    experiment = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, threads.url, tmp_path], cwd=PROJECT
    )
    try:
        until(lambda: raw.exists() and len(read_rows(raw)) >= 5)
        both = family(experiment.pid)
        assert len(both) == 2
        experiment.send_signal(signal.SIGINT)
        assert experiment.wait(WITHIN_S) == 130
    finally:
        experiment.kill()
        experiment.wait()
    until(lambda: not Path(f"/proc/{both[1]}").exists())
    rows = read_rows(raw)
    assert len(rows) >= 5
    (listed,) = listed_in(tmp_path)
    assert (listed["run"], listed["accepted"]) == ("cut", "no")
    assert "did not come to its end" in listed["reasons"]
    assert int(listed["requests"]) == len(rows)


@pytest.mark.parametrize("run", ["", "a b", "../a", "-a"])
def test_a_run_needs_a_plain_name(tmp_path: Path, run: str) -> None:
    with pytest.raises(ValueError, match="letters, digits"):
        Generator(tmp_path).open(Site("http://x"), [Arrival(0, 0, "k", "/")], run)


@pytest.mark.parametrize("table", ["requests", "samples", "runs"])
def test_a_folder_whose_tables_have_other_columns_is_refused_before_the_run(
    tmp_path: Path, table: str
) -> None:
    (tmp_path / f"{table}.csv").write_text("run,disk\r\n")
    with pytest.raises(TableError, match=rf"{table}\.csv has other columns than .*; begin anew"):
        Generator(tmp_path).open(Site("http://127.0.0.1:1"), [Arrival(0, 0.0, "k", "/")], "r")
    assert not (tmp_path / "locust.log").exists()


def test_what_locust_refuses_is_said(tmp_path: Path) -> None:
    schedule = [Arrival(0, 0.0, "k", "no-slash")]
    with pytest.raises(ProgramFailed, match="path 'no-slash' does not begin with /"):
        Generator(tmp_path).open(Site("http://127.0.0.1:1"), schedule, "r")
    with pytest.raises(ValueError, match="either requests or duration_s"):
        Generator(tmp_path).closed(Site("http://x"), QUICK, "s", customers=1)
