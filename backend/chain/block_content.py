"""Defines what a block is made from: all about its transactions but their place in the ledger."""

from dataclasses import dataclass

from backend.chain.columns import Columns, encode_body
from backend.chain.summary import Cell, cells_of


@dataclass(frozen=True, slots=True)
class Content:
    """The transactions of a block, their encoding, and their summary."""

    columns: Columns
    body: bytes
    cells: list[Cell]


def content_of(columns: Columns) -> Content:
    """Return the content that `columns` make."""
    return Content(columns, encode_body(columns), cells_of(columns))
