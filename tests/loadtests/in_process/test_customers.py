"""Clients inside the ledger's process: what a step does, and what is left of a run."""

import csv
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
from loadtests.in_process.customers import (
    COLUMNS,
    Interaction,
    Row,
    Step,
    do,
    interactions_in,
    main,
    measured,
)
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
    with closing(Ledger(world.settings, print)) as found:
        yield found


def interactions(path: Path, *made: Interaction) -> Path:
    """A file of them."""
    lines = [
        {
            "customer": one.customer,
            "kind": one.kind,
            "steps": [
                {"kind": s.kind, "method": s.method, "path": s.path, "body": s.body, "until": ""}
                for s in one.steps
            ],
        }
        for one in made
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


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
    ("step", "said"),
    [
        (Step("x", "GET", "/metrics"), "GET /metrics is none of"),
        (Step("x", "POST", "/transactions?mode=commit", "{}"), "added with mode=sync here"),
    ],
)
def test_what_is_not_for_here_ends_it(ledger: Ledger, step: Step, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        do(ledger, step)
    with pytest.raises(ValueError, match=said):
        measured(ledger, [[Interaction(0, "k", [step])]], Event())


def test_each_customer_does_its_own_in_turn(ledger: Ledger) -> None:
    look = Step("tip", "GET", "/tip")
    sequences = [[Interaction(c, "k", [look, ADD]) for _ in range(3)] for c in range(4)]
    rows = measured(ledger, sequences, Event())
    assert ledger.pending_count() == 12
    for customer in range(4):
        own = [row for row in rows if row.customer == customer]
        assert [(row.interaction, row.step) for row in own] == [
            (n, step) for n in range(3) for step in range(2)
        ]
        times = [time for row in own for time in (row.sent_s, row.done_s)]
        assert times == sorted(times)


def test_nothing_follows_a_step_that_failed(ledger: Ledger) -> None:
    refused = Step("no", "GET", "/flight_counter?x=1")
    rows = measured(ledger, [[Interaction(0, "k", [refused, ADD])] * 2], Event())
    assert [(row.step_kind, row.succeeded) for row in rows] == [("no", 0)] * 2
    assert ledger.pending_count() == 0


def test_nobody_begins_once_it_is_to_stop(ledger: Ledger) -> None:
    stop = Event()
    stop.set()
    assert measured(ledger, [[Interaction(0, "k", [ADD])]], stop) == []


def test_the_program_leaves_rows_and_facts_of_a_ledger_that_is_mined(folder: Path) -> None:
    world_in(folder)
    given = interactions(
        folder.parent / "given.jsonl",
        *(Interaction(customer, "k", [ADD]) for customer in range(2) for _ in range(50)),
    )
    rows, facts = folder.parent / "rows.csv", folder.parent / "facts.json"
    command = [sys.executable, "-m", CUSTOMERS, *map(str, (given, rows, facts))]
    with serving(folder):
        process = subprocess.Popen(command, cwd=ROOT, env=environment(folder))
        assert process.wait(60) == 0
    with rows.open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    assert tuple(found[0]) == COLUMNS == Row.__slots__
    assert len(found) == 100
    assert json.loads(facts.read_bytes())["cpu_s"] > 0


def test_sigterm_keeps_what_was_measured(folder: Path) -> None:
    world_in(folder)
    given = interactions(
        folder.parent / "given.jsonl", *[Interaction(0, "k", [ADD]) for _ in range(30_000)]
    )
    rows, facts = folder.parent / "rows.csv", folder.parent / "facts.json"
    command = [sys.executable, "-m", CUSTOMERS, *map(str, (given, rows, facts))]
    with serving(folder) as service:
        process = subprocess.Popen(command, cwd=ROOT, env=environment(folder))
        until(lambda: service.get("/tip").json()["pending"] >= 5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert 5 < len(rows.read_text(encoding="utf-8").splitlines()) < 30_000


def test_a_file_without_interactions_and_wrong_usage_are_named(folder: Path) -> None:
    empty = folder.parent / "empty"
    empty.write_text("")
    with pytest.raises(ValueError, match="holds no interactions"):
        interactions_in(empty)
    with pytest.raises(ValueError, match=r"usage: python -m loadtests\.in_process\.customers"):
        main(["one"])
