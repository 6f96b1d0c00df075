"""One browser and its ledgers for all tests of this folder, closed before those of others."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser, Page

from tests.api.processes import serving
from tests.api.worlds import seal, settings_for
from tests.browser.chromium import launched
from tests.browser.sites import LEDGERS, Site, make_ledger, shown, site_over
from tests.browser.table import Row
from tests.browser.visits import Visitor
from tests.frontend.writing import FLIGHTS

Visit = Callable[..., Visitor]

SCRIPTLESS = "without scripts"


class Tab:
    """A visitor with one page, for many tests one after the other."""

    def __init__(self, visitor: Visitor) -> None:
        self.visitor = visitor
        self._page = visitor.context.new_page()

    def open(self, row: Row, status: int | None) -> Page:
        """Open the tab's page at the address of `row`."""
        return self.visitor.open(row.address, status, self._page)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture(scope="package")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Site]]:
    """Sites by the name of their ledger, started at the same time; no test writes to them."""
    with ExitStack() as stack:

        def started(name: str) -> Site:
            folder = tmp_path_factory.mktemp(name) / "chain"
            make_ledger(folder, LEDGERS[name])
            return stack.enter_context(site_over(folder))

        with ThreadPoolExecutor() as pool:
            sites = dict(zip(LEDGERS, pool.map(started, LEDGERS), strict=True))
        yield sites


@pytest.fixture(scope="package")
def tabs(browser: Browser, sites: dict[str, Site]) -> Iterator[dict[str, Tab]]:
    """Tabs by the name of their ledger, and one without scripts: a new tab would take a second."""
    with ExitStack() as stack:
        tabs = {}
        for name, site in sites.items():
            tabs[name] = Tab(Visitor(browser, site, reduced_motion="reduce"))
            stack.callback(tabs[name].visitor.context.close)
        tabs[SCRIPTLESS] = Tab(Visitor(browser, sites["many"], java_script_enabled=False))
        stack.callback(tabs[SCRIPTLESS].visitor.context.close)
        yield tabs


@pytest.fixture
def tab(tabs: dict[str, Tab], request: pytest.FixtureRequest) -> Iterator[Tab]:
    """The tab that the test's parameter `ledger` names; no fault may occur in it."""
    tab = tabs[request.getfixturevalue("ledger")]
    yield tab
    faults = tab.visitor.faults[:]
    tab.visitor.faults.clear()
    assert faults == []


@pytest.fixture(scope="package")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Pages over a ledger that tests write to; within a second, a flight is in a block."""
    folder = tmp_path_factory.mktemp("written")
    seal(settings_for(folder), [FLIGHTS])
    with serving(folder, FLIGHTCHAIN_MINE_INTERVAL_S=1) as service, shown(service) as url:
        yield Site(url, service, {})


@pytest.fixture
def site(sites: dict[str, Site]) -> Site:
    """The site with many flights."""
    return sites["many"]


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """Makes visitors, `visit(site, *tolerated, **options of the context)`.

    Fails the test if any of them asks another host, or has an error or warning on the console.
    """
    visitors: list[Visitor] = []

    def make(site: Site, *tolerated: str, **options: object) -> Visitor:
        visitors.append(Visitor(browser, site, *tolerated, **options))
        return visitors[-1]

    yield make
    for visitor in visitors:
        visitor.context.close()
    assert [fault for visitor in visitors for fault in visitor.faults] == []
