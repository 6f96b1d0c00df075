"""The home page: what keeps itself up to date, and the keyboard."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from playwright.sync_api import Page, Request, expect

from tests.api.worlds import GOOD, settings_for
from tests.browser.conftest import Visit
from tests.browser.sites import Site, make_ledger, site_over
from tests.browser.visits import Visitor
from tests.submitting import sealing

STEP_MS = 5_000
STEPS = 40
MOST_LOOKS = 100


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("written") / "chain"
    make_ledger(folder, [3])
    with site_over(folder) as site:
        yield site


@pytest.fixture
def own(written: Site) -> Site:
    """A site that may be written to; nothing is pending."""
    if written.service.json("/tip")["pending"]:
        mine(written)
    return written


@pytest.fixture
def height(own: Site) -> int:
    """Height of the newest block in the beginning."""
    return int(own.service.json("/tip")["height"])


def mine(site: Site) -> None:
    with sealing(settings_for(site.service.folder)) as sealer:
        sealer.seal_pending()


def fact(page: Page, name: str) -> str:
    """The value of a fact of the part that is kept up to date."""
    element = page.locator(".standing dl div", has=page.get_by_text(name, exact=True))
    return element.locator("dd").inner_text()


def shows_block(page: Page, height: int) -> bool:
    return fact(page, "Newest block") == str(height)


def after_a_while(page: Page, condition: Callable[[], bool]) -> None:
    """Let the clock of `page` run fast until `condition` holds; it must have been installed.

    It stands while a request is under way, so that a busy machine is not taken for a slow service.
    """
    under_way: set[Request] = set()

    def begun(request: Request) -> None:
        under_way.add(request)

    def ended(request: Request) -> None:
        under_way.discard(request)

    page.on("request", begun)
    page.on("requestfinished", ended)
    page.on("requestfailed", ended)
    for _ in range(STEPS):
        if condition():
            return
        page.clock.fast_forward(STEP_MS)
        page.wait_for_timeout(100)
        for _ in range(MOST_LOOKS):
            if not under_way:
                break
            page.wait_for_timeout(50)
    assert condition()


# --- live ------------------------------------------------------------------------------------


def test_a_flight_shows_as_pending_and_then_in_a_block_without_reload(
    visit: Visit, own: Site, height: int
) -> None:
    page = at_home(visit(own))
    page.evaluate("window.isTheSamePage = true")
    assert (fact(page, "Newest block"), fact(page, "Pending")) == (str(height), "0")
    status = page.locator("[data-status]")
    assert own.service.post(GOOD).status_code == 202
    page.clock.fast_forward(2 * STEP_MS)
    facts = page.locator(".standing dl")
    expect(facts).to_contain_text("Pending\n1", use_inner_text=True, timeout=12_000)
    assert status.text_content() == ""  # that is no news to be spoken
    mine(own)
    page.clock.fast_forward(2 * STEP_MS)
    newest = page.locator(".standing tbody td").first
    expect(newest).to_have_text(str(height + 1), timeout=12_000)
    assert (fact(page, "Newest block"), fact(page, "Pending")) == (str(height + 1), "0")
    expect(status).to_have_text(f"Block {height + 1} is the newest")
    assert page.evaluate("window.isTheSamePage") is True


def test_a_pending_transaction_is_verified_once_it_is_in_a_block(visit: Visit, own: Site) -> None:
    added = own.service.post(GOOD).json()["TRANSACTION_ID"]
    visitor = visit(own, "status of 404")  # a block is signed a moment after it is mined
    page = visitor.open(f"/transactions/{added}")
    expect(page.locator("[data-verdict]")).to_have_text("A pending transaction has no proof yet.")
    mine(own)
    expect(page.locator("[data-verdict]")).to_contain_text(
        f"Transaction {added} is in block", timeout=20_000
    )
    expect(page.get_by_role("link", name="Proof")).to_be_visible()


def at_home(visitor: Visitor) -> Page:
    """The home page, with a clock that a test lets run."""
    page = visitor.context.new_page()
    page.clock.install()
    page.goto("/")
    return page


def test_while_paused_nothing_is_asked_and_nothing_changes(visit: Visit, own: Site) -> None:
    visitor = visit(own)
    page = at_home(visitor)
    button = page.get_by_role("button", name="Pause updates")
    button.press("Enter")
    assert button.get_attribute("aria-pressed") == "true"
    own.service.post(GOOD)
    before, asked = page.locator(".standing").inner_html(), len(visitor.requests)
    for _ in range(5):
        page.clock.fast_forward(60_000)
        page.wait_for_timeout(50)
    assert page.locator(".standing").inner_html() == before
    assert len(visitor.requests) == asked
    button.press("Enter")
    assert button.get_attribute("aria-pressed") == "false"
    after_a_while(page, lambda: fact(page, "Pending") == "1")


def test_a_page_that_nobody_sees_asks_for_nothing(visit: Visit, own: Site) -> None:
    visitor = visit(own)
    page = at_home(visitor)
    page.evaluate("Object.defineProperty(document, 'hidden', {get: () => window.isHidden})")
    page.evaluate("window.isHidden = true")
    asked = len(visitor.requests)
    for _ in range(5):
        page.clock.fast_forward(60_000)
        page.wait_for_timeout(50)
    assert len(visitor.requests) == asked
    page.evaluate("window.isHidden = false; document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_timeout(300)
    assert len(visitor.requests) > asked


def test_what_has_the_focus_or_is_selected_is_not_torn_away(
    visit: Visit, own: Site, height: int
) -> None:
    page = at_home(visit(own))
    link = page.locator(".standing tbody a").first
    link.focus()
    own.service.post(GOOD)
    after_a_while(page, lambda: fact(page, "Pending") == "1")
    assert page.evaluate("document.activeElement.getAttribute('href')") == f"/blocks/{height}"
    page.evaluate("getSelection().selectAllChildren(document.querySelector('.standing code'))")
    chosen = page.evaluate("getSelection().toString()")
    own.service.post(GOOD)
    for _ in range(4):
        page.clock.fast_forward(STEP_MS)
        page.wait_for_timeout(100)
    assert page.evaluate("getSelection().toString()") == chosen != ""
    page.evaluate("getSelection().removeAllRanges()")
    after_a_while(page, lambda: fact(page, "Pending") == "2")


def test_news_are_spoken_once_a_minute_at_most(visit: Visit, own: Site, height: int) -> None:
    page = at_home(visit(own))
    page.evaluate("""() => {
      window.spoken = [];
      const line = document.querySelector("[data-status]");
      new MutationObserver(() => spoken.push(line.textContent)).observe(line, {childList: true});
    }""")
    for later in (1, 2, 3):
        own.service.post(GOOD)
        mine(own)
        after_a_while(page, partial(shows_block, page, height + later))
    assert page.evaluate("spoken") == [f"Block {height + 1} is the newest"]
    page.clock.fast_forward(60_000)
    after_a_while(page, lambda: len(page.evaluate("spoken")) == 2)
    assert page.evaluate("spoken")[1] == f"Block {height + 3} is the newest"


def test_how_long_ago_it_was_grows_by_itself(visit: Visit, site: Site) -> None:
    page = at_home(visit(site, "ERR_INTERNET_DISCONNECTED"))
    shown = page.locator(".standing tbody time").first
    page.clock.fast_forward(STEP_MS)  # learns the server's time
    page.wait_for_timeout(300)
    page.clock.fast_forward(1000)
    before = shown.inner_text()
    assert before.endswith(" ago")
    page.context.set_offline(True)  # no server tells it
    page.clock.fast_forward(3 * 3_600_000)
    page.wait_for_timeout(100)
    page.clock.fast_forward(1000)
    assert shown.inner_text() != before
    assert shown.inner_text() in {"3 hours ago", "4 hours ago"}


def test_what_the_browser_has_translated_stays_until_there_is_news(visit: Visit, own: Site) -> None:
    visitor = visit(own)
    page = at_home(visitor)
    standing, time = page.locator(".standing"), page.locator(".standing tbody time").first
    time.evaluate("time => time.dateTime = '2000-01-01T00:00:00Z'")  # a text that stays the same
    after_a_while(page, lambda: time.inner_text().endswith("years ago"))
    page.locator(".standing dt").first.evaluate("term => term.textContent = 'Neuester Block'")
    time.evaluate("time => time.textContent = 'lange her'")
    asked = len(visitor.requests)
    after_a_while(page, lambda: len(visitor.requests) > asked + 1)
    expect(standing).to_contain_text("Neuester Block")
    expect(time).to_have_text("lange her")
    own.service.post(GOOD)
    after_a_while(page, lambda: "Neuester Block" not in standing.inner_text())
    assert fact(page, "Pending") == "1"


PAIR = ("dt", "dd")


def test_values_of_a_row_begin_at_one_height_however_long_they_are(
    visit: Visit, site: Site
) -> None:
    page = visit(site).open("/")
    pairs = page.locator(".standing .facts > div")
    page.evaluate("document.querySelector('.facts dd').textContent = 'some words '.repeat(9)")
    page.evaluate("document.querySelectorAll('.facts dt')[1].textContent = 'some words '.repeat(9)")
    names, values = ([pairs.nth(n).locator(part).bounding_box() for n in (0, 1)] for part in PAIR)
    assert values[0] and values[1] and values[0]["y"] == values[1]["y"]
    assert all(name and name["y"] + name["height"] <= values[0]["y"] for name in names)


# --- the keyboard ----------------------------------------------------------------------------

FOCUSED = """() => {
  const element = document.activeElement, style = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  return {
    order: [...document.querySelectorAll("*")].indexOf(element),
    isBody: element === document.body,
    what: element.outerHTML.slice(0, 80),
    hasOutline: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
    isSeen: box.width > 0 && box.top > -1 && box.bottom < innerHeight + 1 && box.left > -1,
  };
}"""


def test_the_first_stop_leads_to_the_content(visit: Visit, site: Site) -> None:
    page = visit(site).open("/")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport(ratio=1)
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('main').contains(document.activeElement)")


def test_every_stop_is_in_order_and_can_be_seen(visit: Visit, site: Site) -> None:
    page = visit(site).open("/")
    stops = []
    for _ in range(200):
        page.keyboard.press("Tab")
        stop = page.evaluate(FOCUSED)
        if stop["isBody"]:
            break
        stops.append(stop)
    assert len(stops) > 20
    assert [stop for stop in stops if not stop["hasOutline"]] == []
    assert [stop for stop in stops if not stop["isSeen"]] == []
    assert [stop["order"] for stop in stops] == sorted(stop["order"] for stop in stops)
