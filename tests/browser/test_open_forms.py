"""Forms, checks and uploads that are open keep working, whatever happens around them.

Cookies know no ports, and a server that was restarted knows no sessions. So nothing that a browser
keeps may decide whether a form can be sent.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from backend.storage.tokens import Tokens
from tests.api.processes import Service, free_port, serving, stopped, until
from tests.api.worlds import seal, settings_for
from tests.browser.sites import shown
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
from tests.flights import changed, csv_of
from tests.frontend.writing import FLIGHTS

OTHER_SITE = "http://other.example/"
NAVIGATION = '<a id="link" href="{url}/add">Add a flight</a>'
FORGED = """<form method="post" action="{url}/add"><input name="ORIGIN" value="XYZ">
<button name="step" value="add">Win</button></form>"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("forms")
    seal(settings_for(folder), [FLIGHTS])
    with serving(folder, FLIGHTCHAIN_MINE_INTERVAL_S=1) as service:
        yield service


@pytest.fixture(scope="module")
def url(service: Service) -> Iterator[str]:
    """The address of pages that are not restarted."""
    with shown(service) as url:
        yield url


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser of somebody: all its pages share their cookies."""
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


def at_another_site(context: BrowserContext, address: str, body: str) -> Page:
    """A page at `address`, which is not one of ours."""
    context.route(address, lambda route: route.fulfill(body=body, content_type="text/html"))
    page = context.new_page()
    page.goto(address)
    return page


def test_forms_of_two_frontends_on_one_host_do_not_disturb_each_other(
    service: Service, url: str, context: BrowserContext, tmp_path: Path
) -> None:
    before, path = service.sealed(), tmp_path / "few.csv"
    new = [changed(flight, OP_CARRIER_AIRLINE_ID=99_000) for flight in FLIGHTS]
    path.write_text(csv_of(new), encoding="utf-8")
    with shown(service) as other:
        forms = [filled(context, at, 601 + i) for i, at in enumerate((url, other, url))]
        uploading = opened(context.new_page(), url)
        forms.append(filled(context, other, 604))
        checked(uploading, path)
        assert f"{len(FLIGHTS)} flights were added" in add_file(uploading)
        for page in forms:
            check(page)
        for page in forms:
            add(page)
    assert service.sealed() == before + len(FLIGHTS) + 4


def held_at_the_second_part(page: Page, path: Path) -> Route:
    """Begin to send a file, whose second part waits."""
    held: list[Route] = []
    page.route(f"**/*{SECOND}", lambda route: route.continue_() if held else held.append(route))
    start(page, path)
    page.locator("#counts", has_text=" of ").wait_for(timeout=WITHIN_MS)
    while not held:
        page.wait_for_timeout(10)
    return held[0]


def test_what_is_open_goes_on_after_a_restart_of_the_pages(
    service: Service, context: BrowserContext, tmp_path: Path
) -> None:
    before, port = service.sealed(), free_port()
    with ExitStack() as pages:
        url = pages.enter_context(shown(service, port))
        form, ready = filled(context, url, 701), check(filled(context, url, 702))
        uploading = opened(context.new_page(), url)
        part = held_at_the_second_part(uploading, file_of(tmp_path))
        pages.close()
        part.continue_()
        uploading.locator("#said", has_text="Trying again in").wait_for()
        pages.enter_context(shown(service, port))
        assert "All 120 rows are flights." in result(uploading)
        assert "120 flights were added" in add_file(uploading)
        add(ready)
        add(check(form))
    assert service.sealed() == before + ROWS + 2


def checking(service: Service) -> int:
    """The process that checks a file; 0 while there is none."""
    return next((pid for pid, given in service.processes().items() if "sent-file" in given), 0)


def test_a_file_is_sent_and_checked_around_restarts_of_the_service(
    context: BrowserContext, tmp_path: Path
) -> None:
    folder, more = tmp_path / "chain", {"FLIGHTCHAIN_PORT": free_port()}
    seal(settings_for(folder), [FLIGHTS])
    with ExitStack() as running:
        service = running.enter_context(serving(folder, **more))
        page = opened(context.new_page(), running.enter_context(shown(service)))
        part = held_at_the_second_part(page, file_of(tmp_path))
        service.stop()
        part.continue_()
        page.locator("#said", has_text="Trying again in").wait_for()
        service = running.enter_context(serving(folder, **more))
        assert "All 120 rows are flights." in result(page)
        page.unroute_all()
        start(page, file_of(tmp_path))
        until(lambda: checking(service) > 0)
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
        assert service.sealed() == len(FLIGHTS) + ROWS


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
        assert "Only people with a token" in checked(page, path)
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


def test_a_receipt_turns_to_mined_by_itself(
    service: Service, url: str, context: BrowserContext
) -> None:
    form = filled(context, url, 12)
    assert not form.get_by_label("Departure", exact=True).is_visible()
    page = check(form)
    with stopped(service.miner()):
        page.get_by_role("button", name="Add the flight").dblclick()
        page.wait_for_url("**/receipts/*")
        page.wait_for_selector(".state.pending")
    page.wait_for_selector(".state.mined", timeout=30_000)
    assert not page.get_by_role("button", name="Pause updates").is_visible()
    spoken = page.locator("[data-status]")
    expect(spoken).to_contain_text("is mined, in block")
    assert spoken.evaluate("line => line.closest('p').checkVisibility()")  # else nobody hears it


def test_a_visitor_without_scripts_whose_file_is_too_long_is_told_what_to_do(
    url: str, browser: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "flights.csv"
    with path.open("wb") as file:
        file.truncate(30 * 2**20)
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{url}/upload")
        page.set_input_files("#file", path)
        page.get_by_role("button", name="Check the file").click()
        page.wait_for_load_state()
        text = page.inner_text("body").lower()
        for words in ("nothing was added", "with javascript", "python -m backend import file"):
            assert words in text, text


def test_cookies_that_are_cleared_and_links_from_elsewhere_change_no_form(
    url: str, context: BrowserContext
) -> None:
    form = filled(context, url, 801)
    elsewhere = at_another_site(context, OTHER_SITE, NAVIGATION.format(url=url))
    elsewhere.click("#link")
    expect(elsewhere.locator("h1")).to_have_text("Add flights")
    context.clear_cookies()
    add(check(form))


@pytest.mark.parametrize("address", [OTHER_SITE, "http://127.0.0.1:9/"])
def test_a_form_of_another_site_adds_nothing_and_says_whose_it_was(
    service: Service, url: str, context: BrowserContext, address: str
) -> None:
    before = service.sealed()
    page = at_another_site(context, address, FORGED.format(url=url))
    with page.expect_navigation() as navigation:
        page.get_by_role("button", name="Win").click()
    assert navigation.value is not None
    assert navigation.value.status == 403
    assert address.rstrip("/") in page.inner_text("main")
    assert "XYZ" not in page.content()
    assert service.sealed() == before
