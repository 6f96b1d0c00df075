#!/usr/bin/env python3
"""Check proofs of a Flightchain ledger with Python 3.11 or newer alone, without trusting anybody.

A block's header commits to its transactions and their sums, a Merkle tree (RFC 6962) to all headers
and a signed checkpoint (Ed25519, RFC 8032) to the tree: all checks end at a key that you trust. An
answer leaves nothing out if the sums are right, which the proof of the chain shows. No proof shows
that flights are true, nor that everybody is shown the same log, unless witnesses have signed it.
"""

import argparse
import base64
import hashlib
import json
import re
import signal
import sys
import zlib
from collections.abc import Iterator

if sys.version_info < (3, 11):  # noqa: UP036  which Python says less clearly below
    sys.exit("verify.py needs Python 3.11 or newer; start it with another python3")
from datetime import UTC, date, datetime
from functools import partial, reduce
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Roots = dict[int, bytes]  # those that the tree of all blocks had, by number of blocks
LEAF, NODE, KEY_TYPES = b"\x00", b"\x01", {"log": [1], "witness": [4], "log or witness": [1, 4]}
MOST_BYTES, MOST_VALUES, MOST_CHARACTERS = 2**23, 2**18, 300  # of a line; in it; of a value
TEXT, INNERMOST = re.compile(r'"(?:[^"\\]++|\\.)*+"?'), re.compile(r"[\[{][^][{}]*[]}]")  # in JSON
NAMES = """YEAR DAY_OF_WEEK FL_DATE OP_CARRIER_AIRLINE_ID OP_CARRIER_FL_NUM ORIGIN_AIRPORT_ID ORIGIN
    ORIGIN_CITY_NAME ORIGIN_STATE_NM DEST_AIRPORT_ID DEST DEST_CITY_NAME DEST_STATE_NM DEP_TIME
    DEP_DELAY ARR_TIME ARR_DELAY CANCELLED AIR_TIME timestamp""".split()  # noqa: SIM905
CARRIER, DAY = "OP_CARRIER_AIRLINE_ID", "FL_DATE"
PERIOD, LEG = {"INITIAL_DATE": str, "FINAL_DATE": str}, {"OP_CARRIER_FL_NUM": int, DAY: str}
PARAMETERS: dict[Any, list[Json]] = {  # those with which each question can be asked
    "average_delays": [{CARRIER: int, **PERIOD}],
    "flight_counter": [{"ORIGIN_CITY_NAME": str, "DEST_CITY_NAME": str, **PERIOD}],
    "filter_transactions": [LEG, {CARRIER: int, **LEG}],
}
SUMS = ("flights", "cancelled", "arrived", "departed", "on_time", "sum_arr_delay", "sum_dep_delay")
MEANS = """average_delay = sum_arr_delay / arrived, on_time_share_of_arrived = on_time / arrived,
    average_departure_delay = sum_dep_delay / departed,
    on_time_share_of_scheduled = on_time / flights""".split(",")  # noqa: SIM905
canonical = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
read_text = partial(Path.read_text, encoding="utf-8-sig")  # whatever the system writes
in_lines = json.JSONEncoder(ensure_ascii=False, separators=("\n", ":")).encode  # a value in each


def require(is_right: object, reason: str) -> None:
    """Refuse a proof, and say why, unless something is right."""
    if not is_right:
        raise ValueError(reason)


def sha256(*parts: bytes) -> bytes:
    """Return the hash of parts, one after the other."""
    return hashlib.sha256(b"".join(parts)).digest()


def b64(text: str, size: int = 32) -> bytes:
    """Return the bytes that are written so; `size` of them unless that is 0."""
    data = base64.b64decode(text, validate=True)
    is_right = base64.b64encode(data).decode() == text and size in {0, len(data)}
    require(is_right, f"{text[:50]!r} is not {size or 'some'} bytes in Base64")
    return data


def read(data: bytes, what: str, depth: int, never: str = r"(?<![.\d])\d{16}|[tfNI]") -> Any:
    """Return what JSON holds if it is neither large nor deep, and has nothing of `never`."""
    bare = TEXT.sub("", text := data.decode("utf-8-sig")) if len(data) <= MOST_BYTES else "["
    is_small = bare.count(",") < MOST_VALUES and not re.search(never, bare)
    bare = reduce(lambda text, _: INNERMOST.sub("", text), range(depth), bare)
    require(is_small and not set("[]{}") & set(bare), f"{what} is cut off, or not as in a proof")
    return json.loads(text)


def parsed(text: str, what: str) -> Any:
    """Return what canonical JSON (RFC 8785) of integers, texts and null alone holds."""
    data = read(text.encode(), what, 1, r"\d{16}|[tfNI.e]")
    require(canonical(data) == text, f"{what} is not canonical")
    return data


def grown(peaks: Roots, data: bytes) -> Roots:
    """Return the roots of a tree's perfect subtrees, by their sizes, after one more leaf."""
    size, peak = 1, sha256(LEAF, data)
    while size in peaks:
        size, peak = 2 * size, sha256(NODE, peaks.pop(size), peak)
    return {**peaks, size: peak}


def root_of(peaks: Roots) -> bytes:
    """Return the root of the tree that consists of perfect subtrees."""
    return reduce(lambda b, a: sha256(NODE, a, b), [*peaks.values()][::-1] or [sha256()])


def included(hashed: bytes, index: int, size: int, path: list[str]) -> bytes:
    """Return the root of a tree of `size` leaves to which a path leads from leaf `index`."""
    require(0 <= index < size and (size == 1) == (path == []), "a path does not fit its tree")
    if size == 1:
        return hashed
    middle, other = 1 << (size - 1).bit_length() - 1, b64(path[-1])  # it splits at a power of two
    if index < middle:
        return sha256(NODE, included(hashed, index, middle, path[:-1]), other)
    return sha256(NODE, other, included(hashed, index - middle, size - middle, path[:-1]))


def extended(old: int, size: int, old_root: bytes, path: list[str]) -> bytes:
    """Return the root of the tree of `size` leaves if a path shows that an older one begins it."""
    hashes = [b64(text) for text in list.copy(path)]  # which fails for other kinds

    def walk(old: int, size: int, *, is_first: bool) -> tuple[bytes, bytes]:
        if old == size:
            return (old_root, old_root) if is_first else (hashes[-1], hashes.pop())
        middle, other = 1 << (size - 1).bit_length() - 1, hashes.pop()
        if old <= middle:
            before, after = walk(old, middle, is_first=is_first)
            return before, sha256(NODE, after, other)
        before, after = walk(old - middle, size - middle, is_first=False)
        return sha256(NODE, other, before), sha256(NODE, other, after)

    before, after = walk(old, size, is_first=True) if 0 < old <= size else (b"", b"")
    require(before == old_root and not hashes, f"{size} blocks do not begin with the {old}")
    return after


def spanned(first: int, leaves: list[str], size: int, beside: list[str]) -> bytes:
    """Return the root of the tree of `size` leaves from adjacent ones and the subtrees beside."""
    stop, others, known = first + len(leaves), [b64(t) for t in list.copy(beside)], iter(leaves)

    def walk(low: int, high: int) -> bytes:
        if not leaves or stop <= low or high <= first:
            return others.pop(0)
        if high - low == 1:
            return sha256(LEAF, next(known).encode())
        middle = low + (1 << (high - low - 1).bit_length() - 1)
        return sha256(NODE, walk(low, middle), walk(middle, high))

    root = walk(0, size) if size else sha256()
    require(0 <= first <= stop <= size <= 1000 and not others, "the hashes beside cells do not fit")
    return root


def is_signed(public: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether a key has signed a message (RFC 8032, 5.1.7); x/z, y/z stand as x, y, z."""
    p, order = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
    d, base = -121665 * pow(121666, -1, p) % p, (4 * pow(5, -1, p) % p).to_bytes(32, "little")

    def plus(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
        x, y, z = (i * j % p for i, j in zip(a, b, strict=True))
        t, cross = d * x * y % p, (a[0] + a[1]) * (b[0] + b[1]) - x - y
        return z * cross * (z * z - t) % p, z * (x + y) * (z * z + t) % p, (z**4 - t * t) % p

    def times(n: int, point: tuple[int, ...]) -> tuple[int, ...]:
        half = times(n >> 1, plus(point, point)) if n else (0, 1, 1)
        return plus(half, point) if n & 1 else half

    def point_of(data: bytes) -> tuple[int, ...]:
        sign, y = data[31] >> 7, int.from_bytes(data, "little") & (1 << 255) - 1
        x2 = (y * y - 1) * pow(d * y * y + 1, -1, p) % p
        x = pow(x2, (p + 3) // 8, p)
        x = x if x * x % p == x2 else x * pow(2, (p - 1) // 4, p) % p
        require(y < p and x * x % p == x2 and (x or not sign), "a key or signature is wrong")
        return x if x & 1 == sign else p - x, y, 1

    r, s = signature[:32], int.from_bytes(signature[32:], "little")
    k = int.from_bytes(hashlib.sha512(r + public + message).digest(), "little") % order
    a, b = times(s % order, point_of(base)), plus(point_of(r), times(k, point_of(public)))
    is_right = all((i * b[2] - j * a[2]) % p == 0 for i, j in zip(a, b, strict=True))
    return is_right and s < order and len(signature) == 64


def key_of(text: str, kind: str) -> tuple[str, bytes, bytes]:
    """Name, id and public key of a key that is written NAME+ID+KEY. kind: "log" or "witness"."""
    name, key_id, rest = ["", "", *text.split("+", 2)][-3:]
    data = b64(rest, 33) if re.fullmatch("[A-Za-z0-9+/]{44}", rest) else bytes(1)  # no type's
    is_right = sha256(name.encode(), b"\n", data).hex()[:8] == key_id and data[0] in KEY_TYPES[kind]
    require(is_right, f"{text[:60]!r} is not the key of a {kind}, NAME+ID+KEY")
    return name, bytes.fromhex(key_id), data[1:]


def signed_at(key: str, note: str, kind: str = "log") -> datetime | None:
    """When a key has signed a note: 1970 if that is not stated, None if it has not."""
    (name, key_id, public), (text, _, lines) = key_of(key, kind), note.rpartition("\n\n")
    for line in [line for line in lines.split("\n") if line.startswith(f"\u2014 {name} ")]:
        data, at = b64(line.rpartition(" ")[2], 0), 12 if kind == "witness" else 4
        if data[:4] == key_id:
            seconds = int.from_bytes(data[4:at], "big")
            before = f"cosignature/v1\ntime {seconds}\n" if kind == "witness" else ""
            is_right = is_signed(public, f"{before}{text}\n".encode(), data[at:])
            require(is_right, f"the signature of {name} is wrong")
            return datetime.fromtimestamp(min(seconds, 253402300799), UTC)  # at most the year 9999
    return None


def checkpoint_of(note: str) -> tuple[str, int, bytes]:
    """Return the origin, size and root that a checkpoint names, whoever may have signed it."""
    origin, n, root = [*note.split("\n"), "", ""][:3]
    require(re.fullmatch("[1-9][0-9]{0,14}", n), "not a proof or checkpoint: no number of blocks")
    return origin, int(n), b64(root)


def header_of(text: str) -> tuple[Json, bytes]:
    """Return a header, and its hash, which must show the proof of work."""
    header, hashed = parsed(text, "a header"), sha256(text.encode())
    is_known = header["version"] == 1 and header["transaction_count"] <= 1000 and "-" not in text
    require(is_known, "unknown version")
    require(int.from_bytes(hashed) >> 256 - header["difficulty_bits"] == 0, "no proof of work")
    return header, hashed


def chained(lines: Iterator[Json], size: int, roots: Roots) -> Iterator[tuple[Json, Json]]:
    """Yield each block with its header, from block 0 on. roots: takes those up to each of them."""
    peaks, below, history, first, at = Roots(), "0" * 64, sha256(), 0, 0
    for block in lines:
        (header, hashed), place = header_of(block["header"]), f"block {len(roots)}"
        require(header["height"] == len(roots) < size, f"{place} is not the next one")
        require(header["previous_hash"] == below, f"{place} does not name the one before")
        require(header["history_root"] == history.hex(), f"{place} has another history")
        require(header["first_transaction"] == first, f"{place} does not begin with id {first}")
        require(header["timestamp"] >= at, f"{place} is older than the block before")
        below, first, at = hashed.hex(), first + header["transaction_count"], header["timestamp"]
        roots[len(roots) + 1] = history = root_of(peaks := grown(peaks, hashed))
        yield block, header
    require(len(roots) == size, f"the proof is cut off: it has {len(roots)} of {size} blocks")


def opened(block: Json, header: Json) -> tuple[Json, list[Json]]:
    """Return the columns and cells of a block, whose body must be what its header commits to."""
    unzip, place = zlib.decompressobj(), f"block {header['height']}"
    first, count = header["first_transaction"], header["transaction_count"]
    body: Any = unzip.decompress(b64(block["body"], 0), 2**16 + 6000 * count) + unzip.unused_data
    require(unzip.eof and sha256(body).hex() == header["body_hash"], f"{place}: wrong body")
    sizes, _, rest = body.partition(b"\n")
    columns: Json = {"TRANSACTION_ID": list(range(first, first + count))}
    texts = {name: [f'"{name}":{number}' for number in ids] for name, ids in columns.items()}
    for name, (size, code_size) in zip(NAMES, read(sizes, place, 2, r"[^][,\d]"), strict=True):
        values = parsed(rest[:size].decode(), f"{place}: column {name}")
        codes, rest = rest[size : size + code_size], rest[size + code_size :]
        if len(values) > 256:  # all low bytes come first, then all high bytes
            codes = [a | b << 8 for a, b in zip(codes[:count], codes[count:], strict=True)]
        written = [f'"{name}":{text}' for text in in_lines(values)[1:-1].split("\n")]
        is_right = type(values) is list and max(map(len, written)) < MOST_CHARACTERS
        require(is_right and len(codes) == count, f"{place}: column {name} lacks rows")
        columns[name], texts[name] = [values[c] for c in codes], [written[c] for c in codes]
    rows = zip(*(texts[name] for name in sorted(texts)), strict=True)
    root = root_of(reduce(grown, (f"{{{','.join(row)}}}".encode() for row in rows), Roots()))
    require(not rest and root.hex() == header["transactions_root"], f"{place}: other transactions")
    cells = cells_of(columns)
    root = root_of(reduce(grown, (canonical(cell).encode() for cell in cells), Roots()))
    require(root.hex() == header["summary_root"], f"{place}: sums of other flights")
    return {**columns, "BLOCK_HEIGHT": [header["height"]] * count}, cells


def cells_of(columns: Json) -> list[Json]:
    """Return the sums of a block's flights, for each carrier and day."""
    cells: dict[tuple[int, str], list[int]] = {}
    used = (columns[name] for name in (CARRIER, DAY, "CANCELLED", "ARR_DELAY", "DEP_DELAY"))
    for carrier, day, cancelled, late, left in zip(*used, strict=True):
        arrived, departed = late is not None, left is not None
        leg = (1, cancelled, arrived, departed, arrived and late < 15, late or 0, left or 0)
        cells[carrier, day] = [*map(sum, zip(cells.get((carrier, day), [0] * 7), leg, strict=True))]
    return [{CARRIER: c + 0, DAY: d + "", **dict(zip(SUMS, cells[c, d]))} for c, d in sorted(cells)]  # noqa: B905


def shown(block: Json, header: Json, low: Any, high: Any) -> tuple[Json, list[Json]]:
    """No columns, and the cells that a block shows, which must be all from `low` to `high`."""
    cells = [parsed(text, "a cell") for text in list.copy(block["cells"])]
    first, count, place = block["first"], block["count"], f"block {header['height']}"
    root = spanned(first, block["cells"], count, block["hashes"])
    require(root.hex() == header["summary_root"], f"{place} has other cells than these")
    keys = [(cell[CARRIER] + 0, cell[DAY] + "") for cell in cells]  # which fail for other types
    require(keys == sorted(set(keys)), f"{place}: its cells are out of order")
    is_all = (first == 0 or keys[0] < low) and (first + len(cells) == count or keys[-1] > high)
    require(is_all, f"{place}: cells may be missing")
    return {}, cells


def answer_to(asked: Json, blocks: Iterator[tuple[Json, Json]], most: int = MOST_VALUES) -> Json:
    """Return the answer to a question, from what blocks show. most: how many flights it has."""
    name, carrier, legs, t = asked["name"], asked.get(CARRIER), list[Json](), dict.fromkeys(SUMS, 0)
    kinds = {field: type(value) for field, value in asked.items() if field != "name"}
    require(kinds in PARAMETERS.get(name, []), f"{name!r} does not have these parameters")
    since, until = days = [str(asked.get(field, asked.get(DAY))) for field in PERIOD]
    require([str(date.fromisoformat(day)) for day in days] == sorted(days), "the days are wrong")
    ends = ((-1, ""), (2**64, "")) if carrier is None else ((carrier, since), (carrier, until))
    equal = {field: value for field, value in asked.items() if field in NAMES}.items()
    for block, header in blocks:
        columns, cells = opened(block, header) if "body" in block else shown(block, header, *ends)
        cells = [c for c in cells if carrier in {None, c[CARRIER]} and since <= c[DAY] <= until]
        is_enough = columns or name == "average_delays" or not cells
        require(is_enough, f"block {header['height']} leaves out flights that may count")
        t = {field: t[field] + sum(cell[field] for cell in cells) for field in SUMS}
        for leg in (dict(zip(columns, row)) for row in zip(*columns.values())):  # noqa: B905
            if since <= leg[DAY] <= until and equal <= leg.items():
                late = leg["ARR_DELAY"]
                status = "no_arrival" if late is None else "late" if late >= 15 else "on_time"
                leg["status"] = "cancelled" if leg["CANCELLED"] else status
                legs.append(leg if len(legs) < most else {})
    if name != "average_delays":
        return {"count": len(legs), **({"flights": legs} if name == "filter_transactions" else {})}
    means = {name: t[a] / t[b] if t[b] else None for name, _, a, _, b in map(str.split, MEANS)}
    counts = {field: t[field] for field in ("flights", "arrived", "cancelled")}
    return {**means, **counts, "no_arrival": t["flights"] - t["cancelled"] - t["arrived"]}


def proved(head: Json, lines: Iterator[Json], roots: Roots) -> str:
    """Return what a proof shows of the blocks below some roots, which it adds to those."""
    kind, size, old = head["kind"], head["size"], head.get("from", 1)
    require(head["flightchain_proof"] == 1 and type(size) is type(old) is int, "an unknown form")
    blocks, below = chained(lines, size, roots), f"blocks 0 to {size - 1}"
    if kind == "transaction":
        text, (header, hashed) = head["transaction"], header_of(head["header"])
        number, height = parsed(text, "the transaction")["TRANSACTION_ID"], header["height"]
        row, count = number - header["first_transaction"], header["transaction_count"]
        root = included(sha256(LEAF, text.encode()), row, count, head["path"])
        require(root.hex() == header["transactions_root"], f"it is not in block {height}")
        roots[size] = included(sha256(LEAF, hashed), height, size, head["history"])
        return f"transaction {number} is in block {height}: {text}"
    if kind == "consistency":
        old_root = b64(head["from_root"])
        roots.update({old: old_root, size: extended(old, size, old_root, head["path"])})
        require(roots[size] == b64(head["root"]), "the proof leads to another root")
        return f"the log of {size} blocks begins with that of {old} blocks"
    if kind == "chain":
        count = sum(len(opened(*block)[0]["YEAR"]) for block in blocks)
        return f"{below} are one chain, and their headers fit them: {count} transactions"
    require(kind == "answer", f"proofs of the kind {kind!r} are unknown")
    answer = answer_to(head["question"], blocks, len(canonical(head["answer"])) // 300)
    require(canonical(answer) == canonical(head["answer"]), f"the answer is wrong: it is {answer}")
    return f"in {below}, {canonical(head['question'])} has the answer {canonical(answer)}"


def checked(path: str, key: str, witnesses: list[str]) -> tuple[Json, Roots]:
    """Return what a file proves, and the roots that the log's tree had."""
    with Path(path).open("rb") as file:
        is_note = file.peek(4).lstrip(b"\xef\xbb\xbf")[:1] != b"{"  # which Windows may add
        lines = (read(row, "a line", 4) for row in iter(lambda: file.readline(MOST_BYTES + 1), b""))
        head: Json = {"checkpoint": str(file.read(2**16), "utf-8-sig")} if is_note else next(lines)
        for note in head.get("successions", []):
            if note.startswith(f"flightchain key succession\n{key}\n"):
                require(signed_at(key, note), "the old key has not signed the new one")
                key = note.split("\n")[2]
        origin, size, root = checkpoint_of(note := head["checkpoint"].replace("\r\n", "\n"))
        is_signed_by_log = origin == key_of(key, "log")[0] and signed_at(key, note)
        require(is_signed_by_log, f"the checkpoint of {origin} is not signed by that key")
        times = {name: str(signed_at(name, note, "witness")) for name in witnesses}
        require("None" not in times.values(), f"not cosigned by all witnesses: {times}")
        what, covered, roots = f"the log has {size} blocks", size, Roots()
        if not is_note:
            require(head["size"] <= size, f"the checkpoint has only {size} blocks")
            what, covered = proved(head, lines, roots), head["size"]
            top = extended(covered, size, roots[covered], head["consistency"])
            require(top == root, "the proof does not lead to the signed checkpoint")
            require(next(lines, lines) is lines, "the file goes on after its proof")
    verdict = {"proved": what, "log": origin, "key": key, "covered": covered, "blocks": size}
    if head.get("kind") in {"answer", "chain"} and covered < size:
        verdict["warning"] = f"nothing is proved about blocks {covered} to {size - 1}"
    return {**verdict, "cosigned": times}, {**roots, size: root}


def main() -> int:
    """Check what is named on the command line. Returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="+", metavar="FILE", help="a proof, or a checkpoint")
    parser.add_argument("--key", required=True, help="the log's key that you trust, or its file")
    parser.add_argument("--witness", metavar="KEY", action="append", default=[], help="must cosign")
    parser.add_argument("--kept", metavar="FILE", help="a checkpoint that you kept from last time")
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON")
    args, about, verdict, files = parser.parse_args(), "--key, --witness", "verified", list[Json]()
    try:  # what has the two `+` of a key is never taken for the name of a file
        keys = [k if k.count("+") > 1 else read_text(Path(k)) for k in (args.key, *args.witness)]
        key, *witnesses = (text for text in map(str.strip, keys) if key_of(text, "log or witness"))
        about, kept = f"--kept {args.kept}", args.kept
        log, least, top = ("", 0, b"") if kept is None else checkpoint_of(read_text(Path(kept)))
        known, left = {least: top}, [(about := p, *checked(p, key, witnesses)) for p in args.files]
        while left:  # first what is connected with what is known, in whatever order it is named
            fits = [max(known.keys() & r.keys(), default=0) >= min(least, max(r)) for *_, r in left]
            about, result, roots = left.pop(fits.index(max(fits)))
            require(kept is None or log == result["log"], f"its log is {result['log']}, not {log}")
            why = "nothing connects it with --kept; get /proofs/consistency?from={}&to={}"
            require(max(fits), why.format(*sorted((least, max(roots)))))
            for size, root in roots.items():
                require(known.setdefault(size, root) == root, f"a fork: it has other {size} blocks")
            files.append({"file": about, **result})
    except OSError as e:
        verdict, files = "not read", [{"file": about, "reason": str(e).partition("] ")[2]}]
    except Exception as error:  # noqa: BLE001  whatever goes wrong, nothing is verified
        whys = {KeyError: f"it lacks {error}", UnicodeDecodeError: "unzip it or use curl -o, not >"}
        other = str(error)[:999] if isinstance(error, ValueError) else "a value is of another kind"
        why = whys.get(type(error), other)
        reason = why if type(error) is ValueError else f"it is damaged, or is not a proof: {why}"
        verdict, files = "refused", [{"file": about, "reason": reason}]
    lines = [verdict.upper(), *(f"{name}: {v}" for result in files for name, v in result.items())]
    text = "\n  ".join(line.encode("unicode_escape").decode() for line in lines)
    print(json.dumps({"verdict": verdict, "files": files}) if args.json else text)
    return int(verdict != "verified")


if __name__ == "__main__":
    signal.signal(getattr(signal, "SIGPIPE", signal.SIGINT), signal.SIG_DFL)  # `| head` ends it
    raise SystemExit(main())
