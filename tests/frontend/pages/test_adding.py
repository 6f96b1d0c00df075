"""One flight: from the form to its receipt."""

import re
import subprocess
from collections.abc import Iterator
from html import unescape
from http import HTTPStatus
from typing import Any

import pytest
from flask.testing import FlaskClient

from backend.chain.canonical import canonical
from backend.chain.fields import FIELD_NAMES, POSITION
from backend.chain.merkle import leaf_hash
from backend.questions.carriers import CARRIER
from frontend.filters import sentence
from frontend.search.fields import NO_NUMBER
from tests.api.processes import until
from tests.frontend.fake_backend import answering
from tests.frontend.pages.reading import pages_over, text, text_of
from tests.frontend.writing import (
    FLIGHTS,
    GOOD_FORM,
    Visitor,
    chosen,
    errors_beside,
    hidden,
    notice,
    value_of,
    visiting,
)


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    folder = tmp_path_factory.mktemp("adding")
    with visiting(folder, FLIGHTCHAIN_MINE_INTERVAL_S=0.5) as visitor:
        yield visitor


def receipt_of(visitor: Visitor, location: str) -> dict[str, Any]:
    path, _, query = location.partition("?")
    receipt: dict[str, Any] = visitor.client.get(f"{path}.json?{query}").get_json()
    return receipt


# --- what is right


def test_a_flight_goes_from_the_form_into_a_block(visitor: Visitor) -> None:
    response = visitor.send()
    assert response.status_code == 303
    number = visitor.service.sealed() - 1
    assert response.headers["Location"].startswith(f"/receipts/{number}")
    until(lambda: "state mined" in visitor.client.get(f"/transactions/{number}/state").text)
    transaction = visitor.service.json(f"/transactions/{number}")["transaction"]
    assert [transaction[name] for name in FIELD_NAMES] == [
        2013, 3, "2013-01-02", 19977, 1545,
        None, "XNA", "Fayetteville, AR", "Arkansas", None, "ITH", "Ithaca, NY", "New York",
        "0517", -3, "0830", 11, 0, 127,
    ]  # fmt: skip


def test_where_an_airport_is_follows_from_the_ledger(visitor: Visitor) -> None:
    known = dict(zip(FIELD_NAMES, FLIGHTS[0], strict=True))
    form = {name: text for name, text in GOOD_FORM.items() if "CITY" not in name}
    form = {name: text for name, text in form.items() if "STATE" not in name}
    response = visitor.send(
        {"ORIGIN": str(known["ORIGIN"]).lower(), "DEST": str(known["DEST"])}, form
    )
    transaction = receipt_of(visitor, response.headers["Location"])["transaction"]
    for name in ("ORIGIN", "DEST"):
        for what in ("", "_CITY_NAME", "_STATE_NM"):
            assert transaction[name + what] == known[name + what]


@pytest.mark.parametrize("text", ["{}7", "{} 7", " {}-7 ", "7"])
@pytest.mark.parametrize("is_chosen", [True, False])
def test_a_number_may_begin_with_its_carrier(visitor: Visitor, text: str, is_chosen: bool) -> None:
    number = int(FLIGHTS[0][POSITION["OP_CARRIER_AIRLINE_ID"]] or 0)
    chosen_one = str(number) if is_chosen else ""
    typed = {"OP_CARRIER_FL_NUM": text.format(CARRIER[number].code.lower())}
    typed |= {"OP_CARRIER_AIRLINE_ID": chosen_one, "OTHER_CARRIER": ""}
    answer = visitor.send(typed)
    if text == "7" and not is_chosen:
        assert errors_beside(answer) == {"OP_CARRIER_AIRLINE_ID": FILL_IN}
        return
    added = receipt_of(visitor, answer.headers["Location"])["transaction"]
    assert (added["OP_CARRIER_AIRLINE_ID"], added["OP_CARRIER_FL_NUM"]) == (number, 7)


def test_a_cancelled_flight_needs_no_times_and_gets_none(visitor: Visitor) -> None:
    response = visitor.send({"CANCELLED": "1"})
    transaction = receipt_of(visitor, response.headers["Location"])["transaction"]
    assert transaction["CANCELLED"] == 1
    for name in ("DEP_TIME", "DEP_DELAY", "ARR_TIME", "ARR_DELAY", "AIR_TIME"):
        assert transaction[name] is None


def test_a_form_that_is_sent_twice_adds_one_flight(visitor: Visitor) -> None:
    form = {**GOOD_FORM, **visitor.hidden(), "step": "add"}
    first, second = (visitor.client.post("/add", data=form) for _ in range(2))
    assert first.status_code == second.status_code == 303
    assert first.headers["Location"] == second.headers["Location"]
    assert visitor.send().headers["Location"] != first.headers["Location"]


# --- the check


def test_a_flight_is_shown_before_it_is_added(visitor: Visitor) -> None:
    before = visitor.service.sealed()
    known = {name: str(FLIGHTS[0][POSITION[name]]) for name in ("ORIGIN", "ORIGIN_CITY_NAME")}
    form = {
        **GOOD_FORM,
        **visitor.hidden(),
        "ORIGIN": known["ORIGIN"].lower(),
        "OP_CARRIER_FL_NUM": "4712",
    }
    page = visitor.client.post("/add", data=form)
    assert page.status_code == 200
    shown = text_of(page.text)
    for part in ("Nothing has been added yet", "Wednesday, 2 January 2013", "05:17", "3 min early"):
        assert part in shown
    assert f"{known['ORIGIN']}: {known['ORIGIN_CITY_NAME']}" in shown
    assert "already" not in shown
    assert 'name="TOKEN"' not in page.text
    assert visitor.service.sealed() == before
    back = visitor.client.post("/add", data={**hidden(page.text), "step": "change"})
    assert back.status_code == 200
    for name in ("FL_DATE", "OTHER_CARRIER", "OP_CARRIER_FL_NUM", "DEP_TIME", "AIR_TIME"):
        assert value_of(back, name) == form[name]
    assert visitor.client.post("/add", data={**hidden(page.text), "step": "add"}).status_code == 303
    assert visitor.service.sealed() == before + 1


def test_a_flight_that_is_there_already_is_said_before_it_is_added_again(visitor: Visitor) -> None:
    location = visitor.send({"OP_CARRIER_FL_NUM": "4713"}).headers["Location"]
    number = location.partition("?")[0].split("/")[2]
    form = {**GOOD_FORM, **visitor.hidden(), "OP_CARRIER_FL_NUM": "4713"}
    page = visitor.client.post("/add", data=form)
    assert f'has this flight, as <a href="/transactions/{number}">' in page.text


# --- what is wrong

# Between airports that no test adds: where one is, is taken from the ledger as soon as it has it.
NEW_AIRPORTS_FORM = {**GOOD_FORM, "ORIGIN": "zq1", "DEST": "ZQ2"}

TIME = "Must be a time of day such as 05:17, from 00:00 to 24:00."
WHOLE = "Must be a whole number."
FILL_IN = "Please fill this in."
NO_CARRIER = "No carrier of this ledger is called 9Q; leave it out, or choose a carrier."
CODE = "Must be an airport's code of three or four letters or digits, such as ORD."


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("FL_DATE", "", FILL_IN),
        ("FL_DATE", "2013-02-30", "Is not a day of the calendar."),
        ("FL_DATE", "yesterday", "Must be a day such as 2013-01-31."),
        ("FL_DATE", "1899-12-31", "Must be between 1900 and 2199."),
        ("OTHER_CARRIER", "", FILL_IN),
        ("OTHER_CARRIER", "UA", WHOLE),
        ("OP_CARRIER_FL_NUM", "", FILL_IN),
        ("OP_CARRIER_FL_NUM", "twelve", sentence(NO_NUMBER)),
        ("OP_CARRIER_FL_NUM", "9Q12", NO_CARRIER),
        ("OP_CARRIER_FL_NUM", "100000", "Must be between 1 and 99999."),
        ("ORIGIN", "", FILL_IN),
        ("ORIGIN", "O", CODE),
        ("ORIGIN_CITY_NAME", "", FILL_IN),
        ("ORIGIN_STATE_NM", "x" * 101, "Must have at most 100 characters."),
        ("DEST", "<b>", CODE),
        ("DEST_CITY_NAME", "", FILL_IN),
        ("DEST_STATE_NM", "", FILL_IN),
        ("DEP_TIME", "", "Please fill this in, or tick that the flight was cancelled."),
        ("DEP_TIME", "17", TIME),
        ("DEP_TIME", "25:00", TIME),
        ("DEP_DELAY", "", "Please fill this in, or tick that the flight was cancelled."),
        ("DEP_DELAY", "late", WHOLE),
        ("ARR_TIME", "12:60", TIME),
        ("ARR_DELAY", "1.5", WHOLE),
        ("ARR_DELAY", "10001", "Must be between -10000 and 10000."),
        ("AIR_TIME", "-1", "Must be between 0 and 3000."),
    ],
)
def test_a_wrong_field_has_a_message(visitor: Visitor, name: str, text: str, message: str) -> None:
    before = visitor.service.sealed()
    page = visitor.send({name: text}, NEW_AIRPORTS_FORM)
    assert page.status_code == 422
    assert errors_beside(page) == {name: message}
    assert f'<a href="#{name}">' in page.text
    kept = {**NEW_AIRPORTS_FORM, name: text}
    for field in kept.keys() - {"OP_CARRIER_AIRLINE_ID"}:
        if f'name="{field}"' in page.text:
            shown = kept[field].upper() if field in {"ORIGIN", "DEST"} else kept[field]
            assert value_of(page, field) == shown, field
    assert chosen(page, "OP_CARRIER_AIRLINE_ID") == "other"
    assert visitor.service.sealed() == before


def test_all_that_is_wrong_is_said_at_once(visitor: Visitor) -> None:
    page = visitor.send({}, {})
    assert errors_beside(page).keys() == {
        "FL_DATE", "OP_CARRIER_AIRLINE_ID", "OP_CARRIER_FL_NUM", "ORIGIN", "DEST",
        "DEP_TIME", "DEP_DELAY",
    }  # fmt: skip
    assert "City of" not in page.text  # which is asked for with a code alone


def test_where_an_airport_is_is_asked_only_if_nobody_knows(visitor: Visitor) -> None:
    known = str(FLIGHTS[0][POSITION["ORIGIN"]])
    page = visitor.send({"ORIGIN": known, "DEST": "zzz"}, {})
    assert 'name="ORIGIN_CITY_NAME"' not in page.text
    assert "ZZZ is new to this ledger" in page.text
    assert {"DEST_CITY_NAME", "DEST_STATE_NM"} <= errors_beside(page).keys()
    assert "_CITY_NAME" not in visitor.client.get("/add").text


def test_an_airport_that_is_corrected_leaves_no_city_behind(visitor: Visitor) -> None:
    known = str(FLIGHTS[0][POSITION["ORIGIN"]])
    first = visitor.send({"ORIGIN": "QQ7", "ORIGIN_CITY_NAME": "", "DEST": known})
    asked_for = hidden(first.text)
    city = re.search(r'<input id="ORIGIN_CITY_NAME"[^>]*>', first.text)
    assert city is not None
    assert "required" not in city[0]  # the browser would not send the form with the code corrected
    other = {"ORIGIN": "QQ8", "ORIGIN_CITY_NAME": "Of QQ7", "ORIGIN_STATE_NM": "Of QQ7"}
    second = visitor.client.post("/add", data={**GOOD_FORM, "DEST": known, **asked_for, **other})
    assert errors_beside(second).keys() == {"ORIGIN_CITY_NAME", "ORIGIN_STATE_NM"}
    assert value_of(second, "ORIGIN_CITY_NAME") == ""
    right = {"ORIGIN": known, "ORIGIN_CITY_NAME": "Of QQ7", "ORIGIN_STATE_NM": ""}
    third = visitor.client.post(
        "/add", data={**GOOD_FORM, "DEST": known, **asked_for, **right, "step": "add"}
    )
    assert third.status_code == 303
    added = receipt_of(visitor, third.headers["Location"])["transaction"]
    assert added["ORIGIN_CITY_NAME"] == FLIGHTS[0][POSITION["ORIGIN_CITY_NAME"]]


def test_a_form_changed_after_it_was_sent_is_another_flight(visitor: Visitor) -> None:
    form = {**GOOD_FORM, **visitor.hidden(), "step": "add"}
    number = visitor.client.post("/add", data=form).headers["Location"].split("/")[2].split("?")[0]
    page = visitor.client.post("/add", data={**form, "OP_CARRIER_FL_NUM": "77"})
    assert page.status_code == 422
    assert f"transaction {number}" in notice(page)
    assert value_of(page, "OP_CARRIER_FL_NUM") == "77"
    again = {**form, "OP_CARRIER_FL_NUM": "77", **hidden(page.text)}
    assert visitor.client.post("/add", data=again).status_code == 303


# --- the receipt


def test_the_receipt_can_be_recomputed(visitor: Visitor) -> None:
    form = {**GOOD_FORM, "ORIGIN_CITY_NAME": "Coeur d'Alène, ID"}
    location = visitor.send({"OP_CARRIER_FL_NUM": "4711"}, form).headers["Location"]
    receipt = receipt_of(visitor, location)
    record = visitor.service.json(f"/transactions/{location.split('/')[2]}")["transaction"]
    flight = {name: record[name] for name in FIELD_NAMES}
    command = re.search(r"<pre>(.*?)</pre>", visitor.client.get(location).text, re.DOTALL)
    assert command is not None
    printed = subprocess.run(["bash", "-c", unescape(command[1])], capture_output=True, check=True)
    assert printed.stdout.split()[0].decode() == receipt["content_hash"]
    given = {"TRANSACTION_ID": record["TRANSACTION_ID"], "timestamp": record["timestamp"]}
    assert leaf_hash(canonical({**flight, **given})).hex() == receipt["content_hash"]


def test_an_equal_flight_is_said_on_the_receipt(visitor: Visitor) -> None:
    number = {"OP_CARRIER_FL_NUM": "815"}
    first = visitor.send(number).headers["Location"]
    asked = f"/filter_transactions?OP_CARRIER_FL_NUM=815&FL_DATE={GOOD_FORM['FL_DATE']}"
    until(lambda: visitor.service.json(asked)["count"] == 1)
    second = visitor.send(number).headers["Location"]
    assert "The same flight" not in visitor.client.get(first).text
    assert receipt_of(visitor, first)["duplicate_of"] is None
    first_id = int(first.split("/")[2])
    assert receipt_of(visitor, second)["duplicate_of"] == first_id
    assert f'<a href="/transactions/{first_id}">' in visitor.client.get(second).text
    later = second.partition("?")[0].split("/")[2]
    assert receipt_of(visitor, f"{first}?duplicate_of={later}")["duplicate_of"] is None


def test_a_link_cannot_claim_that_flights_are_equal(visitor: Visitor) -> None:
    location = visitor.send({"OP_CARRIER_FL_NUM": "900"}).headers["Location"].partition("?")[0]
    for other in ("0", "x", "-1", "9" * 20, "999999", "²"):
        assert receipt_of(visitor, f"{location}?duplicate_of={other}")["duplicate_of"] is None


# --- a backend that does not take it


def test_a_full_mempool_is_said_in_words(tmp_path_factory: pytest.TempPathFactory) -> None:
    settings = {"FLIGHTCHAIN_MEMPOOL_TRANSACTIONS": 2, "FLIGHTCHAIN_MINE_INTERVAL_S": 3600}
    with visiting(tmp_path_factory.mktemp("full"), **settings) as visitor:
        first = len(FLIGHTS)
        assert visitor.send().headers["Location"] == f"/receipts/{first}"
        second = f"/receipts/{first + 1}?duplicate_of={first}"
        assert visitor.send().headers["Location"] == second
        page = visitor.send({"OP_CARRIER_FL_NUM": "13"})
        assert page.status_code == 503
        assert page.headers["Retry-After"] == "3600"
        assert "mempool is full" in notice(page)
        assert "Nothing was added" in notice(page)
        assert "in about 1 hour" in notice(page)
        assert value_of(page, "OP_CARRIER_FL_NUM") == "13"
        assert re.search(r"The next block is due in 5\d minutes", text(visitor.client, second))
        assert "Both count" in visitor.client.get(second).text


def test_an_error_of_the_backend_is_none_of_the_form() -> None:
    form, headers = {**GOOD_FORM, "key": "0" * 32, "step": "add"}, {"Origin": "http://localhost"}
    with answering(lambda *_: (HTTPStatus.INTERNAL_SERVER_ERROR, {"detail": "it broke"})) as url:
        page = pages_over(url).post("/add", data=form, headers=headers)
    assert page.status_code == 502
    assert notice(page).startswith("The ledger reports an error: it broke.")
    assert hidden(page.text)["key"] == form["key"]


def test_a_form_is_kept_while_the_backend_is_away(lonely_pages: FlaskClient) -> None:
    form, headers = {**GOOD_FORM, "key": "0" * 32, "step": "add"}, {"Origin": "http://localhost"}
    page = lonely_pages.post("/add", data=form, headers=headers)
    assert page.status_code == 503
    assert "does not answer" in notice(page)
    assert hidden(page.text)["key"] == form["key"]  # so that it is not added twice
    names = ("FL_DATE", "DEP_TIME", "DEST_CITY_NAME")
    assert {name: value_of(page, name) for name in names} == {name: form[name] for name in names}
    page = lonely_pages.post("/add", data={**form, "key": "é"}, headers=headers)
    assert re.fullmatch("[0-9a-f]{32}", hidden(page.text)["key"])  # as no browser has sent it
