"""One customer against a server of known service time: rows, and what counts."""

from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import pytest

from loadtests.generation.schedule import Request
from loadtests.lab.one_customer import Recorded, measure_alone, recorded
from loadtests.lab.results import Line, Results
from loadtests.processes import HOST, ProgramFailed, Service, free_port
from loadtests.servers.gunicorn import FCFS
from loadtests.servers.known import known_server

SERVICE_S = 0.01
ASKED = Request("known", f"/?service_s={SERVICE_S}")


@dataclass(frozen=True)
class Listed(Line):
    """A run that a table lists."""

    run: str
    warm_up: int


def runs_of(results: Results, **warm_ups: int) -> dict[str, Recorded[Listed]]:
    """The completed runs of a table of these runs, by name."""
    with results.table("listed", Listed) as table:
        for run, warm_up in warm_ups.items():
            table.add(Listed(run, warm_up))
    return {run.line.run: run for run in recorded(results, "listed", Listed)}


def test_what_is_asked_is_written_down_with_what_the_server_said(tmp_path: Path) -> None:
    results = Results(tmp_path)
    with known_server(FCFS, tmp_path / "log") as server:
        rows = measure_alone(results, server, "one", repeat(ASKED), warm_up=2, least=5)
        measure_alone(results, server, "long", repeat(ASKED), least=1, least_s=0.2)
    assert len(rows) == 7
    assert [row.status for row in rows] == [200] * 7
    runs = runs_of(results, one=2, long=0, never=1)
    assert set(runs) == {"one", "long"}
    run = runs["one"]
    assert [row.index for row in run.rows] == [row.index for row in rows[2:]]
    for row in run.rows:
        assert row.closed_response_s >= (row.service_s or 0) > 0
    assert sum(runs["long"].times_s) >= 0.199  # of two rounded times each
    assert {row["run"] for row in results.rows("runs")} == {"one", "long"}


def test_failures_reject_a_run_and_do_not_count(tmp_path: Path) -> None:
    results = Results(tmp_path)
    with known_server(FCFS, tmp_path / "log") as server:
        failing = Request("known", "/?service_s=0&status=503")
        rows = measure_alone(results, server, "one", [ASKED, failing, ASKED], least=3)
    assert [row.status for row in rows] == [200, 503, 200]
    run = runs_of(results, one=0)["one"]
    assert len(run.rows) == 2
    assert not run.is_accepted
    assert "failed_requests" in results.rows("runs")[0]["reasons"]


def test_a_server_that_is_not_there_is_a_row_without_status(tmp_path: Path) -> None:
    gone = Service(f"http://{HOST}:{free_port()}", pid=1)
    assert HOST in gone.url
    refused = pytest.raises(ProgramFailed, match="one: no request of 1 succeeded, the last wi")
    with refused:
        measure_alone(Results(tmp_path), gone, "one", [ASKED])
    assert [row["status"] for row in Results(tmp_path).rows("requests")] == ["0"]
    assert runs_of(Results(tmp_path), one=0) == {}
