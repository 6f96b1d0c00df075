"""A chain with every kind of file that a service keeps, and what is true about it."""

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from backend.base.clock import now_ms
from backend.chain.flight import Flight, as_mapping
from backend.mempool.idempotency_keys import IdempotencyKey
from backend.sealing.sealer import Sealer
from backend.storage.tokens import Tokens
from backend.trust.log.rotation import rotate
from tests.api.worlds import Json, generated, settings_for
from tests.faults.auditing import as_row
from tests.folder_harms import Houses, add_small_files
from tests.submitting import accept_in

BLOCKS, FLIGHTS_A_BLOCK = 14, 60
PENDING_RECORDS, FLIGHTS_A_RECORD = 12, 10
BLOCK_FILE_BYTES = 8_000
KEY = "harmed"  # was used for the first flights that are pending
KEYED_PATH = "/transactions/batch"


@dataclass(frozen=True)
class Template:
    """A folder to be copied. flights: all that was acknowledged, by id; mined: how many in blocks.

    houses: the folder, what it was earlier, and that of another ledger. keyed: the first id that
    was given for `KEY`.
    """

    houses: Houses
    flights: list[Flight]
    mined: int
    keyed: int

    @property
    def folder(self) -> Path:
        """The folder."""
        return self.houses.chain

    @property
    def height(self) -> int:
        """The height of the tip."""
        return BLOCKS

    def rows(self) -> list[Json]:
        """The mined flights with their ids, by names."""
        return [as_row(place, flight) for place, flight in enumerate(self.flights[: self.mined])]


def template_in(folder: Path) -> Template:
    """Make the chain: several block files, an index with its log, keys, tokens, full mempool."""
    mined = BLOCKS * FLIGHTS_A_BLOCK
    count = mined + PENDING_RECORDS * FLIGHTS_A_RECORD
    flights, others = generated(count), generated(2 * count)[count:]
    houses = Houses(folder / "template", folder / "older", folder / "foreign")
    _make(folder / "made", flights, mined, houses.chain, houses.older)
    _make(folder / "others", others, mined, houses.foreign, folder / "others-older")
    return Template(houses, flights, mined, mined)


def _make(folder: Path, flights: list[Flight], mined: int, copy: Path, older: Path) -> None:
    """Make a chain, and copy it as kills leave it, with what SQLite has not put into its files.

    copy: what it is at the end. older: what it was when half of the blocks were sealed.
    """
    settings = settings_for(folder, block_file_bytes=BLOCK_FILE_BYTES)
    Tokens(settings.folder).add("somebody")
    with closing(Sealer(settings, print)) as sealer:
        for number, part in enumerate(_parts(flights[:mined], FLIGHTS_A_BLOCK)):
            with sealer.writing(wait=False):
                key = IdempotencyKey(f"earlier-{number}", "1" * 64)
                accept_in(sealer.mempool, part, now_ms(), key=key)
                sealer.seal_pending()
            if number in {BLOCKS // 4, BLOCKS // 2}:
                rotate(folder)
                sealer.trim()  # so that some keys are in their file
            if number == BLOCKS // 2:
                add_small_files(folder)
                shutil.copytree(folder, older, symlinks=True)
                Tokens(settings.folder).add("somebody else")
        keyed = flights[mined : mined + FLIGHTS_A_RECORD]
        accept_in(sealer.mempool, keyed, now_ms(), key=_key(keyed_lines(keyed)))
        for number, part in enumerate(
            _parts(flights[mined + FLIGHTS_A_RECORD :], FLIGHTS_A_RECORD)
        ):
            accept_in(sealer.mempool, part, now_ms())
            if number == PENDING_RECORDS // 2:  # so that some are in the file alone
                sealer.mempool._store.empty_log()
        add_small_files(folder)
        with sealer.writing(wait=False):  # so the index has its log
            shutil.copytree(folder, copy, symlinks=True)


def keyed_lines(flights: Sequence[Flight]) -> bytes:
    """The body that came with `KEY`."""
    return b"".join(json.dumps(as_mapping(row)).encode() + b"\n" for row in flights)


def _key(body: bytes) -> IdempotencyKey:
    """`KEY` as the service remembers it."""
    return IdempotencyKey(KEY, sha256(f"{KEYED_PATH}?\n".encode() + body).hexdigest())


def _parts(flights: list[Flight], size: int) -> Iterator[list[Flight]]:
    return (flights[at : at + size] for at in range(0, len(flights), size))
