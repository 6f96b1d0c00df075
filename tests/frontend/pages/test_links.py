"""A link beside a number leads to a page that shows this number."""

import html
import io
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import pytest
from flask.testing import FlaskClient

from tests.cases import each_of
from tests.frontend.pages.reading import text_of

COUNTS = ("Flights", "Scheduled")
CELL = r"<t[hd][^>]*>(.*?)</t[hd]>"
PAGES = (
    "/",
    "/route?ORIGIN=LAX&DEST=SFO",
    "/route?ORIGIN_CITY_NAME=Los+Angeles,+CA&DEST_CITY_NAME=San+Francisco,+CA&as_of=20",
    "/airports/LAX",
    "/airports/LAX?INITIAL_DATE=2015-01-02&FINAL_DATE=2015-01-05",
    "/flight_counter?ORIGIN_CITY_NAME=Los+Angeles,+CA&DEST_CITY_NAME=San+Francisco,+CA",
    "/flight_counter?ORIGIN=LAX&DEST=SFO&INITIAL_DATE=2015-01-02&FINAL_DATE=2015-01-05",
    "/days",
    "/days?ORIGIN=LAX&INITIAL_DATE=2015-01-02&FINAL_DATE=2015-01-05",
    "/days/2015-01-03",
    "/days/2015-01-03?DEST=LAX&as_of=20",
    "/departures?ORIGIN=LAX&DEST=SFO",
    "/departures?ORIGIN=LAX&FL_DATE=2015-01-03",
    "/report?OP_CARRIER_FL_NUM=1",
    "/report?OP_CARRIER_FL_NUM=12345",
    "/compare?what=carrier&item=WN&item=AA&ORIGIN=LAX",
    "/compare?what=route&item=LAX-SFO&item=Los+Angeles+to+Chicago&as_of=20",
    "/compare?what=days&item=3+January&item=4+January&OP_CARRIER_AIRLINE_ID=19393",
    "/rankings?by=route&OP_CARRIER_AIRLINE_ID=19393",
    "/rankings?by=carrier&DEST_CITY_NAME=Los+Angeles,+CA&as_of=20",
    "/rankings?by=origin&OP_CARRIER_AIRLINE_ID=19393&DEST=LAX",
    *(f"/rankings?by={by}" for by in ("carrier", "route", "origin", "destination")),
)
WITHOUT_LINKS = (
    "/report?OP_CARRIER_FL_NUM=12345",
    "/rankings?by=origin&OP_CARRIER_AIRLINE_ID=19393&DEST=LAX",
)
SAMPLED = 2
Link = TypeVar("Link")


def numbered_links(page: str) -> Iterator[tuple[str, str]]:
    """Where each row of a table leads, and its number of flights."""
    for table in re.findall(r"<table.*?</table>", page, re.DOTALL):
        head, _, body = table.partition("</thead>")
        heads = [text_of(cell) for cell in re.findall(CELL, head, re.DOTALL)]
        column = next((place for place, head in enumerate(heads) if head in COUNTS), None)
        for row in re.findall(r"<tr.*?</tr>", body, re.DOTALL):
            cells = re.findall(CELL, row, re.DOTALL)
            address = re.search(r'<a href="(/[^"]+)"', row)
            if address and column is not None:
                yield html.unescape(address[1]), text_of(cells[column])


def shows(page: str, count: str, anchor: str = "") -> bool:
    """Whether a number of flights is among the figures of a page, or what it is about.

    anchor: "arrivals" for those of flights that come to an airport.
    """
    content = page.partition("<main")[2].partition("</main>")[0]
    departures, _, arrivals = content.partition('id="arrivals"')
    content = arrivals if anchor else departures
    figures = re.findall(r"<dt>(?:Flights|Scheduled)</dt><dd>(.*?)</dd>", content)
    figures += re.findall(r'<th scope="row">Flights</th><td class="n">([\d,]+)</td>', content)
    figures += re.findall(r'<p class="figure-large">([\d,]+)</p>', content)
    return count in figures


def sample(items: Sequence[Link]) -> Sequence[Link]:
    """The first and the last of many that are made alike."""
    return items if len(items) <= 2 * SAMPLED else [*items[:SAMPLED], *items[-SAMPLED:]]


@each_of("address", PAGES)
def test_a_link_leads_to_its_number_and_commands_to_the_table(
    pages: FlaskClient, address: str
) -> None:
    answer = pages.get(address)
    assert answer.status_code == 200
    links = list(dict.fromkeys(numbered_links(answer.text)))
    assert bool(links) == (address not in WITHOUT_LINKS)
    for leads_to, count in sample(links):
        path, _, anchor = leads_to.partition("#")
        assert shows(pages.get(path).text, count, anchor), leads_to
    require_commands(pages, html.unescape(answer.text))


def require_commands(pages: FlaskClient, page: str) -> None:
    """The commands for scripts get the tables of the page."""
    commands = re.findall(r"<pre data-copy>(.*?)</pre>", page, re.DOTALL)
    addresses = [re.findall(r"""["'](http://localhost/[^"']+)["']""", text)[0] for text in commands]
    assert len({*addresses}) == 1
    answer = pages.get(addresses[0].removeprefix("http://localhost"))
    assert answer.status_code == 200
    if len(commands) == 2:
        assert commands[1].startswith("import pandas\ntable = pandas.read_csv(")
        assert answer.mimetype == "text/csv"
        values: dict[str, Any] = {"file": io.StringIO(answer.text)}
        exec(commands[1].replace(f'"{addresses[1]}"', "file"), values)
        cells = {str(cell) for row in values["table"].itertuples() for cell in row}
        assert {*re.findall(r"(?<![^,])0\d{3}(?![^,\r])", answer.text)} <= cells  # such as 0517


@pytest.mark.parametrize(
    ("address", "column"),
    [
        ("/average_delays?OP_CARRIER_AIRLINE_ID=19393", 3),
        ("/flight_counter?ORIGIN=LAX&DEST_CITY_NAME=San+Francisco,+CA&as_of=20", 1),
    ],
)
def test_a_day_of_a_chart_leads_to_its_number(
    pages: FlaskClient, address: str, column: int
) -> None:
    page = pages.get(address).text
    table = page.partition('<caption id="each-slot"')[2].partition("</table>")[0]
    rows = table.split("<tr>")[2:]
    assert rows
    for row in sample(rows):
        leads_to = re.findall(r'<a href="(/days/[^"]+)"', row)
        (count,) = re.findall(r"[\d,]+", row.split("<td>")[column]) or ["0"]
        text = pages.get(html.unescape(leads_to[0])).text
        assert shows(text, count) or (count == "0" and "no flights on this day" in text)


def test_a_schedule_of_a_flight_does_not_lead_to_the_flights_of_others(pages: FlaskClient) -> None:
    page = pages.get("/report?OP_CARRIER_FL_NUM=1").text
    schedules = page.partition('id="schedules"')[2].partition("</table>")[0]
    assert "href" not in schedules
    assert "All flights of any carrier:" in page
