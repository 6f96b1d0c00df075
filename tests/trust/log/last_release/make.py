"""Makes `folder.tar.xz`: the folder of a ledger as the release of commit ffce160 left it.

Run it in a checkout of that commit: `python make.py folder.tar.xz`. Nothing newer can make it.
"""

import shutil
import sys
import tarfile
import tempfile
from contextlib import closing
from pathlib import Path

from backend.base.settings import Settings
from backend.sealing.miner import Sealer
from backend.storage.tokens import Tokens
from backend.trust.log.rotation import rotate
from tests.flights import flights
from tests.submitting import accept_in

BLOCKS, FLIGHTS_A_BLOCK, PENDING = 4, 30, 3
ACCEPTED_MS = 1_700_000_000_000


def make(folder: Path) -> None:
    """Fill `folder`: blocks, an index, two keys of the log, a token, and pending flights."""
    Tokens(folder).add("somebody")
    settings = Settings(dir=str(folder), difficulty_bits=0, clock_wait_s=0)
    for number in range(BLOCKS):
        with closing(Sealer(settings, print)) as sealer, sealer.writing(wait=False):
            accept_in(sealer.mempool, flights(FLIGHTS_A_BLOCK, 100 * number), ACCEPTED_MS)
            sealer.seal_pending()
            sealer.trim()
        if number == 1:
            rotate(folder)
    with closing(Sealer(settings, print)) as sealer:
        accept_in(sealer.mempool, flights(PENDING, 900), ACCEPTED_MS)


def main() -> None:
    """Make the folder in a temporary place, and pack it."""
    root = Path(tempfile.mkdtemp())
    make(root / "chain")
    with tarfile.open(sys.argv[1], "w:xz") as tar:
        tar.add(root / "chain", "chain")
    shutil.rmtree(root)


if __name__ == "__main__":
    main()
