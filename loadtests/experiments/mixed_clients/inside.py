"""Makes a run of customers inside the ledger's process, beside a miner.

The process is `python -m backend.lab.in_process`. The run has the same files as one over HTTP: raw
rows in `requests.csv` and samples of the machine. The status of a row is 200, or 500 for a request
that HTTP would have refused.
"""

import csv
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from loadtests.generation import samples as sampling
from loadtests.generation.interactions import SEPARATOR, Sequences, save, step_index
from loadtests.generation.rows import Row, RowFile, in_flight
from loadtests.generation.run import REQUESTS, SAMPLE_EVERY_S, SAMPLES, RunRecord
from loadtests.generation.samples import Sample, Sampler, cpu_s
from loadtests.processes import (
    LOOK_EVERY_S,
    ProgramFailed,
    environment,
    failure,
    family,
    started,
    stop,
)

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
            samples = _sampled(program, miner.pid)
        finally:
            if program.poll() is None:
                stop(program)
        if program.returncode != 0:
            raise ProgramFailed(failure(command, program.returncode, log))
        mining_s = _used_s(miner.pid) - before_s
    rows, start_s = _rows(run, made)
    record = _kept(run, results, rows, [replace(one, at_s=one.at_s - start_s) for one in samples])
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


def _sampled(program: "subprocess.Popen[bytes]", miner_pid: int) -> list[Sample]:
    """Sample the machine each second until `program` ends, at times of CLOCK_MONOTONIC."""
    sampler, found = Sampler(program.pid, miner_pid, None), list[Sample]()
    next_s = monotonic() + SAMPLE_EVERY_S
    while program.poll() is None:
        try:
            program.wait(max(LOOK_EVERY_S, next_s - monotonic()))
        except subprocess.TimeoutExpired:
            found.append(sampler.sample(monotonic()))
            next_s += SAMPLE_EVERY_S
    return found


def _rows(run: str, path: Path) -> tuple[list[Row], float]:
    """The program's output as raw rows, and when the first was sent, on CLOCK_MONOTONIC."""
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    start_s = min(float(line["sent_s"]) for line in lines)
    return [_row(run, line, start_s) for line in lines], start_s


def _row(run: str, line: dict[str, str], start_s: float) -> Row:
    index = step_index(int(line["customer"]), int(line["interaction"]), int(line["step"]))
    kind = f"{line['interaction_kind']}{SEPARATOR}{line['step_kind']}"
    sent_s, done_s = float(line["sent_s"]) - start_s, float(line["done_s"]) - start_s
    status = DONE if line["succeeded"] == "1" else REFUSED
    return Row(run, index, kind, sent_s, sent_s, None, done_s, None, status, "")


def _kept(run: str, results: Path, rows: Sequence[Row], samples: Sequence[Sample]) -> RunRecord:
    """Write rows and samples to their files, without samples from before the first request."""
    file = RowFile(results / REQUESTS)
    file.write(rows)
    file.close()
    during = tuple(
        replace(one, in_flight=in_flight(rows, one.at_s)) for one in samples if one.at_s > 0
    )
    sampling.append(results / SAMPLES, run, during)
    return RunRecord(run, "in-process", tuple(rows), during, None, 0.0)
