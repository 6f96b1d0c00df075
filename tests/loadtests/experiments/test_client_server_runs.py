"""One of three experiments from end to end with a real MariaDB, and the reports of all three."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from loadtests.experiments import client_server_systems as systems
from loadtests.experiments import request_rate, running, server_threads
from loadtests.experiments.client_server_measurements import Plan
from loadtests.experiments.client_server_systems import (
    INDEXED,
    POSITION,
    SELECT,
    SERVICE,
    SYSTEMS,
)
from loadtests.experiments.running import run
from loadtests.lab.experiment import Experiment, Mode, Options
from loadtests.lab.results import Results

SMALL = Plan(calibration=2, alone=4, load=24, alone_s=0.5)


def only(monkeypatch: pytest.MonkeyPatch, kinds: Mapping[str, Sequence[str]]) -> None:
    """Let systems be asked for these types alone."""
    for name, chosen in kinds.items():
        system = SYSTEMS[name]
        templates = {kind: system.templates[kind] for kind in chosen}
        monkeypatch.setitem(SYSTEMS, name, replace(system, templates=templates))


def done(experiment: Experiment, folder: Path) -> tuple[Results, str]:
    """Run it, and make its report once more from the files alone."""
    run(experiment, Options(Mode.REAL, quick=True), folder, lambda text: None)
    results = Results(folder)
    report = (folder / "report.html").read_text(encoding="utf-8")
    running.analyse(results)
    assert (folder / "report.html").read_text(encoding="utf-8") == report
    return results, report


def small(monkeypatch: pytest.MonkeyPatch, module: object) -> None:
    monkeypatch.setattr(module, "QUICK", SMALL)
    monkeypatch.setattr(systems, "QUICK_FLIGHTS", 3000)


def succeeded(results: Results) -> bool:
    rows = results.rows("requests")
    return bool(rows) and {row["status"] for row in rows} <= {"200", "202"}


@pytest.mark.long
def test_request_rate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    small(monkeypatch, request_rate)
    monkeypatch.setattr(request_rate, "QUICK_KINDS", ())
    only(monkeypatch, {POSITION: (SELECT,), INDEXED: (), SERVICE: ()})
    results, report = done(request_rate.EXPERIMENT, tmp_path / "one")
    assert succeeded(results)
    roles = [(row["system"], row["role"], row["arrivals"]) for row in results.rows("points")]
    assert ("mariadb-position", "load", "24") in roles
    assert len(roles) == 4
    with (results.folder / "schedules" / "mariadb-position-select-0.8-rep01.csv").open() as file:
        statements = [row["body"] for row in csv.DictReader(file)]
    assert len(statements) == 24
    assert all(text.startswith("SELECT * FROM flights LIMIT ") for text in statements)
    assert "Figure 1: each type of request" in report
    assert "Figure 3: MariaDB, as in the study, select" in report
    by_servers = server_threads.analyse(results)
    assert len(by_servers.sections[0].parts) == len(
        {row["system"] for row in results.rows("points")}
    )
    assert "(1 − χ)² m!" in report  # of what the study prints wrong
