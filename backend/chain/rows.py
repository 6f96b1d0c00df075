"""Single transactions of a body, as JSON, without decoding the rest.

A dictionary is JSON already, so that a row is joined from pieces of dictionaries. Where the values
of a column hold no commas, the pieces are found by counting commas: that takes a fraction of the
time of decoding. Such are all columns but those of names; what `rules` refuses may come out wrong.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from backend.chain.columns import COLUMN_NAMES, UNREADABLE, BodyError, directory_of, joined
from backend.chain.fields import FIELDS

_LONG_BYTES = 600  # of a dictionary in which counting commas pays
_STRIDES = (256, 32)
_STARTS = tuple(
    (b"," if i else b"{") + b'"%b":' % name.encode() for i, name in enumerate(COLUMN_NAMES)
)
_HAS_COMMAS = (*(field.kind == "text" for field in FIELDS), False)

_decode_texts = msgspec.json.Decoder(list[msgspec.Raw]).decode


def transactions_json(
    body: bytes, count: int, first_transaction: int, start: int, stop: int
) -> list[bytes]:
    """Rows `start` to `stop` (exclusive, clipped) of a body of `count` rows, each as JSON.

    With the names in the order of `Columns.transactions`. Raises BodyError as `decode_body`, but
    only for what stands in the way of these rows.
    """
    stop = min(stop, count)
    if start >= stop:
        return []
    try:
        pieces = _pieces(body, count, start, stop)
    except UNREADABLE as error:
        raise BodyError(f"not a body of {count} transactions: {error}") from error
    pieces.append([b',"TRANSACTION_ID":%d}' % (first_transaction + i) for i in range(start, stop)])
    return list(map(b"".join, zip(*pieces, strict=True)))


def _pieces(body: bytes, count: int, start: int, stop: int) -> list[Sequence[bytes]]:
    """What rows are joined from: for each column what stands before a value, and the values."""
    sizes, offsets = directory_of(body)
    found: list[Sequence[bytes]] = []
    for at, (dictionary_bytes, code_bytes), before, has_commas in zip(
        offsets, sizes, _STARTS, _HAS_COMMAS, strict=False
    ):
        codes_at = at + dictionary_bytes
        codes: Sequence[int] = body[codes_at + start : codes_at + stop]
        if code_bytes == 2 * count:
            codes = joined(codes, body[codes_at + count + start : codes_at + count + stop])
        elif code_bytes != count:
            raise BodyError(f"{code_bytes} code bytes for {count} rows")
        first = min(codes) if dictionary_bytes > _LONG_BYTES else 0
        texts: Sequence[Any]
        if has_commas:
            texts = _decode_texts(body[at:codes_at])[first:]
        else:
            begin = _after_commas(body, first, at + 1, codes_at) if first else at + 1
            texts = body[begin : codes_at - 1].split(b",", max(codes) - first + 1)
        found.append([before] * (stop - start))
        found.append([texts[code - first] for code in codes])
    return found


def _after_commas(body: bytes, commas: int, at: int, end: int) -> int:
    """Where that begins which follows `commas` commas from `at` on; `end` if there are fewer."""
    for stride in _STRIDES:
        while at < end and commas > (here := body.count(b",", at, min(at + stride, end))):
            commas, at = commas - here, at + stride
    for _ in range(commas):
        at = body.find(b",", at, end) + 1 or end
    return at
