"""Samples a worker of the service with py-spy, and tells from its stacks what it was doing.

py-spy reads the memory of the process from outside, which runs its usual code but is stopped for a
moment by each sample. It needs the right to trace other processes (ptrace).

A collapsed stack is a line `frame;frame;… count`, the outermost frame first, as Brendan Gregg's
flame graphs take them and py-spy's `-f raw` writes them: `accept (backend/mempool/mempool.py:94)`.
A thread without any Python frame, as at its very end, has a line without frames. How stacks count
as activities stands in the report (`loadtests.experiments.profile`).
"""

import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from loadtests.processes import PROJECT, ProgramFailed, plain_environment

OTHER = "other"
PERMISSION = (
    "py-spy may not trace the process {pid}. Run the lab as root; or allow tracing until the next "
    "start of the machine: sudo sysctl kernel.yama.ptrace_scope=0; or start the container with "
    "--cap-add SYS_PTRACE"
)
_REFUSED = ("permission denied", "operation not permitted", "eperm", "ptrace")
_SAMPLES = re.compile(r"Samples: (\d+) Errors: (\d+)")
_LINE_NUMBER = re.compile(r":\d+\)$")
_PATIENCE = 20  # times the duration, because a busy machine delays py-spy
_LEAST_PATIENCE_S = 60.0

Frames = tuple[str, ...]  # of a stack, without line numbers, outermost first


class Pattern(NamedTuple):
    """Matches frames of an activity by regular expressions from the function's name; "": none.

    innermost: for the innermost frame alone, which is the one at work.
    """

    activity: str
    frame: str = ""
    innermost: str = ""


VALIDATION, DUPLICATES, HASHING = "validation", "looking for duplicates", "canonical bytes and hash"
_LOG, _LOCKS, _SYNCING = "mempool: log, ids and keys", "mempool: locks", "mempool: syncing the disk"
MEMPOOL = (_LOG, _LOCKS, _SYNCING, DUPLICATES)
WORK = (
    Pattern(
        "HTTP: parsing the request",
        r".* \(backend/serving/environs\.py"
        r"|(Http\w+|Connection)\.(_parse|_feed|on_(url|h|b|m))",
    ),
    Pattern(
        "HTTP: the loop, receiving and sending",
        r"(.* \((uvicorn/|backend/serving/(client_bounds|connection|front|worker)\.py))"
        r"|\w*Selector\w*\.\w+ \(selectors",
        r"UvicornWorker\.run \(",
    ),
    Pattern(
        "handing requests to threads",
        r".* \(backend/serving/lanes\.py",
        r".* \((concurrent/futures/|threading\.py|queue\.py)",
    ),
    Pattern(
        "routing and calling: Flask, WSGI",
        r".* \((flask/|werkzeug/|blinker/|backend/api/routes\.py)",
    ),
    Pattern(
        "counting for /metrics", r".* \(backend/((api/)?metrics|api/(observing|reception))\.py\)"
    ),
    Pattern("reading the JSON", r".* \((json/|backend/api/reading\.py)"),
    Pattern(VALIDATION, r".* \(backend/chain/(flight|fields)\.py\)|sent_flight \(backend/"),
    Pattern(
        DUPLICATES,
        r"_others \(|Mempool\._(records_of|of_leg)|.* \(backend/(index/|mempool/duplicates\.py\))",
    ),
    Pattern(HASHING, r".* \(backend/chain/(transaction|canonical|merkle)\.py\)"),
    Pattern(_LOCKS, r"Mempool\.(exclusive|locked) \(|IdLock\.|lock_within \("),
    Pattern(_SYNCING, r"sync(_folder)? \(backend/base/files|GroupCommit\."),
    Pattern(_LOG, r".* \(backend/(mempool/\w+|base/files)\.py\)"),
    Pattern("waiting for a block: looking again", r"Submitter\._wait_until_mined \("),
    Pattern(
        "making the answer",
        r".* \(backend/(api/writing|api/transaction_routes|ledger/\w+)\.py",
    ),
)
"""Patterns of work, for stacks of threads that hold Python's lock. The first match counts."""


def stacks(text: str) -> Counter[Frames]:
    """Return how often each stack of a file was seen. Raises ValueError for other lines."""
    counts: Counter[Frames] = Counter()
    for line in filter(None, text.splitlines()):
        frames, blank, count = line.rpartition(" ")
        if not blank or not count.isdigit():
            raise ValueError(f"{line[:80]!r} is not a collapsed stack: frame;frame;… count")
        named = (_LINE_NUMBER.sub(")", frame) for frame in frames.split(";") if frame)
        counts[tuple(named)] += int(count)
    return counts


def activity(frames: Frames, patterns: Iterable[Pattern]) -> str:
    """Return the activity that a stack shows; `OTHER` if no pattern matches any of its frames."""
    for depth, frame in enumerate(reversed(frames)):
        for pattern in patterns:
            expressions = (pattern.frame, pattern.innermost) if depth == 0 else (pattern.frame,)
            if any(re.match(expression, frame) for expression in filter(None, expressions)):
                return pattern.activity
    return OTHER


def shares(stack_counts: Counter[Frames], patterns: Iterable[Pattern]) -> Mapping[str, float]:
    """Return the share of each activity in all samples, 0 to 1, the largest first."""
    counts: Counter[str] = Counter()
    for frames, count in stack_counts.items():
        counts[activity(frames, patterns)] += count
    largest_first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {name: count / counts.total() for name, count in largest_first}


def record(pid: int, path: Path, *options: str, rate_hz: int, duration_s: float) -> tuple[int, int]:
    """Sample a process for a time and write the stacks to `path`.

    options: of `py-spy record`, such as its format. Returns how many stacks were recorded, and how
    many attempts failed. Raises ProgramFailed if py-spy is missing or may not trace, or the process
    has ended.
    """
    command = [_program(), "record", "--pid", str(pid), "--rate", str(rate_hz)]
    command += ["--duration", str(round(duration_s)), "--output", str(path), *options]
    try:
        done = subprocess.run(  # noqa: S603  our own command
            command,
            cwd=PROJECT,
            env=plain_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=max(_LEAST_PATIENCE_S, _PATIENCE * duration_s),
        )
    except subprocess.TimeoutExpired:
        raise ProgramFailed(f"py-spy did not end; it was to run for {duration_s:g} s") from None
    output = done.stdout + done.stderr
    match = _SAMPLES.search(output)
    if done.returncode != 0 or match is None or not path.exists():
        if any(word in output.lower() for word in _REFUSED):
            raise ProgramFailed(PERMISSION.format(pid=pid))
        raise ProgramFailed(f"py-spy could not sample the process {pid}: {output.strip()[-300:]}")
    return int(match[1]), int(match[2])


def _program() -> str:
    beside = Path(sys.executable).with_name("py-spy")
    if path := str(beside) if beside.exists() else shutil.which("py-spy"):
        return path
    raise ProgramFailed("py-spy is missing; scripts/lab installs it")
