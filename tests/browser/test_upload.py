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

LINES, ROWS = 50, 120  # of a short slice; of three of them
SLICES = "**/upload.json*"
MONTH = next(kind for kind in KINDS if kind.name == "ready-made month since 2018")
HFLIGHTS = (
    "Year,Month,DayofMonth,UniqueCarrier,FlightNum,Origin,Dest,DepTime,DepDelay,ArrTime,ArrDelay,"
    "Cancelled,AirTime\n2008,1,3,WN,335,IAD,TPA,2003,8,2211,-14,0,116\n"
)
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
def short(tab: Page, pages: Pages) -> Page:
    """The page with slices of `LINES` lines instead of 5,000."""
    shorten_slices(tab)
    tab.goto(f"{pages.url}/upload")
    return tab


def shorten_slices(pages: Page | BrowserContext) -> None:
    """Let pages that are opened from now on cut files into slices of `LINES` lines."""

    def changed_script(route: Route) -> None:
        answer = route.fetch()
        text = answer.text().replace("MOST_LINES = 5000;", f"MOST_LINES = {LINES};")
        assert str(LINES) in text
        route.fulfill(response=answer, body=text)

    pages.route("**/static/slices.js*", changed_script)


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


def test_a_file_is_added_in_slices_and_only_once(short: Page, pages: Pages, tmp_path: Path) -> None:
    requests: list[str] = []
    short.on("request", lambda request: requests.append(request.url.rpartition("/")[2]))
    before = pages.settled()
    path = file_of(tmp_path, 0)
    said = sent(short, path)
    counts = short.text_content("#counts") or ""
    assert counts.startswith("120 of 120 rows, ")  # the header is none
    assert f"120 flights were accepted, as transactions {before} to {before + ROWS - 1}." in said
    assert [request for request in requests if request.startswith("upload")] == [
        *["upload.json?action=check&on_error=skip"] * 3,
        *["upload.json?action=add&on_error=reject"] * 3,
    ]
    assert short.get_by_role("link", name="the last").get_attribute("href") == (
        f"/receipts/{before + ROWS - 1}"
    )
    assert "120 of them are in the ledger already" in checked(short, path)
    assert short.locator("#result").get_by_role("button").count() == 0
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
        assert "(transaction 3 in block 1)" in text
    assert f"1 flight was accepted, as transaction {before}." in text
    pages.until_there_are(before + 1)


def test_bad_rows_have_the_numbers_of_their_lines(
    short: Page, pages: Pages, tmp_path: Path
) -> None:
    before = pages.settled()
    path = file_of(tmp_path, 1, 3, 71, 116)
    text = checked(short, path)
    assert "checked, nothing was added" in text
    assert "117 rows are flights, 3 are not." in text
    numbers = short.locator("#result td.n").all_inner_texts()
    assert numbers == ["3", "71", "116"]
    pages.until_there_are(before)
    short.get_by_role("button", name="Leave 3 rows out and add 117 flights").click()
    expect(short.get_by_text("checked, nothing was added")).to_be_visible()
    short.get_by_label("Leave out 3 of 120 rows (2.5\N{NO-BREAK SPACE}%)").check()
    short.get_by_role("button", name="Leave 3 rows out and add 117 flights").click()
    assert "3 rows were left out" in result(short)
    pages.until_there_are(before + ROWS - 3)


def test_a_slice_whose_answer_is_lost_is_sent_again_and_added_once(
    short: Page, pages: Pages, tmp_path: Path
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

    short.route(SLICES, lose_the_second)
    assert "120 flights were accepted" in sent(short, file_of(tmp_path, 2))
    assert len(lost) == 4
    pages.until_there_are(before + ROWS)


def test_what_was_stopped_goes_on_where_it_was(short: Page, pages: Pages, tmp_path: Path) -> None:
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

    short.route(SLICES, hold_the_third)
    start(short, path)
    short.locator("#counts", has_text="100 of").wait_for(timeout=60_000)
    short.get_by_role("button", name="Stop").click()
    text = result(short)
    assert "stopped" in text
    assert "100 flights were accepted" in text
    assert "The rest was not added." in text
    short.unroute(SLICES)
    pages.until_there_are(before + 2 * LINES)
    assert "100 of them are in the ledger already" in checked(short, path)
    short.wait_for_timeout(1500)  # receipts of an earlier time are told by the clock
    short.get_by_role("button", name="Add 20 flights").click()
    text = result(short)
    assert "120 flights were accepted" in text
    assert "100 of them were accepted when this file was first sent" in text
    pages.until_there_are(before + ROWS)


def test_what_is_no_table_is_said_at_once(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "flights.csv"
    for content, said in (
        (b"a,b\n1,2\n", "It does not have any column of a flight"),
        (b"", "It is empty"),
        (b"%PDF-1.7\n", "It is a PDF document"),
        (gzip.compress(csv_of(FLIGHTS).encode())[:-9], "It is damaged or incomplete"),
        (b"PAR1\0", "It is a Parquet or Arrow file, which is not read over the network"),
        (b"BZh" + bytes(17 * 2**20), "can only be sent in one piece of at most 16 MB"),
    ):
        path.write_bytes(content)
        text = checked(page, path)
        assert said in text
        assert "Nothing was added." in text


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
    short.get_by_role("button", name="Add 60 flights").click()
    assert f"60 flights were accepted, as transactions {before} to " in result(short)
    pages.until_there_are(before + 60)
    for place in (0, 59):
        stored = pages.service.json(f"/transactions/{before + place}")["transaction"]
        assert tuple(stored[name] for name in FIELD_NAMES) == tuple(rows[place])


@pytest.mark.parametrize("end", [bytes(512), b"\0", gzip.compress(b"", mtime=0)])
def test_a_gzip_file_that_a_browser_does_not_unpack_is_sent_as_it_is(
    page: Page, tmp_path: Path, end: bytes
) -> None:
    path = tmp_path / "flights.csv.gz"
    path.write_bytes(gzip.compress(csv_of(of_new_carrier(20)).encode()) + end)
    assert "All 20 rows are flights." in checked(page, path)


def test_a_table_without_rows_beside_others_is_left_out(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "flights.zip"
    with ZipFile(path, "w") as archive:
        archive.writestr("a.csv", "")
        archive.writestr("b.json", "[]")
        archive.writestr("c.csv", csv_of([]))
        archive.writestr("d.csv", HFLIGHTS)
    assert "The row is a flight." in checked(page, path)


def test_a_bad_row_is_named_with_its_table(page: Page, tmp_path: Path) -> None:
    rows = of_new_carrier(20)
    path = tmp_path / "flights.zip"
    with ZipFile(path, "w") as archive:
        archive.writestr("a.csv", csv_of(rows[:10]))
        archive.writestr("b.csv", csv_of(rows[10:]).replace("2015", "soon", 1))
    text = checked(page, path)
    assert "Among these rows are" not in text
    cells = page.get_by_role("region", name="Rows that are not flights").locator("td")
    assert cells.all_inner_texts()[:2] == ["b.csv", "2"]
    with ZipFile(path, "a") as archive:
        archive.writestr("c.csv", HFLIGHTS)
    text = checked(page, path)
    assert "c.csv is of another kind (hflights) than what is before it" in text
    assert page.locator("#result").get_by_role("button").count() == 0


def written_day_first(folder: Path, days: list[str]) -> Path:
    """A file that says the days of its flights like this, and no weekdays."""
    rows = enumerate(of_new_carrier(len(days)), 1)
    mappings = [as_mapping(row) | {"OP_CARRIER_FL_NUM": number} for number, row in rows]
    path = folder / "flights.csv"
    path.write_text(csv_of_days(mappings, days), encoding="utf-8")
    return path


def test_days_are_judged_over_the_whole_file(short: Page, pages: Pages, tmp_path: Path) -> None:
    before = pages.settled()
    days = ["02/03/2015"] * LINES + ["14/03/2015"] * LINES + ["03/04/2015"] * 10
    path = written_day_first(tmp_path, days)
    asked: list[str] = []
    short.on("request", lambda request: asked.append(request.url.partition("?")[2]))
    text = checked(short, path)
    assert "All 110 rows are flights." in text
    assert "Days are written day, month, year." in text
    assert [each.partition("dates=")[2] for each in asked] == ["", "", "", *["day-first"] * 2]
    short.get_by_role("button", name="Add 110 flights").click()
    assert "110 flights were accepted" in result(short)
    assert all("dates=day-first" in each for each in asked[5:])
    pages.until_there_are(before + len(days))
    for place, day in ((0, "2015-03-02"), (LINES, "2015-03-14"), (len(days) - 1, "2015-04-03")):
        stored = pages.service.json(f"/transactions/{before + place}")["transaction"]
        assert stored["FL_DATE"] == day
    for other in ("03/14/2015", "2015-04-03"):  # a spreadsheet may have made that of 04/03/2015
        contradictory = written_day_first(tmp_path, ["14/03/2015"] * LINES + [other])
        text = checked(short, contradictory)
        assert "Some days are written in one order, others in another" in text


def test_days_that_nothing_decides_are_asked(page: Page, pages: Pages, tmp_path: Path) -> None:
    before = pages.settled()
    path = written_day_first(tmp_path, ["02/03/2015", "03/03/2015", "04/03/2015"])
    text = checked(page, path)
    assert "a question before anything is added" in text
    assert "Which day is 02/03/2015?" in text
    assert page.get_by_role("button", name="Add").count() == 0
    page.get_by_label("Day first: 2 March 2015").check()
    page.locator("#result").get_by_role("button", name="Check the file").click()
    page.wait_for_selector("#result:not([hidden]) strong")
    assert "All 3 rows are flights." in page.inner_text("#result")
    page.get_by_role("button", name="Add 3 flights").click()
    assert "3 flights were accepted" in result(page)
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
