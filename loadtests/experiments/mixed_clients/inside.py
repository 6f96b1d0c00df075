"""Makes a run of customers inside the ledger's process, beside a miner.

The process is `python -m backend.lab.in_process`. The run has the same files as one over HTTP: raw
rows in `requests.csv` and samples of the machine. The status of a row is 200, or 500 for a request
that HTTP would have refused.
"""

import csv
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from loadtests.generation.interactions import SEPARATOR, Sequences, save, step_index
from loadtests.generation.rows import Row
from loadtests.generation.run import RunRecord, keep
from loadtests.generation.samples import Sampler, cpu_s
from loadtests.processes import ProgramFailed, environment, failure, family, started, stop

DONE, REFUSED = 200, 500


@dataclass(frozen=True, slots=True)
class Inside:
    """A run. cpu_s: processor time of the ledger's process and of the miner during it."""

    record: RunRecord
    cpu_s: float


def inside_run(folder: Path, sequences: Sequences, *, run: str, results: Path, log: Path) -> Inside:
    """Let the customers do their sequences on the ledger in `folder`, which no service uses.

    results: the folder of results. log: file for the programs' output. Raises ProgramFailed.
    """
    given, made, facts = (folder.parent / f"{run}.{end}" for end in ("jsonl", "csv", "json"))
    save(given, sequences)
    variables = environment(folder, {})
    command = [sys.executable, "-m", "backend.lab.in_process", *map(str, (given, made, facts))]
    with _mining(variables, log) as miner:
        before_s = _used_s(miner.pid)
        program = started(command, log, variables)
        try:
            sampler = Sampler(program.pid, miner.pid, None)
            samples = list(sampler.while_running(program, monotonic()))
        finally:
            if program.poll() is None:
                stop(program)
        if program.returncode != 0:
            raise ProgramFailed(failure(command, program.returncode, log))
        mining_s = _used_s(miner.pid) - before_s
    record, _ = keep(results, run, "in-process", _rows(run, made), samples)
    used_s: float = json.loads(facts.read_bytes())["cpu_s"]
    for path in (given, made, facts):
        path.unlink()
    return Inside(record, used_s + mining_s)


@contextmanager
def _mining(variables: dict[str, str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    process = started([sys.executable, "-m", "backend", "mine"], log, variables)
    try:
        yield process
    finally:
        stop(process)


def _used_s(pid: int) -> float:
    return sum(cpu_s(family(pid)).values())


def _rows(run: str, path: Path) -> list[Row]:
    """The program's output as raw rows, with times on CLOCK_MONOTONIC."""
    with path.open(encoding="utf-8", newline="") as file:
        return [_row(run, line) for line in csv.DictReader(file)]


def _row(run: str, line: dict[str, str]) -> Row:
    index = step_index(int(line["customer"]), int(line["interaction"]), int(line["step"]))
    kind = f"{line['interaction_kind']}{SEPARATOR}{line['step_kind']}"
    sent_s, done_s = float(line["sent_s"]), float(line["done_s"])
    status = DONE if line["succeeded"] == "1" else REFUSED
    return Row(run, index, kind, sent_s, sent_s, None, done_s, None, status, "")
