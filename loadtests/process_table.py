"""Looks processes up in /proc: their families, and which of them listens at a port. Linux only."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from loadtests.grouping import grouped

_LISTENING = "0A"  # the state of a socket


def family(pid: int) -> list[int]:
    """Return the ids of `pid` and of all its descendants, parents first."""
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    children = grouped(pids, parent_of)
    members = [pid]
    for member in members:  # it grows while it is walked through
        members += sorted(children.get(member, []))
    return members


def listening(port: int) -> int | None:
    """Return the process that listens at a port, the parent of those that share it.

    None is returned for processes of other users, whose sockets are not shown. Source: proc(5),
    /proc/net/tcp and /proc/pid/fd.
    """
    lines = [fields for name in ("tcp", "tcp6") for fields in _tcp_fields(name)]
    sockets = {
        f"socket:[{fields[9]}]"
        for fields in lines
        if fields[3] == _LISTENING and fields[1].endswith(f":{port:04X}")
    }
    pids = {
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and sockets.intersection(_open_files(entry))
    }
    return next((pid for pid in sorted(pids) if parent_of(pid) not in pids), None)


def _tcp_fields(name: str) -> list[list[str]]:
    table = Path("/proc/net") / name  # there is no tcp6 without IPv6
    lines = table.read_text("ascii").splitlines()[1:] if table.exists() else []
    return [line.split() for line in lines]


def _open_files(process: Path) -> Iterator[str]:
    with suppress(OSError):  # it has ended, or is another user's
        for file in (process / "fd").iterdir():
            with suppress(OSError):
                yield str(file.readlink())


def stat_fields(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat after the name, state first; none if it has ended."""
    try:
        # The name in parentheses may hold anything, so fields are counted from its end.
        return file_of(pid, "stat").rpartition(")")[2].split()
    except OSError:
        return []


def parent_of(pid: int) -> int | None:
    """Return the parent's process id; None if the process has ended."""
    fields = stat_fields(pid)
    return int(fields[1]) if fields else None


def file_of(pid: int, name: str) -> str:
    """Return a file of /proc/PID as text. Raises OSError if the process has ended."""
    return Path(f"/proc/{pid}/{name}").read_text(encoding="utf-8", errors="replace")
