"""Measures how everything grows with the number of flights: `scripts/bench --growth FLIGHTS`.

Months that `made_months` makes up are imported one after the other as files, each removed when it
is imported. At growing sizes the ledger is measured: disk, start, questions, memory, recovery after
`kill -9` in the middle of an import, `verify`, backup, and the scrub's pace. What was measured is
in growth.json in the folder, and written after each step, so the same command goes on where it was
stopped. The ledger is beside it, and is left there for other measurements.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from typing import Any

from loadtests.bench.growth_curves import ALL_YEARS, markdown, svg
from loadtests.bench.made_months import MadeMonth, months
from loadtests.bench.session import SEED, say, timed
from loadtests.chains import size_bytes
from loadtests.machine import commit, description
from loadtests.process_table import family
from loadtests.processes import (
    ProgramFailed,
    Service,
    answer,
    backend,
    backend_command,
    environment,
    failure,
    finished,
    running,
    started,
)
from loadtests.questions import drawn, sample

SIZES = (0.5, 1, 2, 5, 10, 20, 40, 60)  # million flights
VERIFIED = {1, 2, 5, 10}  # the sizes, besides the last, at which everything is verified
RECENT = 5e6  # flights whose import tells the present rate
QUESTIONS = 200
WATCH_EVERY_S = 0.1
SCRUB_PASS = [sys.executable, "-m", "loadtests.in_process.scrub_pass"]


class Growth:
    """Grows a ledger, and keeps what is measured of it."""

    def __init__(self, folder: Path) -> None:
        """Open a folder with the ledger and growth.json, which an earlier run may have begun."""
        self.chain, self._folder, self.log = folder / "chain", folder, folder / "log.txt"
        self.chain.mkdir(parents=True, exist_ok=True)
        self.record = folder / "growth.json"
        self.measured: dict[str, Any] = {"months": [], "sizes": []}
        if self.record.exists():
            self.measured = json.loads(self.record.read_text("utf-8"))

    @property
    def flights(self) -> int:
        """Return the number of flights in the ledger."""
        return sum(month["flights"] for month in self.measured["months"])

    def save(self) -> None:
        """Write what was measured, with the machine, the day and the commit."""
        about = {
            "date": datetime.now(UTC).date().isoformat(),
            "commit": (commit() or "unknown")[:12],
            "machine": description(self._folder),
        }
        self.measured |= about
        self.record.write_text(json.dumps(self.measured, indent=1) + "\n", "utf-8")

    def take(self, month: MadeMonth, *, kill: bool) -> float | None:
        """Import a month. kill: whether to kill the import first, in the middle.

        Returns how many seconds a service needed after that.
        """
        path, recovery_s = self._folder / f"{month}.csv", None
        month.write(path)
        if kill:
            half = size_bytes(self.chain / "blocks") + path.stat().st_size // 20
            self._imported(path, until_bytes=half)
            with running(self.chain, self.log, asking="/health/ready") as service:
                recovery_s = service.first_answer_s
        facts = self._imported(path)
        path.unlink()
        flights = json.loads(backend(self.chain, "tip", log=self.log)[0])["transactions"]
        facts |= {"month": str(month), "flights": flights - self.flights, "interrupted": kill}
        self.measured["months"].append(facts)
        self.save()
        return recovery_s

    def _imported(self, path: Path, until_bytes: int | None = None) -> dict[str, Any]:
        """Import a file. until_bytes: the size of all blocks at which the import is killed."""
        command, before = backend_command(["import", str(path)]), getrusage(RUSAGE_CHILDREN)
        start_s, peak, largest_log = time.perf_counter(), 0, 0
        process = started(command, self.log, environment(self.chain, {}))
        try:
            while process.poll() is None:
                peak = max(peak, _memory_bytes(process.pid))
                largest_log = max(largest_log, _log_bytes(self.chain))
                if until_bytes and size_bytes(self.chain / "blocks") >= until_bytes:
                    break
                with suppress(subprocess.TimeoutExpired):
                    process.wait(WATCH_EVERY_S)
            if until_bytes is None and process.returncode != 0:
                raise ProgramFailed(failure(command, process.returncode, self.log))
        finally:
            for pid in family(process.pid) if process.poll() is None else ():
                os.kill(pid, signal.SIGKILL)
            process.wait()
        after = getrusage(RUSAGE_CHILDREN)
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        facts = {"wall_s": time.perf_counter() - start_s, "cpu_s": cpu_s}
        return facts | {"peak_mb": peak / 1e6, "log_mb": largest_log / 1e6}

    def measure(self, recovery_s: float | None, *, verify: bool) -> None:
        """Measure the ledger as it is. verify: whether everything is verified, too."""
        facts: dict[str, float] = {"flights": self.flights}
        if recovery_s is not None:
            facts["recovery_s"] = recovery_s
        facts |= self._recent_imports()
        for name, folder in (("chain", "blocks"), ("index", "index")):
            facts[f"{name}_bytes"] = size_bytes(self.chain / folder) / self.flights
        facts |= self._served()
        if verify:
            spent = backend(self.chain, "verify", log=self.log)[1]
            facts |= {"verify_s": spent.wall_s, "verify_cpu_s": spent.cpu_s}
            again = ("verify", "--since", "last")
            facts["again_s"] = backend(self.chain, *again, log=self.log)[1].wall_s
            facts["scrub_hours"] = float(
                finished(SCRUB_PASS, environment(self.chain, {}), self.log)[0]
            )
        backup = self._folder / "backup"
        shutil.rmtree(backup, ignore_errors=True)
        facts["backup_s"] = backend(self.chain, "backup", str(backup), log=self.log)[1].wall_s
        shutil.rmtree(backup)
        self.measured["sizes"].append(facts)
        self.save()

    def _recent_imports(self) -> dict[str, float]:
        """Return what the import of the newest months took, by the median of the months.

        A shared machine is now and then half as fast for minutes.
        """
        recent, flights = list[dict[str, Any]](), 0
        for month in reversed(self.measured["months"]):
            if flights < RECENT and not month["interrupted"]:
                recent.append(month)
                flights += month["flights"]
        facts = {
            f"import_{name}_us": 1e6 * median(m[f"{name}_s"] / m["flights"] for m in recent)
            for name in ("wall", "cpu")
        }
        peaks = {key: max(month[key] for month in recent) for key in ("peak_mb", "log_mb")}
        return facts | {f"import_{key}": value for key, value in peaks.items()}

    def _served(self) -> dict[str, float]:
        """Return how a service starts, answers, and how much memory it takes."""
        with running(self.chain, self.log, asking="/health/ready") as service:
            facts = {"ready_s": service.first_answer_s, **_question_times(service)}
            memory = service.memory()
            facts["memory_mb"] = sum(process.pss_bytes for process in memory) / 1e6
            workers = [process.pss_bytes for process in memory if process.role == "worker"]
            facts["worker_mb"] = max(workers) / 1e6
        return facts


def _memory_bytes(pid: int) -> int:
    """Return the memory of a process and its descendants, 0 if one ends meanwhile."""
    try:
        return sum(process.pss_bytes for process in Service("", pid).memory())
    except (OSError, ProgramFailed):
        return 0


def _log_bytes(chain: Path) -> int:
    logs = (path for path in chain.rglob("*-wal"))
    with suppress(OSError):
        return sum(path.stat().st_size for path in logs)
    return 0


def _question_times(service: Service) -> dict[str, float]:
    """Return the median times in ms of answers that are not cached, and of the same when cached."""
    flights, facts = sample(service), {}
    by_kind = drawn(flights, QUESTIONS, SEED)
    days = sorted(flight["FL_DATE"] for flight in flights)
    every_day = {"INITIAL_DATE": days[0], "FINAL_DATE": days[-1]}
    by_kind[ALL_YEARS] = [
        replace(question, parameters={**question.parameters, **every_day})
        for question in drawn(flights, QUESTIONS, SEED + 1)["flight_counter"]
    ]
    with service.connection() as connection:
        for kind, questions in by_kind.items():
            for state in ("new", "cached"):
                asks = (partial(answer, connection, question.path) for question in questions)
                facts[f"{state} {kind}"] = 1000 * median(timed(ask)[1] for ask in asks)
    return facts


def grow(growth: Growth, flights: int) -> None:
    """Import months until there are so many flights, and measure at each size on the way."""
    sizes = [round(1e6 * size) for size in SIZES if 1e6 * size < flights] + [flights]
    imported = {month["month"] for month in growth.measured["months"]}
    done = growth.measured["sizes"]
    to_measure = [size for size in sizes if not done or size > done[-1]["flights"]]
    for month in months(SEED):
        if not to_measure:
            return
        if str(month) in imported:
            continue
        is_last = growth.flights + 28 * len(month.legs) >= to_measure[0]
        recovery_s = growth.take(month, kill=is_last)
        say(f"{month}: {growth.flights:,} flights")
        if growth.flights >= to_measure[0]:
            size = to_measure.pop(0)
            growth.measure(recovery_s, verify=size / 1e6 in VERIFIED or size == flights)
            say(f"measured: {growth.measured['sizes'][-1]}")


def growth_curves(flights: int, folder: Path) -> None:
    """Measure until there are so many flights, print the table, and write the curves.

    Raises ProgramFailed, OSError.
    """
    growth = Growth(folder)
    grow(growth, flights)
    print("\n".join(markdown(growth.measured)))
    (folder / "growth.svg").write_text(svg(growth.measured), "utf-8")
