"""Forms, checks and uploads that are open keep working, whatever happens around them.

That no cookie decides whether a form can be sent, `tests/frontend/writing.py` sees to.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from backend.storage.tokens import Tokens
from tests.api.processes import Service, free_port, serving, stopped, until
from tests.api.worlds import seal, settings_for
from tests.browser.sites import Site, shown
from tests.browser.test_every_page import WCAG, violations
from tests.browser.test_upload import (
    ROWS,
    SECOND,
    WITHIN_MS,
    checked,
    file_of,
    opened,
    press,
    result,
    start,
)
from tests.browser.test_upload import add as add_file
from tests.frontend.writing import FLIGHTS

OTHER_SITE = "http://other.example/"
FORGED = """<form method="post" action="{url}/add"><input name="ORIGIN" value="XYZ">
<button name="step" value="add">Win</button></form>"""


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    with browser.new_context() as context:
        yield context


def filled(context: BrowserContext, url: str, number: int) -> Page:
    """The form for one flight, filled in and not sent."""
    page = context.new_page()
    page.goto(f"{url}/add")
    page.get_by_label("Day", exact=True).fill("2013-01-02")
    page.get_by_label("Flight number").fill(str(number))
    page.get_by_label("Carrier", exact=True).select_option(index=1)
    page.get_by_label("From").fill(str(FLIGHTS[0][6]).lower())
    page.get_by_label("To", exact=True).fill(str(FLIGHTS[0][10]))
    page.get_by_label("Departure", exact=True).fill("05:17")
    page.get_by_label("The flight was cancelled").check()
    return page


def check(page: Page) -> Page:
    """Send the form that is filled in; the page shows the flight that would be added."""
    page.get_by_role("button", name="Check the flight").click()
    expect(page.locator("h1")).to_have_text("Check before adding")
    return page


def add(page: Page) -> None:
    """Add the flight that was checked."""
    page.get_by_role("button", name="Add the flight").click()
    page.wait_for_url("**/receipts/*")


def held_at_the_second_part(page: Page, path: Path) -> Route:
    """Begin to send a file, whose second part waits."""
    held: list[Route] = []
    page.route(f"**/*{SECOND}", lambda route: route.continue_() if held else held.append(route))
    start(page, path)
    page.locator("#counts", has_text=" of ").wait_for(timeout=WITHIN_MS)
    while not held:
        page.wait_for_timeout(10)
    return held[0]


def checking(service: Service) -> int:
    """Wait for the process that checks a file, and return its id."""
    pids: list[int] = []

    def is_there() -> bool:
        pids.extend(pid for pid, given in service.processes().items() if "sent-file" in given)
        return bool(pids)

    until(is_there)
    return pids[0]


def test_what_is_open_goes_on_after_restarts_of_service_and_pages(
    context: BrowserContext, tmp_path: Path
) -> None:
    folder, more, port = tmp_path / "chain", {"FLIGHTCHAIN_PORT": free_port()}, free_port()
    seal(settings_for(folder), [FLIGHTS])
    with ExitStack() as running:
        service = running.enter_context(serving(folder, **more))
        url = running.enter_context(shown(service, port))
        form, ready = filled(context, url, 701), check(filled(context, url, 702))
        page = opened(context.new_page(), url)
        part = held_at_the_second_part(page, file_of(tmp_path))
        running.close()
        part.continue_()
        page.locator("#said", has_text="Trying again in").wait_for()
        service = running.enter_context(serving(folder, **more))
        running.enter_context(shown(service, port))
        assert "All 120 rows are flights." in result(page)
        page.unroute_all()
        start(page, file_of(tmp_path))
        with stopped(checking(service)):
            page.locator("#result progress").wait_for()
            assert violations(page, WCAG) == ""
            service.stop()
            page.locator("#result", has_text="The ledger does not answer. Trying again").wait_for()
        service = running.enter_context(serving(folder, **more))
        assert "This was interrupted; check the file again." in result(page)
        press(page, "Check the file")
        expect(page.locator("#result-title")).to_contain_text("checked", timeout=WITHIN_MS)
        assert "All 120 rows are flights." in result(page)
        assert "120 flights were added" in add_file(page)
        add(ready)
        add(check(form))
        assert service.sealed() == len(FLIGHTS) + ROWS + 2


@pytest.mark.long
def test_a_token_is_typed_once_and_one_that_is_revoked_is_said_to_be(
    context: BrowserContext, tmp_path: Path
) -> None:
    folder, path = tmp_path / "chain", file_of(tmp_path)
    seal(settings_for(folder), [FLIGHTS])
    tokens = Tokens(folder)
    first, second = tokens.add("first"), tokens.add("second")
    more = {"FLIGHTCHAIN_REQUIRE_TOKEN": 1, "FLIGHTCHAIN_MINE_INTERVAL_S": 1}
    with serving(folder, **more) as service, shown(service) as url:
        page = opened(context.new_page(), url)
        below = page.locator("#result").get_by_label("Write token")
        assert "This needs a token" in checked(page, path)
        page.get_by_label("Write token").fill(first)
        assert "All 120 rows are flights." in checked(page, path)
        assert below.count() == 0
        assert "120 flights were added" in add_file(page)
        assert "All 120 rows are flights." in checked(page, file_of(tmp_path))
        tokens.remove("first")
        press(page, "Add ")
        expect(page.locator("#result")).to_contain_text("This token is unknown or was revoked.")
        below.fill(second)
        assert "120 flights were added" in add_file(page)
        assert "This token is unknown or was revoked." in checked(page, path)
        assert service.sealed() == len(FLIGHTS) + 2 * ROWS


def test_a_receipt_turns_to_mined_by_itself(pages: Site, context: BrowserContext) -> None:
    form = filled(context, pages.url, 12)
    assert not form.get_by_label("Departure", exact=True).is_visible()
    page = check(form)
    with stopped(pages.service.miner()):
        page.get_by_role("button", name="Add the flight").dblclick()
        page.wait_for_url("**/receipts/*")
        page.wait_for_selector(".state.pending")
    page.wait_for_selector(".state.mined", timeout=30_000)
    assert not page.get_by_role("button", name="Pause updates").is_visible()
    spoken = page.locator("[data-status]")
    expect(spoken).to_contain_text("is mined, in block")
    assert spoken.evaluate("line => line.closest('p').checkVisibility()")  # else nobody hears it


@pytest.mark.parametrize("address", [OTHER_SITE, "http://127.0.0.1:9/"])
def test_a_form_of_another_site_adds_nothing_and_says_whose_it_was(
    pages: Site, context: BrowserContext, address: str
) -> None:
    before = pages.service.sealed()
    form, page = FORGED.format(url=pages.url), context.new_page()
    page.route(address, lambda route: route.fulfill(body=form, content_type="text/html"))
    page.goto(address)
    with page.expect_navigation() as navigation:
        page.get_by_role("button", name="Win").click()
    assert navigation.value is not None
    assert navigation.value.status == 403
    assert address.rstrip("/") in page.inner_text("main")
    assert "XYZ" not in page.content()
    assert pages.service.sealed() == before
