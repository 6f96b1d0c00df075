"""`upload.js` and the receipt in a real browser."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from werkzeug.serving import make_server

from backend.chain.flight import Flight
from frontend.app import create_app
from frontend.settings import Settings
from tests.api.processes import Service, free_port, serving, until
from tests.api.worlds import generated, seal, settings_for
from tests.flights import csv_of
from tests.frontend.writing import FLIGHTS
from tests.same_flights import changed

ROWS = 12_000  # three slices of 5,000 lines or less
SLICES = "**/upload.json*"


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages at `url`, of a ledger of their own."""

    url: str
    service: Service

    @property
    def transactions(self) -> int:
        """Those are left out of which a block is made between the readings of the two."""
        tip = self.service.json("/tip")
        return int(tip["transactions"]) + int(tip["pending"])

    def settled(self) -> int:
        """How many transactions there are, when all are in blocks."""
        until(lambda: self.service.json("/tip")["pending"] == 0)
        return self.transactions

    def until_there_are(self, count: int) -> None:
        """Wait until the ledger has that many transactions."""
        until(lambda: self.transactions == count)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    folder = tmp_path_factory.mktemp("upload")
    seal(settings_for(folder), [FLIGHTS])
    with serving(folder, FLIGHTCHAIN_MINE_INTERVAL_S=2) as service:
        app = create_app(Settings(backend_url=service.url))
        server = make_server("127.0.0.1", free_port(), app, threaded=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Pages(f"http://127.0.0.1:{server.port}", service)
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def page(browser: Browser, pages: Pages) -> Iterator[Page]:
    found = browser.new_page()
    found.goto(f"{pages.url}/upload")
    yield found
    found.close()


@cache
def flights() -> list[Flight]:
    return generated(ROWS)


def file_of(folder: Path, which: int, *spoilt: int) -> Path:
    """A file of `ROWS` flights of a carrier of its own, with bad rows on these lines."""
    rows = [changed(flight, OP_CARRIER_AIRLINE_ID=90_000 + which) for flight in flights()]
    lines = csv_of(rows).splitlines()
    for number in spoilt:
        lines[number - 1] = "x" + lines[number - 1]
    path = folder / "flights.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def sent(page: Page, path: Path) -> str:
    """Check a file, add what is good in it, and wait for what became of it."""
    start(page, path)
    return result(page)


def checked(page: Page, path: Path) -> str:
    """Check a file, and wait for what is in it."""
    page.set_input_files("#file", path)
    page.get_by_role("button", name="Check the file").click()
    return result(page)


def start(page: Page, path: Path) -> None:
    """Check a file and begin to add what is good in it."""
    checked(page, path)
    page.locator("#result").get_by_role("button").click()


def result(page: Page) -> str:
    page.wait_for_selector("#result:not([hidden])", timeout=60_000)
    assert page.evaluate("document.activeElement.id") == "result-title"
    return page.inner_text("#result")


def test_a_file_is_added_in_slices_and_only_once(page: Page, pages: Pages, tmp_path: Path) -> None:
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url.rpartition("/")[2]))
    before = pages.settled()
    path = file_of(tmp_path, 0)
    said = sent(page, path)
    counts = page.text_content("#counts") or ""
    assert counts.startswith("12,000 of 12,000 rows, ")  # the header is none
    assert f"12,000 flights were accepted, as transactions {before} to {before + ROWS - 1}." in said
    assert [request for request in requests if request.startswith("upload")] == [
        *["upload.json?action=check&on_error=skip"] * 3,
        *["upload.json?action=add&on_error=reject"] * 3,
    ]
    assert page.get_by_role("link", name="the last").get_attribute("href") == (
        f"/receipts/{before + ROWS - 1}"
    )
    assert "12,000 of them are in the ledger already" in checked(page, path)
    assert page.locator("#result").get_by_role("button").count() == 0
    pages.until_there_are(before + ROWS)


def test_what_contradicts_the_ledger_is_shown_and_left_out(
    page: Page, pages: Pages, tmp_path: Path
) -> None:
    before = pages.settled()
    late = changed(FLIGHTS[3], ORIGIN_CITY_NAME="Elsewhere, XX")
    new = changed(FLIGHTS[3], OP_CARRIER_AIRLINE_ID=89_999)
    path = tmp_path / "flights.csv"
    path.write_text(csv_of([*FLIGHTS[:2], late, new]), encoding="utf-8")
    for text in (checked(page, path), sent(page, path)):
        assert "2 of them are in the ledger already" in text
        assert "1 flight contradicts what the ledger says, and is left out:" in text
        assert "ORIGIN_CITY_NAME Elsewhere, XX, stored " in text
        assert "(transaction 3)" in text
    assert f"1 flight was accepted, as transaction {before}." in text
    pages.until_there_are(before + 1)


def test_bad_rows_have_the_numbers_of_their_lines(page: Page, pages: Pages, tmp_path: Path) -> None:
    before = pages.settled()
    path = file_of(tmp_path, 1, 3, 7001, 11_501)
    text = checked(page, path)
    assert "checked, nothing was added" in text
    assert "11,997 rows are flights, 3 are not." in text
    numbers = page.locator("#result td.n").all_inner_texts()
    assert numbers == ["3", "7,001", "11,501"]
    pages.until_there_are(before)
    page.get_by_role("button", name="Leave 3 rows out and add 11,997 flights").click()
    assert "3 rows were left out" in result(page)
    pages.until_there_are(before + ROWS - 3)


def test_a_slice_whose_answer_is_lost_is_sent_again_and_added_once(
    page: Page, pages: Pages, tmp_path: Path
) -> None:
    before = pages.settled()
    lost: list[str] = []

    def lose_the_second(route: Route) -> None:
        if "action=add" in route.request.url:
            lost.append(route.request.url)
        if len(lost) == 2:
            route.fetch()  # it arrives, and the answer does not come back
            route.abort("connectionreset")
        else:
            route.continue_()

    page.route(SLICES, lose_the_second)
    assert "12,000 flights were accepted" in sent(page, file_of(tmp_path, 2))
    assert len(lost) == 4
    pages.until_there_are(before + ROWS)


def test_what_was_stopped_goes_on_where_it_was(page: Page, pages: Pages, tmp_path: Path) -> None:
    before = pages.settled()
    path = file_of(tmp_path, 3)
    held: list[Route] = []
    let_go: list[Route] = []

    def hold_the_third(route: Route) -> None:
        if "action=add" not in route.request.url:
            route.continue_()
            return
        let_go.append(route)
        if len(let_go) == 3:
            held.append(route)
        else:
            route.continue_()

    page.route(SLICES, hold_the_third)
    start(page, path)
    page.locator("#counts", has_text="10,000 of").wait_for(timeout=60_000)
    page.get_by_role("button", name="Stop").click()
    text = result(page)
    assert "stopped" in text
    assert "10,000 flights were accepted" in text
    assert "The rest was not added." in text
    page.unroute(SLICES)
    pages.until_there_are(before + 10_000)
    assert "10,000 of them are in the ledger already" in checked(page, path)
    page.wait_for_timeout(1500)  # receipts of an earlier time are told by the clock
    page.get_by_role("button", name="Add 2,000 flights").click()
    text = result(page)
    assert "12,000 flights were accepted" in text
    assert "10,000 of them were accepted when this file was first sent" in text
    pages.until_there_are(before + ROWS)


def test_what_is_no_table_is_said_at_once(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "flights.csv"
    for content, said in (
        (b"a,b\n1,2\n", "It does not have any column of a flight"),
        (b"", "The file is empty."),
        (csv_of(FLIGHTS).encode("utf-16"), "The file is UTF-16"),
        (csv_of(FLIGHTS).encode() + b"\xe9", f"Line {len(FLIGHTS) + 2}: The file has a character"),
    ):
        path.write_bytes(content)
        text = checked(page, path)
        assert said in text
        assert "Nothing was added." in text


def test_a_receipt_turns_to_mined_by_itself(page: Page, pages: Pages) -> None:
    page.goto(f"{pages.url}/add")
    page.get_by_label("Day", exact=True).fill("2013-01-02")
    page.get_by_label("Flight number").fill("12")
    page.get_by_label("Carrier", exact=True).select_option(index=1)
    page.get_by_label("From").fill(str(FLIGHTS[0][6]).lower())
    page.get_by_label("To", exact=True).fill(str(FLIGHTS[0][10]))
    page.get_by_label("Departure", exact=True).fill("05:17")
    page.get_by_label("The flight was cancelled").check()
    assert not page.get_by_label("Departure", exact=True).is_visible()
    page.get_by_role("button", name="Check the flight").click()
    page.get_by_role("heading", name="Check before adding").wait_for()
    page.get_by_role("button", name="Add the flight").dblclick()
    page.wait_for_url("**/receipts/*")
    page.wait_for_selector(".state.mined", timeout=30_000)
    assert not page.get_by_role("button", name="Pause updates").is_visible()
    spoken = page.locator("[data-status]")
    expect(spoken).to_contain_text("is mined, in block")
    assert spoken.evaluate("line => line.closest('p').checkVisibility()")  # else nobody hears it
