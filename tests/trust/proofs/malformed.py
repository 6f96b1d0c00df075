"""Proofs that are none, which verify.py and the pages' scripts must judge alike."""

import base64
import copy
import json
import zlib
from collections.abc import Iterator
from typing import Any

from tests.trust.proofs.proofs import Json, Proofs, written

OTHER_VALUES: tuple[Any, ...] = (None, [], {}, "7", -1, True, ["AA=="])
LARGE = 8 * 2**20
HOSTILE_MEMBERS = {  # of an object: what is wrong -> its text
    "too deep": f'"x":{"[" * 5}{"]" * 5}',
    "much too deep": f'"x":{"[" * 100_000}{"]" * 100_000}',
    "a number that is not exact": '"x":9007199254740993',
    "a number of many digits": f'"x":{"7" * 5000}',
    "a negative number of many digits": f'"x":-{"7" * 17}.5',
    "no number": '"x":NaN',
    "an infinite number": '"x":-Infinity',
    "true": '"x":true',
    "too many values": f'"x":[{"0," * 2**18}0]',
    "an unclosed text": '"x":"',
    "an unclosed escape": '"x":"\\',
    "a comma too many": '"x":1,',
}
LINES = {  # what stands in place of a line or after the last one
    "null": b"null\n",
    "nothing": b"\n",
    "an array": b"[]\n",
    "a text": b'"header"\n',
    "a number": b"7\n",
    "an empty object": b"{}\n",
    "no JSON": b"<html>\n",
    "no UTF-8": b'{"x":"\xff"}\n',
    "UTF-16": '{"header":1}\n'.encode("utf-16"),
}


def malformed(proofs: Proofs) -> Iterator[tuple[str, bytes]]:
    """What is wrong, and the proof."""
    for kind in ("transaction", "delays"):
        yield from _with_other_lines(kind, *proofs[kind])
    for question in ("average_delays", ["average_delays"], {"average_delays": 1}, None, 7):
        yield from _with(proofs["delays"], 0, "a name", ["question", "name"], question)
    for day in ("0000-01-01", "20150102", "2015-02-30", "2015-1-2", ["2015-01-02"]):
        yield from _with(proofs["delays"], 0, "a day", ["question", "INITIAL_DATE"], day)
    at = next(at for at, line in enumerate(proofs["legs"]) if "body" in line)
    body = base64.b64decode(proofs["legs"][at]["body"])
    for packed in (body + b"x", body + body, body[:-1], zlib.decompress(body), b""):
        other = base64.b64encode(packed).decode()
        yield from _with(proofs["legs"], at, "a body", ["body"], other)
    for kind in ("transaction", "consistency", "delays", "legs"):
        lines = {name: 0 for name in proofs[kind][0] if name not in {"key", "successions"}}
        for at, line in enumerate(proofs[kind][1:], 1):
            lines |= dict.fromkeys(line, at)
        for name, at in lines.items():
            for value in (*OTHER_VALUES, [proofs[kind][at][name]]):
                yield from _with(proofs[kind], at, kind, [name], value)


def _with_other_lines(kind: str, head: Json, *rest: Json) -> Iterator[tuple[str, bytes]]:
    text = written([head, *rest])
    for what, member in HOSTILE_MEMBERS.items():
        first = json.dumps(head)[:-1] + f",{member}}}\n"
        yield f"{kind}: {what}", first.encode() + written(rest)
    for what, line in LINES.items():
        yield f"{kind}: {what} at the end", text + line
        yield f"{kind}: {what} first", line + text
        yield f"{kind}: {what} second", written([head]) + line + written(rest[1:])
    yield f"{kind}: a space first", b" " + text
    yield f"{kind}: a line that is too long", text[:-1] + b" " * LARGE + b"\n"
    yield f"{kind}: cut", text[:-9]
    if rest:
        yield f"{kind}: two lines in one", text.replace(b"\n", b" ", 1)


def _with(
    proof: list[Json], line: int, what: str, path: list[str], value: Any
) -> Iterator[tuple[str, bytes]]:
    changed = copy.deepcopy(proof)
    owner = changed[line]
    for name in path[:-1]:
        owner = owner[name]
    if owner[path[-1]] != value:
        owner[path[-1]] = value
        yield f"{what}: {'.'.join(path)} is {value!r:.80}", written(changed)
