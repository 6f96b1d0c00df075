"""`upload.js` and the receipt in a real browser."""

import csv
import gzip
import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from backend.chain.fields import FIELD_NAMES
from backend.chain.flight import Flight, as_mapping
from backend.sources.kinds import KINDS
from tests.api.processes import Service, serving, stopped, until
from tests.api.worlds import generated, seal, settings_for
from tests.browser.sites import shown
from tests.flights import changed, csv_of, csv_of_days
from tests.frontend.writing import FLIGHTS

ROWS, PARTS = 120, 4
PART_BYTES = 4_000  # `ROWS` flights are some parts of that
SENDING = "**/upload.json*"
MONTH = next(kind for kind in KINDS if kind.name == "ready-made month since 2018")
carriers = count(70_000)


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
    with serving(folder) as service, shown(service) as url:
        yield Pages(url, service)


@pytest.fixture(scope="module")
def context(browser: Browser) -> Iterator[BrowserContext]:
    with browser.new_context() as found:
        yield found


@pytest.fixture
def tab(context: BrowserContext) -> Iterator[Page]:
    with context.new_page() as found:
        yield found


@pytest.fixture
def page(tab: Page, pages: Pages) -> Page:
    tab.goto(f"{pages.url}/upload")
    return tab


@pytest.fixture
def short(page: Page) -> Page:
    """The page, which sends short parts."""
    shorten_parts(page)
    return page


def shorten_parts(page: Page) -> None:
    """Let an open page send a file in parts of `PART_BYTES`."""
    page.evaluate(f"document.getElementById('upload').dataset.part = {PART_BYTES}")


@cache
def flights(count: int) -> list[Flight]:
    return generated(count)


def file_of(folder: Path, which: int, *spoilt: int) -> Path:
    """A file of `ROWS` flights of a carrier of its own, with bad rows on these lines."""
    rows = [changed(flight, OP_CARRIER_AIRLINE_ID=90_000 + which) for flight in flights(ROWS)]
    lines = csv_of(rows).splitlines()
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
    """What is said below the form when nothing is being done with the file."""
    page.wait_for_selector("#result:not([hidden]) .notice", timeout=60_000)
    assert page.evaluate("document.activeElement.tagName") == "H2"
    return page.inner_text("#result")


def add(page: Page, name: str = "Add ") -> str:
    """Add what was checked, and wait for what became of it."""
    page.locator("#result").get_by_role("button", name=name).click()
    expect(page.locator("#result-title")).to_contain_text(": added", timeout=60_000)
    return page.inner_text("#result")


def test_a_file_is_sent_in_parts_checked_and_added_once(
    short: Page, pages: Pages, tmp_path: Path
) -> None:
    asked: list[str] = []
    short.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
    before = pages.settled()
    path = file_of(tmp_path, 0)
    assert "All 120 rows are flights." in checked(short, path)
    parts = [each for each in asked if "OFFSET" in each]
    assert len(parts) == -(-path.stat().st_size // PART_BYTES) >= PARTS
    text = add(short, "Add 120 flights")
    last = before + ROWS - 1
    assert f"the first as transaction {before} and the last as transaction {last}." in text
    link = short.get_by_role("link", name="the last")
    assert link.get_attribute("href") == f"/receipts/{last}"
    assert "120 of them are in the ledger already" in checked(short, path)
    assert short.locator("#result").get_by_role("button").count() == 0
    pages.until_there_are(before + ROWS)


def test_without_scripts_a_file_is_checked_and_added_too(
    browser: Browser, pages: Pages, tmp_path: Path
) -> None:
    before, path = pages.settled(), file_of(tmp_path, 8)
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{pages.url}/upload")
        start(page, path)
        expect(page.get_by_text("All 120 rows are flights.")).to_be_visible()
        page.get_by_role("button", name="Add 120 flights").click()
        expect(page.get_by_text("120 flights were added")).to_be_visible()
    pages.until_there_are(before + ROWS)


def test_what_contradicts_the_ledger_is_shown_and_left_out(
    page: Page, pages: Pages, tmp_path: Path
) -> None:
    before = pages.settled()
    late = changed(FLIGHTS[3], ORIGIN_CITY_NAME="Elsewhere, XX")
    new = changed(FLIGHTS[3], OP_CARRIER_AIRLINE_ID=89_999)
    path = tmp_path / "flights.csv"
    path.write_text(csv_of([*FLIGHTS[:2], late, new]), encoding="utf-8")
    text = checked(page, path)
    assert "2 of them are in the ledger already" in text
    assert "1 flight contradicts what the ledger says, and is left out:" in text
    assert "ORIGIN_CITY_NAME Elsewhere, XX, stored " in text
    assert "(transaction 3 in block 1)" in text
    assert f"1 flight was added, as transaction {before}." in add(page)
    pages.until_there_are(before + 1)


def test_many_bad_rows_are_left_out_if_the_box_is_ticked(
    page: Page, pages: Pages, tmp_path: Path
) -> None:
    before = pages.settled()
    text = checked(page, file_of(tmp_path, 1, 3, 71, 116))
    assert "117 rows are flights, 3 are not." in text
    assert page.locator("#result td.n").all_inner_texts() == ["3", "71", "116"]
    button = page.get_by_role("button", name="Leave 3 rows out and add 117 flights")
    button.click()
    expect(page.locator("#result-title")).to_contain_text("checked, nothing was added")
    page.get_by_label("Leave out 3 of 120 rows (2.5\N{NO-BREAK SPACE}%)").check()
    assert "3 rows were left out" in add(page, "Leave 3 rows out")
    pages.until_there_are(before + ROWS - 3)


def test_a_part_whose_answer_is_lost_is_sent_again(
    short: Page, pages: Pages, tmp_path: Path
) -> None:
    before = pages.settled()
    sent: list[str] = []

    def lose_the_second(route: Route) -> None:
        if "OFFSET" in route.request.url:
            sent.append(route.request.url)
        if len(sent) == 2:
            route.fetch()  # it arrives, and the answer does not come back
            route.abort("connectionreset")
        else:
            route.continue_()

    short.route(SENDING, lose_the_second)
    assert "All 120 rows are flights." in checked(short, file_of(tmp_path, 2))
    assert sent[1] == sent[2]
    add(short)
    pages.until_there_are(before + ROWS)


def test_an_upload_can_be_stopped(short: Page, pages: Pages, tmp_path: Path) -> None:
    before = pages.settled()
    path = file_of(tmp_path, 3)

    def hold_the_third(route: Route) -> None:
        if f"OFFSET={2 * PART_BYTES}" not in route.request.url:
            route.continue_()

    short.route(SENDING, hold_the_third)
    start(short, path)
    short.locator("#counts", has_text=" of ").wait_for(timeout=60_000)
    short.get_by_role("button", name="Stop").click()
    text = result(short)
    assert ("stopped" in text, "Nothing was added." in text) == (True, True)
    short.unroute(SENDING)
    assert "All 120 rows are flights." in checked(short, path)
    assert pages.transactions == before


def test_a_file_that_goes_while_it_is_sent_is_said_to(short: Page, tmp_path: Path) -> None:
    path = file_of(tmp_path, 4)

    def remove_it(route: Route) -> None:
        path.unlink(missing_ok=True)
        route.continue_()

    short.route(SENDING, remove_it)
    assert "The file cannot be read, or changed meanwhile." in checked(short, path)


def test_what_is_no_table_is_said(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "flights.csv"
    for content, said in (
        (b"a,b\n1,2\n", "It does not have any column of a flight"),
        (b"", "It is empty"),
        (b"%PDF-1.7\n", "It is a PDF document"),
        (gzip.compress(csv_of(FLIGHTS).encode())[:-9], "It is damaged or incomplete"),
    ):
        path.write_bytes(content)
        text = checked(page, path)
        assert said in text
        assert "not added" in text


def of_new_carrier(rows: int) -> list[Flight]:
    carrier = next(carriers)
    return [changed(flight, OP_CARRIER_AIRLINE_ID=carrier) for flight in flights(rows)]


def month_of_bts(rows: list[Flight]) -> bytes:
    """A ready-made month, with what BTS puts beside it."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC)
    titles = {meaning: title for meaning, title in MONTH.pairs if meaning in FIELD_NAMES}
    places = [FIELD_NAMES.index(name) for name in titles]
    writer.writerow([*titles.values(), "TailNum", ""])
    writer.writerows([*(row[place] for place in places), "N1", None] for row in rows)
    packed = io.BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        archive.writestr("readme.html", "<html>" * 1000)
        archive.writestr("On_Time_Reporting_Carrier_On_Time_Performance_(1987_present).csv",
            text.getvalue())  # fmt: skip
    return packed.getvalue()


def test_a_month_of_bts_is_added_as_it_was_downloaded(
    short: Page, pages: Pages, tmp_path: Path
) -> None:
    before, rows = pages.settled(), of_new_carrier(60)
    path = tmp_path / "On_Time_2015_1.zip"
    path.write_bytes(month_of_bts(rows))
    text = checked(short, path)
    assert "All 60 rows are flights." in text
    assert "The file was taken for: ready-made month since 2018 (TranStats" in text
    assert "Days are written year, month, day." in text
    cells = (
        short.locator("#result tr", has_text="OP_CARRIER_FL_NUM").locator("td").all_inner_texts()
    )
    numbers = [str(row[FIELD_NAMES.index("OP_CARRIER_FL_NUM")]) for row in rows[:3]]
    assert cells == ["Flight_Number_Reporting_Airline", *numbers]
    assert f"60 flights were added, the first as transaction {before} " in add(short)
    pages.until_there_are(before + 60)
    for place in (0, 59):
        stored = pages.service.json(f"/transactions/{before + place}")["transaction"]
        assert tuple(stored[name] for name in FIELD_NAMES) == tuple(rows[place])


def written_day_first(folder: Path, days: list[str]) -> Path:
    """A file that says the days of its flights like this, and no weekdays."""
    rows = enumerate(of_new_carrier(len(days)), 1)
    mappings = [as_mapping(row) | {"OP_CARRIER_FL_NUM": number} for number, row in rows]
    path = folder / "flights.csv"
    path.write_text(csv_of_days(mappings, days), encoding="utf-8")
    return path


def test_days_that_nothing_decides_are_asked(page: Page, pages: Pages, tmp_path: Path) -> None:
    before = pages.settled()
    path = written_day_first(tmp_path, ["02/03/2015", "03/03/2015", "04/03/2015"])
    text = checked(page, path)
    assert "Which day is 02/03/2015?" in text
    assert page.get_by_role("button", name="Add").count() == 0
    page.get_by_label("Day first: 2 March 2015").check()
    page.locator("#result").get_by_role("button", name="Check the file").click()
    expect(page.locator("#result")).to_contain_text("All 3 rows are flights.", timeout=60_000)
    assert "3 flights were added" in add(page)
    pages.until_there_are(before + 3)
    stored = pages.service.json(f"/transactions/{before + 2}")["transaction"]
    assert stored["FL_DATE"] == "2015-03-04"


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
    with stopped(pages.service.miner()):
        page.get_by_role("button", name="Add the flight").dblclick()
        page.wait_for_url("**/receipts/*")
        page.wait_for_selector(".state.pending")
    page.wait_for_selector(".state.mined", timeout=30_000)
    assert not page.get_by_role("button", name="Pause updates").is_visible()
    spoken = page.locator("[data-status]")
    expect(spoken).to_contain_text("is mined, in block")
    assert spoken.evaluate("line => line.closest('p').checkVisibility()")  # else nobody hears it
