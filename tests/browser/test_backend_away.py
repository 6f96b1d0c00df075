"""The backend stops in the middle: pages say so, and come back when it does."""

from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.sites import make_ledger, served, site_over
from tests.browser.table import WITHOUT_BACKEND
from tests.browser.test_home import after_a_while

EXPECTED = "status of 503"  # what a browser writes on the console then


def test_pages_say_that_it_is_away_and_come_back_by_themselves(
    visit: Visit, tmp_path: Path
) -> None:
    folder = tmp_path / "chain"
    make_ledger(folder, [3])
    with site_over(folder) as site:
        visitor = visit(site, EXPECTED)
        home = visitor.context.new_page()
        home.clock.install()
        home.goto("/")
        standing = home.locator(".standing").inner_text().splitlines()[0]
        site.service.stop()
        for address in WITHOUT_BACKEND:
            page = visitor.open(address, 503)
            expect(page.locator("h1")).to_have_text("The ledger does not answer")
        live = home.locator("[data-live]")
        after_a_while(home, lambda: "does not answer" in live.inner_text())
        assert home.locator(".standing").inner_text().splitlines()[0] == standing
        for _ in range(10):
            home.clock.fast_forward(60_000)
            home.wait_for_timeout(50)
        assert home.locator("[data-status]").text_content() == "The ledger does not answer"
        assert live.inner_text().count("does not answer. What is shown") == 1
        with served(folder, site.service.port):
            after_a_while(home, lambda: "may be old" not in live.inner_text())
            expect(page.locator("[data-come-back]")).to_have_count(0, timeout=30_000)
            expect(page.locator("h1")).not_to_have_text("The ledger does not answer")


def test_it_is_asked_more_and_more_rarely(visit: Visit, tmp_path: Path) -> None:
    folder = tmp_path / "chain"
    make_ledger(folder, [3])
    with site_over(folder) as site:
        visitor = visit(site, EXPECTED)
        page = visitor.context.new_page()
        page.clock.install()
        page.goto("/")
        site.service.stop()
        asked = []
        for _ in range(3):
            before = len(visitor.requests)
            for _ in range(24):  # two minutes
                page.clock.fast_forward(5_000)
                page.wait_for_timeout(30)
            asked.append(len(visitor.requests) - before)
        assert asked[0] > asked[1] >= 2
        assert asked[2] <= 3
