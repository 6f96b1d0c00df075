"""The lane of each request: which are answered at once, and which keep which threads busy."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.api import Service
from backend.api.routes import Lane
from backend.base.errors import Damage
from backend.questions.values import PROVABLE
from backend.service.web_server import ServiceSite
from backend.storage.caches import CachedBlocks
from tests.api.worlds import GOOD, seal, settings_for
from tests.cases import each_of
from tests.doors import environ

ROUTES = ("filter_transactions", "average_delays", "flight_counter")
NAMES = {route: list(fields) for route, fields in zip(ROUTES, PROVABLE.values(), strict=True)}

LaneOf = Callable[..., str]


@pytest.fixture(scope="module")
def lane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LaneOf]:
    """Tells the lane of a target, as a site does. Block 1 with transaction 0 is in memory."""
    settings = settings_for(tmp_path_factory.mktemp("lanes"))
    seal(settings, [[tuple(GOOD.values())]])
    service = Service(settings)
    site = ServiceSite(service)

    def lane(target: str, method: str = "GET", version: str = "1.1") -> str:
        sent = target.encode().decode("latin-1")
        service.ledger.cached_blocks.block(1)
        return site.route(environ(method, sent, version=version)).lane

    yield lane
    service.ledger.close()


DAYS = "INITIAL_DATE=2013-01-01&FINAL_DATE=2013-12-31"
CACHED = ["/transactions/0", "/transactions/000", "/blocks/1?limit=0", "/blocks/01?limit=50",
          "/blocks/1?offset=980&limit=9"]  # fmt: skip
OF_GET = {
    Lane.INLINE: [
        *CACHED, "/health/live", *(f"/{route}?engine=index" for route in ROUTES),
        "/filter_transactions?engine=index=", "/flight_counter?engine=",
    ],
    Lane.THREAD: [
        "/", "/tip", "/health/ready", "/blocks?limit=6", "/blocks?limit=10", "/coverage",
        "/suggest?field=city",
    ],
    Lane.QUESTION: [
        "/filter_transactions?OP_CARRIER_FL_NUM=1&FL_DATE=2013-01-01&FINAL_DATE=2199-12-31",
        f"/average_delays?{DAYS}&ORIGIN=JFK", f"/average_delays?{DAYS}&group_by=route",
        f"/flight_counter?{DAYS}&DEST=LAX", *(f"/{route}?as_of=5" for route in ROUTES),
    ],
    Lane.READ: [
        "/blocks", "/blocks?limit=11", "/blocks?limit=20", "/blocks?limit=6&before=1",
        "/blocks?limit=x", "/blocks/1", "/blocks/1?", "/blocks/1/", "/blocks/01x", "/blocks/-1",
        "/blocks/\uff11", "/blocks/2?limit=20", "/blocks/1?limit=", "/blocks/1?limit=51",
        "/blocks/1?limit=0x20", "/blocks/1?limit=+20", "/blocks/1?offset=0",
        "/blocks/1?limit=20&limit=20", "/blocks/1?limit=20&format=csv", "/blocks/1?engine=index",
        "/transactions/", "/transactions/1", "/transactions/+0", "/transactions/1000000000000000",
        "/transactions/batch", "/transactions/0/proof", "/transactions_pages?page=1&per_page=1000",
        "/proofs/consistency?from=1", "/metrics", "/months", "/openapi.json", "/docs",
        "/health/live/", "/x/health/live", "/filter_transactions/?FL_DATE=x",
        "/filter_transactions?nothing=x", "/filter_transactions?FL_DATE=x&FL_DATE=x",
    ],
    Lane.SCAN: [
        f"/{route}?{query}" for route in ROUTES
        for query in ("engine=scan", "as_of=5&engine=scan", "%65ngine=scan", "engine=s%63an")
    ],
    Lane.EXPORT: ["/flights", "/proofs/chain", "/average_delays/proof"],
    Lane.BATCH: ["/cheats"],
}  # fmt: skip
OF_POST = {
    Lane.GROUPED: [
        "/transactions", "/transactions?", "/transactions?mode=sync", "/new_transaction",
    ],
    Lane.THREAD: [
        "/transactions?mode=async", "/transactions?mode=syncx", "/transactions?dry_run=true",
        "/transactions?mode=commit&dry_run=true",
    ],
    Lane.COMMIT: ["/transactions?mode=commit", "/transactions/batch?mode=commit"],
    Lane.BATCH: [
        "/transactions/batch", "/transactions/batch?mode=async",
        "/transactions/batch?mode=commit&dry_run=true",
    ],
    Lane.READ: [
        "/transactions?mode=sync&mode=commit", "/transactions/", "/transactions/1",
        "/new_transactions",
    ],
}  # fmt: skip
METHODS = {"GET": OF_GET, "HEAD": OF_GET, "POST": OF_POST}


@each_of("method", METHODS)
@each_of("version", ["1.0", "1.1"])
def test_a_request_waits_for_others_that_cost_as_much(
    method: str, version: str, lane: LaneOf
) -> None:
    for expected, targets in METHODS[method].items():
        lanes = {target: lane(target, method, version) for target in targets}
        assert lanes == dict.fromkeys(targets, expected)


@each_of("target", CACHED)
@each_of("error", [OSError("the disk is gone"), Damage("spoiled")])
def test_what_cannot_be_told_to_be_in_memory_is_not_quick(
    target: str, error: Exception, lane: LaneOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> bool:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(CachedBlocks, "_is_ready", fail)
        assert lane(target) is Lane.READ


@given(
    method=st.sampled_from(["GET", "HEAD"]),
    route=st.sampled_from(ROUTES),
    quoting=st.sampled_from([quote, quote_plus]),
    data=st.data(),
)
def test_every_plain_question_is_quick(
    lane: LaneOf, method: str, route: str, quoting: Any, data: st.DataObject
) -> None:
    texts = st.text(st.characters(exclude_categories=["Cs"]))
    given = data.draw(st.dictionaries(st.sampled_from(NAMES[route]), texts))
    query = urlencode(given, quote_via=quoting)
    assert lane(f"/{route}?{query}", method) is Lane.INLINE
    assert lane(f"/{route}?{query}", method, "1.0") is Lane.INLINE


def test_batches_that_strangers_only_try_hold_up_no_batch_that_is_accepted(tmp_path: Path) -> None:
    service = Service(settings_for(tmp_path, require_token=1))
    site, tried = ServiceSite(service), "/transactions/batch?dry_run=true"
    known = {"Authorization": "Bearer x"}
    try:
        assert site.route(environ("POST", tried)).lane is Lane.SCAN
        assert site.route(environ("POST", f"{tried}&mode=commit")).lane is Lane.SCAN
        assert site.route(environ("POST", tried, known)).lane is Lane.BATCH
        assert site.route(environ("POST", "/transactions/batch")).lane is Lane.BATCH
    finally:
        service.ledger.close()
