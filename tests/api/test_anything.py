"""Whatever is sent, the service answers in JSON, and what it lets in can always be asked for."""

import json
from datetime import date
from itertools import product
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes, urlencode

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from werkzeug.test import TestResponse

from backend.chain.fields import FIELD_NAMES
from backend.chain.flight import as_mapping
from backend.verify.audit import verify
from tests.api.worlds import (
    GOOD,
    Json,
    answer_of,
    client_of,
    good,
    problem,
    questions_about,
    settings_for,
    transaction_of,
)
from tests.chain.strategies import flights as valid_flights
from tests.effort import examples
from tests.submitting import sealing

pytestmark = pytest.mark.slow

patient = settings(
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)

ROUTES = ["/filter_transactions", "/average_delays", "/flight_counter", "/blocks", "/blocks/1"]
ROUTES += ["/suggest"]
ROUTES += ["/transactions/1", "/transactions", "/tip", "/health/live", "/health/ready", "/", ""]
NAMES = ["OP_CARRIER_FL_NUM", "FL_DATE", "OP_CARRIER_AIRLINE_ID", "INITIAL_DATE", "FINAL_DATE"]
NAMES += ["ORIGIN_CITY_NAME", "DEST_CITY_NAME", "engine", "as_of", "before", "limit", "offset"]
NAMES += ["group_by", "distribution", "field", "q"]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
values = (
    texts
    | st.integers().map(str)
    | st.floats().map(str)
    | st.dates().map(date.isoformat)
    | st.sampled_from(["index", "scan", "335", "19393", "2015-01-02", "Chicago, IL", "", "0", "1"])
    | st.sampled_from(["day", "carrier", "true", "city", "airport", "flight_number"])
)
escaped = st.binary(max_size=8).map(quote)
parameters = st.lists(st.tuples(st.sampled_from(NAMES) | texts, values), max_size=6).map(urlencode)
raw_queries = st.lists(
    st.sampled_from([*NAMES, "&", "=", "%", "+", ";", "%00", "%ff", "%C3%A3", "1", "2015-01-01"])
    | escaped,
    max_size=12,
).map("".join)
paths = st.sampled_from(ROUTES) | st.tuples(
    st.sampled_from(ROUTES), escaped | texts.map(quote)
).map("/".join)


def checked(response: TestResponse, method: str = "GET") -> None:
    """Fail unless this is an answer of the kind that the service gives."""
    status = response.status_code
    assert status in {200, 202, 308, 400, 404, 405, 411, 413, 415, 422, 503}
    if method == "HEAD" or (method == "OPTIONS" and status == 200):
        assert response.get_data() == b""
    elif status >= 400:
        problem(response, status)
    elif status == 308:  # doubled slashes
        assert "//" not in response.headers["Location"].removeprefix("http://")
    else:
        assert response.headers["Content-Type"] == "application/json"
        assert isinstance(json.loads(response.get_data()), dict)


@patient
@given(
    paths,
    parameters | raw_queries,
    st.sampled_from(["GET", "GET", "GET", "HEAD", "OPTIONS", "PUT"]),
)
def test_any_path_and_any_parameters_get_an_answer_in_json(
    client: FlaskClient, path: str, query: str, method: str
) -> None:
    # Not in the URL, which the test client would take apart: "//x" names a host there.
    path_info = unquote_to_bytes(path).decode("latin-1")
    response = client.open(
        "/", query_string=query, method=method, environ_overrides={"PATH_INFO": path_info}
    )
    checked(response, method)
    if response.status_code == 503:
        assert path.startswith("/health/ready")  # no miner runs here


# --- posting -------------------------------------------------------------------------------------

odd_texts = st.text(st.characters(), max_size=8) | st.sampled_from([
    *("\u0958" * 100, "\U0001d160" * 40, "x" * 100, "\u202e", "\u200b", "%_'\"\\", "NULL"),
    *("-0", "+5", "0005", "1.", "2400", "0000", "1/3/2008", "2008-01-03 00:00", "99999", "-10000"),
])  # fmt: skip
scalars = (
    st.none() | st.booleans() | st.integers() | st.integers(-3, 3000) | st.floats() | odd_texts
)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(odd_texts, inner, max_size=3),
)
changes = st.dictionaries(st.sampled_from(FIELD_NAMES), scalars, max_size=3)
objects = st.dictionaries(st.sampled_from(FIELD_NAMES) | odd_texts, anything, max_size=8)


def lenient(value: object) -> bytes:
    """JSON as a careless client writes it: with NaN, and surrogates as they come."""
    return json.dumps(value, ensure_ascii=True).encode()


@st.composite
def changed_flights(draw: st.DrawFn) -> bytes:
    """The example with a few fields that may be anything: some of these are good."""
    day = draw(st.dates(date(1900, 1, 1), date(2199, 12, 31)) | st.just(date(2008, 1, 3)))
    agreed = {"FL_DATE": day.isoformat(), "YEAR": day.year, "DAY_OF_WEEK": day.isoweekday()}
    return lenient({**GOOD, **agreed, **draw(changes)})


bodies = (
    changed_flights()
    | valid_flights().map(as_mapping).map(lenient)
    | (st.one_of(objects, anything)).map(lenient)
    | st.text(max_size=30).map(lambda text: text.encode("utf-8", "replace"))
)


def test_nothing_that_is_let_in_can_break_a_later_question(tmp_path: Path) -> None:
    chain = settings_for(tmp_path)
    with sealing(chain) as sealer:
        pass
    accepted: list[int] = []

    with client_of(chain) as client:

        @patient
        @given(bodies)
        @example(lenient(GOOD))
        @example(lenient({**GOOD, "ORIGIN_CITY_NAME": "\u0958" * 100}))
        @example(lenient({**GOOD, "DEST_STATE_NM": "\U0001d160" * 40}))
        @example(lenient({**GOOD, "DEP_DELAY": "-10000", "ARR_DELAY": 10000, "DEP_TIME": "0000"}))
        def post_anything(body: bytes) -> None:
            response = client.post("/transactions", data=body, content_type="application/json")
            checked(response)
            if response.status_code == 202:
                accepted.append(response.get_json()["TRANSACTION_ID"])

        post_anything()
        assert accepted == list(range(len(accepted)))
        assert len(accepted) > 10
        pending = [good(client.get(f"/transactions/{number}")) for number in accepted]
        with sealing(chain) as sealer:
            sealer.seal_pending()
        assert verify(tmp_path).transactions == len(accepted)
        mined = [good(client.get(f"/transactions/{number}")) for number in accepted]
        assert [each["transaction"] for each in mined] == [each["transaction"] for each in pending]
        assert {each["state"] for each in mined} == {"mined"}
        _ask_about_all(client, [
            {**each["transaction"], "BLOCK_HEIGHT": each["block"]["height"]} for each in mined
        ])  # fmt: skip


def _ask_about_all(client: FlaskClient, legs: list[Json]) -> None:
    """Every question about every flight, with both engines, against a plain loop."""
    for leg, engine in product(legs, ("index", "scan")):
        for route, asked in questions_about(leg).items():
            answer = good(client.get(f"/{route}?{urlencode({**asked, 'engine': engine})}"))
            assert answer.items() >= answer_of(route, legs, asked).items()
    shown = good(client.get("/blocks/1"))["block"]["transactions"]
    assert shown == [transaction_of(leg) for leg in legs]
