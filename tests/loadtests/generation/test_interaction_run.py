"""Interactions over HTTP with Locust: from an experiment, and by hand."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from loadtests.generation.interactions import Interaction, Step, by_interaction, whole
from loadtests.generation.rows import Row, customer_of, read_rows
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


def test_customers_keep_connection_and_interval_and_do_nothing_after_a_failure(
    tmp_path: Path,
) -> None:
    """Starts are due every interval, give or take a hundredth."""

    class Kept(Handler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            clients[self.client_address] += 1
            self.send_response(404 if self.path == "/nothing" else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

    clients = Counter[object]()
    steps = Step("yes", "GET", "/tip"), Step("no", "GET", "/nothing"), Step("never", "GET", "/tip")
    sequences = [[Interaction("k", steps)] * 20] * 2
    with served_by(Kept) as url:
        record = Generator(tmp_path).interactions(Site(url), sequences, "paced", interval_s=0.05)
    assert sorted(clients.values()) == [40, 40]
    for customer in range(2):
        rows = [row for row in record.rows if customer_of(row) == customer]
        assert [(row.kind, row.status) for row in rows] == [("k:yes", 200), ("k:no", 404)] * 20
        gaps = [after.intended_s - before.intended_s for before, after in pairwise(rows[::2])]
        assert all(0.0495 - 2e-6 <= gap <= 0.0505 + 2e-6 for gap in gaps)
        assert len({round(gap, 5) for gap in gaps}) > 1
        assert all(row.sent_s >= row.intended_s - 2e-6 for row in rows)


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
    interactions = whole(read_rows(raw), STEPS)
    assert len(interactions) == 10
    assert all(interaction.succeeded for interaction in interactions)
