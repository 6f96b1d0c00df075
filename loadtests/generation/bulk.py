"""Makes load as study 002 did: a program posts from many threads, here `scripts/bulk_post`.

This is a closed system: each thread waits for its answer before it posts again. The program runs as
a process of its own; its rows become raw rows like those of Locust. It is ended after a time and
not after a number of requests, because some threads would finish first and then fewer would post
than stated.
"""

import csv
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from signal import SIGINT
from tempfile import TemporaryDirectory
from time import monotonic

from loadtests.generation.rows import Row, closed_index
from loadtests.generation.run import Generator, RunRecord, Target, judge_run, keep
from loadtests.machine_samples import Sample, Sampler
from loadtests.processes import (
    PROJECT,
    ProgramFailed,
    failure,
    plain_environment,
    started,
    stop,
    wait_until,
)
from loadtests.tables import whole_lines

PROGRAM = PROJECT / "scripts" / "bulk_post"
LOG = "bulk_post.log"
BEGIN_WITHIN_S = 60.0
MODES = ("async", "sync", "commit")
ENDLESS = 1_000_000  # transactions of each thread, more than any run lasts for
_BEGUN = b"posting to"


@dataclass(frozen=True, slots=True)
class Bulk:
    """Says how to post. mode: one of MODES. threads: each posts one flight per request."""

    mode: str
    threads: int


@dataclass(slots=True)
class Load:
    """Watches a program that posts. rows: the file that it writes when it ends."""

    process: "subprocess.Popen[bytes]"
    command: list[str]
    log: Path
    rows: Path
    samples: list[Sample] = field(default_factory=list)

    def end(self) -> None:
        """Stop the program after the requests that are under way."""
        if self.process.poll() is None:
            stop(self.process, SIGINT)

    def require_alive(self) -> None:
        """Raise ProgramFailed if the program has ended, for instance because all posts failed."""
        if self.process.poll() is not None:
            raise ProgramFailed(failure(self.command, self.process.returncode, self.log))


@contextmanager
def posting(target: Target, bulk: Bulk, seed: int, log: Path) -> Iterator[Load]:
    """Run a program that posts until the `with` block or `Load.end` ends it.

    Its file of rows exists from its end to the end of the `with` block. Raises ProgramFailed if it
    does not begin.
    """
    with TemporaryDirectory(prefix="flightchain-bulk-") as scratch:
        rows = Path(scratch) / "rows.csv"
        command = [
            *(sys.executable, str(PROGRAM), "--url", target.url, "--generate", str(seed)),
            *("--mode", bulk.mode, "--threads", str(bulk.threads)),
            *("--transactions-per-thread", str(ENDLESS), "--rows", str(rows)),
        ]
        logged_bytes = log.stat().st_size if log.exists() else 0
        load = Load(started(command, log, plain_environment()), command, log, rows)

        def has_begun() -> bool:
            return _BEGUN in log.read_bytes()[logged_bytes:]

        try:
            wait_until(has_begun, load.process, command, log, BEGIN_WITHIN_S)
            yield load
        finally:
            load.end()


def bulk_run(
    by: Generator,
    target: Target,
    bulk: Bulk,
    run: str,
    *,
    duration_s: float,
    then: Callable[[], None] = lambda: None,
) -> RunRecord:
    """Post for a time, keep the rows and samples under the id `run`, and judge the run.

    then: is called when the last post is answered, before the rows are read. Raises ProgramFailed
    if nothing was posted, and KeyboardInterrupt after the run was kept and listed as interrupted.
    """
    by.say(f"{run}: threads: {bulk.threads}, {duration_s:g} s")
    interrupted: KeyboardInterrupt | None = None
    with posting(target, bulk, by.seed, by.folder / LOG) as load:
        try:
            sampler = Sampler(load.process.pid, target.pid)
            start_s = monotonic()
            watched = sampler.while_running(load.process, start_s, start_s + duration_s)
            load.samples.extend(watched)
        except KeyboardInterrupt as stopped:
            interrupted = stopped
        load.end()
        if interrupted is None:
            then()
        record = kept(load, bulk, run, by.folder)
    record = replace(record, is_interrupted=interrupted is not None)
    # The study used such a program, so its own limit is reported and not a reason to reject.
    judge_run(by.folder, record, replace(record.facts(), client_cpu=None))
    if interrupted is not None:
        raise interrupted
    return record


def kept(load: Load, bulk: Bulk, run: str, folder: Path) -> RunRecord:
    """Write the rows and samples of a program that has ended to the files of `folder`.

    Returns them in the order of the answers. Times become seconds since its first request. Raises
    ProgramFailed if there was no request.
    """
    rows = []
    for line in csv.DictReader(whole_lines(load.rows) if load.rows.exists() else ()):
        index = closed_index(int(line["thread"]), int(line["number"]))
        sent_s, done_s, status = float(line["sent_s"]), float(line["done_s"]), int(line["status"])
        times_s = sent_s, sent_s, None, done_s, None
        rows.append(Row(run, index, f"post-{bulk.mode}", *times_s, status, ""))
    if not rows:
        raise ProgramFailed(failure(load.command, load.process.returncode, load.log))
    rows.sort(key=lambda row: row.done_s)
    return keep(folder, run, "bulk", rows, load.samples)
