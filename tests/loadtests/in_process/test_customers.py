"""Clients inside the ledger's process: what a step does, and what is left of a run."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from backend.base.errors import FlightchainError
from backend.ledger.ledger import Ledger
from loadtests.generation.interactions import Interaction, Step, interaction_of, save, step_of
from loadtests.generation.rows import read_rows
from loadtests.in_process.customers import do, measured
from tests.api.processes import ROOT, environment, serving, until
from tests.api.worlds import GOOD, World, world_in

pytestmark = pytest.mark.slow

CUSTOMERS = "loadtests.in_process.customers"
COUNT = (
    "/flight_counter?ORIGIN_CITY_NAME=A%2C+NY&DEST_CITY_NAME=B%2C+IL"
    "&INITIAL_DATE=2013-01-01&FINAL_DATE=2013-01-31"
)
ADD = Step("add", "POST", "/transactions?mode=sync", json.dumps(GOOD))


@pytest.fixture
def world(folder: Path) -> World:
    return world_in(folder)


@pytest.fixture
def ledger(world: World) -> Iterator[Ledger]:
    with closing(Ledger(world.settings, print)) as ledger:
        yield ledger


@pytest.mark.parametrize(
    "path",
    [
        "/tip",
        COUNT,
        "/filter_transactions?OP_CARRIER_FL_NUM=1&FL_DATE=2013-01-01",
        "/average_delays?OP_CARRIER_AIRLINE_ID=1&INITIAL_DATE=2013-01-01&FINAL_DATE=2013-01-02",
    ],
)
def test_a_question_is_asked_and_changes_nothing(ledger: Ledger, path: str) -> None:
    do(ledger, Step("ask", "GET", path))
    assert ledger.pending_count() == 0


def test_flights_are_added(ledger: Ledger) -> None:
    do(ledger, ADD)
    assert ledger.pending_count() == 1
    lines = "\n".join([json.dumps(GOOD)] * 5)
    do(ledger, Step("add-5", "POST", "/transactions/batch?mode=sync", lines))
    assert ledger.pending_count() == 6


@pytest.mark.parametrize(
    "step",
    [
        Step("ask", "GET", COUNT.replace("FINAL_DATE", "LAST_DATE")),
        Step("ask", "GET", COUNT.replace("2013-01-31", "2012-01-31")),
        Step("add", "POST", "/transactions?mode=sync", '{"YEAR": 1}'),
        Step("add", "POST", "/transactions/batch?mode=sync", '{"YEAR": 1}\n'),
    ],
)
def test_what_http_would_refuse_is_refused(ledger: Ledger, step: Step) -> None:
    with pytest.raises(FlightchainError):
        do(ledger, step)
    assert ledger.pending_count() == 0


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Step("x", "GET", "/metrics"), "GET /metrics is none of"),
        (Step("x", "POST", "/transactions?mode=commit", "{}"), "added with mode=sync here"),
    ],
)
def test_what_is_not_for_here_ends_it(ledger: Ledger, step: Step, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        do(ledger, step)
    with pytest.raises(ValueError, match=message):
        measured(ledger, "r", [[Interaction("k", (step,))]], Event())


def test_each_customer_does_its_own_in_turn(ledger: Ledger) -> None:
    look = Step("tip", "GET", "/tip")
    rows = measured(ledger, "r", [[Interaction("k", (look, ADD))] * 3] * 4, Event())
    assert ledger.pending_count() == 12
    for customer in range(4):
        own = [row for row in rows if interaction_of(row)[0] == customer]
        assert [(interaction_of(row)[1], step_of(row)) for row in own] == [
            (n, step) for n in range(3) for step in range(2)
        ]
        times = [time for row in own for time in (row.sent_s, row.done_s)]
        assert times == sorted(times)


def test_nothing_follows_a_step_that_failed(ledger: Ledger) -> None:
    refused = Step("no", "GET", "/flight_counter?x=1")
    rows = measured(ledger, "r", [[Interaction("k", (refused, ADD))] * 2], Event())
    assert [(row.kind, row.succeeded) for row in rows] == [("k:no", False)] * 2
    assert ledger.pending_count() == 0


def test_nobody_begins_once_it_is_to_stop(ledger: Ledger) -> None:
    stop = Event()
    stop.set()
    assert measured(ledger, "r", [[Interaction("k", (ADD,))]], stop) == []


def files(folder: Path) -> tuple[Path, Path, Path]:
    """Where interactions, rows and facts are."""
    return folder / "given.jsonl", folder / "rows.csv", folder / "facts.json"


def test_the_program_leaves_rows_and_facts_of_a_ledger_that_is_mined(folder: Path) -> None:
    world_in(folder)
    given, rows, facts = files(folder.parent)
    save(given, [[Interaction("k", (ADD,))] * 50] * 2)
    command = [sys.executable, "-m", CUSTOMERS, "r", *map(str, (given, rows, facts))]
    with serving(folder):
        process = subprocess.Popen(command, cwd=ROOT, env=environment(folder))
        assert process.wait(60) == 0
    assert len(read_rows(rows, "r")) == 100
    assert json.loads(facts.read_bytes())["cpu_s"] > 0


def test_sigterm_keeps_what_was_measured(folder: Path) -> None:
    world_in(folder)
    given, rows, facts = files(folder.parent)
    save(given, [[Interaction("k", (ADD,))] * 10_000])
    command = [sys.executable, "-m", CUSTOMERS, "r", *map(str, (given, rows, facts))]
    with serving(folder) as service:
        process = subprocess.Popen(command, cwd=ROOT, env=environment(folder))
        until(lambda: service.get("/tip").json()["pending"] >= 5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert 5 < len(rows.read_text(encoding="utf-8").splitlines()) < 10_000
