"""The pages below a path of another server: all addresses on them lead to below that path, too."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import requests
from playwright.sync_api import expect
from werkzeug.exceptions import NotFound

from frontend.app import create_app
from frontend.settings import Settings
from tests.browser.conftest import Visit
from tests.browser.sites import Site, lab_dir
from tests.browser.table import PAGES
from tests.browser.test_proofs import PROVED, verdict
from tests.browser.test_upload import check_as_day_first, written_day_first
from tests.http_servers import served_in_a_thread

PREFIX = "/flights"
ADDRESS = re.compile(r'[\s:]([a-z][a-z-]*)="(/[^"]*)"')
COPIED = re.compile(r"""(?:<pre data-copy>curl '|read_csv\(")http://[^/]+(/[^'"]+)""")
COMMAND = re.compile(r"curl [^<]*?(https?)://")
NO_ADDRESS = {"d", "value", "content"}  # of a path in SVG, and what was typed
SAME_KIND = re.compile(r"\d+|[A-Z]{3}$|\?.*")


class Below(Site):
    """A site below a path."""

    def address(self, template: str) -> str:
        return self.url + super().address(template)


@pytest.fixture(scope="module")
def below(sites: dict[str, Site]) -> Iterator[Below]:
    """As nginx with `location /flights/ { proxy_pass ...; }` shows it; all else is another's."""
    site = sites["many"]
    lab = lab_dir(site.service.folder)
    pages = create_app(Settings(backend_url=site.service.url, lab_dirs=(lab,)))

    def proxied(environ: Any, start_response: Any) -> Any:
        path = environ["PATH_INFO"]
        if not path.startswith(f"{PREFIX}/"):
            return NotFound()(environ, start_response)
        given = {"PATH_INFO": path.removeprefix(PREFIX), "HTTP_X_FORWARDED_PREFIX": PREFIX}
        return pages(environ | given, start_response)

    with served_in_a_thread(proxied) as url:
        yield Below(f"{url}{PREFIX}", site.service, site.values)


def addresses_in(page: str) -> set[str]:
    matches = (match for match in ADDRESS.findall(page) if match[0] not in NO_ADDRESS)
    return {unescape(address) for _, address in matches}


@pytest.mark.long
def test_every_address_on_every_page_leads_to_below_the_path(below: Below) -> None:
    """Each page of the table is read, and one of each kind of address on them is followed."""
    kinds: dict[str, str] = {}
    with requests.Session() as session:
        for row in PAGES:
            page = session.get(below.address(row.address), timeout=20)
            assert page.status_code == row.status
            addresses = addresses_in(page.text)
            assert len(addresses) > 5
            outside = [address for address in addresses if not address.startswith(f"{PREFIX}/")]
            assert not outside, (row.address, outside)
            copied = COPIED.findall(unescape(page.text))
            assert all(path.startswith(f"{PREFIX}/") for path in copied), (row.address, copied)
            kinds |= {SAME_KIND.sub("", address): address for address in addresses}
        host = below.url.removesuffix(PREFIX)
        assert len(kinds) > 40
        for address in kinds.values():
            page = session.get(host + address, timeout=20)
            assert page.ok, address
            assert page.url.startswith(f"{below.url}/")  # also if it redirects


def test_the_prefix_is_a_path_or_nothing(sites: dict[str, Site]) -> None:
    """Whoever may send the header cannot make the links lead to another host, or hold markup."""
    url = f"{sites['many'].url}/blocks"
    plain = requests.get(url, timeout=20)
    for prefix in ("//evil.example", "/a//b", "/\\evil", "javascript:x", '/"><script>', "/a" * 150):
        page = requests.get(url, headers={"X-Forwarded-Prefix": prefix}, timeout=20)
        assert addresses_in(page.text) == addresses_in(plain.text)
    page = requests.get(url, headers={"X-Forwarded-Prefix": "/one/two/"}, timeout=20)
    assert "/one/two/blocks.csv" in addresses_in(page.text)
    assert "X-Forwarded-Prefix" in page.headers["Vary"]


def test_commands_to_copy_ask_by_https_where_a_proxy_takes_that(sites: dict[str, Site]) -> None:
    site, headers = sites["many"], {"X-Forwarded-Proto": "https"}
    for address in (f"{site.url}/blocks/4", f"{site.service.url}/docs"):
        page = requests.get(address, headers=headers, timeout=20)
        assert {*COMMAND.findall(unescape(page.text))} == {"https"}, address


def test_scripts_find_what_they_ask_for_below_the_path(
    visit: Visit, below: Below, tmp_path: Path
) -> None:
    """Whatever a script asks for outside of it would be a fault of this visit."""
    page = visit(below).open("/about")
    page.locator("#search").press_sequentially("how late is")
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{PREFIX}/days?*")
    page.goto(below.address("/blocks/4?check=transactions"))
    assert PROVED in verdict(page)
    kept = page.evaluate("Object.keys(localStorage)")
    assert kept == [f"flightchain{PREFIX}"]  # another ledger may be below another path
    page.goto(below.address("/upload"))
    assert "All 3 rows are flights" in check_as_day_first(page, written_day_first(tmp_path))
