"""Does the work for transactions again and again, for the lab to time from outside.

    python -m loadtests.in_process.repetition round-trips ours|json FILE TIMES
    python -m loadtests.in_process.repetition validations ours|jsonschema FILE TIMES [SCHEMA]

A round trip goes from canonical bytes to a transaction and back. A validation is all that POST
checks of a flight, or what the package jsonschema checks against the schema that the service
publishes, which has no rules between fields (the weekday of a date).

FILE holds JSON lines, which are transactions in their canonical bytes or flights as they are
posted; they are repeated until TIMES were done. This is a program of its own and not a command of
`backend`, so that its start loads only what is timed. It prints nothing, and ends with an error if
a line is no transaction, is written otherwise than it was read, or is no flight.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from itertools import cycle, islice
from pathlib import Path
from typing import Any

NOT_CANONICAL = "these are no canonical bytes"


def round_trips(lines: Iterable[bytes], _: str) -> None:
    from backend.chain.transaction import transaction_bytes, transaction_in

    for line in lines:
        if transaction_bytes(transaction_in(line)) != line:
            raise ValueError(f"{NOT_CANONICAL}: {line!r}")


def round_trips_by_json(lines: Iterable[bytes], _: str) -> None:
    for line in lines:
        record = json.loads(line)
        text = json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        if text.encode() != line:
            raise ValueError(f"{NOT_CANONICAL}: {line!r}")


def validations(flights: Iterable[Any], _: str) -> None:
    from backend.chain.flight import examine

    for flight in flights:
        if problems := examine(flight)[1]:
            raise ValueError(str(problems[0]))


def validations_by_jsonschema(flights: Iterable[Any], schema: str) -> None:
    """Validate each flight with jsonschema, whose schema is read once; dates must be real dates."""
    import jsonschema  # type: ignore[import-untyped]

    kind = jsonschema.Draft202012Validator
    validator = kind(json.loads(Path(schema).read_bytes()), format_checker=kind.FORMAT_CHECKER)
    for flight in flights:
        validator.validate(flight)


TASKS: Mapping[tuple[str, str], Callable[[Iterable[Any], str], None]] = {
    ("round-trips", "ours"): round_trips,
    ("round-trips", "json"): round_trips_by_json,
    ("validations", "ours"): validations,
    ("validations", "jsonschema"): validations_by_jsonschema,
}


def main(task: str, program: str, path: str, times: str, schema: str = "") -> None:
    lines: list[Any] = Path(path).read_bytes().splitlines()
    if task == "validations":
        lines = [json.loads(line) for line in lines]
    TASKS[task, program](islice(cycle(lines), int(times)), schema)


if __name__ == "__main__":
    main(*sys.argv[1:])
