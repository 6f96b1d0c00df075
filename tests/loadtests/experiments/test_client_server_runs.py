"""Runs `request-rate` from end to end with a real MariaDB, and reports its tables twice."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from loadtests.experiments import client_server_systems as systems
from loadtests.experiments import request_rate, server_threads
from loadtests.experiments.client_server_measurements import Plan
from loadtests.experiments.client_server_systems import (
    INDEXED,
    POSITION,
    SELECT,
    SERVICE,
    SYSTEMS,
)
from loadtests.experiments.running import analyse, run
from loadtests.lab.experiment import Mode, Options
from loadtests.lab.results import Results


@pytest.mark.long
def test_request_rate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(request_rate, "QUICK", Plan(calibration=2, alone=4, load=24, alone_s=0.5))
    monkeypatch.setattr(request_rate, "QUICK_KINDS", ())
    monkeypatch.setattr(systems, "QUICK_FLIGHTS", 3000)
    for name, kinds in {POSITION: (SELECT,), INDEXED: (), SERVICE: ()}.items():
        templates = {kind: SYSTEMS[name].templates[kind] for kind in kinds}
        monkeypatch.setitem(SYSTEMS, name, replace(SYSTEMS[name], templates=templates))
    folder = tmp_path / "results"
    run(request_rate.EXPERIMENT, Options(Mode.REAL, quick=True), folder, lambda text: None)
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
    by_servers = server_threads.analyse(results).sections[0]
    assert len(by_servers.parts) == len({row["system"] for row in points})
