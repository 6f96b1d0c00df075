"""What cannot be asked is refused in words, on pages beside the form and in twins as a problem."""

import html
import re

from flask.testing import FlaskClient

from tests.cases import each_of
from tests.frontend.pages.reading import raw

DELAYS, COUNTER = "/average_delays?OP_CARRIER_AIRLINE_ID=", "/flight_counter?ORIGIN_CITY_NAME="
CITIES = f"{COUNTER}San+Francisco%2C+CA&DEST_CITY_NAME="
STATUS, REPORT = "/filter_transactions?OP_CARRIER_FL_NUM=", "/report?OP_CARRIER_FL_NUM="
COMPARE = "/compare?what=carrier&item=WN&item="
ALERT = 'role="alert"'
REFUSED = [
    (f"{DELAYS}abc", ">Must be the name, code or number of one carrier of this ledger.<"),
    (f"{DELAYS}100000", ">Must be the name, code or number of one carrier of this ledger.<"),
    (f"{DELAYS}&INITIAL_DATE=2015-01-02", ">Please fill this in.<"),
    (
        f"{DELAYS}1&INITIAL_DATE=2015-01-09&FINAL_DATE=2015-01-02",
        ">The first day must not be after the last day.",
    ),
    (f"{DELAYS}1&INITIAL_DATE=yesterday", "yesterday"),
    (
        f"{DELAYS}1&FL_DATE=2015-01-02",
        "unknown parameter FL_DATE; this page takes OP_CARRIER_AIRLINE_ID, ",
    ),
    (
        f"{DELAYS}1&group_by=day",
        "unknown parameter group_by; this page takes OP_CARRIER_AIRLINE_ID, ",
    ),
    (f"{CITIES}Los+Angeles%2C+CA&limit=1", "this page takes ORIGIN, DEST, ORIGIN_CITY_NAME, "),
    (f"{STATUS}1&FL_DATE=2015-01-01&offset=1", "this page takes OP_CARRIER_FL_NUM, FL_DATE, "),
    (f"{COUNTER}San+Francisco%2C+CA", 'id="counter-DEST_CITY_NAME-error"'),
    ("/flight_counter?INITIAL_DATE=2015-01-02", 'id="counter-ORIGIN_CITY_NAME-error"'),
    (f"{CITIES}%00", ALERT),
    (f"{CITIES}{'x' * 200}", ALERT),
    (f"{CITIES}Los+Angeles%2C+CA&INITIAL_DATE=2015-02-30", 'id="counter-days-error"'),
    (f"{CITIES}Los+Angeles%2C+CA&FL_DATE=2015-01-01", ALERT),
    ("/filter_transactions?FL_DATE=2015-01-01", 'id="OP_CARRIER_FL_NUM-error"'),
    (f"{STATUS}x&FL_DATE=2015-01-01", 'id="OP_CARRIER_FL_NUM-error"'),
    (f"{STATUS}1&FL_DATE=2015-02-30", 'id="FL_DATE-error"'),
    (f"{STATUS}1&FL_DATE=2015-01-01&OP_CARRIER_AIRLINE_ID=x", 'id="OP_CARRIER_AIRLINE_ID-error"'),
    (f"{STATUS}1&FL_DATE=2015-01-01&format=csv", "add .json or .csv to its address"),
    (f"{STATUS}1&FL_DATE=2015-01-01&check=red", "check"),
    (f"{REPORT}x", "must be a number such as 1545"),
    (f"{REPORT}ZZ1", "no carrier of this ledger is called ZZ"),
    (f"{REPORT}1&INITIAL_DATE=whenever", "July 2013 or 1 to 7 July 2013.</p>"),
    (f"{REPORT}1&INITIAL_DATE=whenever", '<a href="#report-days">Days</a>: Not understood'),
    (
        "/compare?what=flight&item=1&item=2&INITIAL_DATE=whenever",
        '<a href="#compare-days">Days</a>: Not understood',
    ),
    (f"{COMPARE}AA&INITIAL_DATE=whenever", 'value="whenever" aria-describedby="compare-days-hint '),
    (f"{COMPARE}Nobody&sort=cancelled", '<input type="hidden" name="sort" value="cancelled">'),
    (
        "/rankings?INITIAL_DATE=foo&sort=flights",
        'type="hidden" name="sort" value="flights"',
    ),
    (
        f"{COMPARE}Nobody&INITIAL_DATE=2015-01-02&FINAL_DATE=2015-01-08",
        'name="days" type="text" value="2015-01-02 to 2015-01-08"',
    ),
    ("/report?OP_CARRIER_AIRLINE_ID=19977", "Please fill this in"),
    (f"{REPORT}1&group_by=day", "unknown parameter group_by"),
    (
        "/rankings?by=city",
        "Must be one of carrier (Carriers), route (Routes), origin (Departure airports), ",
    ),
    (
        "/rankings?sort=name",
        "sort 'name': must be one of flights (number of flights), average_delay (mean",
    ),
    ("/rankings?order=up", "order 'up': must be one of descending"),
    ("/rankings?page=0", "page '0': must be a number from 1"),
    ("/rankings?page=x", "page 'x': must be a number from 1"),
    ("/rankings?page=0000000011", "page '0000000011': must be a number from 1"),
    (
        "/rankings?INITIAL_DATE=2015-02-01&FINAL_DATE=2015-01-01",
        "The first day must not be after the last day",
    ),
    ("/rankings?engine=scan&by=x", "</a>: Must be one of carrier"),
    ("/route?ORIGIN=LAX&DEST=SFO&INITIAL_DATE=whenever", ">Not understood; write it as in 2013-"),
    ("/departures?hour=8", "Please fill this in"),
    ("/departures?ORIGIN=LAX&hour=24", "must be an hour from 0 to 23"),
    ("/departures?ORIGIN=LAX&hour=00024", "must be an hour from 0 to 23"),
    ("/departures?ORIGIN=LAX&FL_DATE=2015-01-03&INITIAL_DATE=2015-01-01", "unknown parameter INIT"),
    ("/departures?ORIGIN=LAX&FL_DATE=2015-02-30", 'id="departures-FL_DATE-error"'),
    ("/days?sort=size", 'id="days-sort-error">Must be one of flights'),
    ("/days?ORIGIN=LAX&INITIAL_DATE=nonsense", 'name="ORIGIN_CITY_NAME" type="text" value="LAX"'),
    ("/airports/LAX?INITIAL_DATE=nonsense", 'id="airport-days-error"'),
    ("/days?FL_DATE=2015-01-03", "unknown parameter FL_DATE"),
    ("/route?ORIGIN=LAX", "Please fill this in"),
    ("/route?ORIGIN=LAX&DEST=SFO&group_by=day", "unknown parameter group_by"),
    ("/blocks?before=x", ALERT),
    ("/blocks?hash=12", ALERT),
    ("/blocks?engine=scan", ALERT),
]


@each_of(("address", "message"), REFUSED)
def test_bad_input_has_a_message(pages: FlaskClient, address: str, message: str) -> None:
    page = html.unescape(raw(pages, address, 400))
    assert message.lower() in page.lower()
    assert ALERT in page
    assert "<figure" not in page
    links, ids = (set(re.findall(form, page)) for form in (r'href="#([^"]+)"', r' id="([^"]+)"'))
    assert links <= ids
    for form in ("json", "csv"):
        twin = pages.get(address.replace("?", f".{form}?"))
        assert (twin.status_code, twin.mimetype) == (400, "application/problem+json")


@each_of(
    "address",
    [
        f"{STATUS}1&FL_DATE=4/3/2015",
        f"{DELAYS}1&days=4/3/2015",
        f"{CITIES}Los+Angeles%2C+CA&INITIAL_DATE=4/3/2015",
        "/days?days=4/3/2015",
        f"{REPORT}1&days=4/3/2015",
        "/airports/LAX?days=4/3/2015",
        "/compare?what=days&item=4/3/2015&item=13/3/2015",
    ],
)
def test_a_form_does_not_guess_which_day_is_meant(pages: FlaskClient, address: str) -> None:
    answer = pages.get(address, follow_redirects=True)
    page = html.unescape(answer.text)
    reason = "“4/3/2015” may be 3 April 2015 or 4 March 2015; write 2015-04-03 or 2015-03-04"
    assert (answer.status_code, reason in page) == (400, True)
    assert 'value="4/3/2015"' in page
    clear = pages.get(address.replace("4/3/2015", "14/3/2015"), follow_redirects=True)
    assert "may be" not in html.unescape(clear.text)


KEPT = [
    "/average_delays?OP_CARRIER_AIRLINE_ID=19393&ORIGIN=LAX&as_of=20&INITIAL_DATE=nonsense",
    "/flight_counter?ORIGIN=LAX&DEST=SFO&as_of=20&INITIAL_DATE=nonsense",
    "/filter_transactions?OP_CARRIER_FL_NUM=1&as_of=20&FL_DATE=nonsense",
    "/route?ORIGIN=LAX&DEST=SFO&as_of=20&INITIAL_DATE=nonsense",
    "/report?OP_CARRIER_FL_NUM=1&ORIGIN=LAX&as_of=20&INITIAL_DATE=nonsense",
    "/rankings?ORIGIN=LAX&as_of=20&INITIAL_DATE=nonsense",
    "/days?ORIGIN=LAX&as_of=20&sort=size",
    "/departures?ORIGIN=LAX&as_of=20&hour=24",
    "/compare?what=carrier&item=WN&ORIGIN=LAX&as_of=20",
    "/airports/LAX?as_of=20&INITIAL_DATE=nonsense",
]


@each_of("address", KEPT)
def test_a_refused_form_keeps_what_it_has_no_field_for(pages: FlaskClient, address: str) -> None:
    page = raw(pages, address, 400)
    assert page.count('name="as_of" value="20" checked') == 1
    assert ("ORIGIN=LAX" in address) == ('value="LAX"' in page)


@each_of("path", ["average_delays", "flight_counter", "filter_transactions"])
def test_without_a_question_there_is_a_form(pages: FlaskClient, path: str) -> None:
    page = raw(pages, f"/{path}")
    assert f'action="/{path}"' in page
    assert ALERT not in page
    assert "<figure" not in page
    assert pages.get(f"/{path}.json").status_code == 400


@each_of("path", ["average_delays", "flight_counter", "route", "departures", "filter_transactions"])
def test_a_twin_names_the_parameter_that_is_missing(pages: FlaskClient, path: str) -> None:
    detail = pages.get(f"/{path}.json").get_json()["detail"]
    assert re.match("[A-Z_]+ is missing", detail)


MISSING = [
    *((f"/blocks/9999{form}", "lock 9999") for form in ("", ".json", ".csv")),
    *(
        (f"/transactions/1400{part}", "transaction 1400")
        for part in ("", "/state", ".json", ".csv")
    ),
    *((f"/receipts/99999999{form}", "99999999") for form in ("", ".json")),
    *((address, "no page has") for address in ("/blocks/x", "/transactions/x", "/transactions/-1")),
    ("/airports/ZZZ", "airport in the ledger has the code zzz"),
    *(
        (f"/days/{x}", "” is not a day from 1900 to 2199;")
        for x in ("today", "2013-02-30", "20130105", "0001-01-01", "9999-12-31")
    ),
]


@each_of(("address", "message"), MISSING)
def test_what_is_not_there_is_not_found(pages: FlaskClient, address: str, message: str) -> None:
    answer = pages.get(address)
    assert answer.status_code == 404
    assert message in answer.text.lower()
    if answer.mimetype == "text/html":
        assert "What to try" in answer.text


@each_of(
    "address",
    [
        *("/blocks/4?offset=x", "/blocks/4?engine=scan"),
        *(f"/transactions/{10**30}", "/transactions/1?engine=scan"),
    ],
)
def test_what_a_page_without_a_form_refuses_has_advice(pages: FlaskClient, address: str) -> None:
    assert "What to try" in raw(pages, address, 400)
