"""Which requests the worker's loop answers itself."""

import re
from typing import Any
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.api.quick import is_quick
from backend.questions import OPTION_NAMES, PARAMETERS

ROUTES = ("filter_transactions", "average_delays", "flight_counter")
NAMES = {route: list(fields) for route, fields in zip(ROUTES, PARAMETERS.values(), strict=True)}
ALL_NAMES = sorted({name for names in NAMES.values() for name in names})

routes = st.sampled_from(ROUTES)
methods = st.sampled_from(["GET", "HEAD"])
pairs = st.lists(st.tuples(st.sampled_from(ALL_NAMES), st.text()), min_size=1)


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
       value=st.sampled_from(["scan", "index", "5", ""]))  # fmt: skip
def test_no_option_is_quick(
    route: str, given: list[tuple[str, str]], option: str, at: int, value: str
) -> None:
    with_option = [*given[:at], (option, value), *given[at:]]
    assert not is_quick(line(f"/{route}?" + urlencode(with_option, errors="surrogatepass")))


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
    "/", "/tip", "/blocks", "/blocks/1", "/transactions", "/transactions/0", "/health/ready",
    "/health/live/", "/health/live?x=1", "//health/live", "/filter_transactions",
    "/filter_transactions?", "/filter_transactions/?FL_DATE=x", "/filter_transactions?FL_DATE",
    "/filter_transactions?FL_DATE=x&", "/filter_transactions?&FL_DATE=x",
    "/filter_transactions?FL_DATE=x#y", "/filter_transactions?FL_DATE=x y",
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
    rb"\A(GET|HEAD) /[a-z_/]*(\?([A-Za-z_%0-9]*=[^\0]*&?)*)? HTTP/1\.[01]\r\n"
)))  # fmt: skip
def test_whatever_is_quick_is_one_of_our_questions(request: bytes) -> None:
    if not is_quick(request):
        return
    first = request.partition(b"\r\n")[0].decode("latin-1")
    found = re.fullmatch(r"(GET|HEAD) /([a-z_/]+)(?:\?([^# ]+))? HTTP/1\.[01]", first)
    assert found is not None
    assert found[2] in {*ROUTES, "health/live"}
    for part in (found[3] or "").split("&") if found[3] else []:
        assert part.partition("=")[0] in ALL_NAMES
