"""Which requests the worker's loop answers itself."""

import re
from typing import Any
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.api.blocks import tag_of_block
from backend.api.quick import Quick, goes_together
from backend.errors import Damage, NotFound
from backend.questions import OPTION_NAMES, PARAMETERS

ROUTES = ("filter_transactions", "average_delays", "flight_counter")
NAMES = {route: list(fields) for route, fields in zip(ROUTES, PARAMETERS.values(), strict=True)}
ALL_NAMES = sorted({name for names in NAMES.values() for name in names})


class FakeLedger:
    """Has block 7 at hand, which holds the transactions 70 to 79; block 8 is not told."""

    def has_block(self, height: int) -> bool:
        if height == 8:
            raise OSError("the disk is gone")
        return height in {7, 9}

    def has_transaction(self, transaction_id: int) -> bool:
        if transaction_id == 80:
            raise Damage("spoiled")
        return 70 <= transaction_id < 80

    def block_hash(self, height: int) -> str:
        if height != 7:
            raise NotFound("cut off in this very moment")
        return HASH


HASH = "07" * 32
fake: Any = FakeLedger()
is_quick = Quick(fake)
routes = st.sampled_from(ROUTES)
methods = st.sampled_from(["GET", "HEAD"])
pairs = st.lists(st.tuples(st.sampled_from(ALL_NAMES), st.text()), min_size=1)


TOGETHER = ["/transactions", "/transactions?mode=sync", "/new_transaction"]
ALONE = [
    *("/transactions?mode=commit", "/transactions?mode=async", "/transactions?mode=sync&x=1"),
    *(
        "/transactions?",
        "/transactions/",
        "/transactions/batch",
        "/transactions/1",
        "/transactionsx",
    ),
    *(
        "/new_transaction?mode=sync",
        "/new_transactions",
        "//transactions",
        "/transactions?mode=syncx",
    ),
]


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_posts_of_one_flight_that_wait_for_the_disk_alone_go_together(version: str) -> None:
    for target in TOGETHER:
        assert goes_together(line(target, "POST", version))
        assert not goes_together(line(target, "GET", version))
        assert not goes_together(line("/x", "POST") + line(target, "POST", version))
        assert not is_quick(line(target, "POST", version))
    for target in ALONE:
        assert not goes_together(line(target, "POST", version))


def line(target: str, method: str = "GET", version: str = "1.1") -> bytes:
    return f"{method} {target} HTTP/{version}\r\nHost: localhost\r\n\r\n".encode()


@given(method=methods, route=routes, given=pairs, quoting=st.sampled_from([quote, quote_plus]))
def test_every_plain_question_is_quick(
    method: str, route: str, given: list[tuple[str, str]], quoting: Any
) -> None:
    query = urlencode(given, quote_via=quoting, errors="surrogatepass")
    assert is_quick(line(f"/{route}?{query}", method))
    assert is_quick(line(f"/{route}?{query}", method, "1.0"))


def test_each_question_is_quick_with_all_its_parameters() -> None:
    for route, names in NAMES.items():
        assert is_quick(line(f"/{route}?" + "&".join(f"{name}=x" for name in names)))


@given(route=routes, given=pairs, option=st.sampled_from(OPTION_NAMES), at=st.integers(0, 9),
       value=st.sampled_from(["scan", "index", "5", "", "indexes"]))  # fmt: skip
def test_no_option_is_quick_but_a_default(
    route: str, given: list[tuple[str, str]], option: str, at: int, value: str
) -> None:
    with_option = [*given[:at], (option, value), *given[at:]]
    query = urlencode(with_option, errors="surrogatepass")
    assert is_quick(line(f"/{route}?{query}")) == ((option, value) == ("engine", "index"))


@given(route=routes, name=st.sampled_from([*ALL_NAMES, *OPTION_NAMES]), data=st.data())
def test_a_name_that_is_encoded_is_not_quick(route: str, name: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(name) - 1))
    encoded = f"{name[:at]}%{ord(name[at]):02x}{name[at + 1 :]}"
    assert not is_quick(line(f"/{route}?{encoded}=scan"))
    assert not is_quick(line(f"/{route}?FL_DATE=2015-01-01&{encoded}=scan"))


@given(method=st.text("ABCDEGHLOPSTU", min_size=1).filter(lambda m: m not in {"GET", "HEAD"}))
def test_other_methods_are_not_quick(method: str) -> None:
    assert not is_quick(line("/filter_transactions?FL_DATE=2015-01-01", method))
    assert not is_quick(line("/health/live", method))


OTHERS = [
    "/", "/tip", "/blocks", "/blocks/7", "/blocks/7/", "/blocks/07x", "/blocks/-7", "/health/ready",
    "/blocks/7?", "/blocks/7?limit=", "/blocks/7?limit=51", "/blocks/7?limit=1000",
    "/blocks/7?offset=0", "/blocks/7?limit=20&limit=20", "/blocks/7?limit=20&format=csv",
    "/blocks/7?limit=0x20", "/blocks/7?limit=+20", "/blocks/7?limit=%32", "/blocks/\uff17",
    "/blocks?limit=20", "/transactions", "/transactions/", "/transactions/70?x=1",
    "/transactions/+70", "/transactions/70/proof", "/transactions/1000000000000070",
    "/health/live/", "/health/live?x=1", "//health/live", "/filter_transactions",
    "/filter_transactions?", "/filter_transactions/?FL_DATE=x", "/filter_transactions?FL_DATE",
    "/filter_transactions?FL_DATE=x&", "/filter_transactions?&FL_DATE=x",
    "/filter_transactions?FL_DATE=x#y", "/filter_transactions?FL_DATE=x y",
    "/filter_transactions?engine=index#", "/filter_transactions?engine=index=",
    "/blocks/7?engine=index",
    "http://localhost/health/live", "/filter_transactions?FL_DATE=x\r\nX:", "/x/health/live",
]  # fmt: skip


@pytest.mark.parametrize("target", OTHERS)
def test_other_targets_are_not_quick(target: str) -> None:
    assert not is_quick(line(target))


@given(st.binary())
def test_only_the_first_line_counts(rest: bytes) -> None:
    for first in (line("/health/live"), line("/tip")):
        first_line = first.partition(b"\r\n")[0] + b"\r\n"
        assert is_quick(first_line + rest) == is_quick(first)


@given(st.one_of(st.binary(), st.text().map(str.encode), st.from_regex(
    rb"\A(GET|HEAD) /[a-z_/]*[0-9]*(\?([A-Za-z_%0-9]*=[^\0]*&?)*)? HTTP/1\.[01]\r\n"
)))  # fmt: skip
def test_whatever_is_quick_is_one_of_our_questions(request: bytes) -> None:
    if not is_quick(request):
        return
    first = request.partition(b"\r\n")[0].decode("latin-1")
    found = re.fullmatch(r"(GET|HEAD) /([a-z_/]+[0-9]*)(?:\?([^# ]+))? HTTP/1\.[01]", first)
    assert found is not None
    if not found[2].startswith(("blocks/", "transactions/")):
        assert found[2] in {*ROUTES, "health/live"}
    for part in (found[3] or "").split("&") if found[3] else []:
        if part != "engine=index":
            assert part.partition("=")[0] in [*ALL_NAMES, "limit", "offset"]


# --- blocks and transactions ---------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("suffix", ["?limit=0", "?limit=20", "?limit=50", "?offset=980&limit=9"])
def test_a_page_is_quick_when_its_block_is_at_hand(method: str, suffix: str) -> None:
    assert is_quick(line(f"/blocks/7{suffix}", method))
    assert is_quick(line(f"/blocks/007{suffix}", method, "1.0"))
    for other in ("6", "8", "70", "9" * 15, "9" * 16):
        assert not is_quick(line(f"/blocks/{other}{suffix}", method))


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_transaction_is_quick_when_its_block_is_at_hand(method: str) -> None:
    for number in range(60, 90):
        assert is_quick(line(f"/transactions/{number}", method)) == (70 <= number < 80)
    for number in (0, 10**14, 10**15 - 1, 10**15, 10**400):
        assert not is_quick(line(f"/transactions/{number}", method))


def with_headers(target: str, *headers: str, body: str = "") -> bytes:
    lines = [f"GET {target} HTTP/1.1", "Host: localhost", *headers, "", body]
    return "\r\n".join(lines).encode()


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


@pytest.mark.parametrize("headers", KNOWN)
def test_a_whole_block_is_quick_when_the_client_has_it(headers: list[str]) -> None:
    assert is_quick(with_headers("/blocks/7", *headers))
    for other in ("/blocks/6", "/blocks/8", "/blocks/9"):
        assert not is_quick(with_headers(other, *headers))


@pytest.mark.parametrize("headers", UNKNOWN)
def test_a_whole_block_that_must_be_sent_is_not_quick(headers: list[str]) -> None:
    assert not is_quick(with_headers("/blocks/7", *headers))
    assert not is_quick(with_headers("/blocks/7", *headers, body=f'\r\nIf-None-Match: "{TAG}"'))
