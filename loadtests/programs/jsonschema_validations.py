"""Validate flights with the package jsonschema, against the schema that the service publishes.

    python -m loadtests.programs.jsonschema_validations FILE TIMES SCHEMA

FILE: JSON lines. The schema is read and prepared once, and dates are checked to be dates. Rules
between fields (the weekday of a date) are not in a schema. Status 1 for a flight that is refused.
"""

import json
import sys
from itertools import cycle, islice
from pathlib import Path

from jsonschema import Draft202012Validator, ValidationError  # type: ignore[import-untyped]

from loadtests.programs.lines import lines_of


def main(path: str, times: str, schema: str) -> None:
    """Go through the flights until `times` are validated."""
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
