"""File systems that are made for a scenario, mounted, and given back."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.api.processes import ran, until


def call(*command: str | Path) -> None:
    """Run a program. Raises CalledProcessError, with what it said, if it does not end well."""
    subprocess.run(command, check=True, capture_output=True)


def unmount(disk: Path) -> None:
    """Unmount; processes that were just killed may hold the file system for another moment.

    So may the views of the disk that confined processes have had. If it is in a file, that is free
    afterwards: else it would be mounted again as it was.
    """
    image = _image_of(disk)
    until(
        lambda: subprocess.run(["umount", disk], capture_output=True, check=False).returncode == 0
    )
    until(lambda: not image or image not in _images().values())


def _image_of(disk: Path) -> str:
    """The file that holds a mounted file system; "" if it is in none."""
    mounts = [line.split()[:2] for line in Path("/proc/self/mounts").read_text().splitlines()]
    names = [Path(source).name for source, point in mounts if point == str(disk)]
    return _images().get(names[-1], "") if names else ""


def _images() -> dict[str, str]:
    """Loop device -> the file that it shows."""
    images = {}
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):  # it has just been given back
            images[path.parts[3]] = path.read_text().strip()
    return images


@contextmanager
def mounted(disk: Path, *arguments: str | Path) -> Iterator[Path]:
    """A file system that `mount` gets with these arguments, at the new folder `disk`."""
    disk.mkdir(parents=True, exist_ok=True)
    call("mount", *arguments, disk)
    try:
        yield disk
    finally:
        unmount(disk)


@contextmanager
def read_only(folder: Path, point: Path) -> Iterator[Path]:
    """The folder as a medium that refuses every change, at `point`. Skips a test without root."""
    point.mkdir()
    try:
        for options in (["--bind", folder], ["-o", "remount,bind,ro"]):
            done = ran("mount", *options, point)
            if done.returncode:
                pytest.skip(f"a read-only medium cannot be made here: {done.stderr.strip()}")
        yield point
    finally:
        subprocess.run(["umount", "--lazy", point], capture_output=True, check=False)
