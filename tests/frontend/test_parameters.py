"""Parameters by which links from elsewhere follow visitors: pages ignore them, twins do not."""

import re

from flask import Flask
from flask.testing import FlaskClient

from tests.cases import each_of

NOISE = "utm_source=news&utm_campaign=a%20b&fbclid=IwAR0&gclid=x&msclkid=7"
QUESTIONS = (
    "/filter_transactions?OP_CARRIER_FL_NUM=1&FL_DATE=2015-01-01",
    "/report?OP_CARRIER_FL_NUM=1",
    "/average_delays?OP_CARRIER_AIRLINE_ID=19393&INITIAL_DATE=2015-01-01",
    "/flight_counter?ORIGIN_CITY_NAME=Chicago%2C+IL&DEST_CITY_NAME=Atlanta%2C+GA",
    *("/blocks?before=3", "/blocks/1?check=transactions", "/transactions/1?", "/receipts/1?"),
    *("/cluster?", "/cheat?", "/lab?", "/lab/calculator?", "/upload?"),
    *("/lab/calculator/open?arrivals=1&service_time_s=0.1", "/?", "/add?"),
    "/search?q=JFK ATL LAX",
)


@each_of("address", QUESTIONS)
def test_an_answer_is_the_same_and_no_link_repeats_them(pages: FlaskClient, address: str) -> None:
    quiet = pages.get(address)
    noisy = pages.get(f"{address}&{NOISE}")
    assert noisy.status_code == quiet.status_code
    for name in ("utm_", "fbclid", "gclid", "msclkid"):
        assert name not in noisy.text


def test_no_page_takes_any_other_parameter(app: Flask, pages: FlaskClient) -> None:
    """For somebody may believe that it counts. Those that follow visitors are ignored."""
    samples = {"transaction_id": "1", "height": "1", "number": "1", "code": "JFK"}
    samples |= {
        "day": "2015-01-01",
        "name": "x",
        "file": "x",
        "question": "average_delays",
        "form": "csv",
    }
    samples["import_id"] = "0" * 32
    addresses = {
        re.sub(r"<(?:[^<]*:)?(\w+)>", lambda match: samples[match[1]], rule.rule): rule.arguments
        for rule in app.url_map.iter_rules()
        if "GET" in (rule.methods or ()) and rule.endpoint not in {"live", "static"}
    }
    assert {"/months", "/transactions/1/state", "/lab.json"} <= addresses.keys()
    for address, arguments in addresses.items():
        assert pages.get(f"{address}?colour=red").status_code == 400, address
        if not arguments and "." not in address and not address.startswith(("/log", "/pro")):
            assert pages.get(f"{address}?{NOISE}").status_code != 400, address


@each_of("address", QUESTIONS)
def test_a_value_that_would_not_be_shown_is_refused(pages: FlaskClient, address: str) -> None:
    name = address.partition("?")[2].partition("=")[0] or "as_of"
    answer = pages.get(f"{address}&{name}=2&{name}=3")
    is_compared = name == "OP_CARRIER_AIRLINE_ID"
    assert answer.status_code == (302 if is_compared else 400)
    assert is_compared or "is given more than once" in answer.text


@each_of("form", ["json", "csv"])
def test_twins_take_only_what_they_know(pages: FlaskClient, form: str) -> None:
    address = QUESTIONS[2].replace("?", f".{form}?")
    assert pages.get(address).status_code == 200
    assert pages.get(f"{address}&utm_source=news").status_code == 400


@each_of("path", ["/days", "/nothing%0D%0Ab", "/nothing%3Fa"])
def test_a_page_leads_to_its_own_address(pages: FlaskClient, path: str) -> None:
    answer = pages.get(f"{path}?days=January+2015")
    assert answer.status_code == 302
    assert answer.location == f"{path}?INITIAL_DATE=2015-01-01&FINAL_DATE=2015-01-31"
