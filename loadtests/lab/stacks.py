"""Samples a worker of the service with py-spy, and tells from its stacks what it was doing.

py-spy reads the memory of the process from outside, so the process runs its usual code. Each sample
stops the process for a moment, so times must not be measured meanwhile. py-spy needs the right to
trace other processes (ptrace).

A collapsed stack is a line `frame;frame;… count`, the outermost frame first, as Brendan Gregg's
flame graphs take them and py-spy's `-f raw` writes them: `accept (backend/mempool/mempool.py:94)`.
A thread without any Python frame, as at its very end, has a line without frames. A stack counts as
the activity of its innermost frame that matches a pattern: the work of a library or of C code
belongs to the function that called it. So a share is a lower bound of its activity; stacks that
match no pattern count as `OTHER` and are not spread over the rest.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from loadtests.processes import PROJECT, ProgramFailed, plain_environment

OTHER = "other"
_LINE_NUMBER = re.compile(r":\d+\)$")


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack without line numbers, outermost frame first, and how often it was seen."""

    frames: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern for frames of an activity. frame: a regular expression, from the function's name.

    innermost: it matches only the innermost frame, which is the one at work or waiting.
    """

    activity: str
    frame: str
    innermost: bool = False


_IDLE = "no request to answer"
_LOCK = "waiting for a lock of the mempool"
WAITS = (
    Pattern(_IDLE, r"EpollSelector\.select \(|_worker \(concurrent/", innermost=True),
    Pattern(_IDLE, r"(Event|Condition)\.wait \(|SyncSoon\._run \(", innermost=True),
    Pattern("waiting for the disk", r"sync(_folder)? \(backend/storage/files", innermost=True),
    Pattern("waiting for the sync of others", r"GroupCommit\.sync \(", innermost=True),
    Pattern(_LOCK, r"Mempool\.(_lock_others_out|_copies_of|_write|find) \(", innermost=True),
    Pattern(_LOCK, r"(Mempool\.(exclusive|locked)|lock_within) \(", innermost=True),
    Pattern("waiting for a block", r"Accepting\._wait_until_mined \(", innermost=True),
)
"""Patterns of waiting, for stacks of all threads. Threads with other stacks work or want to."""

_PARSING, _LOOP = "HTTP: parsing the request", "HTTP: the loop, receiving and sending"
_ROUTING = "routing and calling: Flask, WSGI"
_HANDING, _MEMPOOL = "handing requests to threads", "mempool: log, ids and keys"
VALIDATION, DUPLICATES, HASHING = "validation", "looking for duplicates", "canonical bytes and hash"
MEMPOOL = (_MEMPOOL, "mempool: locks", "mempool: syncing the disk", DUPLICATES)
WORK = (
    Pattern("HTTP: writing the answer", r".* \(gunicorn/http/wsgi"),
    Pattern(_PARSING, r".* \(gunicorn/(http/|asgi/parser)|.* \(serving/(environs|parsing)\.py"),
    Pattern(_LOOP, r".* \(gunicorn/asgi/protocol|.* \(serving/connection\.py"),
    Pattern(_LOOP, r".* \(serving/worker\.py"),
    Pattern(_LOOP, r"\w*Selector\w*\.\w+ \(selectors"),
    Pattern(
        _LOOP,
        r"ThreadWorker\.(run|wait_for_and_dispatch_events|murder_\w+) \(",
        innermost=True,
    ),
    Pattern(_LOOP, r"ASGIWorker\.run \(", innermost=True),
    Pattern(_HANDING, r".* \(serving/lanes\.py|PollableMethodQueue\.defer"),
    Pattern(_HANDING, r".* \((concurrent/futures/|threading\.py|queue\.py)", innermost=True),
    Pattern(_HANDING, r"PollableMethodQueue\.", innermost=True),
    Pattern(
        _ROUTING, r".* \((flask|werkzeug|blinker)/|.* \(backend/(api/routes|service/front)\.py"
    ),
    Pattern(_ROUTING, r".* \(gunicorn/workers/", innermost=True),
    Pattern("counting for /metrics", r".* \(backend/(api/metrics|metrics)\.py\)"),
    Pattern("counting for /metrics", r".* \(backend/api/(observing|reception)\.py\)"),
    Pattern("reading the JSON", r".* \((json/|backend/api/reading\.py)"),
    Pattern(VALIDATION, r".* \(backend/chain/(flight|stored|fields)\.py\)"),
    Pattern(VALIDATION, r"sent_flight \(backend/"),
    Pattern(DUPLICATES, r"_others \(|Mempool\._cop(ies|y)_of|.* \(backend/index/"),
    Pattern(DUPLICATES, r".* \(backend/mempool/copies\.py\)"),
    Pattern(HASHING, r".* \(backend/chain/(transaction|canonical|merkle)\.py\)"),
    Pattern("mempool: locks", r"Mempool\.(exclusive|locked|_lock_others_out) \(|lock_within \("),
    Pattern("mempool: syncing the disk", r"sync(_folder)? \(backend/storage/files|GroupCommit\."),
    Pattern("mempool: syncing the disk", r"SyncSoon\."),
    Pattern(_MEMPOOL, r".* \(backend/(mempool/\w+|keys)\.py\)|.* \(backend/storage/files\.py\)"),
    Pattern("waiting for a block: looking again", r"Accepting\._wait_until_mined \("),
    Pattern(
        "making the answer",
        r".* \(backend/(api/answers|api/writing|api/transactions|ledger|accepting)\.py",
    ),
)
"""Patterns of work, for stacks of threads that hold Python's lock. The first match counts."""


def stacks(text: str) -> list[Stack]:
    """The stacks in the text of a file. Raises ValueError naming a line that is not a stack."""
    return [_stack(line) for line in text.splitlines() if line]


def _stack(line: str) -> Stack:
    frames, blank, count = line.rpartition(" ")
    if not blank or not count.isdigit():
        raise ValueError(f"{line[:80]!r} is not a collapsed stack: frame;frame;… count")
    named = (_LINE_NUMBER.sub(")", frame) for frame in frames.split(";") if frame)
    return Stack(tuple(named), int(count))


def activity(stack: Stack, patterns: Iterable[Pattern]) -> str:
    """The activity that the stack shows; `OTHER` if no pattern matches any of its frames."""
    known = [(one, re.compile(one.frame)) for one in patterns]
    for depth, frame in enumerate(reversed(stack.frames)):
        for one, expression in known:
            if expression.match(frame) and (depth == 0 or not one.innermost):
                return one.activity
    return OTHER


def shares(found: Iterable[Stack], patterns: Iterable[Pattern]) -> Mapping[str, float]:
    """Activity -> its share of all samples, 0 to 1, the largest first; empty without samples."""
    counts: dict[str, int] = {}
    for stack in found:
        name = activity(stack, patterns)
        counts[name] = counts.get(name, 0) + stack.count
    total = sum(counts.values())
    largest_first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {name: count / total for name, count in largest_first}


_SAMPLES = re.compile(r"Samples: (\d+) Errors: (\d+)")
_REFUSED = ("permission denied", "operation not permitted", "eperm", "ptrace")
_PATIENCE = 20  # times the duration, because a busy machine delays py-spy
_LEAST_PATIENCE_S = 60.0
PERMISSION = (
    "py-spy may not trace the process {pid}. Run the lab as root; or allow tracing until the next "
    "start of the machine: sudo sysctl kernel.yama.ptrace_scope=0; or start the container with "
    "--cap-add SYS_PTRACE"
)


@dataclass(frozen=True, slots=True)
class Recording:
    """The size of a recording: attempts to sample, recorded stacks, and attempts that failed."""

    looks: int
    samples: int
    errors: int


def record(
    pid: int, path: Path, *, form: str, rate_hz: int, duration_s: float, threads: str = "running"
) -> Recording:
    """Sample a process for a time and write the stacks to `path`.

    form: `raw` (collapsed stacks) or `flamegraph` (SVG). threads: `running`, those that the kernel
    runs; `lock`, the one that holds Python's lock; `all`. Raises ProgramFailed if py-spy is missing
    or may not trace, or the process has ended.
    """
    which = {"running": [], "lock": ["--gil"], "all": ["--idle"]}[threads]
    options = ["--pid", str(pid), "--rate", str(rate_hz), "--duration", str(round(duration_s))]
    command = [_program(), "record", *options, "--format", form, "--output", str(path), *which]
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
    said = done.stdout + done.stderr
    found = _SAMPLES.search(said)
    if done.returncode != 0 or found is None or not path.exists():
        raise ProgramFailed(_why(pid, said))
    return Recording(rate_hz * round(duration_s), int(found[1]), int(found[2]))


def _program() -> str:
    beside = Path(sys.executable).with_name("py-spy")
    found = str(beside) if beside.exists() else shutil.which("py-spy")
    if found is None:
        raise ProgramFailed("py-spy is missing; scripts/lab installs it")
    return found


def _why(pid: int, said: str) -> str:
    if any(word in said.lower() for word in _REFUSED):
        return PERMISSION.format(pid=pid)
    return f"py-spy could not sample the process {pid}: {said.strip()[-300:]}"
