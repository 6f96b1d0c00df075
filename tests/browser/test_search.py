"""The search field: suggestions while somebody types, and Enter with and without a choice."""

import pytest
from playwright.sync_api import Locator, Page, expect

from backend.questions.carriers import CARRIER
from tests.browser.conftest import Visit
from tests.browser.sites import Site
from tests.browser.test_every_page import WCAG, violations

SIZES = ({"width": 1200, "height": 800}, {"width": 360, "height": 740})


def typed(page: Page, text: str) -> Locator:
    """The options that are shown for `text`, after at least one is there."""
    page.locator("#search").press_sequentially(text)
    options = page.get_by_role("option")
    expect(options.first).to_be_visible()
    return options


def is_active(page: Page, option: Locator) -> bool:
    """Whether the field says that `option` is the one to be opened, and the option says so."""
    active = page.locator("#search").get_attribute("aria-activedescendant")
    selected = option.get_attribute("aria-selected") == "true"
    return selected and active == option.get_attribute("id")


@pytest.mark.parametrize(
    ("size", "scheme"), [(SIZES[0], "light"), (SIZES[1], "dark")], ids=("wide", "narrow")
)
def test_a_suggestion_is_chosen_and_opened_by_keyboard(
    visit: Visit, site: Site, size: dict[str, int], scheme: str
) -> None:
    page = visit(site, viewport=size, color_scheme=scheme).open("/about")
    field = page.get_by_role("combobox", name="Search the ledger")
    carrier = CARRIER[int(site.values["carrier"])]
    expect(field).to_have_attribute("aria-expanded", "false")
    options = typed(page, f"how late is {carrier.name[:-2]}")  # of which there is no result
    expect(options.first).to_contain_text(carrier.name)
    expect(field).to_have_attribute("aria-expanded", "true")
    box = page.get_by_role("listbox").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= size["width"]
    page.keyboard.press("ArrowDown")
    assert is_active(page, options.first)
    assert violations(page, WCAG) == ""
    page.keyboard.press("ArrowUp")
    assert field.get_attribute("aria-activedescendant") is None
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/average_delays?OP_CARRIER_AIRLINE_ID={carrier.number}&*")


def test_enter_without_a_choice_sends_what_was_typed(visit: Visit, site: Site) -> None:
    page = visit(site).open("/about")
    typed(page, "7")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{site.url}/search?q=7")


def test_the_list_closes_and_the_text_is_kept(visit: Visit, site: Site) -> None:
    page = visit(site).open("/about")
    typed(page, site.values["day"])
    page.keyboard.press("Escape")
    expect(page.get_by_role("listbox")).to_be_hidden()
    assert page.locator("#search").input_value() == site.values["day"]
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("listbox")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("listbox")).to_be_hidden()
    page.locator("#search").clear()
    typed(page, "flight 1")
    page.locator("#search").clear()
    expect(page.get_by_role("listbox")).to_be_hidden()


def test_a_suggestion_is_opened_by_a_click(visit: Visit, site: Site) -> None:
    page = visit(site).open("/about")
    typed(page, f"block {site.values['tip']}").first.click()
    page.wait_for_url(f"{site.url}/blocks/{site.values['tip']}")
