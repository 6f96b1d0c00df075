"""Text for the page: everything is escaped but three things of Markdown.

Paragraphs (an empty line between them), `code`, and [links](#anchor) to places on the page itself.
"""

import re
from typing import Any

import msgspec
from markupsafe import Markup, escape

_MARKED = re.compile(r"`([^`]+)`|\[([^\]\[]+)\]\((#[\w./-]+)\)")
_BETWEEN_PARAGRAPHS = re.compile(r"\n\s*\n")


def prose(text: str) -> Markup:
    """`text` as paragraphs."""
    paragraphs = [each.strip() for each in _BETWEEN_PARAGRAPHS.split(text) if each.strip()]
    return Markup("\n").join(Markup("<p>{}</p>").format(phrase(each)) for each in paragraphs)


def phrase(text: str) -> Markup:
    """`text` to stand within a paragraph or a cell of a table."""
    pieces, end = [], 0
    for match in _MARKED.finditer(text):
        pieces.append(escape(text[end : match.start()]))
        code_text, link_text, anchor = match.groups()
        pieces.append(code(code_text) if code_text else link(anchor, phrase(link_text)))
        end = match.end()
    pieces.append(escape(text[end:]))
    return Markup("").join(pieces)


def code(text: object) -> Markup:
    """`text` as code."""
    return Markup("<code>{}</code>").format(text)


def link(anchor: str, text: object) -> Markup:
    """A link to a place on the page; anchor: with its #."""
    return Markup('<a href="{}">{}</a>').format(anchor, text)


def json_text(value: Any) -> str:
    """`value` as JSON on one line."""
    return msgspec.json.encode(value).decode()


def json_lines(value: Any) -> str:
    """`value` as JSON to be read: indented."""
    return msgspec.json.format(msgspec.json.encode(value)).decode()
