"""Reads some transactions of a body as JSON, without decoding the rest.

A dictionary is JSON already, so that a row is put together from pieces of dictionaries, and a piece
is found by what stands between values. In a column of texts that is `","`, unless a backslash makes
the quotes ambiguous; in the others a comma, which is no part of any value. What `block_rules`
refuses may come out wrong.

From decoded columns, the service would take at least twice the processor time for
`GET /transactions/ID` and 1.5 times for 50 rows of a block (rows of `scripts/bench`: transactions
anywhere, the first 20 flights of a block).
"""

from collections.abc import Iterable, Sequence

import msgspec

from backend.base.words import counted
from backend.chain.columns import COLUMN_NAMES, UNREADABLE, BodyError, directory_of, joined
from backend.chain.fields import FIELDS

_IS_TEXT = (*(field.kind == "text" for field in FIELDS), False)
_ROW = b'{%b,"TRANSACTION_ID":%%d}' % b",".join(
    b'"%b":' % name.encode() + (b'"%b"' if is_text else b"%b")
    for name, is_text in zip(COLUMN_NAMES, _IS_TEXT, strict=True)
)

_decode_texts = msgspec.json.Decoder(list[msgspec.Raw]).decode


def transactions_json(
    body: bytes, count: int, first_transaction: int, start: int, stop: int
) -> list[bytes]:
    """Return rows `start` to `stop` (exclusive, clipped) of a body of `count` rows, each as JSON.

    Their names stand in the order of COLUMN_NAMES, TRANSACTION_ID last. Raises BodyError as
    `decode_body` does, but only for what stands in the way of these rows.
    """
    stop = min(stop, count)
    if start >= stop:
        return []
    ids = range(first_transaction + start, first_transaction + stop)
    try:
        columns = _columns(body, count, start, stop)
        return [_ROW % row for row in zip(*columns, ids, strict=True)]
    except UNREADABLE as error:
        raise BodyError(f"not a body of {counted(count, 'transaction')}: {error}") from error


def _columns(body: bytes, count: int, start: int, stop: int) -> list[Iterable[bytes]]:
    columns: list[Iterable[bytes]] = []
    for is_text, (at, codes_at, end) in zip(_IS_TEXT, directory_of(body), strict=True):
        codes: Sequence[int] = body[codes_at + start : codes_at + stop]
        if end - codes_at == 2 * count:
            codes = joined(codes, body[codes_at + count + start : codes_at + count + stop])
        elif end - codes_at != count:
            raise BodyError(f"{counted(end - codes_at, 'code byte')} for {counted(count, 'row')}")
        most = max(codes) + 1
        if is_text:
            values = _texts(body[at:codes_at], most)
        else:
            values = body[at + 1 : codes_at - 1].split(b",", most)
        columns.append(map(values.__getitem__, codes))
    return columns


def _texts(dictionary: bytes, most: int) -> list[bytes]:
    """Return the first `most` texts of a dictionary at least, without their quotes."""
    if b"\\" in dictionary:
        return [bytes(text)[1:-1] for text in _decode_texts(dictionary)]
    return dictionary[2:-2].split(b'","', most)
