#!/usr/bin/env python3
"""Check proofs of a Flightchain ledger, with nothing but Python, and without trusting anybody.

A block's header commits to its transactions, a Merkle tree (RFC 6962) to all headers, a checkpoint,
signed with Ed25519 (RFC 8032), to the tree. So all checks end at a key that you trust. No proof
shows that the log tells everybody the same, unless witnesses have signed it, too; nor that a flight
was as late as somebody said when it was added.
"""

import argparse
import base64
import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from functools import reduce
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Key = tuple[str, bytes, int, bytes]  # name, id, type, public key
LEAF, NODE = b"\x00", b"\x01"
MOST_BYTES = 64 * 2**20  # in a line, or in the body of a block
NAMES = """YEAR DAY_OF_WEEK FL_DATE OP_CARRIER_AIRLINE_ID OP_CARRIER_FL_NUM ORIGIN_AIRPORT_ID ORIGIN
    ORIGIN_CITY_NAME ORIGIN_STATE_NM DEST_AIRPORT_ID DEST DEST_CITY_NAME DEST_STATE_NM DEP_TIME
    DEP_DELAY ARR_TIME ARR_DELAY CANCELLED AIR_TIME timestamp""".split()  # noqa: SIM905
CARRIER, DAY = "OP_CARRIER_AIRLINE_ID", "FL_DATE"
SUMS = ("flights", "cancelled", "arrived", "departed", "on_time", "sum_arr_delay", "sum_dep_delay")
MEANS = (
    ("average_delay", "sum_arr_delay", "arrived"),
    ("average_departure_delay", "sum_dep_delay", "departed"),
    ("on_time_share_of_arrived", "on_time", "arrived"),
    ("on_time_share_of_scheduled", "on_time", "flights"),
)
# The one JSON text of integers, texts and null, and objects of these (RFC 8785).
canonical = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
in_lines = json.JSONEncoder(ensure_ascii=False, separators=("\n", ":")).encode  # a value in each


def require(is_right: object, reason: str) -> None:
    """Refuse a proof, and say why, unless something is right."""
    if not is_right:
        raise ValueError(reason)


def sha256(*parts: bytes) -> bytes:
    """The hash of parts, one after the other."""
    return hashlib.sha256(b"".join(parts)).digest()


def b64(text: str, size: int = 32) -> bytes:
    """The bytes that are written so; `size` of them unless that is 0."""
    data = base64.b64decode(text, validate=True)
    is_right = base64.b64encode(data).decode() == text and size in {0, len(data)}
    require(is_right, f"{text[:50]!r} is not {size or 'some'} bytes in Base64")
    return data


def parsed(text: str, what: str) -> Json:
    """The object that a canonical text holds."""
    found: Json = json.loads(text)
    require(canonical(found) == text, f"{what} is not canonical JSON")
    return found


class Tree:
    """A tree that grows. peaks: the roots of its perfect subtrees, from the left."""

    def __init__(self, *leaves: bytes) -> None:
        self.size, self.peaks = 0, list[bytes]()
        for data in leaves:
            self.add(data)

    def add(self, data: bytes) -> None:
        """Add a leaf."""
        peak, size = sha256(LEAF, data), self.size
        while size & 1:
            peak, size = sha256(NODE, self.peaks.pop(), peak), size >> 1
        self.size, self.peaks = self.size + 1, [*self.peaks, peak]

    def root(self) -> bytes:
        """The root of the tree so far."""
        return reduce(lambda right, left: sha256(NODE, left, right), self.peaks[::-1] or [sha256()])


def included(hashed: bytes, index: int, size: int, path: list[str]) -> bytes:
    """The root of the tree of `size` leaves to which a path leads from the hash of leaf `index`."""
    require(0 <= index < size and (size > 1) == bool(path), "a path does not fit its tree")
    if size == 1:
        return hashed
    path, other = path[:-1], b64(path[-1])
    middle = 1 << (size - 1).bit_length() - 1  # the largest power of two below: there a tree splits
    if index < middle:
        return sha256(NODE, included(hashed, index, middle, path), other)
    return sha256(NODE, other, included(hashed, index - middle, size - middle, path))


def extended(old: int, size: int, old_root: bytes, path: list[str]) -> bytes:
    """The root of the tree of `size` leaves, if a path shows that it begins with an older tree."""
    hashes = [b64(one) for one in path]

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


def spanned(first: int, leaves: list[bytes], size: int, beside: list[str]) -> bytes:
    """The root of the tree of `size` leaves, from adjacent ones and the subtrees beside them."""
    stop, others, known = first + len(leaves), [b64(one) for one in beside], iter(leaves)

    def walk(low: int, high: int) -> bytes:
        if not leaves or stop <= low or high <= first:
            return others.pop(0)
        if high - low == 1:
            return next(known)
        middle = low + (1 << (high - low - 1).bit_length() - 1)
        return sha256(NODE, walk(low, middle), walk(middle, high))

    root = walk(0, size) if size else sha256()
    require(first >= 0 and stop <= size and not others, "the hashes beside cells do not fit")
    return root


def is_signed(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a key has signed a message (RFC 8032 section 5.1.7)."""
    p, order = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
    d = -121665 * pow(121666, -1, p)

    def plus(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        x, y = a[0] * b[1] + b[0] * a[1], a[1] * b[1] + a[0] * b[0]
        t = d * a[0] * b[0] * a[1] * b[1]
        return x * pow(1 + t, -1, p) % p, y * pow(1 - t, -1, p) % p

    def times(n: int, point: tuple[int, int]) -> tuple[int, int]:
        if n == 0:
            return 0, 1
        half = times(n >> 1, plus(point, point))
        return plus(half, point) if n & 1 else half

    def point_of(data: bytes) -> tuple[int, int]:
        sign, y = data[31] >> 7, int.from_bytes(data, "little") & (1 << 255) - 1
        x2 = (y * y - 1) * pow(d * y * y + 1, -1, p) % p
        x = pow(x2, (p + 3) // 8, p)
        x = x if x * x % p == x2 else x * pow(2, (p - 1) // 4, p) % p
        require(y < p and x * x % p == x2 and (x or not sign), "a key or signature is no point")
        return x if x & 1 == sign else p - x, y

    base = point_of((4 * pow(5, -1, p) % p).to_bytes(32, "little"))
    r, s = signature[:32], int.from_bytes(signature[32:], "little")
    k = int.from_bytes(hashlib.sha512(r + public + message).digest(), "little") % order
    is_right = times(s % order, base) == plus(point_of(r), times(k, point_of(public)))
    return is_right and s < order and len(signature) == 64


def key_of(text: str) -> Key:
    """The key that is written NAME+ID+KEY. Those of type 1 sign logs, those of type 4 cosign."""
    name, key_id, rest = ["", "", *text.strip().split("+", 2)][-3:]
    data = b64(rest, 33)
    require(sha256(name.encode(), b"\n", data).hex()[:8] == key_id, f"{text[:60]!r} is no key")
    return name, bytes.fromhex(key_id), data[0], data[1:]


def signed_at(key: Key, note: str) -> int | None:
    """When a key has signed a note, in seconds; 0 if that is not stated, None if it has not."""
    text, _, lines = note.rpartition("\n\n")
    name, key_id, kind, public = key
    for line in lines.splitlines():
        data, at = b64(line.rpartition(" ")[2], 0), 12 if kind == 4 else 4
        if line.startswith(f"\u2014 {name} ") and data[:4] == key_id:
            seconds = int.from_bytes(data[4:at], "big")
            before = f"cosignature/v1\ntime {seconds}\n" if kind == 4 else ""
            is_right = is_signed(public, f"{before}{text}\n".encode(), data[at:])
            require(is_right, f"the signature of {name} is wrong")
            return seconds
    return None


def checkpoint_of(note: str) -> tuple[str, int, bytes]:
    """The origin, size and root that a checkpoint names. It says nothing of its signatures."""
    origin, size, root = note.split("\n")[:3]
    require(size.isascii() and str(int(size)) == size, f"{size[:20]!r} is no number of blocks")
    return origin, int(size), b64(root)


def header_of(text: str) -> tuple[Json, bytes]:
    """A header, and its hash, which must show the proof of work."""
    header, hashed = parsed(text, "a header"), sha256(text.encode())
    bits, count = header["difficulty_bits"], header["transaction_count"]
    require(header["version"] == 1 and 0 <= count <= 1000, "a header is of no known version")
    require(int.from_bytes(hashed, "big") >> 256 - bits == 0, "a header has no proof of work")
    return header, hashed


def chained(
    lines: Iterator[Json], size: int, roots: dict[int, bytes], kept: int
) -> Iterator[tuple[Json, Json]]:
    """Each block with its header, from block 0 on. roots: takes those of two sizes."""
    tree, below, first, at = Tree(), "0" * 64, 0, 0
    for block in lines:
        header, hashed = header_of(block["header"])
        place = f"block {tree.size}"
        require(header["height"] == tree.size < size, f"{place} is not the next one")
        require(header["previous_hash"] == below, f"{place} does not name the one below")
        require(header["history_root"] == tree.root().hex(), f"{place} has a wrong history_root")
        require(header["first_transaction"] == first, f"{place} does not begin at {first}")
        require(header["timestamp"] >= at, f"{place} is older than the one below")
        below, first, at = hashed.hex(), first + header["transaction_count"], header["timestamp"]
        tree.add(hashed)
        if tree.size in {size, kept}:
            roots[tree.size] = tree.root()
        yield block, header
    require(tree.size == size, f"the proof is cut: it has {tree.size} of {size} blocks")


def columns_of(block: Json, header: Json) -> dict[str, list[Any]]:
    """The columns of a block, whose body must be what the header commits to in three ways."""
    unpacking, place = zlib.decompressobj(), f"block {header['height']}"
    body = unpacking.decompress(b64(block["body"], 0), MOST_BYTES)
    require(unpacking.eof and sha256(body).hex() == header["body_hash"], f"{place}: wrong body")
    sizes, _, rest = body.partition(b"\n")
    at, first, count = 0, header["first_transaction"], header["transaction_count"]
    columns: dict[str, list[Any]] = {"TRANSACTION_ID": list(range(first, first + count))}
    texts = {name: [f'"{name}":{one}' for one in ids] for name, ids in columns.items()}
    for name, (value_bytes, code_bytes) in zip(NAMES, json.loads(sizes), strict=True):
        values = json.loads(rest[at : at + value_bytes])
        codes: Any = rest[at + value_bytes : (at := at + value_bytes + code_bytes)]
        if len(values) > 256:  # all low bytes come first, then all high bytes
            codes = [a | b << 8 for a, b in zip(codes[:count], codes[count:], strict=True)]
        require(len(codes) == count, f"{place}: column {name} has not {count} rows")
        written = [f'"{name}":{text}' for text in in_lines(values)[1:-1].split("\n")]
        columns[name], texts[name] = [values[c] for c in codes], [written[c] for c in codes]
    require(at == len(rest), f"{place}: its body has more than its columns")
    rows = zip(*(texts[name] for name in sorted(texts)), strict=True)
    root = Tree(*(f"{{{','.join(row)}}}".encode() for row in rows)).root()
    require(root.hex() == header["transactions_root"], f"{place}: wrong transactions_root")
    root = Tree(*(canonical(cell).encode() for cell in cells_of(columns))).root()
    require(root.hex() == header["summary_root"], f"{place}: wrong summary_root")
    return columns


def cells_of(columns: dict[str, list[Any]]) -> list[Json]:
    """The sums of a block's flights, for each carrier and day."""
    cells: dict[tuple[int, str], list[int]] = {}
    used = (columns[name] for name in (CARRIER, DAY, "CANCELLED", "ARR_DELAY", "DEP_DELAY"))
    for carrier, day, cancelled, late, left in zip(*used, strict=True):
        sums = cells.setdefault((carrier, day), [0] * 7)
        sums[0], sums[1] = sums[0] + 1, sums[1] + cancelled
        if late is not None:
            sums[2], sums[4], sums[5] = sums[2] + 1, sums[4] + (late < 15), sums[5] + late
        if left is not None:
            sums[3], sums[6] = sums[3] + 1, sums[6] + left
    return [{CARRIER: c, DAY: d, **dict(zip(SUMS, cells[c, d]))} for c, d in sorted(cells)]  # noqa: B905


def cells_shown(block: Json, header: Json, low: Any, high: Any) -> list[Json]:
    """The cells that a block shows, which must include all from `low` to `high`."""
    cells = [parsed(text, "a cell") for text in block["cells"]]
    first, count, place = block["first"], block["count"], f"block {header['height']}"
    leaves = [sha256(LEAF, text.encode()) for text in block["cells"]]
    root = spanned(first, leaves, count, block["hashes"])
    require(root.hex() == header["summary_root"], f"{place}: it has other cells")
    keys = [(cell[CARRIER], cell[DAY]) for cell in cells]
    require(keys == sorted(set(keys)), f"{place}: its cells are out of order")
    is_all = (first == 0 or keys[0] < low) and (first + len(cells) == count or keys[-1] > high)
    require(is_all, f"{place}: cells may be missing")
    return cells


def answer_to(asked: Json, blocks: Iterator[tuple[Json, Json]]) -> Json:
    """The answer to a question, from what blocks show."""
    name, carrier, legs, t = asked["name"], asked.get(CARRIER), list[Json](), Counter[str]()
    is_average, days = name == "average_delays", ("INITIAL_DATE", "FINAL_DATE")
    require(is_average or name in {"filter_transactions", "flight_counter"}, "an unknown question")
    unknown = asked.keys() - {"name", *days, *([CARRIER] if is_average else NAMES)}
    since, until = (str(asked.get(one, asked.get(DAY))) for one in days)
    is_in_order = str(date.fromisoformat(since)) == since <= str(date.fromisoformat(until)) == until
    require(is_in_order and not unknown, f"{name} is not asked with these parameters")
    low, high = ((-1, ""), (2**64, "")) if carrier is None else ((carrier, since), (carrier, until))
    equal = {one: value for one, value in asked.items() if one in NAMES}.items()
    for block, header in blocks:
        columns = columns_of(block, header) if "body" in block else {}
        cells = cells_of(columns) if columns else cells_shown(block, header, low, high)
        for cell in cells:
            if carrier in {None, cell[CARRIER]} and since <= cell[DAY] <= until:
                is_shown = columns or is_average
                require(is_shown, f"block {header['height']} does not show flights that may count")
                t.update({one: cell[one] for one in SUMS})
        for row in zip(*columns.values(), strict=True):
            leg = dict(zip(columns, row, strict=True))
            if since <= leg[DAY] <= until and equal <= leg.items():
                late = "late" if (leg["ARR_DELAY"] or 0) >= 15 else "on_time"
                late = "no_arrival" if leg["ARR_DELAY"] is None else late
                leg["BLOCK_HEIGHT"] = header["height"]
                legs.append({**leg, "status": "cancelled" if leg["CANCELLED"] else late})
    if not is_average:
        return {"count": len(legs), **({"flights": legs} if name == "filter_transactions" else {})}
    means = {name: t[total] / t[count] if t[count] else None for name, total, count in MEANS}
    counts = {one: t[one] for one in ("flights", "arrived", "cancelled")}
    return {**means, **counts, "no_arrival": t["flights"] - t["cancelled"] - t["arrived"]}


def shown(head: Json, lines: Iterator[Json], roots: dict[int, bytes], kept_size: int) -> str:
    """What a proof shows. roots: takes those of the log's tree, by number of blocks."""
    kind, size = head["kind"], head["size"]
    require(head["flightchain_proof"] == 1, "the proof has a form that is not known here")
    if kind == "transaction":
        text, (header, hashed) = head["transaction"], header_of(head["header"])
        number, height = parsed(text, "the transaction")["TRANSACTION_ID"], header["height"]
        row, count = number - header["first_transaction"], header["transaction_count"]
        root = included(sha256(LEAF, text.encode()), row, count, head["path"])
        require(root.hex() == header["transactions_root"], f"it is not in block {height}")
        roots[size] = included(sha256(LEAF, hashed), height, size, head["history"])
        return f"transaction {number} is in block {height}: {text}"
    if kind == "consistency":
        old, old_root = head["from"], b64(head["from_root"])
        roots.update({old: old_root, size: extended(old, size, old_root, head["path"])})
        return f"the log of {size} blocks begins with that of {old} blocks"
    blocks = chained(lines, size, roots, kept_size)
    if kind == "chain":
        count = sum(len(columns_of(*block)["YEAR"]) for block in blocks)
        return f"the whole chain is sound; blocks: {size}, transactions: {count}"
    require(kind == "answer", f"proofs of the kind {kind!r} are unknown")
    found, said = answer_to(head["question"], blocks), head["answer"]
    wrong = {n: said.get(n) for n in {*found, *said} if n not in said or found.get(n, n) != said[n]}
    require(not wrong, f"the answer is wrong: {wrong}; it is {found}")
    told = {name: value for name, value in found.items() if not isinstance(value, list)}
    return f"{canonical(head['question'])} has the answer {json.dumps(told)}"


def checked(path: str, key: Key, witnesses: list[Key], kept: int) -> tuple[Json, dict[int, bytes]]:
    """What a file proves, and the roots that the log's tree had."""
    with Path(path).open("rb") as file:
        is_note = file.peek(1)[:1] != b"{"
        lines = (json.loads(line) for line in iter(lambda: file.readline(MOST_BYTES), b""))
        head = {"checkpoint": file.read(MOST_BYTES).decode()} if is_note else next(lines)
        note = head["checkpoint"]
        for one in head.get("successions", []):
            title, old, new = one.split("\n")[:3]
            if title == "flightchain key succession" and key_of(old) == key:
                require(signed_at(key, one) is not None, "the old key has not signed the new one")
                key = key_of(new)
        origin, size, root = checkpoint_of(note)
        is_signed_by_log = origin == key[0] and signed_at(key, note) is not None
        require(is_signed_by_log, f"the checkpoint of {origin} is not signed by that key")
        cosigned = {one[0]: signed_at(one, note) for one in witnesses}
        require(None not in cosigned.values(), f"not cosigned by all witnesses: {cosigned}")
        what, roots = f"the log has {size} blocks", dict[int, bytes]()
        if not is_note:
            what, of = shown(head, lines, roots, kept), int(head["size"])
            top = extended(of, size, roots[of], list(head["consistency"]))
            require(top == root, "it does not lead to the signed checkpoint")
        roots[size] = root
    signed = {name: str(datetime.fromtimestamp(t or 0, UTC)) for name, t in cosigned.items()}
    return {"proved": what, "log": origin, "blocks": size, "cosigned": signed}, roots


def main() -> int:
    """Check what is named on the command line. Returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="+", metavar="FILE", help="a proof, or a checkpoint")
    parser.add_argument("--key", required=True, help="the log's key that you trust, or its file")
    parser.add_argument("--witness", metavar="KEY", action="append", default=[], help="must cosign")
    parser.add_argument("--kept", metavar="FILE", help="a checkpoint that you kept from last time")
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON")
    args, path, verdict, found = parser.parse_args(), "", "verified", list[Json]()
    try:
        keys = [Path(k).read_text() if Path(k).is_file() else k for k in [args.key, *args.witness]]
        key, *witnesses = map(key_of, keys)
        kept = checkpoint_of(Path(args.kept).read_text()) if args.kept else ("", 0, b"")
        known = {kept[1]: kept[2]} if args.kept else {}
        for path in args.files:
            one, roots = checked(path, key, witnesses, kept[1])
            require(kept[0] in {"", one["log"]}, f"it is of {one['log']}, not of {kept[0]}")
            require(roots.keys() & known.keys() or not kept[0], "nothing connects it with --kept")
            for size, root in roots.items():
                require(known.setdefault(size, root) == root, f"a fork: other {size} blocks")
            found.append({"file": path, **one})
    except Exception as error:  # noqa: BLE001  whatever goes wrong, nothing is verified
        reason = str(error) if type(error) is ValueError else f"it is damaged, or none: {error!r}"
        verdict, found = "refused", [{"file": path, "reason": reason}]
    lines = [verdict.upper(), *(f"{name}: {v}" for one in found for name, v in one.items())]
    print(json.dumps({"verdict": verdict, "files": found}) if args.json else "\n  ".join(lines))
    return int(verdict == "refused")


if __name__ == "__main__":
    raise SystemExit(main())
