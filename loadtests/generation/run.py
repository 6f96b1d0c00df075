"""Runs a workload against a server for an experiment, with Locust in a process of its own.

Runs write these files into the folder, which they share: rows in `requests.csv`, a sample of the
machine for each second in `samples.csv`, the schedule of an open run in `schedules/RUN.csv`, and
Locust's output in `locust.log`. `judge_run` adds a line to `runs.csv`.

Progress is shown every few seconds, with the time left. Ctrl-C, or the death of this process, stops
Locust cleanly; the measurements until then are kept, and the run is listed as interrupted.
"""

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any, Protocol

from loadtests import machine_samples as sampling
from loadtests.generation.calibration import WARM_UP, Calibration, calibration_of, chance_s
from loadtests.generation.interactions import Sequences
from loadtests.generation.interactions import save as save_interactions
from loadtests.generation.rows import COLUMNS, Row, read_rows, row_file
from loadtests.generation.rules import RULES, Facts, Verdict, judge
from loadtests.generation.schedule import Arrival, Choices, save, save_requests
from loadtests.machine_samples import Sample, Sampler
from loadtests.models.sample_statistics import mean_of_known, quantile
from loadtests.processes import (
    LOOK_EVERY_S,
    ProgramFailed,
    failure,
    plain_environment,
    started,
    stop,
)
from loadtests.tables import cell, to_append

REQUESTS, SAMPLES, RUNS, SCHEDULES = "requests.csv", "samples.csv", "runs.csv", "schedules"
LOCUST_LOG, MANIFEST = "locust.log", "manifest.json"
BEGIN_WITHIN_S = 120
SAY_EVERY_S = 5.0

Say = Callable[[str], None]

_OWN_ERROR = re.compile(r"locust\.flightchain: error: (.*)$", re.MULTILINE)
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Target(Protocol):
    """Stands for the server under test: a `Service` of `loadtests.processes`, or a `Site`."""

    @property
    def url(self) -> str:
        """Return the address at which the server answers."""

    @property
    def pid(self) -> int | None:
        """Return the id of the server's process; None if it is not known to run here."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Holds what is known of a run. rows: in order of the answers. scheduled: None if closed."""

    run: str
    workload: str
    rows: tuple[Row, ...]
    samples: tuple[Sample, ...]
    scheduled: int | None
    is_interrupted: bool = False
    begun_s: float = 0.0  # on CLOCK_MONOTONIC, of a run by another program than Locust

    def facts(self, before: Calibration | None = None, after: Calibration | None = None) -> Facts:
        """Return the facts for the rules. before, after: calibrations around the run, if any."""
        lags_s = [row.lag_s for row in self.rows]
        end_s = max((row.done_s for row in self.rows), default=0.0)
        during = [sample for sample in self.samples if sample.at_s <= ceil(end_s)]
        return Facts(
            requests=len(self.rows),
            failed=sum(not row.succeeded for row in self.rows),
            scheduled=self.scheduled,
            lag_mean_s=fmean(lags_s) if self.scheduled and lags_s else None,
            lag_p99_s=quantile(lags_s, 0.99) if self.scheduled and lags_s else None,
            foreign_cpu=mean_of_known(sample.foreign_cpu for sample in during),
            client_cpu=mean_of_known(sample.client_cpu for sample in during),
            before_s=before.mean_s if before else None,
            after_s=after.mean_s if after else None,
            chance_s=chance_s(before, after) if before and after else 0.0,
            is_interrupted=self.is_interrupted,
        )


def to_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class Generator:
    """Makes load, and keeps what it saw in `folder`.

    seed: of all that customers draw. say: shows a line of progress. `run` is the id of a run, not
    used before in the folder. All raise ValueError, ProgramFailed if Locust fails, and
    KeyboardInterrupt after the measurements were kept.
    """

    folder: Path
    seed: int = 1
    say: Say = to_stderr

    def open(self, target: Target, schedule: Sequence[Arrival], run: str) -> RunRecord:
        """Send the schedule to the target, each arrival at its time on a connection of its own."""
        job = _Job(self, "open", run, target, len(schedule), schedule[-1].intended_s)
        path = self.folder.resolve() / SCHEDULES / f"{run}.csv"
        path.parent.mkdir(exist_ok=True)
        save(path, schedule)
        return job.done("--schedule", path)

    def closed(
        self,
        target: Target,
        choices: Choices,
        run: str,
        *,
        customers: int,
        think_s: float = 0.0,
        requests: int = 0,
        warm_up: int = 0,
        duration_s: float = 0.0,
        each_once: bool = False,
    ) -> RunRecord:
        """Let customers ask, wait and think, each `warm_up` + `requests` times or for `duration_s`.

        choices: what is drawn from, each kind as often; or, with `each_once`, all that is asked, in
        its order, kinds in turn; there must be enough. `closed_window` has the rows that count.
        """
        if (requests > 0) == (duration_s > 0):
            both = f"{requests} and {duration_s}"
            raise ValueError(f"either requests or duration_s must be given, not {both}")
        total = customers * (warm_up + requests) if requests else None
        job = _Job(self, "closed", run, target, total, duration_s or None)
        with TemporaryDirectory(prefix="flightchain-paths-") as scratch:
            paths = Path(scratch) / "paths.csv"
            save_requests(paths, choices)
            return job.done(
                *("--users", customers, "--spawn-rate", customers, "--paths", paths),
                *("--think", think_s, "--seed", self.seed, "--warm-up", warm_up),
                *("--requests", requests, "--duration", duration_s),
                *("--each-once", int(each_once)),
            )

    def interactions(
        self, target: Target, sequences: Sequences, run: str, *, interval_s: float = 0.0
    ) -> RunRecord:
        """Let a customer for each sequence do its interactions, one after the other.

        All sequences are of one length. interval_s: mean time between the starts of a customer's
        interactions, see `loadtests/interaction_workload.py`; 0: each starts as soon as the last is
        done. `interactions.whole` makes rows of interactions.
        """
        count, *others = {len(own) for own in sequences} or {0}
        if others or not count:
            wanted = "all customers must do the same number of interactions, at least 1"
            raise ValueError(f"{wanted}, not {[count, *others]}")
        total = sum(len(interaction.steps) for own in sequences for interaction in own)
        job = _Job(self, "interaction", run, target, total, count * interval_s or None)
        users = len(sequences)
        with TemporaryDirectory(prefix="flightchain-interactions-") as scratch:
            path = Path(scratch) / "interactions.jsonl"
            save_interactions(path, sequences)
            return job.done(
                *("--users", users, "--spawn-rate", users, "--from-file", path),
                *("--interval", interval_s, "--interactions", count, "--seed", self.seed),
            )

    def calibrate(
        self, target: Target, choices: Choices, run: str, *, requests: int, each_once: bool = False
    ) -> Calibration:
        """Measure the service time with one customer, who asks again as soon as an answer comes.

        requests: at least 2, after WARM_UP that do not count. choices, each_once: see `closed`.
        Raises ProgramFailed if one fails.
        """
        if requests < 2:
            raise ValueError(f"requests is {requests}; a variance needs at least 2")
        how: dict[str, Any] = {"customers": 1, "warm_up": WARM_UP, "each_once": each_once}
        record = self.closed(target, choices, run, requests=requests, **how)
        if failed := [row for row in record.rows if not row.succeeded]:
            status = failed[0].status
            first = f"was answered {status}" if status else "had no whole answer"
            raise ProgramFailed(
                f"{run}: {len(failed)} of {len(record.rows)} requests of a single customer failed; "
                f"the first of them {first}. A server that fails without load cannot be "
                "measured under load; repair that first."
            )
        return replace(calibration_of(run, record.rows[WARM_UP:]), each_once=each_once)


@dataclass(slots=True)
class _Job:
    """Makes a run. total: requests it will make; until_s: its length. None if not known."""

    by: Generator
    workload: str
    run: str
    target: Target
    total: int | None
    until_s: float | None
    offset: int = 0
    samples: list[Sample] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError if the run id is not well formed or the folder has it already.

        Raises TableError if the folder is of a version whose tables have other columns.
        """
        if not _RUN_ID.fullmatch(self.run):
            allowed = "letters, digits, dots, dashes and underscores"
            raise ValueError(f"run is {self.run!r}; it may have {allowed}")
        for name, columns in _TABLES.items():
            if (table := self.by.folder / name).exists():
                to_append(table, columns).close()
        taken = self.by.folder / SAMPLES
        if self.run in sampling.read(taken):
            raise ValueError(f"run {self.run} is in {taken} already")

    def done(self, *arguments: object) -> RunRecord:
        """Run Locust with these arguments until it ends. Returns the record of the run."""
        folder = self.by.folder.resolve()
        requests, log = folder / REQUESTS, folder / LOCUST_LOG
        self.offset = requests.stat().st_size if requests.exists() else 0
        with TemporaryDirectory(prefix="flightchain-facts-") as scratch:
            facts = Path(scratch) / "facts.json"
            command = [
                *(sys.executable, "-m", "locust", "--headless", "--only-summary"),
                *("--locustfile", f"loadtests/{self.workload}_workload.py"),
                *("--exit-code-on-error", "0", "--host", self.target.url, "--run-id", self.run),
                *map(str, [*arguments, "--raw", requests, "--facts", facts]),
            ]
            theirs = plain_environment().items()  # without options of the caller's own Locust
            settings = {name: text for name, text in theirs if not name.startswith("LOCUST_")}
            process = started(command, log, settings)
            try:
                self._watch(process, facts, command, log)
            except KeyboardInterrupt:
                stop(process)
                judge_run(folder, replace(self._kept(), is_interrupted=True))
                raise
            finally:
                if process.poll() is None:
                    stop(process)
        record = self._kept()
        if process.returncode != 0:
            raise ProgramFailed(_why(command, process.returncode, log))
        return record

    def _watch(
        self, process: "subprocess.Popen[bytes]", facts: Path, command: list[str], log: Path
    ) -> None:
        deadline_s = monotonic() + BEGIN_WITHIN_S
        while not facts.exists():
            if process.poll() is not None or monotonic() > deadline_s:
                raise ProgramFailed(_why(command, process.returncode, log))
            sleep(LOOK_EVERY_S)
        self.facts = json.loads(facts.read_text(encoding="utf-8"))
        start_s: float = self.facts["start_s"]
        sampler = Sampler(process.pid, self.target.pid)
        say_s = start_s + SAY_EVERY_S
        for sample in sampler.while_running(process, start_s):
            self.samples.append(sample)
            if sample.at_s >= say_s:
                self._say_progress(sample.at_s - start_s)
                say_s += SAY_EVERY_S
        if not self.samples:
            self.samples.append(sampler.sample())

    def _say_progress(self, elapsed_s: float) -> None:
        with (self.by.folder / REQUESTS).open("rb") as file:
            file.seek(self.offset)
            answered = sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
        if self.until_s is not None:
            left_s = max(0.0, self.until_s - elapsed_s)
        elif self.total and answered:
            left_s = elapsed_s * max(0.0, self.total / answered - 1)
        else:
            return
        total = f" of {self.total}" if self.total else ""
        self.by.say(
            f"{self.run}: {answered}{total} requests, about {left_s:.0f} s left of this run"
        )

    def _kept(self) -> RunRecord:
        """Write the samples to their file. Returns the record, with rows read from their file."""
        path = self.by.folder / REQUESTS
        rows = read_rows(path, self.run, self.offset) if path.exists() else []
        during = _since(self.facts.get("start_s", 0.0), self.samples)
        sampling.append(self.by.folder / SAMPLES, self.run, during)
        scheduled = self.total if self.workload == "open" else None
        return RunRecord(self.run, self.workload, tuple(rows), during, scheduled)


def keep(
    folder: Path, run: str, workload: str, rows: Sequence[Row], samples: Iterable[Sample]
) -> RunRecord:
    """Write the rows and samples of a run that another program than Locust has made.

    Their times are on CLOCK_MONOTONIC; in the files and in the record they are since the first
    request, and samples from before it are left out.
    """
    start_s = min(row.sent_s for row in rows)
    moved = tuple(row.since(start_s) for row in rows)
    during = _since(start_s, (sample for sample in samples if sample.at_s > start_s))
    with closing(row_file(folder / REQUESTS)) as file:
        file.add(*moved)
    sampling.append(folder / SAMPLES, run, during)
    return RunRecord(run, workload, moved, during, None, begun_s=start_s)


def _since(start_s: float, samples: Iterable[Sample]) -> tuple[Sample, ...]:
    return tuple(replace(sample, at_s=sample.at_s - start_s) for sample in samples)


def _why(command: Sequence[str], status: int | None, log: Path) -> str:
    """Return a message that Locust failed, with our own last error in its log, if any."""
    if errors := _OWN_ERROR.findall(log.read_text(encoding="utf-8", errors="replace")):
        return f"Locust ended with status {status}: {errors[-1]}"
    return failure(command, status, log)


def judge_run(folder: Path, record: RunRecord, facts: Facts | None = None) -> bool:
    """Judge a run by its own facts or by `facts`, and list it. Returns whether it counts.

    The rules about the machine reject nothing in a folder whose manifest says that it is shared.
    """
    verdict, manifest = judge(facts or record.facts()), folder / MANIFEST
    if manifest.exists() and json.loads(manifest.read_bytes()).get("shared"):
        verdict = verdict.on_shared_machine()
    append_verdict(folder, record, verdict)
    return verdict.accepted


RUN_COLUMNS = (
    *("run", "accepted", "reasons", "workload", "requests"),
    *(f"{rule.name} ({rule.unit})" for rule in RULES),
)
_TABLES = {REQUESTS: COLUMNS, SAMPLES: Sample.columns(), RUNS: RUN_COLUMNS}


def append_verdict(folder: Path, record: RunRecord, verdict: Verdict) -> None:
    """List the run in `runs.csv`: whether it counts, why not, and the value of each rule."""
    values = (verdict.values[rule.name] for rule in RULES)
    shown = ["" if value is None else f"{value:.6g}" for value in values]
    accepted = cell(verdict.accepted)
    about = record.run, accepted, verdict.reasons, record.workload, len(record.rows)
    with to_append(folder / RUNS, RUN_COLUMNS) as file:
        csv.writer(file).writerow([*about, *shown])
        os.fsync(file.fileno())
