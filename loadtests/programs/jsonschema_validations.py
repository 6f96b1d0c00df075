"""Validate flights with the package jsonschema, against the schema that the service publishes.

    python -m loadtests.programs.jsonschema_validations FILE TIMES SCHEMA

FILE: JSON lines. The schema is read and prepared once, and dates must be real dates. A schema has
no rules between fields (the weekday of a date). The exit status is 1 if a flight is not valid.
"""

import json
import sys
from itertools import cycle, islice
from pathlib import Path

from jsonschema import Draft202012Validator, ValidationError  # type: ignore[import-untyped]

from loadtests.programs.lines import lines_of


def main(path: str, times: str, schema: str) -> None:
    """Validate `times` flights; start again at the end of the file."""
    validator = Draft202012Validator(
        json.loads(Path(schema).read_bytes()), format_checker=Draft202012Validator.FORMAT_CHECKER
    )
    flights = [json.loads(line) for line in lines_of(path)]
    for flight in islice(cycle(flights), int(times)):
        validator.validate(flight)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except ValidationError as problem:
        sys.exit(f"error: {problem.message}")
