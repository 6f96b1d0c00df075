"""Starts processes as systemd starts our units: with their filters and below their limits.

What holds is read from the units in `scripts/deploy`, and what a set such as `@resources` means
from `systemd-analyze`. Each process gets the filters of system calls and of address families, no
capabilities, and no memory that can be written and executed. As root it also gets the unit's
`MemoryMax` and `TasksMax`, a read-only view of the disk but for the folders of the unit, a /proc
with processes only, and no network if the unit has none.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path

import pytest

from tests.units.memory import ControlGroup, reason_without_groups

DEPLOY = Path(__file__).parents[2] / "scripts" / "deploy"
LAUNCHER = Path(__file__).with_name("confine.py")
UNITS = ("backend", "miner", "cosign", "frontend", "verify", "backup")
SIZES = {"K": 2**10, "M": 2**20, "G": 2**30}

_numbers = count(1)


@dataclass(frozen=True)
class Unit:
    """What the files of a unit say, by directive; a line without a value forgets those before."""

    name: str
    directives: dict[str, list[str]]

    def words(self, directive: str) -> list[str]:
        """All words of a directive that may be given several times."""
        return " ".join(self.directives.get(directive, [])).split()

    def last(self, directive: str) -> str:
        """Returns what a directive says that counts once."""
        return self.directives[directive][-1]

    @property
    def memory_bytes(self) -> int:
        """Memory that all processes of the unit may have together."""
        text = self.last("MemoryMax")
        return int(text[:-1]) * SIZES[text[-1]]

    def allowed_calls(self) -> list[str]:
        """Names of the system calls that the filter lets through, for any processor."""
        allowed: set[str] = set()
        for line in self.directives["SystemCallFilter"]:
            calls = {call for word in line.removeprefix("~").split() for call in _calls(word)}
            allowed = allowed - calls if line.startswith("~") else allowed | calls
        return sorted(allowed)


def unit(name: str, *drop_ins: str) -> Unit:
    """The unit `flightchain-NAME.service` with what holds for all units and with `drop_ins`."""
    files = (f"flightchain-{name}.service", "flightchain-.service.d/hardening.conf", *drop_ins)
    directives: dict[str, list[str]] = {}
    for file in files:
        for line in (DEPLOY / file).read_text(encoding="utf-8").splitlines():
            if "=" in line and not line.startswith("#"):
                directive, _, value = line.partition("=")
                values = directives.setdefault(directive, [])
                values.append(value) if value else values.clear()
    return Unit(name, directives)


@cache
def _calls(word: str) -> frozenset[str]:
    """The system calls that a word of a filter names; sets are those of this machine's systemd."""
    if not word.startswith("@"):
        return frozenset([word])
    command = ["systemd-analyze", "--no-pager", "syscall-filter", word]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    words = [line.strip() for line in listed.splitlines()[1:]]
    named = [word for word in words if word and not word.startswith("#")]
    return frozenset(call for word in named for call in _calls(word))


def reason_without_filters() -> str:
    """Why no process can be started with a filter here; "" if one can."""
    if sys.platform != "linux":
        return "filters of system calls are Linux's"
    with suppress(OSError, subprocess.CalledProcessError):
        return "" if _calls("@resources") else "systemd-analyze knows no system calls"
    return "there is no systemd-analyze, which knows what @resources means"


@dataclass(frozen=True)
class Confinement:
    """A unit whose processes are started here; all that were share one limit of memory."""

    unit: Unit
    group: ControlGroup | None  # None without root
    _specification: str

    def command(self, *arguments: str) -> list[str]:
        """A command that confines itself and then becomes `arguments`."""
        return [sys.executable, "-I", str(LAUNCHER), self._specification, *arguments]

    def python(self, *arguments: str) -> list[str]:
        """The same for an argument list of Python."""
        return self.command(sys.executable, *arguments)

    @property
    def kills(self) -> int:
        """Returns how many processes were killed because the limit of memory was reached."""
        return 0 if self.group is None else self.group.kills()


@contextmanager
def confined(name: str, *writable: Path, drop_ins: tuple[str, ...] = ()) -> Iterator[Confinement]:
    """Start processes as the unit NAME; those left at the end are killed.

    writable: folders that the unit may write to. Skips the test where no filter can be had; without
    root only the filters hold. `limited` skips there, too.
    """
    if reason := reason_without_filters():
        pytest.skip(reason)
    subject = unit(name, *drop_ins)
    group = None
    if not reason_without_groups():
        label = f"flightchain-test-{os.getpid()}-{next(_numbers)}-{name}"
        group = ControlGroup(label, subject.memory_bytes, int(subject.last("TasksMax")))
    try:
        yield Confinement(subject, group, _specification(subject, group, writable))
    finally:
        if group is not None:
            group.remove()


def require_limits() -> None:
    """Skip the test, with the reason, where no limit of memory can be set."""
    if reason := reason_without_filters() or reason_without_groups():
        pytest.skip(reason)


def _specification(subject: Unit, group: ControlGroup | None, writable: tuple[Path, ...]) -> str:
    return json.dumps(
        {
            "calls": subject.allowed_calls(),
            "families": subject.words("RestrictAddressFamilies"),
            "refuses_executable_memory": subject.last("MemoryDenyWriteExecute") == "yes",
            "groups": [] if group is None else group.files_to_join(),
            "writable": [str(path.resolve()) for path in writable],
            "has_network": subject.directives.get("PrivateNetwork", ["no"])[-1] == "no",
        }
    )
