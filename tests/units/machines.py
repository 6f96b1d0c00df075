"""Debian machines that boot in systemd-nspawn, with the project and its packages, but no network.

Debian comes from where this machine's apt gets it, and Python's packages from where its pip does.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.api.processes import ROOT, ran, until

PACKAGES = "systemd,systemd-sysv,dbus,python3,python3-venv"
NEEDED = {"debootstrap": "debootstrap", "systemd-nspawn": "systemd-container", "git": "git"}
BOOTED_WITHIN_S, MADE_WITHIN_S = 120.0, 3600.0
REQUIREMENTS = ("requirements.txt", "frontend/requirements.txt")


class Release(NamedTuple):
    """A release of Debian, and the version of Python in it."""

    name: str
    python: str


RELEASES = (Release("bookworm", "3.11"), Release("trixie", "3.13"))


def reason_without_machines() -> str:
    """Why no machine can be booted here; "" if one can."""
    if os.geteuid() != 0:
        return "only root may boot machines"
    missing = [package for command, package in NEEDED.items() if shutil.which(command) is None]
    return f"on Debian: apt install {' '.join(missing)}" if missing else ""


def debian_in(folder: Path, release: Release) -> None:
    """Install the release into a new folder."""
    listing = ("apt-get", "indextargets", "--format", "$(COMPONENT) $(REPO_URI)")
    lines = _output(*listing, "Created-By: Packages").splitlines()
    mirror = next(line.split()[1] for line in lines if line.startswith("main "))
    options = ("--variant=minbase", f"--include={PACKAGES}")
    _output("debootstrap", *options, release.name, str(folder), mirror)


def project_in(folder: Path, commit: str) -> None:
    """Copy the project as it is in the commit, or as it is now for an empty name."""
    folder.mkdir()
    if commit:
        archive = folder.with_suffix(".tar")
        _output("git", "archive", "--output", str(archive), commit)
        _output("tar", "-C", str(folder), "-xf", str(archive))
        return
    for name in _output("git", "ls-files", "-co", "--exclude-standard").splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


def last_release() -> str:
    """The commit of the last release; "" if this copy of the project does not have it."""
    tag = ran("git", "describe", "--tags", "--abbrev=0").stdout.strip()
    for name in (tag, "ffce160"):
        if name and ran("git", "cat-file", "-e", f"{name}^{{commit}}").returncode == 0:
            return name
    return ""


def wheels_in(folder: Path, project: Path, release: Release) -> None:
    """Download the packages that the project needs for the Python of the release."""
    for file in REQUIREMENTS:
        options = ["--no-deps", "--require-hashes", "--only-binary=:all:", "--python-version"]
        command = [sys.executable, "-m", "pip", "download", *options, release.python]
        _output(*command, "--dest", str(folder), "--requirement", str(project / file))


class Machine:
    """A machine that runs, with `folders` of this machine at their names below /mnt."""

    def __init__(self, disk: Path, log: Path, folders: dict[str, Path]) -> None:
        self._disk, self._log, self._folders = disk, log, folders
        self._process: subprocess.Popen[bytes] | None = None

    def boot(self) -> None:
        """Start it, and wait until it says that its services have started."""
        binds = [f"--bind-ro={path}:/mnt/{name}" for name, path in self._folders.items()]
        name = f"flightchain-test-{os.getpid()}-{self._disk.name}"
        options = ["--quiet", "--boot", "--private-network", "--register=no", "--keep-unit"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                ["systemd-nspawn", *options, "--machine", name, *binds, "-D", str(self._disk)],
                env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        until(self._is_booted, BOOTED_WITHIN_S)

    def _leader(self) -> int:
        """Its first process, as this machine counts processes; 0 while there is none."""
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text(errors="replace")[-3000:]
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(children[0]) if children else 0

    def _is_booted(self) -> bool:
        if not self._leader():
            return False
        state = self.run("systemctl", "is-system-running").stdout.strip()
        return state in {"running", "degraded"}

    def run(self, *command: str, given: str = "") -> "subprocess.CompletedProcess[str]":
        """Run a command in it, as root, to its end."""
        inside = ["nsenter", "--target", str(self._leader()), "--all", "--wdns=/"]
        plain = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        return ran(*inside, *command, env=plain, text=given, timeout_s=MADE_WITHIN_S)

    def must(self, *command: str, given: str = "") -> str:
        """The output of a command that must succeed."""
        done = self.run(*command, given=given)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def statuses(self, requests: Sequence[tuple[str, str, str, str]]) -> list[int]:
        """The statuses of the answers to requests (method, URL, content type, body)."""
        statuses: list[int] = json.loads(
            self.must("python3", "-c", ASKING, given=json.dumps(requests))
        )
        return statuses

    def stop(self) -> None:
        """Shut it down as a power button does, and wait until it is off."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(BOOTED_WITHIN_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


ASKING = """
import json, sys, urllib.error, urllib.request

def status(method, url, kind, body):
    request = urllib.request.Request(url, body.encode() or None, method=method)
    if body:
        request.add_header("Content-Type", kind)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.read()
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0

print(json.dumps([status(*request) for request in json.load(sys.stdin)]))
"""


@contextmanager
def machine(disk: Path, log: Path, folders: dict[str, Path]) -> Iterator[Machine]:
    """A machine that has booted."""
    machine = Machine(disk, log, folders)
    try:
        machine.boot()
        yield machine
    finally:
        machine.stop()


def _output(*command: str) -> str:
    done = ran(*command, timeout_s=MADE_WITHIN_S)
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout
