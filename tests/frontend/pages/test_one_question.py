"""A page is about the question in its address, and all of it; or it refuses the question.

The numbers and names of a page are those of the service's answer to exactly this question, its
links lead to this question with what they change, and its proof and its citation are of this
answer. The tables and twins of the same pages are compared in `test_numbers`.
"""

import html
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from flask import Flask
from flask.testing import FlaskClient

from backend.questions.values import (
    PARAMETERS,
    PROVABLE,
    AverageDelays,
    FilterTransactions,
    FlightCounter,
)
from frontend.filters import counted, minutes, number, share, short_interval
from frontend.pages.flight_status import MOST_LEGS_SHOWN
from frontend.question import KINDS
from tests.api.processes import Service
from tests.cases import each_of
from tests.frontend.pages.reading import ids_on, text_of

Json = dict[str, Any]
Given = dict[str, str]

SERVICE_KINDS = {
    "filter_transactions": FilterTransactions,
    "average_delays": AverageDelays,
    "flight_counter": FlightCounter,
}
PLACES = ("ORIGIN", "ORIGIN_CITY_NAME", "DEST", "DEST_CITY_NAME")


def test_the_questions_are_those_of_the_service() -> None:
    for name, kind in SERVICE_KINDS.items():
        assert set(KINDS[name].parameters) == set(PARAMETERS[kind])
        assert set(KINDS[name].provable) == set(PROVABLE[kind])


class Seen:
    """A page that answers, and what the service says to the question that it shows."""

    def __init__(self, app: Flask, service: Service, name: str, given: Given) -> None:
        self.pages, self.name, self.given = app.test_client(), name, given
        query = urlencode(given)
        answer = self.pages.get(f"/{name}?{query}")
        assert answer.status_code == 200, text_of(answer.text)
        self.source = html.unescape(answer.text)
        self.title = text_of(re.findall(r"<h1>(.*?)</h1>", answer.text, re.DOTALL)[0])
        self.text = text_of(answer.text)
        self.twin = self.pages.get(f"/{name}.json?{query}").get_json()
        self._service = service

    def asked(self, query: Json) -> Json:
        """The service's answer to the question of the page, which is that of the address."""
        for name, text in self.given.items():
            assert name in {"as_of", "engine"} or str(query[name]) == text
        as_of = {name: self.given[name] for name in ("as_of",) if name in self.given}
        question = {name: query[name] for name in KINDS[self.name].parameters if name in query}
        return self.answer(**question, **as_of)

    def answer(self, **question: Any) -> Json:
        answer: Json = self._service.get(f"/{self.name}?{urlencode(question)}").json()
        return answer

    def facts(self) -> Given:
        return dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", self.source))


def require_places(page: Seen) -> None:
    """The heading names each end as it is asked for."""
    for name in PLACES:
        if name in page.given:
            assert page.given[name] in page.title, (page.title, page.given)


def require_links(page: Seen, answer: Json) -> None:
    """Links to other days change nothing else, and those to the same question change nothing."""
    same = {**page.given, "engine": ""}
    nav = "".join(re.findall(r'<nav class="intervals".*?</nav>', page.source, re.DOTALL))
    for address in re.findall(r'href="([^"]+)"', nav):
        leads_to = dict(parse_qsl(urlsplit(address).query))
        for name, text in same.items():
            assert name in {"INITIAL_DATE", "FINAL_DATE", "engine"} or leads_to[name] == text
    (cited,) = re.findall(r'<a href="([^"]+)" rel="bookmark"', page.source)
    assert "Unchanged." in page.pages.get(cited).text
    query = dict(parse_qsl(urlsplit(cited).query))
    for name, text in page.given.items():
        assert name == "engine" or query[name] == text
    days = [name for name in ("INITIAL_DATE", "FL_DATE", "FINAL_DATE") if name in page.given]
    if len(days) == 2:
        assert f'value="{short_interval(*map(page.given.__getitem__, days))}"' in page.source
    else:
        days = []
    inputs = re.findall(r'<(?:input|option)[^>]*(?:value="[^"]*")[^>]*>', page.source)
    for name, text in page.given.items():
        if name not in {"engine", *days}:
            assert any(f'value="{text}"' in field for field in inputs), (name, inputs)
    require_as_of(page, answer)


def numbers(page: Seen, table: str, column: int) -> list[int]:
    """Whole numbers in a column of a table, which stands behind the name of each row."""
    body = (
        page.source.partition(f'id="{table}"')[2].partition("</table>")[0].partition("<tbody>")[2]
    )
    rows = body.split('<th scope="row">')[1:]
    cells = [re.findall(r"<td[^>]*>([^<]*)", row)[column] for row in rows]
    return [int(cell.replace(",", "")) for cell in cells]


def require_as_of(page: Seen, answer: Json) -> None:
    if "as_of" in page.given:
        assert f"up to block {page.given['as_of']}" in page.text
        assert answer["as_of"]["height"] == int(page.given["as_of"])


def require_proof(page: Seen, service: Service, answer: Json) -> None:
    """It is of this question, as of this block, and of this answer; or there is none."""
    proofs = re.findall(r'data-proof="([^"]+)"', page.source)
    is_provable = page.given.keys() <= {*KINDS[page.name].provable, "as_of", "engine"}
    assert bool(proofs) == is_provable
    for address in proofs:
        claim = json.loads(service.get(address).content.splitlines()[0])
        shown = html.unescape(re.findall(r"data-question=\"(.*?)\" data-answer", page.source)[0])
        assert claim["question"] == json.loads(shown)
        assert all(answer[name] == value for name, value in claim["answer"].items())


# --- questions -----------------------------------------------------------------------------------

DAYS = "INITIAL_DATE=2015-01-02&FINAL_DATE=2015-01-05"
SAME = "ORIGIN=LAX&ORIGIN_CITY_NAME=Los Angeles, CA&DEST=SFO&DEST_CITY_NAME=San Francisco, CA"
DELAYS = (
    "OP_CARRIER_AIRLINE_ID=19393",
    f"OP_CARRIER_AIRLINE_ID=19393&ORIGIN=LAX&as_of=12&{DAYS}",
    "OP_CARRIER_AIRLINE_ID=19805&DEST_CITY_NAME=Chicago, IL&engine=index",
    f"OP_CARRIER_AIRLINE_ID=20304&{SAME}&engine=index&as_of=29",
    "OP_CARRIER_AIRLINE_ID=19690&ORIGIN=ANC&DEST=ATL&as_of=0",
)
COUNTS = (
    "ORIGIN=LAX&DEST=SFO",
    f"ORIGIN_CITY_NAME=Los Angeles, CA&DEST_CITY_NAME=San Francisco, CA&as_of=20&{DAYS}",
    f"{SAME}&engine=index&{DAYS}",
    "ORIGIN=ANC&DEST_CITY_NAME=Miami, FL",
    "ORIGIN_CITY_NAME=Chicago, IL&DEST=ATL&as_of=0&engine=index",
)
STATUS = (
    "OP_CARRIER_FL_NUM=1&FL_DATE=2015-01-02",
    "OP_CARRIER_FL_NUM=1&FL_DATE=2015-01-01&FINAL_DATE=2015-01-10",
    "OP_CARRIER_FL_NUM=1&FL_DATE=2015-01-02&FINAL_DATE=2015-01-04&OP_CARRIER_AIRLINE_ID=19393&as_of=20",
    "OP_CARRIER_FL_NUM=2&FL_DATE=2015-01-05&engine=index&as_of=0",
)


def as_of(question: Given) -> Given:
    return {name: text for name, text in question.items() if name == "as_of"}


def turned(query: Json) -> Json:
    """The question about the other direction."""
    other = {"ORIGIN": "DEST", "DEST": "ORIGIN"}
    return {re.sub("^(ORIGIN|DEST)", lambda m: other[m[1]], name): v for name, v in query.items()}


@each_of("asked", DELAYS)
def test_delays_are_those_of_the_question(app: Flask, service: Service, asked: str) -> None:
    question = dict(parse_qsl(asked))
    page = Seen(app, service, "average_delays", question)
    answer = page.asked(page.twin["carriers"][0]["query"])
    require_places(page)
    query = answer["query"]
    assert short_interval(query["INITIAL_DATE"], query["FINAL_DATE"]) in page.text
    spread = page.answer(**query, **as_of(question), distribution="true")["distribution"]
    assert (
        page.facts().items()
        >= {
            "Median": minutes(spread["median"], 1),
            "90th percentile": minutes(spread["p90"]),
            "On time (% of arrivals)": share(answer["on_time_share_of_arrived"]),
            "On time (% of scheduled)": share(answer["on_time_share_of_scheduled"]),
            "Mean departure delay": minutes(answer["average_departure_delay"], 1),
            "Scheduled": number(answer["flights"]),
            "Arrived": number(answer["arrived"]),
            "Cancelled": number(answer["cancelled"]),
            "No arrival recorded": number(answer["no_arrival"]),
        }.items()
    )
    if answer["arrived"]:
        large = re.findall(r'<p class="figure-large">(.*?)</p>', page.source)
        assert large == [minutes(answer["average_delay"], 1)]
        assert sum(numbers(page, "each-bin", 0)) == answer["arrived"]
    require_links(page, answer)
    require_proof(page, service, answer)


@each_of("asked", COUNTS)
def test_counts_are_those_of_the_question(app: Flask, service: Service, asked: str) -> None:
    question = dict(parse_qsl(asked))
    page = Seen(app, service, "flight_counter", question)
    answer = page.asked(page.twin["query"])
    require_places(page)
    query = {name: value for name, value in answer["query"].items() if name != "engine"}
    if answer["count"]:
        large = re.findall(r'<p class="figure-large">(.*?)</p>', page.source)
        assert large == [number(answer["count"])]
        assert short_interval(query["INITIAL_DATE"], query["FINAL_DATE"]) in page.text
    else:
        assert "no nonstop flights" in page.text or "no flights on this route" in page.text
    back = page.answer(**turned(query), **as_of(question))["count"]
    assert f": {counted(back, 'flight') if back else 'no flights'}." in page.text
    require_links(page, answer)
    require_proof(page, service, answer)


@each_of("asked", STATUS)
def test_flights_are_those_of_the_question(app: Flask, service: Service, asked: str) -> None:
    question = dict(parse_qsl(asked))
    page = Seen(app, service, "filter_transactions", question)
    answer = page.asked(page.twin["query"])
    assert page.twin["count"] == answer["count"]
    expected = {leg["TRANSACTION_ID"] for leg in answer["flights"]}
    assert set(ids_on(page.source)) <= expected
    assert len(ids_on(page.source)) == min(len(expected), MOST_LEGS_SHOWN)
    if len(expected) > MOST_LEGS_SHOWN:
        assert f"The ledger has {number(answer['count'])} legs" in page.text
    assert question["OP_CARRIER_FL_NUM"] in page.title
    first, last = question["FL_DATE"], question.get("FINAL_DATE", question["FL_DATE"])
    assert short_interval(first, last) in page.title
    require_links(page, answer)
    require_proof(page, service, answer)


def all_links(page: str) -> Iterator[str]:
    yield from (html.unescape(address) for address in re.findall(r'href="(/[^"]*)"', page))


OTHERS = (
    *("/route?ORIGIN=LAX&DEST=SEA", "/airports/LAX?", "/rankings?by=origin"),
    *("/report?OP_CARRIER_FL_NUM=1", "/days/2015-01-03?", "/days?ORIGIN=LAX"),
    *("/departures?ORIGIN=LAX&hour=8", "/departures?FL_DATE=2015-01-03"),
)


@pytest.mark.parametrize("path", OTHERS)
def test_links_of_other_pages_stay_at_their_block(pages: FlaskClient, path: str) -> None:
    answer = pages.get(f"{path}&as_of=20")
    assert answer.status_code == 200
    assert "up to block 20" in text_of(answer.text)
    content = answer.text.partition("<main")[2].partition("</main>")[0]
    content = re.sub(r'<a href="[^"]*">Count all blocks</a>', "", content)
    for address in all_links(content):
        if not address.startswith(("/blocks/", "/about", "/transactions/", "/search")):
            assert "as_of=20" in address
