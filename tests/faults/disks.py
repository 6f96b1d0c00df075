"""File systems that are made for a scenario, mounted, and given back."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.api.processes import until


def call(*command: str | Path) -> None:
    """Run a program. Raises CalledProcessError, with what it said, if it does not end well."""
    subprocess.run(command, check=True, capture_output=True)


def unmount(disk: Path) -> None:
    """Unmount; processes that were just killed may hold the file system for another moment."""
    until(
        lambda: subprocess.run(["umount", disk], capture_output=True, check=False).returncode == 0
    )


@contextmanager
def mounted(disk: Path, *arguments: str | Path) -> Iterator[Path]:
    """A file system that `mount` gets with these arguments, at the new folder `disk`."""
    disk.mkdir(parents=True, exist_ok=True)
    call("mount", *arguments, disk)
    try:
        yield disk
    finally:
        unmount(disk)
