"""Reads the mempool of the last release: segments `pending-FIRST.log`, and `keys.sqlite`.

A segment is named after the first id that it may hold; of several with one id, that with the
greatest time (`pending-FIRST.TIME.log`) counts. A record is, little-endian:

    4  magic "FCM2"          4  bytes of the payload       4  CRC-32 of what follows
    16 BLAKE2b of what follows
    8  first id              4  number of flights          8  acceptance, UTC milliseconds
    8  how many transactions blocks held when it was written
    …  payload: JSON, a list of flights; or {"key": …, "body": …, "flights": such a list}; or an
       empty list: its flights were lost

What follows bytes that are no record is not read. It is kept, as `damaged-N.bin`. If these files
stand beside the file of this release, somebody has gone back to the last release and forward again:
both have accepted flights, perhaps under the same ids, and a person has to choose.
"""

import re
import struct
from collections.abc import Iterator
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

import apsw
import msgspec

from backend.base import files
from backend.base.errors import DamagedMempool
from backend.base.words import counted
from backend.mempool import lost_files
from backend.mempool.database import FILE_NAME
from backend.mempool.idempotency_keys import KeyUse
from backend.mempool.records import Record, records_of, void_record
from backend.storage import checked_sqlite

_KEYS_NAME = "keys.sqlite"
_FLIGHTS = "SELECT flights FROM record"
NAME_FORM = _SEGMENT = re.compile(r"pending-(\d{16})(?:\.(\d{1,16}))?\.log", re.ASCII)
_MAGIC = b"FCM2"
_PREFIX = struct.Struct("<4sII")
_HASH_BYTES = 16
_HEAD = struct.Struct("<QIQQ")
_HASHED_AT = _PREFIX.size + _HASH_BYTES
_PAYLOAD_AT = _HASHED_AT + _HEAD.size

_Flights = list[tuple[int | str | None, ...]]


class _Keyed(msgspec.Struct):
    key: str
    body: str
    flights: _Flights


_decode = msgspec.json.Decoder(_Flights | _Keyed).decode


def _segments_in(folder: Path) -> list[Path]:
    matches = (_SEGMENT.fullmatch(name) for name in lost_files.names_in(folder))
    segments = sorted((int(m[1]), int(m[2] or 0), m[0]) for m in matches if m)
    return [folder / name for name in {first: name for first, _, name in segments}.values()]


def is_to_be_read(folder: Path) -> bool:
    """Return whether there is a mempool of the last release, and none of this one."""
    return bool(_names_in(folder)) and not (folder / FILE_NAME).exists()


def require_none(folder: Path) -> None:
    """Raise DamagedMempool if files of the last release stand beside the file of this one."""
    if names := _names_in(folder):
        raise DamagedMempool(
            f"{folder} has {counted(len(names), 'file')} of the last release beside {FILE_NAME} "
            f"({', '.join(names[:3])}): it ran here later, and acknowledged flights are in them. "
            "Nothing is accepted or mined, and no file is changed. Both releases may have given "
            f"the same ids to different flights. Move {FILE_NAME} and its -wal away, so that the "
            "files are read, and post again those of its flights that neither blocks nor the files "
            f"hold: `sqlite3 -readonly {FILE_NAME} '{_FLIGHTS}'` lists them"
        )


def remove(folder: Path) -> None:
    """Remove its files, unless they stand beside the file of this release."""
    for name in _names_in(folder) if is_to_be_read(folder) else ():
        files.remove(folder / name)


def _names_in(folder: Path) -> list[str]:
    ours = {_KEYS_NAME, f"{_KEYS_NAME}-journal"}
    return sorted(n for n in lost_files.names_in(folder) if _SEGMENT.fullmatch(n) or n in ours)


def copy_keys(source: Path, target: Path) -> None:
    """Copy the file of keys from one folder to another, if it is there. Raises WriteFailed."""
    if (source / _KEYS_NAME).exists():
        files.write_new(target / _KEYS_NAME, (source / _KEYS_NAME).read_bytes())


def keep(folder: Path) -> None:
    """Keep the segments, of which some are damaged, in one file."""
    if data := b"".join(path.read_bytes() for path in _segments_in(folder)):
        files.write_new(lost_files.free_name(folder, ".bin"), data)


def read(folder: Path) -> tuple[list[Record], dict[str, KeyUse], str]:
    """Return its records in order, its keys, and what is wrong with it, in words, or ""."""
    keys, problem = _keys_in(folder / _KEYS_NAME)
    records: list[Record] = []
    for path in _segments_in(folder):
        data = path.read_bytes()
        at = 0
        for part, key, end in _parts_in(data):
            if not records or part[0].first >= records[-1].next:
                records += part
                keys |= key
            at = end
        if at < len(data):
            problem = problem or f"{path}, byte {at}: no whole record begins here"
    following = records[-1].next if records else 0
    known = {text: use for text, use in keys.items() if use.first < following or not records}
    return records, known, problem


def _parts_in(data: bytes) -> Iterator[tuple[list[Record], dict[str, KeyUse], int]]:
    """Yield the records and the key of each record, and where it ends, up to other bytes."""
    at = 0
    while len(data) - at >= _PAYLOAD_AT:
        magic, payload_bytes, _ = _PREFIX.unpack_from(data, at)
        end = at + _PAYLOAD_AT + payload_bytes
        digest, content = data[at + _PREFIX.size : end][:_HASH_BYTES], data[at + _HASHED_AT : end]
        if magic != _MAGIC or end > len(data) or digest != _hash(content):
            return
        yield *_part(content), end
        at = end


def _hash(content: bytes) -> bytes:
    return blake2b(content, digest_size=_HASH_BYTES).digest()


def _part(content: bytes) -> tuple[list[Record], dict[str, KeyUse]]:
    first, count, timestamp, mined = _HEAD.unpack_from(content)
    payload = _decode(content[_HEAD.size :])
    if isinstance(payload, _Keyed):
        use = KeyUse(payload.body, first, count, timestamp)
        return records_of(first, timestamp, payload.flights, mined), {payload.key: use}
    if not payload:
        return [void_record(first, count, timestamp, mined)], {}
    return records_of(first, timestamp, payload, mined), {}


def _keys_in(path: Path) -> tuple[dict[str, KeyUse], str]:
    """Return the keys in the file of the last release, and what is wrong with it, or ""."""
    if not path.exists() or not path.stat().st_size:
        return {}, ""
    try:
        with closing(checked_sqlite.connect(path)) as connection:
            rows = connection.execute("SELECT key, body_hash, first, count, timestamp FROM key_use")
            return {text: KeyUse(*values) for text, *values in rows}, ""
    except apsw.Error as error:
        return (
            {},
            f"{path} cannot be used: {error}; idempotency keys of the last day may be used again",
        )
