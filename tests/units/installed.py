"""Service, miner and pages as an installation runs them: each its unit, without a supervisor."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import requests

from tests.api.processes import environment, free_port, is_answered, started, until
from tests.units import Confinement, confined, unit

COMMANDS = {
    name: tuple(unit(name).last("ExecStart").split()[1:])
    for name in ("miner", "backend", "cosign", "frontend")
}
SETTINGS = {"FLIGHTCHAIN_MINE_INTERVAL_S": "0.3", "FLIGHTCHAIN_WORKERS": "2"}


@dataclass
class Installed:
    """The running units of a chain; `logs` holds what each said, as NAME.log."""

    url: str
    pages_url: str
    logs: Path
    units: dict[str, Confinement] = field(default_factory=dict)
    session: requests.Session = field(default_factory=requests.Session)

    def status(self, url: str) -> int:
        """The status of an answer; 0 if there is none."""
        try:
            return self.session.get(url, timeout=30).status_code
        except requests.RequestException:
            return 0

    def log(self) -> str:
        """Returns what the units said."""
        return "\n".join(path.read_text() for path in sorted(self.logs.glob("*.log")))

    def is_complete(self) -> bool:
        """Returns whether the service is ready and the pages are served."""
        asked = f"{self.url}/health/ready", f"{self.pages_url}/health/live"
        return all(map(is_answered, asked))


@contextmanager
def installed(folder: Path, **settings: str) -> Iterator[Installed]:
    """Start the units over the chain in `folder`, and wait until they answer."""
    ports = {name: str(free_port()) for name in ("FLIGHTCHAIN_PORT", "FLIGHTCHAIN_FRONTEND_PORT")}
    address = "http://127.0.0.1:"
    run = folder.with_name(folder.name + ".run")
    run.mkdir()
    site = Installed(
        address + ports["FLIGHTCHAIN_PORT"], address + ports["FLIGHTCHAIN_FRONTEND_PORT"], run
    )
    site.session.trust_env = False
    with ExitStack() as stack:
        for name, arguments in COMMANDS.items():
            writable = [run] if name == "frontend" else [run, folder]
            site.units[name] = stack.enter_context(confined(name, *writable))
            given = {**SETTINGS, **ports, **settings, **_run_folders(run)}
            command = site.units[name].python(*arguments)
            process = started(command, run / f"{name}.log", environment(folder, **given))
            stack.callback(_ended, process)
        try:
            until(site.is_complete)
        except AssertionError as error:
            raise AssertionError(f"the units do not answer\n{site.log()}") from error
        yield site


def _run_folders(run: Path) -> Mapping[str, str]:
    return {"FLIGHTCHAIN_METRICS_DIR": str(run), "TMPDIR": str(run)}


def _ended(process: "subprocess.Popen[bytes]") -> None:
    """Stop a unit as systemd does, and wait for it."""
    process.terminate()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise
