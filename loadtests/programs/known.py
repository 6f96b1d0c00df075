"""The programs that experiment `micro` times, and their input files."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loadtests.lab.published import REPEATED_TIMES
from loadtests.processes import backend, running
from loadtests.questions import all_blocks, as_sent

TIMES = REPEATED_TIMES
FLIGHTS = 1000  # number of different flights, which programs take again and again
TRANSACTIONS, POSTED, SCHEMA = "transactions.ndjson", "flights.ndjson", "schema.json"


@dataclass(frozen=True, slots=True)
class Program:
    """A program to be timed. told: its name in reports.

    Its arguments are `command`, the file, the number of times, and `more` files. quick_times: how
    often it does its task in a quick run, from which slow programs are extrapolated.
    """

    name: str
    told: str
    task: str
    quick_times: int
    command: tuple[str, ...]
    file: str
    more: tuple[str, ...] = ()

    def arguments(self, folder: Path, times: int) -> list[str]:
        """The command line, with files in `folder`."""
        more = [str(folder / name) for name in self.more]
        return [sys.executable, "-m", *self.command, str(folder / self.file), str(times), *more]


ROUND_TRIPS, VALIDATIONS = "round trips", "validations"
_JSON = ("loadtests.programs.json_round_trips",)
_JSONSCHEMA = ("loadtests.programs.jsonschema_validations",)
PROGRAMS = (
    Program(
        "ours",
        "the service",
        ROUND_TRIPS,
        TIMES,
        ("backend.lab.measure", "round-trips"),
        TRANSACTIONS,
    ),
    Program("json", "json of Python", ROUND_TRIPS, 20_000, _JSON, TRANSACTIONS),
    Program(
        "ours", "the service", VALIDATIONS, TIMES, ("backend.lab.measure", "validations"), POSTED
    ),
    Program("jsonschema", "jsonschema 4.26", VALIDATIONS, 2_000, _JSONSCHEMA, POSTED, (SCHEMA,)),
)


def make_inputs(folder: Path, chain: Path, seed: int, log: Path) -> None:
    """Generate flights in a new `chain`, and write them and the service's schema into `folder`.

    One file has transactions in canonical bytes, another has flights as they are posted, with their
    fields in the usual order.
    """
    backend(chain, "import", "--generate", str(FLIGHTS), "--seed", str(seed), log=log)
    with running(chain, log) as service:
        found = [flight for block in all_blocks(service) for flight in block]
        schema = service.get("/openapi.json")["components"]["schemas"]["Flight"]
    _write_lines(folder / TRANSACTIONS, found, sort_keys=True)
    _write_lines(folder / POSTED, list(map(as_sent, found)), sort_keys=False)
    (folder / SCHEMA).write_text(json.dumps(schema, indent=1), encoding="utf-8")


def _write_lines(path: Path, records: Sequence[dict[str, object]], *, sort_keys: bool) -> None:
    """Write JSON lines. Sorted ones are canonical (RFC 8785) for integers, strings and null."""
    lines = (
        json.dumps(record, ensure_ascii=False, sort_keys=sort_keys, separators=(",", ":"))
        for record in records
    )
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
