"""Imports a file without checking it to its end first, to measure what the check adds.

    python -m loadtests.in_process.straight_import FILE

Flights are read, validated and sealed at the same time, as made-up ones are. No command of the
service does that: a bad row in the middle would leave a part of the file in the ledger for good.
"""

import os
import sys
from pathlib import Path

from backend.base.settings import from_environment
from backend.sealing.importer import import_all
from backend.sources.flight_file import FlightFile


class StraightFile(FlightFile):
    """Reads a file whose flights are known to be good and new."""

    is_made_up = True


def import_straight(path: Path) -> None:
    source = StraightFile(path)
    source.check()  # of which kind it is
    import_all(from_environment(os.environ), [source])


if __name__ == "__main__":
    import_straight(Path(sys.argv[1]))
