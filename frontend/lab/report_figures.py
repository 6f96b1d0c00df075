"""Takes the drawings out of a report of the lab, each as a picture that stands by itself.

The colours of a drawing are names that the report's style sheet explains, for light and dark. So
the style sheet goes into the picture, too.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

_FIGURE = re.compile(
    r"<figure>\s*<h[23]>(?P<title>[^<]*)</h[23]>.*?(?P<svg><svg .*?</svg>).*?"
    r"<figcaption>(?P<caption>[^<]*)</figcaption>",
    re.DOTALL,
)
_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_TAG = re.compile(r"<svg ([^>]*)>")
_HIDDEN = re.compile(r' ?(aria-hidden|focusable)="[^"]*"')
_SPACE = "http://www.w3.org/2000/svg"


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing. title: what it shows. caption: the same for those who cannot see it."""

    title: str
    caption: str
    svg: str


def figures_in(report: str) -> Iterator[Figure]:
    style = _STYLE.search(report)
    sheet = html.unescape(style[1]) if style else ""
    for figure in _FIGURE.finditer(report):
        title, caption = html.unescape(figure["title"]), html.unescape(figure["caption"]).strip()
        yield Figure(title, caption, _standing_alone(figure["svg"], sheet))


def _standing_alone(svg: str, sheet: str) -> str:
    def opened(tag: re.Match[str]) -> str:
        attributes = _HIDDEN.sub("", tag[1]).strip()
        space = "" if "xmlns=" in attributes else f' xmlns="{_SPACE}"'
        return f"<svg {attributes}{space}><style><![CDATA[{sheet.replace(']]>', '')}]]></style>"

    return _TAG.sub(opened, svg, count=1)
