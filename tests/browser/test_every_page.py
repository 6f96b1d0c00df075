"""What holds for each page of the table, and for each kind of page on a ledger without flights."""

import gzip
import json
import re
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Literal

import pytest
import requests
from axe_playwright_python.base import AxeResults  # type: ignore[import-untyped]
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page

from frontend import static_files
from tests.browser.conftest import SCRIPTLESS, Tab, Visit
from tests.browser.sites import Site
from tests.browser.table import FULLEST, PAGES, Row

Scheme = Literal["light", "dark"]
# The last is that of the look: to change it again would draw the page once more.
WIDTHS = (320, 1280)
GROUNDS: dict[Scheme, str] = {"light": "rgb(247, 248, 249)", "dark": "rgb(17, 22, 27)"}
HEIGHT = 900

MOST_HTML_BYTES, MOST_SCRIPT_BYTES, MOST_STYLE_BYTES = 50_000, 26_500, 15_000  # compressed

NOT_FOR_ALL = ("no-cache", "no-store", "private")

AXE = Axe().axe_script
# Axe is silent about what stands on a gradient, such as those at the sides of a wide table.
WITHOUT_SHADES = """
    document.querySelectorAll(".scroll").forEach((wide) => { wide.style.backgroundImage = "none"; })
"""
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
CONTRAST = ["color-contrast"]
NAMES = "landmark-unique"  # no rule of WCAG: parts of a page are told apart by their names


@dataclass(frozen=True, slots=True)
class Look:
    """How axe looks at a page, which takes it a second: against which rules, or rules of tags.

    left_out: what it does not look at, as a selector of CSS.
    """

    width: int
    scheme: Scheme
    rules: list[str]
    left_out: str = ""


def is_of_flights(row: Row) -> bool:
    """Whether a page shows flights, and so has less to show on an empty ledger."""
    return re.match("/(about|add|cheat|cluster|lab|months|nothing|upload)", row.address) is None


FURTHER_ROWS = "tbody tr:nth-child(n+9)"  # are made as those before them
LIGHT, DARK = (Look(1280, scheme, WCAG, FURTHER_ROWS) for scheme in ("light", "dark"))
NARROW = Look(320, "dark", WCAG)
LONG = [pytest.mark.long]
LOOKS: list[tuple[str, Row, tuple[Look, ...], list[pytest.MarkDecorator]]] = [
    # Of two pages one is looked at in its light colours, and the other in its dark ones.
    *(("many", row, (look,), []) for row, look in zip(FULLEST, cycle((LIGHT, DARK)), strict=False)),
    *(("empty", row, (), [] if is_of_flights(row) else LONG) for row in FULLEST),
    *(("empty", row, (NARROW,), LONG) for row in FULLEST),
    *(("many", row, (replace(LIGHT, left_out=""), DARK), LONG) for row in PAGES),
]


def require_fit(page: Page, widths: tuple[int, ...] = WIDTHS) -> None:
    """Fail unless the page needs no sideways scrolling at any width."""
    for width in widths:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        taken = page.evaluate("document.documentElement.scrollWidth")
        assert taken <= width, f"{taken} px on {width} px"


def require_structure(page: Page) -> None:
    """Fail unless it has a language, one heading of the first level, and one main part.

    A list of choices that must be filled in begins with an empty one, by the rules of HTML.
    """
    language, headings, main_parts, choices = page.evaluate(
        """() => [
            document.documentElement.getAttribute("lang"),
            [...document.querySelectorAll("h1")].map(heading => heading.innerText.trim()),
            document.querySelectorAll("main").length,
            document.querySelectorAll(
                "select[required] > :first-child:not([value=''])").length,
        ]"""
    )
    assert language == "en"
    assert len(headings) == 1
    assert headings[0]
    assert main_parts == 1
    assert choices == 0


def violations(page: Page, rules: list[str], left_out: str = "") -> str:
    """Return what axe finds against these rules, or rules with these tags and NAMES; "" if nothing.

    left_out: a selector of what it does not look at.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    page.evaluate(WITHOUT_SHADES)
    options = {
        "runOnly": rules,
        "rules": {NAMES: {"enabled": True}},
        "resultTypes": ["violations"],
    }
    context = {"exclude": [[left_out]]} if left_out else {"include": [["html"]]}
    results = AxeResults(page.evaluate("given => axe.run(...given)", [context, options]))
    return str(results.generate_report()) if results.violations_count else ""


def require_access(page: Page, looks: tuple[Look, ...]) -> None:
    """Fail unless it is light or dark, and meets WCAG 2.2 AA as far as a program can tell."""
    for look in looks:
        page.set_viewport_size({"width": look.width, "height": HEIGHT})
        page.emulate_media(color_scheme=look.scheme)  # at once, as no colour fades into another
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == GROUNDS[look.scheme]
        assert violations(page, look.rules, look.left_out) == "", look


def require_privacy(page: Page) -> None:
    """Fail if the page kept anything where its scripts reach it, but the log that it saw."""
    cookie, session, kept = page.evaluate(
        "[document.cookie, sessionStorage.length, {...localStorage}]"
    )
    assert (cookie, session) == ("", 0)
    assert kept.keys() <= {"flightchain"}
    memory = json.loads(kept.get("flightchain", '{"kept": {}}'))
    assert memory.keys() == {"kept"}
    assert memory["kept"].keys() <= {"origin", "key", "size", "root", "time", "first"}


@pytest.mark.parametrize(
    ("ledger", "row", "looks"),
    [
        pytest.param(ledger, row, looks, id=f"{ledger}-{row.address}", marks=marks)
        for ledger, row, looks, marks in LOOKS
    ],
)
def test_it_fits_is_a_page_and_can_be_used_by_everybody(
    tab: Tab, ledger: str, row: Row, looks: tuple[Look, ...]
) -> None:
    page = tab.open(row, row.status if ledger == "many" else None)
    require_fit(page)
    require_structure(page)
    require_privacy(page)
    require_access(page, looks)


def test_the_description_of_the_service_fits_and_can_be_used_by_everybody(
    visit: Visit, site: Site
) -> None:
    page = visit(replace(site, url=site.service.url)).open("/docs")
    require_structure(page)
    require_fit(page, (1000, 320))
    further_parts = "section.operation ~ section, #schemas"  # are made as those before them
    assert violations(page, WCAG, further_parts) == ""


def test_axe_finds_what_is_wrong(visit: Visit, site: Site) -> None:
    page = visit(site).open("/about")
    page.evaluate("document.querySelector('h1').style.color = '#e8e8e8'")
    page.evaluate("document.querySelector('html').removeAttribute('lang')")
    page.evaluate("document.body.append(...[1, 2].map(() => document.createElement('nav')))")
    report = violations(page, WCAG)
    assert "color-contrast" in report
    assert "html-has-lang" in report
    assert NAMES in report
    page = visit(site).open("/rankings")
    assert violations(page, CONTRAST, FURTHER_ROWS) == ""
    page.evaluate("document.querySelector('.scroll td').style.color = '#e8e8e8'")
    assert "color-contrast" in violations(page, CONTRAST, FURTHER_ROWS)


@pytest.mark.parametrize("ledger", [SCRIPTLESS])
@pytest.mark.parametrize("row", FULLEST, ids=lambda row: row.address)
def test_it_is_there_without_scripts(tab: Tab, ledger: str, row: Row) -> None:
    page = tab.open(row, row.status)
    assert page.locator("h1").is_visible()
    for what_scripts_do in page.locator("[data-live], [data-check], button[type=button]").all():
        assert not what_scripts_do.is_visible()
    for evidence in page.locator(".evidence").all():
        assert evidence.is_visible()


def test_every_page_is_small_for_its_visitor_alone_and_has_a_title_of_its_own(
    visit: Visit, site: Site
) -> None:
    first, second = visit(site), visit(site)
    mine = first.open("/search?q=Timbuktu+for+me+alone")
    assert "for me alone" in mine.inner_text("main")
    mine.goto("/")
    mine.get_by_role("button", name="Pause updates").click()
    theirs = second.open("/")
    assert theirs.locator("#search").input_value() == ""
    assert theirs.locator("[data-pause]").get_attribute("aria-pressed") == "false"
    by_title: dict[str, str] = {}
    for row in PAGES:
        answer = requests.get(site.url + site.address(row.address), timeout=10)
        assert int(answer.headers["Content-Length"]) <= MOST_HTML_BYTES, row.address
        (title,) = re.findall(r"<title>(.+) · Flightchain</title>", answer.text)
        assert title not in by_title, (row.address, by_title[title])
        by_title[title] = row.address
        assert "for me alone" not in answer.text
        assert {*NOT_FOR_ALL} & {*answer.headers["Cache-Control"].split(", ")}, row.address
        assert "Set-Cookie" not in answer.headers, row.address


def test_scripts_and_styles_are_small() -> None:
    """All of them together."""
    sizes = dict.fromkeys((".js", ".css"), 0)
    for path in static_files.FOLDER.iterdir():
        sizes[path.suffix] = sizes.get(path.suffix, 0) + len(gzip.compress(path.read_bytes(), 9))
    assert 0 < sizes[".js"] <= MOST_SCRIPT_BYTES
    assert 0 < sizes[".css"] <= MOST_STYLE_BYTES


def test_a_request_elsewhere_and_a_message_are_noticed(visit: Visit, site: Site) -> None:
    visitor = visit(site)
    page = visitor.open("/about")
    page.evaluate("console.error('on purpose')")
    page.goto("about:blank")
    page.set_content("<img src='http://203.0.113.7/picture'>")
    page.wait_for_function("document.images[0].complete")
    assert any("on purpose" in fault for fault in visitor.faults)
    assert any("request to http://203.0.113.7/picture" in fault for fault in visitor.faults)
    visitor.faults.clear()
