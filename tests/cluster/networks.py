"""A network of its own for the engine of each node, which can be cut; Linux, and only for root.

Each engine runs in a network namespace with one address. A cable leads from it to one of two
bridges in a namespace between them, so nothing outside is reached or changed, and tests can run
twice at once. The services stay on loopback: they talk to their engines over Unix sockets.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backend.cluster.configuration import ENGINE, Host
from backend.cluster.engine import VARIABLE, program

LEFT, RIGHT = "left", "right"  # the bridges; all nodes begin at the left one

# A name for the engine of a node that enters the namespace which is called like its folder.
_WRAPPER = """\
#!/bin/sh
case "$1" in
start) exec nsenter --net="/run/netns/{prefix}$(basename "$(dirname "$3")")" {engine} "$@" ;;
*) exec {engine} "$@" ;;
esac
"""


def are_possible() -> bool:
    """Returns whether this process may make networks."""
    if os.geteuid() != 0 or None in {shutil.which("ip"), shutil.which("nsenter")}:
        return False
    name = f"try{os.getpid()}"
    if _ip("netns", "add", name, check=False):
        return False
    status = _ip("-n", name, "link", "add", LEFT, "type", "bridge", check=False)
    _ip("netns", "del", name)
    return status == 0


def _ip(*arguments: str, check: bool = True) -> int:
    return subprocess.run(["ip", *arguments], check=check, capture_output=not check).returncode


class Networks:
    """The networks of the nodes of a cluster in `folder`."""

    def __init__(self, folder: Path, hosts: list[Host]) -> None:
        self._prefix = f"fc{os.getpid()}x"
        self._hub = f"{self._prefix}hub"
        self._hosts = hosts
        self._engine = folder / "cometbft"
        self._engine.write_text(_WRAPPER.format(prefix=self._prefix, engine=program()))
        self._engine.chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        """What makes the services start their engines in these networks."""
        return {VARIABLE: str(self._engine)}

    def make(self) -> None:
        """Make the namespaces, and lay the cables."""
        self.remove()  # what a killed process with this id has left
        _ip("netns", "add", self._hub)
        for bridge in (LEFT, RIGHT):
            _ip("-n", self._hub, "link", "add", bridge, "type", "bridge")
            _ip("-n", self._hub, "link", "set", bridge, "up")
        for host in self._hosts:
            own = self._prefix + host.name
            _ip("netns", "add", own)
            _ip(*("-n", self._hub, "link", "add", host.name, "type", "veth"), *_end(own))
            _ip("-n", own, "address", "add", f"{self._address(host)}/24", "dev", "cable")
            _ip("-n", own, "link", "set", "cable", "up")
            _ip("-n", own, "link", "set", "lo", "up")
            self.plug(host, LEFT)
            self.mend(host)

    def remove(self) -> None:
        """Remove the namespaces with all that is in them."""
        for path in Path("/run/netns").glob(f"{self._prefix}*"):
            _ip("netns", "del", path.name)

    def configure(self, folder: Path) -> None:
        """Let the engines know their addresses in these networks."""
        ports = {str(host.peer_port): self._address(host) for host in self._hosts}
        for host in self._hosts:
            path = folder / host.name / ENGINE / "config" / "config.toml"
            text = re.sub(
                r"127\.0\.0\.1:(\d+)",
                lambda match: f"{ports[match[1]]}:{match[1]}",
                path.read_text(encoding="utf-8"),
            )
            path.write_text(text, encoding="utf-8")

    def entering(self, host: Host) -> list[str]:
        """Return how a command begins that runs in the network of a node."""
        return ["nsenter", f"--net=/run/netns/{self._prefix}{host.name}"]

    def cut(self, host: Host) -> None:
        """Let nothing through between a node and all others."""
        _ip("-n", self._hub, "link", "set", host.name, "down")

    def mend(self, host: Host) -> None:
        """Let everything through again."""
        _ip("-n", self._hub, "link", "set", host.name, "up")

    def plug(self, host: Host, bridge: str) -> None:
        """Connect a node with those at this bridge alone."""
        _ip("-n", self._hub, "link", "set", host.name, "master", bridge)

    def _address(self, host: Host) -> str:
        return f"10.0.0.{1 + self._hosts.index(host)}"


def _end(namespace: str) -> tuple[str, ...]:
    return ("peer", "name", "cable", "netns", namespace)


@contextmanager
def networks(folder: Path, hosts: list[Host]) -> Iterator[Networks | None]:
    """Networks while the block lasts; None where they are not possible."""
    if not are_possible():
        yield None
        return
    networks = Networks(folder, hosts)
    try:
        networks.make()
        yield networks
    finally:
        networks.remove()
