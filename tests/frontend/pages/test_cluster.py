"""The page of a cluster, over nodes that a test made up; `tests/cluster` has a real one."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from frontend.app import create_app
from frontend.settings import Settings
from tests.frontend.fake_backend import answering
from tests.frontend.pages.reading import pages_over, raw, text

CLUSTER = {"members": ["pi1", "pi2"], "peers": ["pi2"], "votes": 20, "votes_total": 20}
TIP = {"height": 7, "hash": "ab" * 32, "timestamp": 0, "transactions": 9, "pending": 0}


def node(name: str | None, *damaged: int, has_tip: bool = True, detail: str = "") -> Any:
    """Return what a node answers.

    name: None if it only reads. damaged: heights of blocks. detail: why it is not ready.
    """

    def answer(path: str, _: Mapping[str, str]) -> Any:
        problem = {"damaged_blocks": damaged, "detail": detail}
        refused = (HTTPStatus.SERVICE_UNAVAILABLE, problem)
        if path == "/health/ready":
            return refused if damaged or detail else {}
        more = {"node": name, "accepts": name is not None, "proposer": "pi1"}
        return {**TIP, "cluster": CLUSTER | more} if has_tip else refused

    return answer


def test_damaged_blocks_are_named_with_the_node_that_has_them() -> None:
    with (
        answering(node("pi1")) as sound,
        answering(node("pi2", 3, 5)) as damaged,
        answering(node("pi3", 7, has_tip=False)) as newest,
    ):
        pages = create_app(Settings(backend_url=sound, more_backends=(damaged, newest)))
        shown = text(pages.test_client(), "/cluster")
        assert "pi2 has 2 damaged blocks: 3, 5. On that machine," in shown
        assert f"{newest} has 1 damaged block: 7." in shown
        assert "pi1 has" not in shown
        nodes = pages.test_client().get("/cluster.json").get_json()["nodes"]
        assert [each["damaged"] for each in nodes] == [[], [3, 5], [7]]


def test_a_node_that_is_not_ready_says_why() -> None:
    with (
        answering(node("pi1")) as sound,
        answering(node("pi2", detail="its clock is ahead")) as other,
    ):
        pages = create_app(Settings(backend_url=sound, more_backends=(other,))).test_client()
        shown = text(pages, "/cluster")
        assert "pi2 is not ready: its clock is ahead." in shown
        assert "pi1 is not ready" not in shown
        nodes = pages.get("/cluster.json").get_json()["nodes"]
        assert [each["refusal"] for each in nodes] == ["", "its clock is ahead"]


def test_whether_flights_can_be_added_is_said_of_the_node_that_adds_them() -> None:
    with answering(node("pi1")) as first, answering(node(None)) as reader:
        pages = create_app(Settings(backend_url=first, more_backends=(reader,))).test_client()
        for _ in range(2):  # which ask another node first each time
            assert "Flights can be added. pi1 and the machines" in text(pages, "/cluster")
    with answering(node("pi2")) as second:  # and the first is away
        pages = create_app(Settings(backend_url=first, more_backends=(second,))).test_client()
        shown = text(pages, "/cluster")
    assert f"No flights can be added here now. These pages add them at {first} alone." in shown


def test_no_month_is_offered_where_a_cluster_keeps_the_ledger() -> None:
    with answering(node("pi1")) as url:
        page = raw(pages_over(url), "/months")
    assert '<a href="/upload">a file of flights</a>' in page
    assert "Add the month" not in page
