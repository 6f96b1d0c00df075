"""Does the service's work for transactions again and again, for the lab to time from outside.

    python -m loadtests.in_process.repetition round-trips FILE TIMES
    python -m loadtests.in_process.repetition validations FILE TIMES

A round trip goes from canonical bytes to a transaction and back. A validation is all that POST
checks of a flight.

FILE holds JSON lines, which are transactions in their canonical bytes or flights as they are
posted; they are repeated until TIMES were done. This is a program of its own and not a command of
`backend`, so that its start loads only what is timed. It prints nothing and exits with status 0. An
error exits with status 1 and a message that names it: a line is no transaction, is written
otherwise than it was read, or is no flight, or the file has no lines.
"""

import sys
from collections.abc import Iterable
from itertools import cycle, islice
from pathlib import Path

import msgspec

from backend.chain.flight import examine
from backend.chain.transaction import transaction_bytes, transaction_in

USAGE = "usage: python -m loadtests.in_process.repetition round-trips|validations FILE TIMES"


def round_trips(lines: Iterable[bytes]) -> None:
    """Read and write each line. Raises ValueError for one that is not written as it was read."""
    for line in lines:
        if transaction_bytes(transaction_in(line)) != line:
            raise ValueError(f"these are no canonical bytes: {line!r}")


def validations(flights: Iterable[dict[str, object]]) -> None:
    """Examine each flight. Raises ValueError, which names what is wrong with one."""
    for flight in flights:
        _, problems = examine(flight)
        if problems:
            raise ValueError(str(problems[0]))


def main(arguments: list[str]) -> None:
    """Do what the arguments say. Raises ValueError or OSError if that cannot be done."""
    match arguments:
        case ["round-trips", path, times]:
            round_trips(islice(cycle(_lines(path)), int(times)))
        case ["validations", path, times]:
            flights = [msgspec.json.decode(line) for line in _lines(path)]
            validations(islice(cycle(flights), int(times)))
        case _:
            raise ValueError(USAGE)


def _lines(path: str) -> list[bytes]:
    """The lines of a file. Raises ValueError if there are none, because nothing would be done."""
    lines = Path(path).read_bytes().splitlines()
    if not lines:
        raise ValueError(f"{path} holds no lines")
    return lines


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (ValueError, OSError) as problem:
        sys.exit(f"error: {problem}")
