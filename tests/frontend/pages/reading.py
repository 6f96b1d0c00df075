"""Reading pages as they come: their text, their source, their tables, their links."""

import csv
import gzip
import html
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from frontend.app import create_app
from frontend.settings import Settings
from tests.api.worlds import client_of, settings_for
from tests.http_servers import served_in_a_thread

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MOST_BYTES = 50_000  # of a page, compressed


def pages_over(url: str) -> FlaskClient:
    """A client of pages over the service at `url`."""
    return create_app(Settings(backend_url=url)).test_client()


@contextmanager
def pages_of(folder: Path) -> Iterator[FlaskClient]:
    """A client of pages over the chain in `folder`, whose service is in this process."""
    with (
        client_of(settings_for(folder)) as service,
        served_in_a_thread(service.application) as url,
    ):
        yield pages_over(url)


def text(pages: FlaskClient, address: str, status: int = 200) -> str:
    return text_of(raw(pages, address, status))


def text_of(source: str) -> str:
    """Return what is shown of a source: without tags, each gap as one space."""
    bare = html.unescape(re.sub(r"<[^>]+>", " ", source))
    return re.sub(r"[ \t\r\n]+", " ", bare).strip(" ")


def raw(pages: FlaskClient, address: str, status: int = 200, **how: Any) -> str:
    """Return the source of a page as it is sent."""
    answer = pages.get(address, **how)
    assert answer.status_code == status, answer.text
    return answer.text


def source(pages: FlaskClient, address: str) -> str:
    return html.unescape(raw(pages, address))


def require_words(
    pages: FlaskClient, address: str, words: Iterable[str], missing: Iterable[str] = ()
) -> None:
    """Require that a page has all `words`, in its source or its text, and none of `missing`."""
    page = raw(pages, address)
    page = html.unescape(page) + text_of(page)
    assert [part for part in words if part not in page] == []
    assert [part for part in missing if part in page] == []


def small_source(pages: FlaskClient, address: str, **how: Any) -> str:
    """Return the source of a page, which must be within the budget of its compressed size."""
    answer = pages.get(address, headers={"Accept-Encoding": "gzip"}, **how)
    assert len(answer.get_data()) <= MOST_BYTES
    return gzip.decompress(answer.get_data()).decode()


def ids_on(page: str) -> list[int]:
    """Return the numbers of the transactions that a page has links to."""
    return [int(number) for number in re.findall(r'href="/transactions/(\d+)"', page)]


def link(page: str, name: str) -> str:
    """Return where the first link with this text leads; "" if there is none."""
    match = re.search(rf'<a href="([^"]+)"[^>]*>(?:← )?{name}(?: →)?</a>', page)
    return match[1] if match else ""


def slot_rows(page: str) -> str:
    """The table of each day, or month, or year, without its links."""
    rows = page[page.index('id="each-slot"') :].partition("</table>")[0]
    return re.sub(r"</?a\b[^>]*>", "", rows)


def table(pages: FlaskClient, address: str) -> list[dict[str, str]]:
    """Return the rows of a page's twin in CSV."""
    return rows_of(pages.get(address))


def rows_of(answer: TestResponse) -> list[dict[str, str]]:
    assert answer.mimetype == "text/csv"
    return list(csv.DictReader(io.StringIO(answer.text, newline="")))


# --- hours of the week


def week_of(page: str, table_id: str) -> dict[tuple[str, str], str]:
    """The percents of a table of hours by the beginning of an hour and of a weekday, or "All"."""
    grid = page.partition(f'<caption id="{table_id}"')[2].partition("</table>")[0]
    heads = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', grid)[1:]
    cells = {}
    for row in re.findall(r"<tr.*?</tr>", grid.partition("<tbody>")[2], re.DOTALL):
        name = re.findall(r'<th scope="row">(?:<a[^>]*>)?([^<]*)', row)[0]
        for head, text in zip(heads, re.findall(r"<td[^>]*>(.*?)</td>", row), strict=True):
            if head[:3] in {*WEEKDAYS, "All"} and text:
                cells[name, head] = text
    return cells
