"""The pages of a node of a cluster: what is added has a receipt before it has an id."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
import requests
from flask.testing import FlaskClient

from backend.chain.flight import as_mapping
from backend.cluster.local import LocalCluster, hosts_on_loopback
from flightchain_client import Client, Mode
from tests.api.processes import Service, until
from tests.cluster.engine import make_base
from tests.cluster.processes import SETTINGS, need_engine, post
from tests.flights import csv_of, flight, flights
from tests.frontend.pages.reading import pages_over
from tests.frontend.writing import Visitor

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster of one node, which is ready."""
    need_engine()
    folder = tmp_path_factory.mktemp("c")
    make_base(folder)
    cluster = LocalCluster(folder, SETTINGS)
    cluster.make(hosts_on_loopback(1, 0, 0), 4.0, empty=False)
    try:
        cluster.start(cluster.hosts[0])
        cluster.wait_until_ready(cluster.hosts, 60)
        yield cluster
    finally:
        for host in cluster.hosts:
            cluster.kill(host)


@pytest.fixture(scope="module")
def visitor(cluster: LocalCluster) -> Visitor:
    return visitor_of(cluster.hosts[0].url)


def visitor_of(url: str) -> Visitor:
    client = pages_over(url)
    client.environ_base["HTTP_ORIGIN"] = "http://localhost"
    return Visitor(cast("Service", None), client)  # the service is asked through the pages only


def mined(client: FlaskClient, receipt: str) -> str:
    """Where a receipt leads to when it is mined."""
    until(lambda: client.get(receipt).status_code == 303)
    return client.get(receipt).headers["Location"]


def test_the_receipt_of_a_flight_leads_to_the_transaction(visitor: Visitor) -> None:
    receipt = visitor.send().headers["Location"]
    assert receipt.startswith("/receipts/node0-")
    page = visitor.client.get(receipt)
    if page.status_code == 200:  # unless it is mined already
        assert 'class="state pending"' in page.text
    place = mined(visitor.client, receipt)
    assert "Mined" in visitor.client.get(f"{receipt}/state").text
    assert visitor.client.get(place).status_code == 200
    again = visitor.send().headers["Location"]
    number = place.rpartition("/")[2]
    assert again.endswith(f"?duplicate_of={number}")
    assert mined(visitor.client, again).endswith(f"?duplicate_of={number}")


def test_a_file_has_the_receipts_of_its_first_and_last_flight(
    visitor: Visitor, tmp_path: Path
) -> None:
    body = csv_of(flights(30, 100)).encode()
    page = visitor.added(body)
    assert page.status_code == 200
    first, last = re.findall(r'href="(/receipts/[^"]*)"', page.text)
    for receipt in (first, last):
        assert f"transaction {mined(visitor.client, receipt).rpartition('/')[2]}" in (
            visitor.client.get(mined(visitor.client, receipt)).text
        )
    assert int(last.split("-")[1]) == int(first.split("-")[1]) + 29
    assert "They get their numbers when mined" in page.text


def test_a_receipt_that_nobody_gave_is_not_found(visitor: Visitor) -> None:
    for name in ("node0-999999", "node7-1", "nonsense", "node0-"):
        page = visitor.client.get(f"/receipts/{name}")
        assert page.status_code == 404
        assert "Traceback" not in page.text


def test_the_page_of_the_cluster_tells_how_its_nodes_do(visitor: Visitor) -> None:
    def says(*texts: str) -> bool:
        page = visitor.client.get("/cluster").text
        return all(text in page for text in texts)

    until(lambda: says("1 machine", "10 of 10 votes", "node0 (connected)"))  # a node may be busy
    assert "10 of 10" in visitor.client.get("/cluster/state").text
    assert visitor.client.get("/cluster.json").get_json()["cluster"]["node"] == "node0"
    assert '<a href="/cluster">' in visitor.client.get("/standing").text


def test_a_script_gets_a_receipt_and_waits_for_it(cluster: LocalCluster) -> None:
    with Client(cluster.hosts[0].url) as client:
        modes: tuple[Mode, ...] = ("async", "sync")
        for mode in modes:
            receipt = client.add(as_mapping(flight(7)), mode=mode)
            assert receipt.transaction_id is None
            assert str(receipt.receipt).startswith("/receipts/node0-")
            assert client.wait(receipt).state == "mined"
        added = client.add_batch(map(as_mapping, flights(3, 8)))
        assert (added.accepted, list(added.transactions)) == (3, [])


def test_a_reader_that_is_added_is_admitted_follows_and_accepts_nothing(
    cluster: LocalCluster, visitor: Visitor
) -> None:
    visitor.added(csv_of(flights(5, 300)).encode())
    voter = cluster.hosts[0]
    cluster.add(*hosts_on_loopback(1, 0, 0, first=1))
    reader = cluster.hosts[1]
    cluster.start(reader)
    cluster.wait_until_ready([reader], 60)
    until(lambda: cluster.answer(voter)["pending"] == 0)
    until(lambda: cluster.answer(reader)["hash"] == cluster.answer(voter)["hash"])

    def refusal() -> str:
        status, body = post(reader.url + "/transactions", as_mapping(flight(0)))
        assert status == 503, body
        return str(body["detail"])

    until(
        lambda: "not a member that may add flights" in refusal()
    )  # a busy node says that it waits
    sent = visitor_of(reader.url).added(csv_of(flights(5, 400)).encode())
    assert "stopped" in sent.text
    assert "This node is not a member that may add flights; use another node." in sent.text
    keys = {requests.get(f"{host.url}/log/key", timeout=5).text for host in cluster.hosts}
    assert len(keys) == 1


def test_a_batch_that_is_sent_again_adds_nothing_pending_or_mined(cluster: LocalCluster) -> None:
    rows = [as_mapping(row) for row in flights(40, 5000)]
    with Client(cluster.hosts[0].url) as client:
        assert client.add_batch(rows[:30], key="first").accepted == 30
        late = {**rows[0], "ARR_DELAY": 99}
        for _ in range(2):
            again = client.add_batch([late, *rows], key="second")
            assert (again.accepted, again.already_there, again.conflicts) == (10, 30, 1)
            until(lambda: client.tip().pending == 0)
        last = client.add_batch([late, *rows])
        assert (last.accepted, last.already_there, last.conflicts) == (0, 40, 1)
        assert last.conflicting[0]["TRANSACTION_ID"] is not None
        receipt = client.add(rows[3])
        assert receipt.duplicate_of is not None
