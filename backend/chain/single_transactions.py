"""Reads single transactions of a body, as JSON, without decoding the rest.

A dictionary is JSON already, so that a row is put together from pieces of dictionaries, and a piece
is found by what stands between values. In a column of names that is `","`, unless a backslash makes
the quotes ambiguous; in the others a comma, which is no part of any value. Where one row is wanted,
a long column of numbers is entered in the middle, as numbers are of about one length, and times all
are. That takes a fraction of the time of decoding. What `rules` refuses may come out wrong.
"""

from collections.abc import Iterable, Sequence

import msgspec

from backend.chain.columns import COLUMN_NAMES, UNREADABLE, BodyError, directory_of, joined
from backend.chain.fields import FIELDS
from backend.words import counted

_LONG_BYTES = 600  # of a dictionary in which counting commas pays
_STRIDES = (256, 32)
_FEW = 64  # values, fewer than a byte can count: as many are sooner split off than looked for
_TYPICAL_BYTES = 4  # of a number in a long dictionary, with the comma
_TIME_BYTES, _NULL = len(b'"hhmm"'), b"null"
_BETWEEN_TIMES = _TIME_BYTES + len(b",")

_NAME, _TIME, _OTHER = "text", "time", ""
_KINDS = (*(f.kind if f.kind in {_NAME, _TIME} else _OTHER for f in FIELDS), _OTHER)
_ROW = b'{%b,"TRANSACTION_ID":%%d}' % b",".join(
    b'"%b":' % name.encode() + (b'"%b"' if kind == _NAME else b"%b")
    for name, kind in zip(COLUMN_NAMES, _KINDS, strict=True)
)

_decode_texts = msgspec.json.Decoder(list[msgspec.Raw]).decode


def transactions_json(
    body: bytes, count: int, first_transaction: int, start: int, stop: int
) -> list[bytes]:
    """Rows `start` to `stop` (exclusive, clipped) of a body of `count` rows, each as JSON.

    Their names stand in the order of `Columns.transactions`. Raises BodyError as `decode_body`
    does, but only for what stands in the way of these rows.
    """
    stop = min(stop, count)
    if start >= stop:
        return []
    ids = range(first_transaction + start, first_transaction + stop)
    try:
        if len(ids) == 1:
            return [_ROW % (*_values(body, count, start), ids[0])]
        columns = _columns(body, count, start, stop)
        return [_ROW % row for row in zip(*columns, ids, strict=True)]
    except UNREADABLE as error:
        raise BodyError(f"not a body of {counted(count, 'transaction')}: {error}") from error


def _names(dictionary: bytes, most: int) -> list[bytes]:
    """The first `most` names of a dictionary at least, without their quotes."""
    if b"\\" in dictionary:
        return [bytes(name)[1:-1] for name in _decode_texts(dictionary)]
    return dictionary[2:-2].split(b'","', most)


# --- one row -------------------------------------------------------------------------------------


def _values(body: bytes, count: int, row: int) -> list[bytes]:
    """The value of each column in a row."""
    found: list[bytes] = []
    for kind, (at, codes_at, end) in zip(_KINDS, directory_of(body), strict=True):
        code = body[codes_at + row]
        if end - codes_at == 2 * count:
            code += body[codes_at + count + row] << 8
        elif end - codes_at != count:
            raise _wrong_codes(end - codes_at, count)
        if kind == _NAME:
            found.append(_names(body[at:codes_at], code + 1)[code])
        elif kind == _TIME:
            found.append(_time(body, at + 1, codes_at - 1, code))
        elif codes_at - at < _LONG_BYTES:
            found.append(body[at + 1 : codes_at - 1].split(b",", code + 1)[code])
        else:
            found.append(_number(body, at + 1, codes_at - 1, code))
    return found


def _time(body: bytes, at: int, end: int, code: int) -> bytes:
    """The value of `code` between `at` and `end`, where there are times, and null at most once."""
    start = at + code * _BETWEEN_TIMES
    null = body.find(_NULL, at, min(start + len(_NULL), end))
    if null == start:
        return _NULL
    if null >= 0:
        start -= _TIME_BYTES - len(_NULL)
    if start + _TIME_BYTES > end:
        raise IndexError(f"code {code} beyond the times")
    return body[start : start + _TIME_BYTES]


def _number(body: bytes, at: int, end: int, code: int) -> bytes:
    """The value of `code` between `at` and `end`, looked for around where it should be."""
    guess = min(at + code * _TYPICAL_BYTES, end)
    ahead = code - body.count(b",", at, guess)  # commas between the guess and the value
    if ahead > 0:
        return body[guess:end].split(b",", ahead + 1)[ahead]
    for _ in range(-ahead):
        guess = body.rfind(b",", at, guess)
    start = body.rfind(b",", at, guess) + 1 or at
    stop = body.find(b",", start, end)
    return body[start : end if stop < 0 else stop]


def _wrong_codes(code_bytes: int, count: int) -> BodyError:
    return BodyError(f"{counted(code_bytes, 'code byte')} for {counted(count, 'row')}")


# --- adjacent rows -------------------------------------------------------------------------------


def _columns(body: bytes, count: int, start: int, stop: int) -> list[Iterable[bytes]]:
    """The values of each column in rows `start` to `stop`, at least two.

    Values stand in order of first appearance: rows below `stop` have codes below it. So the first
    rows need the first values alone, and of their codes the low bytes.
    """
    is_early = stop < _FEW
    found: list[Iterable[bytes]] = []
    for kind, (at, codes_at, end) in zip(_KINDS, directory_of(body), strict=True):
        codes: Sequence[int] = body[codes_at + start : codes_at + stop]
        if end - codes_at != count:
            if end - codes_at != 2 * count:
                raise _wrong_codes(end - codes_at, count)
            if not is_early:
                codes = joined(codes, body[codes_at + count + start : codes_at + count + stop])
        most = stop if is_early else max(codes) + 1
        if kind == _NAME:
            values = _names(body[at:codes_at], most)
        elif is_early or codes_at - at < _LONG_BYTES:
            values = body[at + 1 : codes_at - 1].split(b",", most)
        else:
            first = min(codes)
            begin = _after_commas(body, first, at + 1, codes_at)
            values = body[begin : codes_at - 1].split(b",", most - first)
            codes = [code - first for code in codes]
        found.append(map(values.__getitem__, codes))
    return found


def _after_commas(body: bytes, commas: int, at: int, end: int) -> int:
    """Where that begins which follows `commas` commas from `at` on; `end` if there are fewer."""
    for stride in _STRIDES:
        while at < end and commas > (here := body.count(b",", at, min(at + stride, end))):
            commas, at = commas - here, at + stride
    for _ in range(commas):
        at = body.find(b",", at, end) + 1 or end
    return at
