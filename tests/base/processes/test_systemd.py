"""What systemd is told, on a real datagram socket as systemd has one."""

import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from backend.base.processes.systemd import Notifier
from tests.api.processes import begun, ending, environment, free_port, started

pytestmark = pytest.mark.slow

QUIET_S = 0.05


class Listener:
    """The socket of a stand-in for systemd."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)

    def heard(self, within_s: float = QUIET_S) -> str:
        """Returns the next message, "" if none comes in time."""
        self.socket.settimeout(within_s)
        try:
            return self.socket.recv(4096).decode()
        except TimeoutError:
            return ""


@pytest.fixture(params=["path", "abstract"])
def named(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Listener]]:
    """Yield NOTIFY_SOCKET and who listens there, for both kinds of name."""
    name = f"@flightchain-{os.getpid()}" if request.param == "abstract" else str(tmp_path / "s")
    listener = Listener("\0" + name[1:] if name[0] == "@" else name)
    yield name, listener
    listener.socket.close()


@pytest.fixture
def reports() -> list[str]:
    return []


def test_it_says_when_it_begins_and_ends(named: tuple[str, Listener], reports: list[str]) -> None:
    name, listener = named
    notifier = Notifier({"NOTIFY_SOCKET": name}, reports.append)
    notifier.ready()
    assert listener.heard() == "READY=1"
    notifier.alive()  # no watchdog is on
    assert listener.heard() == ""
    notifier.stopping()
    assert listener.heard() == "STOPPING=1"
    assert reports == []


def test_it_pings_twice_in_the_time_of_the_watchdog_however_often_it_is_called(
    named: tuple[str, Listener], reports: list[str]
) -> None:
    name, listener = named
    pid = str(os.getpid())
    watched = {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "400000", "WATCHDOG_PID": pid}
    notifier = Notifier(watched, reports.append)
    notifier.alive()
    assert listener.heard() == ""  # it is not ready yet
    notifier.ready()
    assert listener.heard() == "READY=1"
    pings, until = 0, time.monotonic() + 1.05
    while time.monotonic() < until:
        notifier.alive()
        pings += listener.heard(0.01) == "WATCHDOG=1"
    assert pings in {4, 5, 6}  # every 0.2 s; a busy machine may miss one
    assert reports == []


def test_a_watchdog_of_another_process_is_not_ours(
    named: tuple[str, Listener], reports: list[str]
) -> None:
    name, listener = named
    watched = {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}
    notifier = Notifier(watched, reports.append)
    notifier.ready()
    assert listener.heard() == "READY=1"
    notifier.alive()
    assert listener.heard() == ""


def test_without_systemd_nothing_happens(reports: list[str]) -> None:
    notifier = Notifier({"WATCHDOG_USEC": "1000"}, reports.append)
    notifier.ready()
    notifier.alive()
    notifier.stopping()
    assert reports == []


def test_nobody_listening_is_reported_and_does_no_harm(tmp_path: Path, reports: list[str]) -> None:
    Notifier({"NOTIFY_SOCKET": str(tmp_path / "gone")}, reports.append).ready()
    assert reports == ["cannot tell systemd READY=1: No such file or directory"]


def test_a_listener_that_reads_nothing_does_not_hold_us_up(
    named: tuple[str, Listener], reports: list[str]
) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": named[0]}, reports.append)
    for _ in range(10_000):
        notifier.ready()
        if reports:
            break
    assert reports == ["cannot tell systemd READY=1: Resource temporarily unavailable"]


def test_the_miner_says_ready_then_alive_then_stopping(tmp_path: Path) -> None:
    listener = Listener(str(tmp_path / "s"))
    settings = {
        "NOTIFY_SOCKET": str(tmp_path / "s"),
        "WATCHDOG_USEC": "400000",
        "FLIGHTCHAIN_DIFFICULTY_BITS": "4",
    }
    with closing(listener.socket), begun(tmp_path / "chain", "mine", **settings) as miner:
        assert listener.heard(20) == "READY=1"
        assert (tmp_path / "chain" / "blocks").is_dir()  # it has put the files right before
        assert [listener.heard(5) for _ in range(3)] == ["WATCHDOG=1"] * 3
        os.kill(miner.pid, signal.SIGSTOP)
        time.sleep(0.3)
        while listener.heard():
            pass
        assert listener.heard(0.6) == ""  # a miner that stands still is silent
        os.kill(miner.pid, signal.SIGCONT)
        assert listener.heard(5) == "WATCHDOG=1"
        miner.send_signal(signal.SIGTERM)
        assert miner.wait(60) == 0
        messages = {listener.heard() for _ in range(20)}
        assert messages - {"", "WATCHDOG=1"} == {"STOPPING=1"}


def test_the_pages_say_ready_when_they_have_their_port(tmp_path: Path) -> None:
    """So systemd, and with it the installer, notices that another program has it."""
    listener, port = Listener(str(tmp_path / "s")), free_port()
    named = {"NOTIFY_SOCKET": str(tmp_path / "s"), "FLIGHTCHAIN_FRONTEND_PORT": port}
    env = environment(tmp_path / "chain", **named)
    pages = started([sys.executable, "-m", "frontend"], tmp_path / "log", env)
    with closing(listener.socket), ending(pages):
        assert listener.heard(20).startswith("READY=1\n")
        socket.create_connection(("127.0.0.1", port)).close()
