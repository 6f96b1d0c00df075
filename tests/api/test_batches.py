"""Posting many flights at once: NDJSON and CSV, all or nothing, skipping, trying, repeating."""

import gzip
import json
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import date
from hashlib import sha256
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from werkzeug.test import TestResponse

from backend.api.reading import given_in
from backend.base.clock import now_ms
from backend.base.day_orders import WRITTEN
from backend.base.settings import Settings
from backend.chain.fields import FIELD_NAMES
from backend.chain.flight import Flight, as_mapping, examine, flight_of
from backend.mempool import Mempool
from backend.mempool.idempotency_keys import IdempotencyKey
from tests.api.worlds import GOOD, Json, client_of, generated, good, new_chain, problem, seal
from tests.chain.strategies import flights as valid_flights
from tests.flights import changed, csv_of, csv_of_days
from tests.submitting import accept_in

FLIGHTS = generated(250)
NDJSON = "application/x-ndjson"


def as_ndjson(flights: Sequence[Flight]) -> bytes:
    return b"".join(json.dumps(as_mapping(flight)).encode() + b"\n" for flight in flights)


def as_csv(flights: Sequence[Flight]) -> bytes:
    return csv_of(flights).encode()


def post(
    client: FlaskClient, body: bytes, query: str = "", kind: str = NDJSON, **headers: str
) -> TestResponse:
    return client.post(f"/transactions/batch{query}", data=body, content_type=kind, headers=headers)


def pending(client: FlaskClient) -> int:
    count: int = good(client.get("/tip"))["pending"]
    return count


@pytest.fixture
def client(settings: Settings) -> Iterator[FlaskClient]:
    with client_of(settings) as client:
        yield client


EXPO = (
    "Year,Month,DayofMonth,UniqueCarrier,FlightNum,Origin,Dest,DepTime,DepDelay,ArrTime,ArrDelay,"
    "Cancelled,AirTime\n2008,1,3,WN,335,QQQ,TPA,2003,8,2211,-14,0,116\n"
)


def test_a_kind_without_cities_gets_them_from_the_ledger(
    client: FlaskClient, settings: Settings
) -> None:
    refused = post(client, EXPO.encode(), kind="text/csv")
    problem(refused, 422, field="ORIGIN_CITY_NAME")
    known = GOOD | {"ORIGIN": "QQQ", "ORIGIN_CITY_NAME": "Nowhere, TX", "ORIGIN_STATE_NM": "Texas"}
    seal(settings, [[flight_of(known)]])
    receipt = good(post(client, EXPO.encode(), kind="text/csv"), 202)
    stored = good(client.get(f"/transactions/{receipt['first_transaction']}"))["transaction"]
    assert (stored["ORIGIN_CITY_NAME"], stored["DEST_CITY_NAME"]) == ("Nowhere, TX", "Tampa, FL")
    assert (stored["OP_CARRIER_AIRLINE_ID"], stored["FL_DATE"]) == (19393, "2008-01-03")


def test_days_in_doubt_are_read_as_the_client_says(client: FlaskClient) -> None:
    body = csv_of_days([GOOD], ["02/03/2019"]).encode()
    refused = post(client, body, kind="text/csv")
    readings = {"month-first": "2019-02-03", "day-first": "2019-03-02"}
    detail = problem(refused, 422, field="dates", value="02/03/2019", readings=readings)["detail"]
    assert "may be 3 February 2019 or 2 March 2019; add dates=month-first or dates=" in detail
    for dates, day in (("day-first", "2019-03-02"), ("month-first", "2019-02-03")):
        receipt = good(post(client, body, f"?dates={dates}", "text/csv"), 202)
        assert receipt["understood"]["dates"] == dates
        assert receipt["understood"]["dates_written"] == WRITTEN[dates]
        stored = good(client.get(f"/transactions/{receipt['first_transaction']}"))["transaction"]
        assert stored["FL_DATE"] == day


@pytest.mark.parametrize("count", [1, 90])
def test_a_table_that_lost_its_line_breaks_is_refused(client: FlaskClient, count: int) -> None:
    lost = as_csv(FLIGHTS[:count]).replace(b"\n", b"")
    for kind in ("text/csv", "application/octet-stream"):
        assert "line breaks" in problem(post(client, lost, kind=kind), 422, field="body")["detail"]


def test_one_line_of_an_error_page_has_lost_no_line_breaks(client: FlaskClient) -> None:
    detail = problem(post(client, b"404: Not Found", kind="text/csv"), 422, field="body")["detail"]
    assert "download it again if this is an error message" in detail


def test_answers_say_what_the_body_was_taken_for(client: FlaskClient) -> None:
    body = EXPO.replace("QQQ", "IAD").replace("116\n", "116\n" + EXPO.splitlines()[0] + "\n")
    body += "2008,1,4,WN,336,IAD,TPA,0,0,0,0,1,\n"
    tried = good(post(client, gzip.compress(body.encode()), "?dry_run=true", "text/csv"))
    understood = tried["understood"]
    sample = understood.pop("sample")
    assert understood == {
        "kind": "hflights",
        "source": "the package of this name (R)",
        "columns": {
            "YEAR": "Year",
            "OP_CARRIER_FL_NUM": "FlightNum",
            "ORIGIN": "Origin",
            "DEST": "Dest",
            "DEP_TIME": "DepTime",
            "DEP_DELAY": "DepDelay",
            "ARR_TIME": "ArrTime",
            "ARR_DELAY": "ArrDelay",
            "CANCELLED": "Cancelled",
            "AIR_TIME": "AirTime",
        },
        "derived": {
            "FL_DATE": "DAY_OF_WEEK",
            "Year and Month and DayofMonth": "FL_DATE",
            "UniqueCarrier and FL_DATE (table of carriers)": "OP_CARRIER_AIRLINE_ID",
            "Origin (table of airports)": "ORIGIN_CITY_NAME, ORIGIN_STATE_NM",
            "Dest (table of airports)": "DEST_CITY_NAME, DEST_STATE_NM",
        },
        "left_empty": ["ORIGIN_AIRPORT_ID", "DEST_AIRPORT_ID"],
        "not_used": [],
        "dates": None,
        "dates_written": None,
        "emptied": {"ARR_TIME": 1, "ARR_DELAY": 1, "DEP_TIME": 1, "DEP_DELAY": 1},
        "repeated_headers": 1,
        "files_without_rows": 0,
    }
    receipt = good(post(client, body.encode(), kind="application/octet-stream"), 202)
    assert receipt["understood"] == understood
    number = receipt["first_transaction"]
    for row, flight in enumerate(sample):
        stored = good(client.get(f"/transactions/{number + row}"))["transaction"]
        assert flight == {name: stored[name] for name in FIELD_NAMES}


@pytest.mark.parametrize("kind", [NDJSON, "text/csv"])
def test_all_flights_are_accepted_in_order(
    client: FlaskClient, settings: Settings, kind: str
) -> None:
    body = as_ndjson(FLIGHTS) if kind == NDJSON else as_csv(FLIGHTS)
    response = post(client, body, kind=kind)
    receipt = good(response, 202)
    assert receipt == {
        "accepted": 250,
        "first_transaction": 0,
        "last_transaction": 249,
        "state": "pending",
        "durable": True,
        "timestamp": receipt["timestamp"],
        "duplicates": 0,
        "duplicate_of": [],
        "already_there": 0,
        "conflicts": 0,
        "conflicting": [],
        "rejected": 0,
        "rejected_cancelled": 0,
        "rejected_not_arrived": 0,
        "errors": [],
        "understood": receipt["understood"],
    }
    assert response.headers["Location"] == "/transactions/0"
    seal(settings, [[]])
    stored = good(client.get("/blocks/1"))["block"]["transactions"]
    assert [tuple(transaction[name] for name in FIELD_NAMES) for transaction in stored] == FLIGHTS


def test_one_bad_row_keeps_all_out_and_is_named(client: FlaskClient) -> None:
    lines = as_ndjson(FLIGHTS[:3]).splitlines()
    bad = json.dumps({**as_mapping(FLIGHTS[3]), "ARR_DELAY": "late"}).encode()
    refusal = problem(post(client, b"\n".join([*lines, b"", bad, b"{"])), 422, field="ARR_DELAY")
    assert [(error["row"], error["field"]) for error in refusal["errors"]] == [
        (5, "ARR_DELAY"),
        (6, "line"),
    ]
    assert pending(client) == 0


@pytest.mark.parametrize("line", ['["a", "b"]', "null", '"flight"', "true", '[{"YEAR": null}]'])
def test_a_line_that_is_no_flight_is_shown_as_it_was_sent(client: FlaskClient, line: str) -> None:
    refusal = problem(post(client, line.encode()), 422, field="line")
    assert refusal["errors"] == [
        {
            "row": 1,
            "field": "line",
            "value": line,
            "detail": "must be a JSON object with the fields of a flight",
        }
    ]


def test_skipping_takes_the_good_rows_and_reports_the_bad_ones(client: FlaskClient) -> None:
    lines = as_csv(FLIGHTS[:5]).splitlines()
    lines[2] = lines[2].replace(str(FLIGHTS[1][4]).encode(), b"x", 1)
    receipt = good(post(client, b"\n".join(lines), "?on_error=skip", "text/csv"), 202)
    assert (receipt["accepted"], receipt["rejected"]) == (4, 1)
    assert [error["row"] for error in receipt["errors"]] == [3]
    assert pending(client) == 4


def test_rows_that_agree_with_their_weekday_by_chance_are_not_taken(client: FlaskClient) -> None:
    """2019-03-04 of 3 April: its weekday is that of 4 March by chance."""
    days = [date(2019, 3, number) for number in range(1, 29)]
    rows = [
        (2019, day.isoweekday(), f"{day:%Y-%d-%m}", *flight[3:])
        for day, flight in zip(days, FLIGHTS, strict=False)
    ]
    for query in ("?on_error=skip", "?on_error=skip&dry_run=true"):
        refusal = problem(post(client, as_csv(rows), query, "text/csv"), 422)
        assert "has wrong days in most rows, so the others may be right" in refusal["detail"]
    assert pending(client) == 0


@pytest.mark.parametrize(("query", "accepted"), [("", 0), ("&on_error=skip", 2)])
def test_a_dry_run_says_what_would_happen_and_does_nothing(
    client: FlaskClient, query: str, accepted: int
) -> None:
    body = as_ndjson(FLIGHTS[:2]) + b"[]\n"
    answer = good(post(client, body, f"?dry_run=true{query}"))
    assert (answer["dry_run"], answer["accepted"], answer["rejected"]) == (True, accepted, 1)
    assert answer["errors"][0]["row"] == 3
    assert pending(client) == 0


def test_nothing_is_accepted_from_nothing(client: FlaskClient) -> None:
    assert good(post(client, b"\n\n"))["accepted"] == 0
    assert good(post(client, as_csv([]), kind="text/csv"))["accepted"] == 0


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"\n", "text/csv"),
        (b"a,b\n1,2\n", "text/csv"),
        (b"PAR1\0", "application/octet-stream"),
        (b"ARROW1\0", "text/csv"),
        (b"\xff\xfe", "text/csv"),
        (as_csv(FLIGHTS[:1]) + b"\xff", "text/csv"),
    ],
)
def test_what_is_no_batch_is_refused(client: FlaskClient, body: bytes, kind: str) -> None:
    problem(post(client, body, kind=kind), 422)
    assert pending(client) == 0


def test_at_most_a_hundred_errors_are_shown_and_reading_stops_there(client: FlaskClient) -> None:
    refusal = problem(post(client, b"[]\n" * 250), 422)
    assert len(refusal["errors"]) == 100
    assert (refusal["rows_read"], refusal["rejected"], refusal["stopped"]) == (250, 250, False)
    refusal = problem(post(client, b"[]\n" * 5000), 422)
    assert len(refusal["errors"]) == 100
    assert (refusal["rows_read"], refusal["rejected"], refusal["stopped"]) == (1000, 1000, True)
    for query in ("?on_error=skip", "?dry_run=true"):
        tried = good(post(client, b"[]\n" * 5000, query))
        assert (len(tried["errors"]), tried["rejected"]) == (100, 5000)


def test_a_query_of_very_many_parameters_is_refused(client: FlaskClient) -> None:
    query = "&".join(f"a{n}=1" for n in range(10_000))
    problem(post(client, as_ndjson(FLIGHTS[:1]), f"?{query}"), 400, field="query string")


def test_long_queries_are_not_remembered() -> None:
    tracemalloc.start()
    for number in range(1100):
        given_in({"QUERY_STRING": f"a={number}{'x' * 7000}"})
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 2_000_000


def test_more_than_may_be_pending_is_refused(tmp_path: Path) -> None:
    with client_of(new_chain(tmp_path, mempool_transactions=100)) as client:
        refused = problem(post(client, as_ndjson(FLIGHTS[:150])), 413)
        assert "more than 100 flights" in refused["detail"]
        bad = as_ndjson(FLIGHTS[:1]) + b"{}\n" * 1000
        refused = problem(post(client, bad, "?on_error=skip"), 413)
        assert "bad rows': are too many; at most 100 may be left out" in refused["detail"]
        assert problem(post(client, bad), 422)["rejected"] > 100
        good(post(client, as_ndjson(FLIGHTS[:60])), 202)
        full = post(client, as_ndjson(FLIGHTS[:60]))
        problem(full, 503)
        assert int(full.headers["Retry-After"]) > 0
        assert pending(client) == 60


def test_a_body_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    with client_of(new_chain(tmp_path, max_body_bytes=2**16)) as client:
        problem(post(client, b" " * (2**16 + 1)), 413)


# --- again ---------------------------------------------------------------------------------------


def test_an_equal_flight_is_accepted_and_named(client: FlaskClient, settings: Settings) -> None:
    good(post(client, as_ndjson(FLIGHTS[:3])), 202)
    again = good(post(client, as_ndjson([FLIGHTS[2], FLIGHTS[5], FLIGHTS[0]])), 202)
    assert again["duplicates"] == 2
    assert again["duplicate_of"] == [
        {"TRANSACTION_ID": 3, "duplicate_of": 2},
        {"TRANSACTION_ID": 5, "duplicate_of": 0},
    ]
    seal(settings, [[]])
    single = client.post("/transactions", json=as_mapping(FLIGHTS[1]))
    assert good(single, 202)["duplicate_of"] == 1
    single = client.post("/transactions", json=as_mapping(FLIGHTS[1]))
    assert good(single, 202)["duplicate_of"] == 1  # the oldest
    assert good(client.post("/transactions", json=GOOD), 202)["duplicate_of"] is None


def test_the_first_hundred_equal_or_contradicting_flights_are_listed(client: FlaskClient) -> None:
    batch = as_ndjson(FLIGHTS[:101])
    good(post(client, batch), 202)
    for answer in (good(post(client, batch, "?dry_run=true")), good(post(client, batch), 202)):
        assert (answer["duplicates"], len(answer["duplicate_of"])) == (101, 100)
    others = as_ndjson([changed(flight, ORIGIN_CITY_NAME="Elsewhere") for flight in FLIGHTS[:101]])
    answer = good(post(client, others, "?dry_run=true"))
    assert (answer["conflicts"], len(answer["conflicting"])) == (101, 100)


def test_a_key_gets_the_same_ids_again(client: FlaskClient, settings: Settings) -> None:
    key = {"Idempotency-Key": "first of May"}
    body = as_ndjson(FLIGHTS[:3])
    first = good(post(client, body, **key), 202)
    assert good(post(client, body, **key), 202) == first
    assert pending(client) == 3
    for _ in range(3):  # the segment of the mempool goes
        seal(settings, [[], [FLIGHTS[9]]])
    again = good(post(client, body, **key), 201)
    assert again == {**first, "state": "mined"}
    with client_of(settings) as another:
        assert good(post(another, body, **key), 201) == again
    problem(post(client, as_ndjson(FLIGHTS[:2]), **key), 422, field="Idempotency-Key")
    problem(post(client, body, "?on_error=skip", **key), 422, field="Idempotency-Key")
    other = good(post(client, body, **{"Idempotency-Key": "another"}), 202)
    assert other["first_transaction"] == 6


def test_a_request_that_is_sent_again_may_wait_for_something_else(
    client: FlaskClient, settings: Settings
) -> None:
    def posted(query: str) -> TestResponse:
        headers = {"Idempotency-Key": "k"}
        return client.post(f"/transactions{query}", json=GOOD, headers=headers)

    accepted = good(posted(""), 202)["TRANSACTION_ID"]
    seal(settings, [[]])
    mined = good(posted("?mode=commit"), 201)
    assert (mined["TRANSACTION_ID"], mined["state"]) == (accepted, "mined")
    again = good(posted("?mode=async"), 201)
    assert (again["TRANSACTION_ID"], again["durable"]) == (accepted, True)  # it is in a block
    assert pending(client) == 0


def test_a_request_that_release_1_0_0_answered_may_be_sent_again(
    client: FlaskClient, settings: Settings
) -> None:
    """That release noted the `mode`, too."""
    body = as_ndjson(FLIGHTS[:1])
    noted = sha256(b"/transactions/batch?mode=async\n" + body).hexdigest()
    with closing(Mempool(settings, lambda: 0, print)) as mempool:
        accept_in(mempool, FLIGHTS[:1], now_ms(), key=IdempotencyKey("k", noted))
    key = {"Idempotency-Key": "k"}
    again = good(post(client, body, "?mode=async", **key), 202)
    assert (again["first_transaction"], pending(client)) == (0, 1)
    problem(post(client, body, "?mode=async&on_error=skip", **key), 422, field="Idempotency-Key")


@pytest.mark.parametrize("key", ["", "x" * 256, "\u00e9", "a\tb"])
def test_a_key_that_is_none_is_refused(client: FlaskClient, key: str) -> None:
    response = client.post("/transactions", json=GOOD, headers={"Idempotency-Key": key})
    problem(response, 400, field="Idempotency-Key")
    assert pending(client) == 0


# --- each row as strict as a single flight -------------------------------------------------------

spoilt = st.dictionaries(
    st.sampled_from([*FIELD_NAMES, "TRANSACTION_ID", "x"]),
    st.none() | st.integers(-3, 3000) | st.text(max_size=4) | st.just([1]) | st.just(True),
    max_size=2,
)
records = st.tuples(valid_flights(), spoilt).map(lambda two: {**as_mapping(two[0]), **two[1]})


@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(records, max_size=6))
def test_a_row_is_good_exactly_if_it_is_a_good_flight(
    client: FlaskClient, rows: list[Json]
) -> None:
    body = b"\n".join([b"", *(json.dumps(row).encode() for row in rows), b""])
    answer = good(post(client, body, "?dry_run=true&on_error=skip"))
    sent = [{n: v for n, v in row.items() if n != "TRANSACTION_ID"} for row in rows]  # an export's
    bad = [number for number, row in enumerate(sent, 2) if examine(row)[1]]
    assert [error["row"] for error in answer["errors"]] == bad
    assert answer["accepted"] == len(rows) - len(bad)


@pytest.mark.parametrize("name", [b'"YEAR":', b'"YEAR" :', b'"YEAR"\t: ', b'"\\u0059EAR" :'])
def test_a_field_given_twice_is_an_error(client: FlaskClient, name: bytes) -> None:
    twice = json.dumps(GOOD).encode()[:-1] + b", " + name + b"2008}"
    refusal = problem(post(client, twice), 422)
    assert refusal["errors"] == [
        {"row": 1, "field": "YEAR", "value": 2008, "detail": "is given twice; give it once"}
    ]
