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
    service = Service(settings, lambda: None)
    site = ServiceSite(service)

    def lane(target: str, method: str = "GET", version: str = "1.1") -> str:
        sent = target.encode().decode("latin-1")
        service.ledger.cached_blocks.block(1)
        return site.route(environ(method, sent, version=version)).lane

    yield lane
    service.ledger.close()


READS = [
    "/blocks", "/blocks?limit=11", "/blocks?limit=6&before=1", "/blocks?limit=x",
    "/blocks/2?limit=20", "/blocks/1?limit=51", "/transactions/1", "/transactions/0/proof",
    "/proofs/consistency?from=1", "/metrics", "/openapi.json", "/docs",
    "/transactions_pages?page=1&per_page=1000",
]  # fmt: skip


@each_of("target", READS)
def test_what_reads_or_makes_much_has_a_lane_of_its_own(target: str, lane: LaneOf) -> None:
    assert lane(target) is Lane.READ


@each_of("target", ["/blocks?limit=6", "/blocks?limit=10"])
def test_the_newest_blocks_do_not_wait_for_whole_ones(target: str, lane: LaneOf) -> None:
    assert lane(target) is Lane.THREAD


CACHED = ["/transactions/0", "/transactions/000", "/blocks/1?limit=0", "/blocks/01?limit=50",
          "/blocks/1?offset=980&limit=9"]  # fmt: skip


@each_of("target", CACHED)
def test_what_is_in_memory_is_quick_unless_that_cannot_be_told(
    target: str, lane: LaneOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    for method, version in (("GET", "1.0"), ("GET", "1.1"), ("HEAD", "1.1")):
        assert lane(target, method, version) is Lane.INLINE
    for error in (OSError("the disk is gone"), Damage("spoiled")):
        with monkeypatch.context() as patch:
            patch.setattr(CachedBlocks, "_is_ready", raising(error))
            assert lane(target) is Lane.READ


def raising(error: Exception) -> Callable[..., bool]:
    def fail(*arguments: object) -> bool:
        raise error

    return fail


TOGETHER = ["/transactions", "/transactions?", "/transactions?mode=sync", "/new_transaction"]
ALONE = {
    "/transactions?mode=commit": Lane.COMMIT,
    "/transactions?mode=async": Lane.THREAD,
    "/transactions?mode=syncx": Lane.THREAD,
    "/transactions?mode=sync&mode=commit": Lane.READ,
    "/transactions/": Lane.READ,
    "/transactions/batch": Lane.BATCH,
    "/transactions/batch?mode=async": Lane.BATCH,
    "/transactions/batch?mode=commit": Lane.COMMIT,
    "/transactions/batch?mode=commit&dry_run=true": Lane.BATCH,
    "/transactions?dry_run=true": Lane.THREAD,
    "/transactions?mode=commit&dry_run=true": Lane.THREAD,
    "/transactions/1": Lane.READ,
    "/new_transactions": Lane.READ,
}


@each_of("version", ["1.0", "1.1"])
def test_posts_of_one_flight_that_wait_for_the_disk_alone_go_together(
    version: str, lane: LaneOf
) -> None:
    for target in TOGETHER:
        assert lane(target, "POST", version) is Lane.GROUPED
        assert lane(target, "GET", version) is not Lane.GROUPED
    for target, expected in ALONE.items():
        assert lane(target, "POST", version) is expected


routes = st.sampled_from(ROUTES)


@given(
    method=st.sampled_from(["GET", "HEAD"]),
    route=routes,
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


@each_of(
    "target",
    [
        "/filter_transactions?OP_CARRIER_FL_NUM=1&FL_DATE=2013-01-01&FINAL_DATE=2199-12-31",
        "/average_delays?INITIAL_DATE=2013-01-01&FINAL_DATE=2013-12-31&ORIGIN=JFK",
        "/average_delays?INITIAL_DATE=2013-01-01&FINAL_DATE=2013-12-31&group_by=route",
        "/flight_counter?INITIAL_DATE=2013-01-01&FINAL_DATE=2013-12-31&DEST=LAX",
    ],
)
def test_questions_that_may_read_many_rows_have_a_thread_of_their_own(
    target: str, lane: LaneOf
) -> None:
    assert lane(target) is Lane.QUESTION


@given(route=routes, option=st.sampled_from(["engine", "as_of"]), at=st.integers(0, 9),
       value=st.sampled_from(["scan", "index", "5", "", "indexes"]))  # fmt: skip
def test_no_option_is_quick_but_a_default(
    lane: LaneOf, route: str, option: str, at: int, value: str
) -> None:
    given = [(name, "x") for name in NAMES[route]]
    query = urlencode([*given[:at], (option, value), *given[at:]])
    expected = {"engine=index": Lane.INLINE, "engine=scan": Lane.SCAN}
    others = Lane.THREAD if option == "engine" else Lane.QUESTION
    assert lane(f"/{route}?{query}") is expected.get(f"{option}={value}", others)


@given(route=routes, data=st.data())
def test_a_name_that_is_encoded_is_what_it_says(
    lane: LaneOf, route: str, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, 5))
    encoded = f"{'engine'[:at]}%{ord('engine'[at]):02x}{'engine'[at + 1 :]}"
    for query in (f"{encoded}=scan", f"as_of=5&{encoded}=scan", f"{encoded}=s%63an"):
        assert lane(f"/{route}?{query}") is Lane.SCAN


OTHERS = [
    "/", "/tip", "/blocks", "/blocks/1", "/blocks/1/", "/blocks/01x", "/blocks/-1", "/health/ready",
    "/blocks/1?", "/blocks/1?limit=", "/blocks/1?limit=51", "/blocks/1?limit=1000",
    "/blocks/1?offset=0", "/blocks/1?limit=20&limit=20", "/blocks/1?limit=20&format=csv",
    "/blocks/1?limit=0x20", "/blocks/1?limit=+20", "/blocks/\uff11", "/blocks?limit=20",
    "/transactions/", "/transactions/+0", "/transactions/0/proof",
    "/transactions/1000000000000000", "/health/live/",
    "/filter_transactions/?FL_DATE=x", "/filter_transactions?FL_DATE=x&FL_DATE=x",
    "/filter_transactions?engine=index=", "/filter_transactions?nothing=x",
    "/blocks/1?engine=index", "/x/health/live", "/flights", "/transactions/batch",
]  # fmt: skip


@each_of("target", OTHERS)
def test_other_targets_are_not_quick(target: str, lane: LaneOf) -> None:
    assert lane(target) is not Lane.INLINE


def test_batches_that_strangers_only_try_hold_up_no_batch_that_is_accepted(tmp_path: Path) -> None:
    service = Service(settings_for(tmp_path, require_token=1), lambda: None)
    site, tried = ServiceSite(service), "/transactions/batch?dry_run=true"
    known = {"Authorization": "Bearer x"}
    try:
        assert site.route(environ("POST", tried)).lane is Lane.SCAN
        assert site.route(environ("POST", f"{tried}&mode=commit")).lane is Lane.SCAN
        assert site.route(environ("POST", tried, known)).lane is Lane.BATCH
        assert site.route(environ("POST", "/transactions/batch")).lane is Lane.BATCH
    finally:
        service.ledger.close()
