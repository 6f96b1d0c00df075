"""Reading pages as they come: their text, their source, their tables, their links."""

import csv
import gzip
import html
import io
import re
from typing import Any

from flask.testing import FlaskClient

MOST_BYTES = 50_000  # of a page, compressed


def text(pages: FlaskClient, address: str, status: int = 200) -> str:
    """A page without tags, spaces as one."""
    bare = re.sub(r"<[^>]+>", " ", raw(pages, address, status))
    return " ".join(html.unescape(bare).split())


def raw(pages: FlaskClient, address: str, status: int = 200, **how: Any) -> str:
    """A page as it comes."""
    answer = pages.get(address, **how)
    assert answer.status_code == status, answer.text
    return answer.text


def source(pages: FlaskClient, address: str) -> str:
    return html.unescape(raw(pages, address))


def small_source(pages: FlaskClient, address: str, **how: Any) -> str:
    """A page that is within the budget of its compressed size."""
    answer = pages.get(address, headers={"Accept-Encoding": "gzip"}, **how)
    assert len(answer.get_data()) <= MOST_BYTES
    return gzip.decompress(answer.get_data()).decode()


def ids_on(page: str) -> list[int]:
    """The transactions that it leads to."""
    return [int(found) for found in re.findall(r'href="/transactions/(\d+)"', page)]


def link(page: str, name: str) -> str:
    """Where the first link of that text leads; "" if there is none."""
    found = re.search(rf'<a href="([^"]+)"[^>]*>(?:← )?{name}(?: →)?</a>', page)
    return found[1] if found else ""


def slot_rows(page: str) -> str:
    """The table of each day, or month, or year."""
    return page[page.index('id="each-slot"') :].partition("</table>")[0]


def table(pages: FlaskClient, address: str) -> list[dict[str, str]]:
    """The rows of a CSV twin."""
    answer = pages.get(address)
    assert answer.mimetype == "text/csv"
    return list(csv.DictReader(io.StringIO(answer.text, newline="")))
