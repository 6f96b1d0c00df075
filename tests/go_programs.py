"""Programs in Go that others wrote, or that use what others wrote, built once and kept."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.api import processes

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "flightchain-tests"


def ran(
    command: list[str], cwd: Path = processes.ROOT, text: str | None = None, **more: str
) -> "subprocess.CompletedProcess[str]":
    """Run a command. text: what it reads. more: added to its environment."""
    environment = {**os.environ, **more}
    return processes.ran(*command, cwd=cwd, env=environment, text=text, timeout_s=600)


def go() -> str:
    """The compiler; skips the test if there is none."""
    path = shutil.which("go")
    if path is None:
        pytest.skip("Go is not installed")
    return path


def installed(package: str) -> str:
    """The program of a package, such as `example.org/cmd/name@v1.0.0`, from the module proxy."""
    path, _, version = package.partition("@")
    name = path.rpartition("/")[2]
    program = CACHE / f"{name}-{version}"
    if not program.exists():
        done = ran([go(), "install", package], GOBIN=str(CACHE))
        if done.returncode != 0:
            pytest.skip(f"{package} cannot be built: {done.stderr[-300:]}")
        (CACHE / name).replace(program)
    return str(program)


def built(source: Path, module: str, folder: Path) -> str:
    """The program of one source file, which needs one module, such as `example.org/x@v1.0.0`.

    folder: an empty one, where it is built.
    """
    shutil.copy(source, folder / "main.go")
    for command in (["mod", "init", "checking"], ["get", module], ["build", "-o", "program"]):
        done = ran([go(), "-C", str(folder), *command], GOFLAGS="-mod=mod")
        if done.returncode != 0:
            pytest.skip(f"{source} cannot be built with {module}: {done.stderr[-300:]}")
    return str(folder / "program")
