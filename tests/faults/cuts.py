"""Cuts the power of a file system on which the service works.

The chain lies on a file system of its own, in a file. Its shutdown call drops everything that is
not on the disk yet, as a power cut does; then it is mounted again and its journal replayed. xfs
lets writers run into the cut, and on for a moment, as when a disk drops out. On ext4 they are
stopped first, because a sync that is under way during a shutdown may say there that it went well.

Torn sectors and disks that lie about their caches are not covered here;
`tests/storage/crashes.py` enumerates these.
"""

import fcntl
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.api.processes import processes_of
from tests.faults.auditing import conclude
from tests.faults.clients import Memory, memories, posting
from tests.faults.disks import call, mounted, unmount
from tests.faults.house import House, house_in, kill
from tests.faults.report import Outcome, Task

CLIENTS = 4
CUTS_A_LIFE = 10  # before the chain is audited and a new one begun
IMAGE_BYTES = {"xfs": 320 * 2**20, "ext4": 96 * 2**20}
WITHOUT_DISK_S = 0.1  # clients meet a service whose disk is gone, before that ends, too
PACKAGES = {"xfs": "xfsprogs", "ext4": "e2fsprogs"}  # of Debian
GOING_DOWN = 0x8004587D  # _IOR('X', 125, __u32), of xfs and ext4 alike
WITHOUT_LOG = struct.pack("I", 2)  # all that is only in memory is gone, the journal's end, too


def why_not(kind: str) -> str:
    """Why the power of such a file system cannot be cut here; empty if it can."""
    if os.geteuid() != 0:
        return "only root may mount"
    if shutil.which(f"mkfs.{kind}") is None:
        return f"there is no mkfs.{kind}; on Debian: apt install {PACKAGES[kind]}"
    with tempfile.TemporaryDirectory() as folder:
        try:
            with _new_disk(Path(folder), kind):
                return ""
        except subprocess.CalledProcessError as error:
            return f"{kind} cannot be mounted from a file: {error.stderr.decode().strip()}"


def run(task: Task) -> Outcome:
    """Cut the power `task.count` times, on one kind of file system after the other."""
    outcome = Outcome()
    reasons = {kind: why_not(kind) for kind in IMAGE_BYTES}
    kinds = [kind for kind, reason in reasons.items() if not reason]
    outcome.skipped = "" if kinds else "; ".join(reasons.values())
    outcome.notes += [f"without {kind}: {reason}" for kind, reason in reasons.items() if reason]
    life = 0
    while kinds and outcome.done < task.count:
        count = min(CUTS_A_LIFE, task.count - outcome.done)
        folder = task.folder / f"cuts-{life}"
        folder.mkdir()
        _live(folder, kinds[life % len(kinds)], count, task, outcome)
        shutil.rmtree(folder)
        life += 1
        task.says(f"{outcome.done} power cuts, {len(outcome.findings)} findings")
    return outcome


def _live(folder: Path, kind: str, count: int, task: Task, outcome: Outcome) -> None:
    """Cut `count` times while clients post, then audit what is left."""
    remembered: list[Memory] = []
    with _new_disk(folder, kind) as disk:
        for number in range(count):
            with house_in(disk) as house:
                house.restart(outcome)
                fresh = memories(CLIENTS, life=number)
                remembered += fresh
                with posting(house.port, fresh, pause_s=0):
                    time.sleep(task.chance.uniform(0.2, 1.2))
                    _cut(disk, house, kind)
            _mount_again(disk, kind)
            outcome.done += 1
        with house_in(disk) as house:
            house.restart(outcome)
            conclude(house, remembered, task.chance, outcome)


def _cut(disk: Path, house: House, kind: str) -> None:
    """The power goes; whatever was running ends with it."""
    if kind == "ext4":
        kill(list(processes_of(house.folder)), signal.SIGSTOP)
        time.sleep(0.05)  # until calls that are under way have ended
    descriptor = os.open(disk, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, GOING_DOWN, WITHOUT_LOG)
    finally:
        os.close(descriptor)
    if kind == "xfs":
        time.sleep(WITHOUT_DISK_S)
    kill(list(processes_of(house.folder)))


@contextmanager
def _new_disk(folder: Path, kind: str) -> Iterator[Path]:
    """A new file system of `kind`, mounted."""
    image = folder / "disk.img"
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES[kind])
    call(f"mkfs.{kind}", "-q", image)
    with mounted(folder / "disk", "-t", kind, "-o", "loop", image) as disk:
        yield disk


def _mount_again(disk: Path, kind: str) -> None:
    """Mount what the cut has left, so that its journal is replayed."""
    unmount(disk)
    call("mount", "-t", kind, "-o", "loop", disk.with_name("disk.img"), disk)
