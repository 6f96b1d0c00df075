"""The lane of each request: which are answered at once, and which keep which threads busy."""

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.api import (
    Service,
    batch,
    block_routes,
    exporting,
    health,
    question_answers,
    study_paths,
    transaction_routes,
)
from backend.api.block_routes import tag_of_block
from backend.api.routes import Lane, Table
from backend.api.writing import Writing
from backend.base.errors import Damage, NotFound
from backend.base.settings import Settings
from backend.questions.values import OPTION_NAMES, PROVABLE
from backend.service.web_server import ServiceSite
from backend.serving.environs import environ_of
from backend.storage.caches import Where
from tests.api.worlds import seal, settings_for
from tests.cases import each_of
from tests.doors import environ, scope_of

ROUTES = ("filter_transactions", "average_delays", "flight_counter")
NAMES = {route: list(fields) for route, fields in zip(ROUTES, PROVABLE.values(), strict=True)}


class FakeBlocks:
    """Has block 7 in memory, which holds the transactions 70 to 79; block 8 is not told."""

    def has(self, height: int) -> bool:
        if height == 8:
            raise OSError("the disk is gone")
        return height in {7, 9}

    def has_transaction(self, transaction_id: int) -> bool:
        if transaction_id == 80:
            raise Damage("spoiled")
        return 70 <= transaction_id < 80

    def where(self, height: int) -> Where:
        if height != 7:
            raise NotFound("cut off in this very moment")
        return Where(height, HASH)


HASH = "07" * 32
ASKS = ("filter_transactions", "average_delays", "flight_counter", "departures")
fake: Any = SimpleNamespace(
    settings=Settings(),
    answers=SimpleNamespace(**dict.fromkeys(ASKS)),
    cached_blocks=FakeBlocks(),
)
nothing: Any = None
writing: Any = SimpleNamespace(lane_of=partial(Writing.lane_of, nothing), accept_all=None)
table = Table(
    [
        *question_answers.rows(fake, nothing),
        *transaction_routes.rows(fake, writing),
        *batch.rows(fake, writing),
        *block_routes.rows(fake),
        *exporting.rows(fake, fake),
        *study_paths.rows(fake, nothing, writing),
        *health.rows(fake),
    ]
)


def lane(request: dict[str, Any]) -> Lane:
    """The lane of the request with this environ; what is in no row goes to Flask."""
    match = table.match(request)
    return ServiceSite.unmatched if match is None else match.lane(request)


READS = [
    "/blocks", "/blocks?limit=11", "/blocks?limit=6&before=1", "/blocks?limit=x",
    "/blocks/7", "/blocks/8", "/blocks/7?limit=51", "/transactions/1000000000000070",
    "/transactions/70/proof", "/proofs/consistency?from=1", "/metrics",
    "/openapi.json", "/docs", "/transactions_pages?page=1&per_page=1000",
]  # fmt: skip


@pytest.fixture(scope="module")
def whole_table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    settings = settings_for(tmp_path_factory.mktemp("lanes"))
    seal(settings, [])
    service = Service(settings, lambda: None)
    yield service.table
    service.ledger.close()


@each_of("target", READS)
def test_what_reads_or_makes_much_has_a_lane_of_its_own(target: str, whole_table: Table) -> None:
    match = whole_table.match(line(target))
    assert match is not None
    assert match.lane(line(target)) is Lane.READ


@each_of("target", ["/blocks?limit=6", "/blocks?limit=10"])
def test_the_newest_blocks_do_not_wait_for_whole_ones(target: str, whole_table: Table) -> None:
    match = whole_table.match(line(target))
    assert match is not None
    assert match.lane(line(target)) is Lane.THREAD


def is_quick(request: dict[str, Any]) -> bool:
    return lane(request) is Lane.INLINE


def goes_together(request: dict[str, Any]) -> bool:
    return lane(request) is Lane.GROUPED


routes = st.sampled_from(ROUTES)
methods = st.sampled_from(["GET", "HEAD"])


TOGETHER = ["/transactions", "/transactions?", "/transactions?mode=sync", "/new_transaction"]
ALONE = {
    "/transactions?mode=commit": Lane.COMMIT,
    "/transactions?mode=async": Lane.THREAD,
    "/transactions?mode=syncx": Lane.THREAD,
    "/transactions?mode=sync&mode=commit": Lane.THREAD,
    "/transactions/": Lane.READ,
    "/transactions/batch": Lane.BATCH,
    "/transactions/batch?mode=async": Lane.BATCH,
    "/transactions/batch?mode=commit": Lane.COMMIT,
    "/transactions/1": Lane.READ,
    "/new_transactions": Lane.READ,
}


@each_of("version", ["1.0", "1.1"])
def test_posts_of_one_flight_that_wait_for_the_disk_alone_go_together(version: str) -> None:
    for target in TOGETHER:
        assert goes_together(line(target, "POST", version))
        assert not goes_together(line(target, "GET", version))
        assert not is_quick(line(target, "POST", version))
    for target, expected in ALONE.items():
        assert lane(line(target, "POST", version)) is expected


def line(target: str, method: str = "GET", version: str = "1.1") -> dict[str, Any]:
    return environ(method, target.encode().decode("latin-1"), version=version)


@given(method=methods, route=routes, quoting=st.sampled_from([quote, quote_plus]), data=st.data())
def test_every_plain_question_is_quick(
    method: str, route: str, quoting: Any, data: st.DataObject
) -> None:
    texts = st.text(st.characters(exclude_categories=["Cs"]))
    given = data.draw(st.dictionaries(st.sampled_from(NAMES[route]), texts))
    query = urlencode(given, quote_via=quoting)
    assert is_quick(line(f"/{route}?{query}", method))
    assert is_quick(line(f"/{route}?{query}", method, "1.0"))


@each_of(
    "target",
    [
        "/filter_transactions?OP_CARRIER_FL_NUM=1&FL_DATE=2013-01-01&FINAL_DATE=2199-12-31",
        "/average_delays?INITIAL_DATE=2013-01-01&FINAL_DATE=2013-12-31&ORIGIN=JFK",
        "/average_delays?INITIAL_DATE=2013-01-01&FINAL_DATE=2013-12-31&group_by=route",
        "/flight_counter?INITIAL_DATE=2013-01-01&FINAL_DATE=2013-12-31&DEST=LAX",
    ],
)
def test_questions_that_may_read_many_rows_have_a_thread_of_their_own(target: str) -> None:
    assert lane(line(target)) is Lane.QUESTION


@given(route=routes, option=st.sampled_from(OPTION_NAMES), at=st.integers(0, 9),
       value=st.sampled_from(["scan", "index", "5", "", "indexes"]))  # fmt: skip
def test_no_option_is_quick_but_a_default(route: str, option: str, at: int, value: str) -> None:
    given = [(name, "x") for name in NAMES[route]]
    query = urlencode([*given[:at], (option, value), *given[at:]])
    expected = {"engine=index": Lane.INLINE, "engine=scan": Lane.SCAN}
    others = Lane.THREAD if option == "engine" else Lane.QUESTION
    assert lane(line(f"/{route}?{query}")) is expected.get(f"{option}={value}", others)


@given(route=routes, data=st.data())
def test_a_name_that_is_encoded_is_what_it_says(route: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, 5))
    encoded = f"{'engine'[:at]}%{ord('engine'[at]):02x}{'engine'[at + 1 :]}"
    for query in (f"{encoded}=scan", f"FL_DATE=2015-01-01&{encoded}=scan", f"{encoded}=s%63an"):
        assert lane(line(f"/{route}?{query}")) is Lane.SCAN


OTHERS = [
    "/", "/tip", "/blocks", "/blocks/7", "/blocks/7/", "/blocks/07x", "/blocks/-7", "/health/ready",
    "/blocks/7?", "/blocks/7?limit=", "/blocks/7?limit=51", "/blocks/7?limit=1000",
    "/blocks/7?offset=0", "/blocks/7?limit=20&limit=20", "/blocks/7?limit=20&format=csv",
    "/blocks/7?limit=0x20", "/blocks/7?limit=+20", "/blocks/\uff17", "/blocks?limit=20",
    "/transactions/", "/transactions/+70", "/transactions/70/proof",
    "/transactions/1000000000000070", "/health/live/",
    "/filter_transactions/?FL_DATE=x", "/filter_transactions?FL_DATE=x&FL_DATE=x",
    "/filter_transactions?engine=index=", "/filter_transactions?nothing=x",
    "/blocks/7?engine=index", "/x/health/live", "/flights", "/transactions/batch",
]  # fmt: skip


@each_of("target", OTHERS)
def test_other_targets_are_not_quick(target: str) -> None:
    assert not is_quick(line(target))


# --- blocks and transactions ---------------------------------------------------------------------


@each_of("method", ["GET", "HEAD"])
@each_of("suffix", ["?limit=0", "?limit=20", "?limit=50", "?offset=980&limit=9"])
def test_a_page_is_quick_when_its_block_is_at_hand(method: str, suffix: str) -> None:
    assert is_quick(line(f"/blocks/7{suffix}", method))
    assert is_quick(line(f"/blocks/007{suffix}", method, "1.0"))
    for other in ("6", "8", "70", "9" * 15, "9" * 16):
        assert not is_quick(line(f"/blocks/{other}{suffix}", method))


@each_of("method", ["GET", "HEAD"])
def test_a_transaction_is_quick_when_its_block_is_at_hand(method: str) -> None:
    for number in range(60, 90):
        assert is_quick(line(f"/transactions/{number}", method)) == (70 <= number < 80)
    for number in (0, 10**14, 10**15 - 1, 10**15, 10**400):
        assert not is_quick(line(f"/transactions/{number}", method))


def with_headers(target: str, *headers: str) -> dict[str, Any]:
    scope = scope_of("GET", target)
    for header in headers:
        name, _, text = header.partition(":")
        scope["headers"].append((name.lower().encode(), text.strip().encode()))
    return environ_of(scope, b"")


TAG = tag_of_block(HASH, "")
KNOWN = [
    [f'If-None-Match: "{TAG}"'],
    [f'if-none-match:"{TAG}"'],
    [f'IF-NONE-MATCH: "other", W/"{TAG}" '],
    ["If-None-Match: \"other\"", f'If-None-Match: "{TAG}"'],
    [f'If-None-Match: "{TAG}-zstd"', "Accept-Encoding: gzip, deflate, br, zstd"],
    ["accept-encoding: gzip", f'If-None-Match: "{TAG}-gzip"'],
]  # fmt: skip
UNKNOWN: list[list[str]] = [
    [],
    ["If-None-Match: *"],
    ['If-None-Match: "other"'],
    [f'If-None-Match: "{TAG}x"'],
    [f'If-Match: "{TAG}"'],
    [f'X-If-None-Match: "{TAG}"'],
    [f'If-None-Match: "{TAG}-zstd"'],
    [f'If-None-Match: "{TAG}-zstd"', "Accept-Encoding: gzip"],
    [f'If-None-Match: "{tag_of_block(HASH, "limit=20")}"'],
]


@each_of("headers", KNOWN)
def test_a_whole_block_is_quick_when_the_client_has_it(headers: list[str]) -> None:
    assert is_quick(with_headers("/blocks/7", *headers))
    for other in ("/blocks/6", "/blocks/8", "/blocks/9"):
        assert not is_quick(with_headers(other, *headers))


@each_of("headers", UNKNOWN)
def test_a_whole_block_that_must_be_sent_is_not_quick(headers: list[str]) -> None:
    assert not is_quick(with_headers("/blocks/7", *headers))
