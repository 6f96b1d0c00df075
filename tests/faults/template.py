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
from backend.sealing.miner import Sealer
from backend.storage.tokens import Tokens
from tests.api.worlds import Json, generated, settings_for
from tests.faults.auditing import as_row
from tests.submitting import accept_in

BLOCKS, FLIGHTS_A_BLOCK = 14, 60
PENDING_RECORDS, FLIGHTS_A_RECORD = 12, 10
BLOCK_FILE_BYTES = 8_000
KEY = "harmed"  # was used for the first flights that are pending
KEYED_PATH = "/transactions/batch"


@dataclass(frozen=True)
class Template:
    """A folder to be copied. flights: all that was acknowledged, by id; mined: how many in blocks.

    keyed: the first id that was given for `KEY`.
    """

    folder: Path
    flights: list[Flight]
    mined: int
    keyed: int

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
    flights = generated(mined + PENDING_RECORDS * FLIGHTS_A_RECORD)
    settings = settings_for(folder / "made", block_file_bytes=BLOCK_FILE_BYTES)
    Tokens(settings.folder).add("somebody")
    with (
        closing(Sealer(settings, print)) as sealer,
        sealer.writing(wait=False),
    ):
        for number, part in enumerate(_parts(flights[:mined], FLIGHTS_A_BLOCK)):
            key = IdempotencyKey(f"earlier-{number}", "1" * 64)
            accept_in(sealer.mempool, part, now_ms(), key=key)
            sealer.seal_pending()
            if number == BLOCKS // 2:
                sealer.trim()  # so that some keys are in their file
        keyed = accept_in(
            sealer.mempool,
            flights[mined : mined + FLIGHTS_A_RECORD],
            now_ms(),
            key=_key(keyed_lines(flights[mined : mined + FLIGHTS_A_RECORD])),
        )
        for part in _parts(flights[mined + FLIGHTS_A_RECORD :], FLIGHTS_A_RECORD):
            accept_in(sealer.mempool, part, now_ms())
        # As a kill leaves it, with what SQLite has not put into its file yet.
        shutil.copytree(settings.folder, folder / "template", symlinks=True)
    return Template(folder / "template", flights, mined, keyed.first_transaction)


def keyed_lines(flights: Sequence[Flight]) -> bytes:
    """The body that came with `KEY`."""
    return b"".join(json.dumps(as_mapping(row)).encode() + b"\n" for row in flights)


def _key(body: bytes) -> IdempotencyKey:
    """`KEY` as the service remembers it."""
    return IdempotencyKey(KEY, sha256(f"{KEYED_PATH}?\n".encode() + body).hexdigest())


def _parts(flights: list[Flight], size: int) -> Iterator[list[Flight]]:
    return (flights[at : at + size] for at in range(0, len(flights), size))
