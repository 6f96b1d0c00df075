"""Becomes another program, after it has given up what a unit of systemd may not do.

usage: python confine.py SPECIFICATION PROGRAM [ARGUMENT...]

The specification is JSON, made by `tests.units`. libseccomp makes the filters, as for systemd.
"""

import ctypes
import errno
import json
import os
import sys
from pathlib import Path

ALLOW, REFUSE = 0x7FFF0000, 0x00050000  # SECCOMP_RET_ALLOW and _ERRNO, to which the number is added
NO_NEW_PRIVILEGES, DROP_FROM_BOUNDS, REFUSE_EXECUTABLE_MEMORY = 38, 24, 65  # of prctl(2)
NEW_MOUNTS, NEW_NETWORK = 0x00020000, 0x40000000  # of unshare(2)
BIND, PRIVATE, RECURSIVE, READ_ONLY = 4096, 1 << 18, 16384, 1
DETACH = 2  # of umount2(2)
HERE, ALL_BELOW = -100, 0x8000
EQUAL = 4  # SCMP_CMP_EQ
MOST_FAMILIES = 46  # AF_MAX of Linux 6
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}

libc = ctypes.CDLL(None, use_errno=True)


class Comparison(ctypes.Structure):
    """Compares an argument of a call with a number (struct scmp_arg_cmp)."""

    _fields_ = [
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("number", ctypes.c_uint64),
        ("unused", ctypes.c_uint64),
    ]


class Attributes(ctypes.Structure):
    """What is to change of a mount (struct mount_attr)."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "user")]


def checked(result: int, what: str) -> None:
    """Raise OSError if a call of libc has failed."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def restrict_view(writable: list[str]) -> None:
    """Make the disk read-only but for folders and devices, and /proc show only processes."""
    checked(libc.unshare(NEW_MOUNTS), "unshare")
    checked(libc.mount(b"none", b"/", None, PRIVATE | RECURSIVE, None), "private mounts")
    leave_other_disks(writable)
    options = b"subset=pid,hidepid=invisible"
    checked(libc.mount(b"proc", b"/proc", b"proc", 0, options), "mount /proc")
    for path in writable:
        Path(path).mkdir(parents=True, exist_ok=True)
        checked(libc.mount(path.encode(), path.encode(), None, BIND, None), f"mount {path}")
    change_mounts("/", set_flags=READ_ONLY)
    for path in (*writable, "/dev"):
        change_mounts(path, clear_flags=READ_ONLY)


def leave_other_disks(writable: list[str]) -> None:
    """Unmount loop devices that hold none of the folders: their owners could not be rid of them."""
    for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines():
        source, point = line.split()[:2]
        is_needed = any(Path(folder).is_relative_to(point) for folder in writable)
        if source.startswith("/dev/loop") and not is_needed:
            libc.umount2(point.encode(), DETACH)


def change_mounts(path: str, set_flags: int = 0, clear_flags: int = 0) -> None:
    """Set or clear flags of the mount at `path` and of all below it."""
    attributes = Attributes(set_flags, clear_flags, 0, 0)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    result = libc.mount_setattr(HERE, path.encode(), ALL_BELOW, ctypes.byref(attributes), size)
    checked(result, f"change mounts below {path}")


def load(default: int, rules: list[tuple[int, str, list[Comparison]]]) -> None:
    """Load a filter: `default` for each call that no rule (verdict, call, comparisons) names."""
    seccomp = ctypes.CDLL("libseccomp.so.2")
    seccomp.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(seccomp.seccomp_init(ctypes.c_uint32(default)))
    for verdict, name, comparisons in rules:
        number = seccomp.seccomp_syscall_resolve_name(name.encode())
        array = (Comparison * len(comparisons))(*comparisons)
        if number != -1:  # else this libseccomp is too old to know it
            seccomp.seccomp_rule_add_array(
                context, ctypes.c_uint32(verdict), number, len(comparisons), array
            )
    if result := seccomp.seccomp_load(context):
        raise OSError(-result, f"seccomp: {os.strerror(-result)}")
    seccomp.seccomp_release(context)


def load_filters(calls: list[str], families: list[str]) -> None:
    """Refuse all calls but `calls`, and sockets of other address families than `families`."""
    allowed = {FAMILIES[name] for name in families}
    other = [Comparison(0, EQUAL, n, 0) for n in range(MOST_FAMILIES) if n not in allowed]
    refusal = REFUSE | errno.EAFNOSUPPORT
    load(ALLOW, [(refusal, "socket", [comparison]) for comparison in other])
    load(REFUSE | errno.EPERM, [(ALLOW, call, []) for call in calls])


def main() -> None:
    """Confine this process and become the program."""
    specification, *command = sys.argv[1:]
    unit = json.loads(specification)
    for path in unit["groups"]:
        Path(path).write_text("0", encoding="ascii")
    if os.geteuid() == 0:
        if not unit["has_network"]:
            checked(libc.unshare(NEW_NETWORK), "unshare the network")
        restrict_view(unit["writable"])
        for capability in range(64):
            libc.prctl(DROP_FROM_BOUNDS, capability, 0, 0, 0)  # fails where there is none
    checked(libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no new privileges")
    if unit["refuses_executable_memory"]:
        libc.prctl(REFUSE_EXECUTABLE_MEMORY, 1, 0, 0, 0)  # fails before Linux 6.3
    load_filters(unit["calls"], unit["families"])
    os.execv(command[0], command)


main()
