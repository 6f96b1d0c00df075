"""Reading a page as a person or a browser does: its text, its links, its tables and forms."""

from dataclasses import dataclass, field
from functools import cached_property
from html.parser import HTMLParser

Attributes = dict[str, str | None]
_EMPTY = {"meta", "link", "input", "br", "img", "hr"}


@dataclass
class Element:
    """An element that is of interest, with the text in it."""

    tag: str
    attributes: Attributes
    inner: list["Element"] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)  # within, at any depth

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def all(self, *tags: str) -> list["Element"]:
        """Returns the elements within that have these tags, at any depth, in the page's order."""
        elements = []
        for element in self.inner:
            elements += ([element] if element.tag in tags else []) + element.all(*tags)
        return elements

    def get(self, name: str) -> str:
        return self.attributes.get(name) or ""

    @property
    def words(self) -> str:
        """The text with single spaces."""
        return " ".join(self.text.split())


class Page(HTMLParser):
    """A page. Elements that are not closed, or in the wrong order, are an error."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("root", {})
        self._open = [self.root]
        self._elements: list[Element] = []
        self.feed(html)
        self.close()
        assert self._open == [self.root], f"not closed: {self._open[-1].tag}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute twice: {attrs}"
        element = Element(tag, dict(attrs))
        self._open[-1].inner.append(element)
        self._elements.append(element)
        if tag not in _EMPTY:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].tag == tag, f"{self._open[-1].tag} is closed by {tag}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open[-1].tag != "style":
            for element in self._open:
                element.texts.append(data)

    def all(self, *tags: str) -> list[Element]:
        return self.root.all(*tags)

    def by_id(self, name: str) -> Element:
        (match,) = [element for element in self.elements() if element.get("id") == name]
        return match

    def elements(self) -> list[Element]:
        return self._elements

    @cached_property
    def words(self) -> str:
        return self.root.words
