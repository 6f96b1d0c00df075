"""`upload.js` in a real browser."""

import os
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, Route, expect

from backend.chain.flight import Flight, as_mapping
from tests.api.processes import until
from tests.api.worlds import generated
from tests.browser.sites import Site
from tests.flights import changed, csv_of, csv_of_days

ROWS = 120
PART_BYTES = 4_000  # `ROWS` flights are some parts of that
SECOND = f"OFFSET={PART_BYTES}"
WITHIN_MS = 60_000
RECORD_MESSAGES = """() => {
    const said = document.getElementById("said");
    window.messages = []; // of which some stay for a second
    new MutationObserver(() => messages.push(said.textContent)).observe(said, { childList: true });
}"""
carriers = count(70_000)


@pytest.fixture(scope="module")
def context(browser: Browser) -> Iterator[BrowserContext]:
    with browser.new_context() as context:
        yield context


@pytest.fixture
def page(context: BrowserContext, pages: Site) -> Iterator[Page]:
    with context.new_page() as page:
        opened(page, pages.url)
        yield page


def opened(page: Page, url: str) -> Page:
    """Open the form, which sends a file in parts of `PART_BYTES`."""
    page.goto(f"{url}/upload")
    page.evaluate(f"document.getElementById('upload').dataset.part = {PART_BYTES}")
    return page


@cache
def flights(count: int) -> list[Flight]:
    return generated(count)


def of_new_carrier(rows: int = ROWS) -> list[Flight]:
    carrier = next(carriers)
    return [changed(flight, OP_CARRIER_AIRLINE_ID=carrier) for flight in flights(rows)]


def file_of(folder: Path, *spoilt: int) -> Path:
    """A file of `ROWS` flights of a carrier of its own, with bad rows on these lines."""
    lines = csv_of(of_new_carrier()).splitlines()
    for number in spoilt:
        lines[number - 1] = "x" + lines[number - 1]
    path = folder / "flights.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def start(page: Page, path: Path) -> None:
    """Send a file, and have it checked."""
    page.set_input_files("#file", path)
    page.locator("#upload").get_by_role("button", name="Check the file").click()


def checked(page: Page, path: Path) -> str:
    """Have a file checked, and wait for what is in it."""
    start(page, path)
    return result(page)


def result(page: Page) -> str:
    """Return the text below the form when no work on the file goes on."""
    page.wait_for_selector("#result .notice", timeout=WITHIN_MS)
    assert page.evaluate("document.activeElement.tagName") == "H2"
    return page.inner_text("#result")


def press(page: Page, name: str) -> None:
    page.locator("#result").get_by_role("button", name=name).click()


def add(page: Page, name: str = "Add ") -> str:
    """Add what was checked, and wait for what became of it."""
    press(page, name)
    expect(page.locator("#result-title")).to_contain_text(": added", timeout=WITHIN_MS)
    return page.inner_text("#result")


def test_a_file_is_sent_in_parts_checked_and_added_once(
    page: Page, pages: Site, tmp_path: Path
) -> None:
    parts: list[int] = []

    def note(request: Request) -> None:
        if "OFFSET" in request.url:
            parts.append(len(request.post_data_buffer or b""))

    page.on("request", note)
    before, path = pages.service.sealed(), file_of(tmp_path)
    assert "All 120 rows are flights." in checked(page, path)
    assert sum(parts) == path.stat().st_size
    assert max(parts) == PART_BYTES
    text, last = add(page, "Add 120 flights"), before + ROWS - 1
    assert f"the first as transaction {before} and the last as transaction {last}." in text
    page.get_by_role("link", name="the last").click()
    page.wait_for_url(f"**/receipts/{last}")
    page.go_back()
    expect(page.locator("#result-title")).to_have_text("flights.csv: added")
    opened(page, pages.url)
    assert "120 of them are in the ledger already" in checked(page, path)
    assert page.locator("#result").get_by_role("button").count() == 0
    assert pages.service.sealed() == before + ROWS


def says(page: Page, text: str) -> bool:
    """Whether a page has a text; if not, it is fetched again, which no script does."""
    is_there = page.get_by_text(text).is_visible()
    if not is_there:
        page.reload()
    return is_there


def test_without_scripts_a_file_is_checked_and_added_too_unless_it_is_too_long(
    browser: Browser, pages: Site, tmp_path: Path
) -> None:
    before = pages.service.sealed()
    (tmp_path / "long.csv").write_bytes(b"")
    os.truncate(tmp_path / "long.csv", 30 * 2**20)
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        for path in (tmp_path / "long.csv", file_of(tmp_path)):
            page.goto(f"{pages.url}/upload")
            with page.expect_navigation():
                start(page, path)
            assert ("The file is longer than" in page.inner_text("body")) == ("long" in path.name)
        until(lambda: says(page, "All 120 rows are flights."))
        with page.expect_navigation():
            page.get_by_role("button", name="Add 120 flights").click()
        until(lambda: says(page, "120 flights were added"))
    assert pages.service.sealed() == before + ROWS


def test_bad_rows_are_shown_and_left_out(page: Page, pages: Site, tmp_path: Path) -> None:
    before = pages.service.sealed()
    assert "118 rows are flights, 2 are not." in checked(page, file_of(tmp_path, 3, 71))
    rows = page.get_by_role("region", name="Rows that are not flights").locator("tbody tr")
    bad = rows.all_inner_texts()
    assert [row.split("\t")[0] for row in bad] == ["3", "71"]
    press(page, "Leave 2 rows out and add 118 flights")
    expect(page.locator("#result-title")).to_contain_text("checked, not added yet")
    page.get_by_label("Leave out 2 of 120 rows (1.7\N{NO-BREAK SPACE}%)").check()
    assert "2 rows were left out" in add(page, "Leave 2 rows out")
    assert rows.all_inner_texts() == bad
    page.reload()
    assert rows.all_inner_texts() == bad
    assert pages.service.sealed() == before + 118


def test_a_part_whose_answer_is_lost_or_put_off_is_sent_again(
    page: Page, pages: Site, tmp_path: Path
) -> None:
    before, sent = pages.service.sealed(), []

    def fail_twice(route: Route) -> None:
        sent.append(route.request.url)
        if len(sent) == 1:
            route.fetch()  # the part arrives, and the answer does not come back
            route.abort("connectionreset")
        elif len(sent) == 2:
            busy = {"detail": "It is busy."}
            route.fulfill(status=503, headers={"Retry-After": "3"}, json=busy)
        else:
            route.continue_()

    page.route(f"**/*{SECOND}", fail_twice)
    page.evaluate(RECORD_MESSAGES)
    start(page, file_of(tmp_path))
    assert "All 120 rows are flights." in result(page)
    assert [message for message in page.evaluate("messages") if message] == [
        "The pages do not answer. Trying again in 1 second.",
        "It is busy. Trying again in 3 seconds.",
    ]
    assert len(sent) == 3
    add(page)
    assert pages.service.sealed() == before + ROWS


def test_an_upload_that_is_stopped_leaves_nothing(page: Page, pages: Site, tmp_path: Path) -> None:
    before, path, folder = pages.service.sealed(), file_of(tmp_path), pages.service.folder
    files = {*folder.glob("import-*")}
    page.route(f"**/*{SECOND}", lambda route: None)
    start(page, path)
    page.locator("#counts", has_text=" of ").wait_for(timeout=WITHIN_MS)
    page.get_by_role("button", name="Stop").click()
    assert result(page) == "flights.csv: stopped\n\nNothing was added."
    until(lambda: {*folder.glob("import-*")} == files)
    page.unroute(f"**/*{SECOND}")
    assert "All 120 rows are flights." in checked(page, path)
    assert pages.service.sealed() == before


@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_text("other")])
def test_a_file_that_goes_or_changes_while_it_is_sent_is_said_to(
    page: Page, tmp_path: Path, harm: Callable[[Path], object]
) -> None:
    path = file_of(tmp_path)

    def harm_it(route: Route) -> None:
        harm(path)
        route.continue_()

    page.route("**/*OFFSET=0", harm_it)
    assert "The file cannot be read, or was changed." in checked(page, path)


def test_what_is_no_table_is_said(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "flights.csv"
    for content, message in (
        (b"a,b\n1,2\n", "It has no column of a flight"),
        (b"", "It is empty"),
    ):
        path.write_bytes(content)
        text = checked(page, path)
        assert message in text
        assert "not added" in text


def written_day_first(folder: Path) -> Path:
    """A file of three days that may mean two each."""
    rows = enumerate(of_new_carrier(3), 1)
    mappings = [as_mapping(row) | {"OP_CARRIER_FL_NUM": number} for number, row in rows]
    path = folder / "flights.csv"
    days = ["02/03/2015", "03/03/2015", "04/03/2015"]
    path.write_text(csv_of_days(mappings, days), encoding="utf-8")
    return path


def check_as_day_first(page: Page, path: Path) -> str:
    """Have a file checked whose days are asked for, and answer."""
    assert "Which day is 02/03/2015?" in checked(page, path)
    assert page.get_by_role("button", name="Add").count() == 0
    page.get_by_label("Day first: 2 March 2015").check()
    press(page, "Check the file")
    expect(page.locator("#result-title")).to_contain_text("checked", timeout=WITHIN_MS)
    return result(page)
