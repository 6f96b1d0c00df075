"""A value that no flight has gives no flights, status 200, and a warning with what may be meant."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from flask.testing import FlaskClient

from backend.chain.flight import flight_of
from backend.questions.carriers import code_of
from tests.api.worlds import GOOD, World, client_of, good, seal, settings_for
from tests.cases import each_of

CARRIER = "OP_CARRIER_AIRLINE_ID"
DAYS = {"INITIAL_DATE": "2015-01-01", "FINAL_DATE": "2015-01-09"}
ROUTE = {"ORIGIN_CITY_NAME": "Los Angeles, CA", "DEST_CITY_NAME": "Seattle, WA", **DAYS}
LATER = {"INITIAL_DATE": "2019-01-01", "FINAL_DATE": "2019-01-09"}
EARLIER = {"INITIAL_DATE": "1999-01-01", "FINAL_DATE": "1999-01-09"}
CASES: list[tuple[str, dict[str, Any], str, list[str] | None]] = [
    ("flight_counter", {**ROUTE, "ORIGIN_CITY_NAME": "Gotham"}, "ORIGIN_CITY_NAME", []),
    ("flight_counter", {**ROUTE, "ORIGIN_CITY_NAME": "los angeles"}, "ORIGIN_CITY_NAME",
        ["Los Angeles, CA"]),
    ("flight_counter", {**ROUTE, "DEST_CITY_NAME": "Seatle"}, "DEST_CITY_NAME", ["Seattle, WA"]),
    ("flight_counter", {**ROUTE, "ORIGIN_CITY_NAME": "LAX"}, "ORIGIN_CITY_NAME",
        ["Los Angeles, CA"]),
    ("flight_counter", {**ROUTE, "ORIGIN": "XYZ"}, "ORIGIN", []),
    ("average_delays", {**DAYS, "DEST": "LOS"}, "DEST", ["LAX"]),
    ("average_delays", {**DAYS, "OP_CARRIER_AIRLINE_ID": 7}, "OP_CARRIER_AIRLINE_ID", []),
    ("average_delays", {**DAYS, "OP_CARRIER_AIRLINE_ID": 19394}, "OP_CARRIER_AIRLINE_ID",
        ["19393"]),
    ("average_delays", LATER, "INITIAL_DATE", None),
    ("average_delays", {**EARLIER, "group_by": "day"}, "FINAL_DATE", None),
    ("filter_transactions", {"OP_CARRIER_FL_NUM": 99999, "FL_DATE": "2015-01-03"},
        "OP_CARRIER_FL_NUM", None),
    ("filter_transactions", {"OP_CARRIER_FL_NUM": 1, "FL_DATE": "2019-01-03"}, "FL_DATE", None),
]  # fmt: skip


@each_of(("name", "asked", "field", "meant"), CASES)
@each_of("engine", ["index", "scan"])
def test_a_warning_says_what_is_unknown(
    client: FlaskClient,
    name: str,
    asked: dict[str, Any],
    field: str,
    meant: list[str] | None,
    engine: str,
) -> None:
    answer = good(client.get(f"/{name}?{urlencode(asked | {'engine': engine})}"))
    assert answer.get("count", answer.get("flights")) in (0, [])
    (warning,) = answer["warnings"]
    assert warning["field"] == field
    assert warning["value"] == str(asked[field])
    assert meant is None or warning["did_you_mean"] == meant
    for value in warning["did_you_mean"]:  # whatever is offered is known
        better = client.get(f"/{name}?{urlencode(asked | {field: value, 'engine': engine})}")
        if better.status_code == 200:
            assert field not in [each["field"] for each in good(better).get("warnings", [])]


def test_every_unknown_value_has_its_warning(client: FlaskClient) -> None:
    asked = {**LATER, "ORIGIN_CITY_NAME": "Gotham", "DEST_CITY_NAME": "Metropolis", "DEST": "XYZ"}
    answer = good(client.get(f"/flight_counter?{urlencode(asked)}"))
    fields = [warning["field"] for warning in answer["warnings"]]
    assert fields == ["ORIGIN_CITY_NAME", "DEST_CITY_NAME", "DEST", "INITIAL_DATE"]


def test_known_values_without_flights_have_none(client: FlaskClient, world: World) -> None:
    flight, days = world.transactions[0], sorted(leg["FL_DATE"] for leg in world.transactions)
    ends = {f"{end}_CITY_NAME": flight["ORIGIN_CITY_NAME"] for end in ("ORIGIN", "DEST")}
    for first, last in ((EARLIER["INITIAL_DATE"], days[-2]), (days[0],) * 2, (days[-1],) * 2):
        asked = {**ends, "INITIAL_DATE": first, "FINAL_DATE": last}
        answer = good(client.get(f"/flight_counter?{urlencode(asked)}"))
        assert answer["count"] == 0
        assert "warnings" not in answer
    without_names = good(client.get(f"/flight_counter?{urlencode(DAYS)}"))
    assert without_names["count"] > 0
    assert "warnings" not in without_names


def test_an_answer_as_of_a_block_never_changes(client: FlaskClient) -> None:
    answer = good(client.get(f"/average_delays?{urlencode({**DAYS, 'ORIGIN': 'XYZ', 'as_of': 3})}"))
    assert "warnings" not in answer


def test_an_empty_ledger_knows_nothing(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    seal(settings, [[]])
    with client_of(settings) as client:
        answer = good(client.get(f"/flight_counter?{urlencode(ROUTE)}"))
        assert [warning["did_you_mean"] for warning in answer["warnings"]] == [[], []]


@each_of("options", [{}, {"engine": "scan"}, {"as_of": 20}, {"group_by": "day"}])
def test_names_and_codes_are_taken_in_any_case(
    client: FlaskClient, world: World, options: dict[str, Any]
) -> None:
    flight = world.transactions[0]
    names = ("ORIGIN", "DEST_CITY_NAME")
    strict = DAYS | options | {name: flight[name] for name in names}
    for change in (str.lower, str.upper):
        typed = strict | {name: change(flight[name]) for name in names}
        answer = good(client.get(f"/average_delays?{urlencode(typed)}"))
        assert answer == good(client.get(f"/average_delays?{urlencode(strict)}"))
        assert answer["flights"] > 0


def test_an_export_takes_names_in_any_case(client: FlaskClient, world: World) -> None:
    places = {name: world.transactions[0][name] for name in ("ORIGIN", "DEST_CITY_NAME")}
    typed = {name: value.lower() for name, value in places.items()}
    exports = [client.get("/flights", query_string=DAYS | asked) for asked in (places, typed)]
    strict, same = (export.text for export in exports)
    assert strict.count("\n") > 1
    assert strict == same


def test_a_proof_takes_names_in_any_case(client: FlaskClient, world: World) -> None:
    flight = world.transactions[0]
    asked = DAYS | {f"{end}_CITY_NAME": flight[f"{end}_CITY_NAME"] for end in ("ORIGIN", "DEST")}
    typed = {name: value.lower() for name, value in asked.items()}
    proof, same = (client.get("/flight_counter/proof", query_string=q) for q in (asked, typed))
    assert json.loads(proof.text.partition("\n")[0])["answer"]["count"] > 0
    assert proof.text == same.text


@each_of("form", ["{}{}", "{} {}", "{}-{}"])
def test_a_flight_number_may_have_the_code_of_its_carrier(
    client: FlaskClient, world: World, form: str
) -> None:
    flight = world.transactions[0]
    carrier = flight["OP_CARRIER_AIRLINE_ID"]
    strict = {name: flight[name] for name in ("OP_CARRIER_FL_NUM", "FL_DATE")}
    expected = good(client.get("/filter_transactions", query_string=strict | {CARRIER: carrier}))
    number = form.format(code_of(carrier).lower(), flight["OP_CARRIER_FL_NUM"])
    typed = strict | {"OP_CARRIER_FL_NUM": number}
    for more in ({}, {CARRIER: carrier}):
        assert good(client.get("/filter_transactions", query_string=typed | more)) == expected
    other = client.get("/filter_transactions", query_string=typed | {CARRIER: 1})
    assert (other.status_code, other.get_json()["field"]) == (400, "OP_CARRIER_FL_NUM")


def test_of_several_spellings_the_most_common_one_is_meant(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    names = ["WASHINGTON, DC", "Washington, DC", "Washington, DC"]
    seal(settings, [[flight_of({**GOOD, "ORIGIN_CITY_NAME": name}) for name in names]])
    with client_of(settings) as client:
        asked = {"INITIAL_DATE": "2008-01-01", "FINAL_DATE": "2008-01-31"}
        asked["ORIGIN_CITY_NAME"] = "washington, dc"
        answer = good(client.get("/flight_counter", query_string=asked))
        assert (answer["count"], answer["query"]["ORIGIN_CITY_NAME"]) == (2, "Washington, DC")
