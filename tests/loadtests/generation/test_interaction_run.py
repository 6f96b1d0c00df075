"""Interactions over HTTP with Locust: from an experiment, and by hand."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from loadtests.generation.interactions import Interaction, Step, by_interaction, whole
from loadtests.generation.rows import Row, read_rows
from loadtests.generation.run import Generator
from loadtests.processes import Service, Site, running
from loadtests.scenarios import STEPS, mixed_interactions
from tests.http_servers import Handler, served_by
from tests.loadtests.generation.conftest import Hand
from tests.loadtests.material import NEW, QUESTIONS, imported_chain


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    home = tmp_path_factory.mktemp("served")
    chain = imported_chain(home)
    with running(chain, home / "log") as service:
        yield service


def test_customers_do_what_they_are_told_in_its_order(served: Service, tmp_path: Path) -> None:
    sequences = mixed_interactions(QUESTIONS, NEW, customers=3, count=12, seed=3)
    record = Generator(tmp_path).interactions(served, sequences, "mixed")
    assert {row.status for row in record.rows} == {200, 202}
    expected = {
        (customer, number): [interaction.row_kind(step) for step in interaction.steps]
        for customer, own in enumerate(sequences)
        for number, interaction in enumerate(own)
    }
    done = {_of(steps): [row.kind for row in steps] for steps in by_interaction(record.rows)}
    assert done == expected
    assert len(whole(record.rows, STEPS)) == 36


def _of(steps: list[Row]) -> tuple[int, int]:
    number = steps[0].index // 10_000 // 16
    return steps[0].index % 10_000, number


def test_each_customer_keeps_its_connection(tmp_path: Path) -> None:
    class Kept(Handler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            clients[self.client_address] += 1
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

    clients = Counter[object]()
    interaction = Interaction("k", (Step("tip", "GET", "/tip"),) * 2)
    with served_by(Kept) as url:
        Generator(tmp_path).interactions(Site(url), [[interaction] * 3] * 2, "kept")
    assert sorted(clients.values()) == [6, 6]


def test_starts_are_due_every_interval_give_or_take_a_hundredth_and_nothing_follows_a_failure(
    served: Service, tmp_path: Path
) -> None:
    interaction = Interaction("k", (Step("no", "GET", "/nothing"), Step("never", "GET", "/tip")))
    record = Generator(tmp_path).interactions(
        served, [[interaction] * 20], "paced", interval_s=0.05
    )
    assert [(row.kind, row.status) for row in record.rows] == [("k:no", 404)] * 20
    dues = [row.intended_s for row in record.rows]
    gaps = [after - before for before, after in pairwise(dues)]
    assert all(0.0495 - 2e-6 <= gap <= 0.0505 + 2e-6 for gap in gaps)
    assert len({round(gap, 5) for gap in gaps}) > 1
    assert all(row.sent_s >= row.intended_s - 2e-6 for row in record.rows)


def test_all_customers_do_as_many(tmp_path: Path) -> None:
    interaction = Interaction("k", (Step("tip", "GET", "/tip"),))
    with pytest.raises(ValueError, match="all customers must do the same number"):
        Generator(tmp_path).interactions(Site("http://x"), [[interaction], [interaction] * 2], "r")


@pytest.mark.parametrize("scenario", [pytest.param("mixed", marks=pytest.mark.long), "itinerary"])
def test_by_hand_flights_come_from_the_service(
    hand: Hand, served: Service, tmp_path: Path, scenario: str
) -> None:
    raw = tmp_path / "raw.csv"
    chosen = ("--users", 2, "--spawn-rate", 2, "--interactions", 5, "--raw", raw)
    assert hand.run("interaction", "--host", served.url, "--scenario", scenario, *chosen) == 0
    made = whole(read_rows(raw), STEPS)
    assert len(made) == 10
    assert all(row.succeeded for row in made)


def test_what_cannot_be_is_explained(hand: Hand) -> None:
    arguments = ("--host", "http://127.0.0.1:1", "--scenario", "weekly")
    assert hand.run("interaction", *arguments) == 1
    assert "error: --scenario is 'weekly'; it must be one of mixed, itinerary" in hand.output
