"""Do tasks of the service in the usual ways of Python, as whole processes, timed from outside.

    python -m loadtests.usual_ways round-trips FILE TIMES
    python -m loadtests.usual_ways validations FILE TIMES SCHEMA

The files are those of `python -m loadtests.in_process.repetition`, which does the same tasks by the
service's own code: JSON lines, which are repeated until TIMES were done. The exit status is 1 if a
line is not written as it was read or is no valid flight, or the file has no lines.
"""

import json
import sys
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path


def main(task: str, path: str, times: str, schema: str = "") -> None:
    """Do a task so often."""
    if task not in {"round-trips", "validations"} or (task == "validations") != bool(schema):
        sys.exit(f"error: {task} is no task, or it lacks its files:\n{__doc__}")
    lines = Path(path).read_bytes().splitlines()
    if not lines:
        sys.exit(f"error: {path} has no lines")
    if task == "round-trips":
        round_trips(islice(cycle(lines), int(times)))
    else:
        flights = [json.loads(line) for line in lines]
        validations(islice(cycle(flights), int(times)), Path(schema))


def round_trips(lines: Iterator[bytes]) -> None:
    """Parse and serialise canonical bytes with the standard library's json."""
    for line in lines:
        record = json.loads(line)
        text = json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        if text.encode() != line:
            sys.exit(f"error: not canonical bytes: {line!r}")


def validations(flights: Iterator[object], schema: Path) -> None:
    """Validate flights with the package jsonschema, against the schema that the service publishes.

    The schema is read and prepared once, and dates must be real dates. It has no rules between
    fields (the weekday of a date).
    """
    import jsonschema  # type: ignore[import-untyped]  # round trips start without it

    kind = jsonschema.Draft202012Validator
    validator = kind(json.loads(schema.read_bytes()), format_checker=kind.FORMAT_CHECKER)
    try:
        for flight in flights:
            validator.validate(flight)
    except jsonschema.ValidationError as problem:
        sys.exit(f"error: {problem.message}")


if __name__ == "__main__":
    main(*sys.argv[1:])
