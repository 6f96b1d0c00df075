"""The backend stops in the middle: pages say so, and come back when it does."""

from pathlib import Path

from playwright.sync_api import Page, expect

from frontend.app import create_app
from frontend.settings import Settings
from tests.browser.conftest import Visit
from tests.browser.sites import Site, make_ledger, served
from tests.browser.table import WITHOUT_BACKEND
from tests.browser.test_home import after_a_while
from tests.browser.visits import Visitor
from tests.http_servers import served_in_a_thread

EXPECTED = "status of 503"  # what a browser writes on the console then
OF_A_PROXY = "status of 502"  # if the pages are away, too
STEP_MS = 10_000
STEPS = 12  # two minutes


def asked_in_two_minutes(visitor: Visitor, page: Page) -> int:
    """How often `page`, whose clock runs fast, asks again for what changes."""
    before = len(visitor.requests)
    for _ in range(STEPS):
        page.clock.fast_forward(STEP_MS)
        page.wait_for_timeout(40)
    return len(visitor.requests) - before


def test_pages_say_that_it_is_away_and_come_back_by_themselves(
    visit: Visit, tmp_path: Path
) -> None:
    folder = tmp_path / "chain"
    make_ledger(folder, [3])
    with (
        served(folder) as service,
        served_in_a_thread(create_app(Settings(backend_url=service.url))) as url,
    ):
        site = Site(url, service, {})
        waiting, coming = visit(site, EXPECTED), visit(site, EXPECTED, OF_A_PROXY)
        for visitor in (waiting, coming):
            visitor.context.clock.install()
        home = waiting.open("/")
        standing = home.locator(".standing").inner_text().splitlines()[0]
        site.service.stop()
        for address in WITHOUT_BACKEND:
            page = coming.open(address, 503)
            expect(page.locator("h1")).to_have_text("The ledger does not answer")
        page.route("**", lambda route: route.fulfill(status=502))
        assert asked_in_two_minutes(coming, page) > 0
        page.unroute("**")
        expect(page.locator("h1")).to_have_text("The ledger does not answer")
        live = home.locator("[data-live]")
        after_a_while(home, lambda: "does not answer" in live.inner_text())
        assert home.locator(".standing").inner_text().splitlines()[0] == standing
        first, second, third = (asked_in_two_minutes(waiting, home) for _ in range(3))
        assert first > second >= third > 0
        assert third <= 3  # more and more rarely
        assert home.locator("[data-status]").text_content() == "The ledger does not answer"
        assert live.inner_text().count("may show old data") == 1
        with served(folder, site.service.port):
            after_a_while(home, lambda: "may be old" not in live.inner_text())
            after_a_while(page, lambda: page.locator("[data-come-back]").count() == 0)
            expect(page.locator("h1")).not_to_have_text("The ledger does not answer")
            page.wait_for_load_state("networkidle")  # the site goes away next, with its scripts
