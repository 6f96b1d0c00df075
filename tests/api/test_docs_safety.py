"""The page for everybody: nothing is fetched, nothing runs, all can read it."""

import re
from base64 import b64encode
from copy import deepcopy
from hashlib import sha256
from itertools import pairwise
from typing import Any

import pytest

from backend.api import docs
from backend.api.encodings import compressed
from tests.api.openapi_small import STRUCTURE, Json, query, small
from tests.api.reading_html import Page

MOST_BYTES = 50_000


@pytest.fixture(scope="module")
def page(described: Json) -> Page:
    return Page(docs.page(described))


EVIL = (
    '<script>alert(1)</script>"\'`<b>`[x](#a"onclick=x) [y](javascript:alert(1)) {{ 7 * 7 }} &amp;'
)


def test_whatever_the_document_says_is_text(described: Json, page: Page) -> None:
    def spoiled(part: Any, key: str = "") -> Any:
        if isinstance(part, dict):
            return {name: spoiled(value, name) for name, value in part.items()}
        if isinstance(part, list):
            return [spoiled(value) for value in part]
        return part if not isinstance(part, str) or key in STRUCTURE else part + EVIL

    expected, found = page, Page(docs.page(spoiled(described)))
    assert found.words.count("<script>alert(1)</script>") > 200
    assert "{{ 7 * 7 }} &amp;" in found.words
    assert found.all("script", "b", "img") == []
    tags = {one.tag for one in expected.elements()} | {"code"}
    assert {one.tag for one in found.elements()} <= tags
    names = {name for one in expected.elements() for name in one.attributes}
    assert {name for one in found.elements() for name in one.attributes} <= names
    assert all(not link.get("href").startswith("javascript") for link in found.all("a"))


def test_names_cannot_leave_their_attributes() -> None:
    parameter = query('q"x="<', {"type": "string"})
    spec = small(operationId='a"onclick="x', parameters=[parameter])
    schema = {"type": "object", "required": [], "properties": {}}
    spec["components"]["schemas"] = {'S"><script>': schema}
    found = Page(docs.page(spec))
    assert found.all("script") == []
    assert found.by_id('a"onclick="x').all("input")[0].get("name") == 'q"x="<'


def test_nothing_leads_to_another_host(described: Json) -> None:
    html = docs.page(described)
    found = Page(html)
    for one in found.elements():
        for name, value in one.attributes.items():
            if name in {"href", "src", "action", "srcset", "poster", "data", "formaction"}:
                assert value == "data:," or re.match(r"#|/(?!/)", value or ""), (one.tag, value)
    (style,) = re.findall("<style>(.*?)</style>", html, re.DOTALL)
    assert not re.search(r"url\(|@import|@font-face", style)
    assert found.all("script", "iframe", "object", "embed", "img", "base") == []
    assert not any(name.startswith("on") for one in found.elements() for name in one.attributes)
    assert not any("style" in one.attributes for one in found.elements())  # the policy forbids it


def test_the_policy_allows_the_style_of_the_page_and_no_more() -> None:
    (style,) = re.findall("<style>(.*?)</style>", docs.page(small()), re.DOTALL)
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = docs.content_security_policy()
    assert f"style-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "script-src" not in policy


def test_the_page_is_small(described: Json) -> None:
    body = docs.page(described).encode()
    for encoding in ("gzip", "zstd"):
        assert len(compressed(encoding, body)) <= MOST_BYTES


def test_the_same_document_gives_the_same_page(described: Json) -> None:
    before = deepcopy(described)
    first = docs.page(described)
    assert described == before
    assert docs.page(described) == first


# --- to be read ----------------------------------------------------------------------------------


def test_every_anchor_leads_somewhere_and_there_is_one_of_each(page: Page) -> None:
    ids = [one.get("id") for one in page.elements() if "id" in one.attributes]
    assert len(ids) == len(set(ids))
    links = [one.get("href") for one in page.all("a") if one.get("href").startswith("#")]
    assert len(links) > 100
    assert [link for link in links if link[1:] not in ids] == []


def test_headings_are_in_order(page: Page) -> None:
    levels = [int(one.tag[1]) for one in page.all("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_tables_say_what_they_are(page: Page) -> None:
    tables = page.all("table")
    captions = [table.all("caption")[0].words for table in tables]
    assert len(captions) == len(set(captions)) > 20
    for table in tables:
        heads, *rows = table.all("tr")
        assert {one.get("scope") for one in heads.all("th")} == {"col"}
        assert rows
        for one in rows:
            assert [head.get("scope") for head in one.all("th")] == ["row"]
            assert len(one.all("th", "td")) == len(heads.all("th"))


def test_a_reader_can_skip_the_contents(page: Page) -> None:
    first = page.all("a")[0]
    assert first.get("href") == "#main"
    assert page.by_id("main").tag == "main"
    (html,) = page.all("html")
    assert html.get("lang") == "en"


def test_every_field_has_a_label(page: Page) -> None:
    labelled = [one for label in page.all("label") for one in label.all("input", "select")]
    assert len(labelled) == len(page.all("input", "select")) > 20


TEXTS = ["ink", "muted", "link", "get", "post", "good", "bad"]
ON: list[tuple[str, str, float]] = [
    *((text, "ground", 4.5) for text in TEXTS),
    *((text, "raised", 4.5) for text in ("ink", "muted")),
    ("on-accent", "accent", 4.5),
    ("edge", "ground", 3.0),
    ("accent", "ground", 3.0),
]


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance of #rrggbb."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_colours_can_be_told_from_their_ground(scheme: int) -> None:
    blocks = re.findall(r":root \{(.*?)\}", docs.page(small()), re.DOTALL)
    assert len(blocks) == 2
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", blocks[scheme]))
    for text, ground, least in ON:
        high, low = sorted((luminance(colours[text]), luminance(colours[ground])), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= least, (text, ground)
