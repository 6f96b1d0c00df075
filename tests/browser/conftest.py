"""One browser and three ledgers for all tests of this folder, closed before those of others."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser

from tests.browser.chromium import launched
from tests.browser.sites import LEDGERS, Site, make_ledger, site_over
from tests.browser.visits import Visitor

Visit = Callable[..., Visitor]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found


@pytest.fixture(scope="package")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Site]]:
    """By the name of their ledger; nobody writes to these."""
    with ExitStack() as stack:
        found = {}
        for name, sizes in LEDGERS.items():
            folder = tmp_path_factory.mktemp(name) / "chain"
            make_ledger(folder, sizes)
            found[name] = stack.enter_context(site_over(folder))
        yield found


@pytest.fixture
def site(sites: dict[str, Site]) -> Site:
    """The one with many flights."""
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
