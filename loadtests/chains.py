"""Imports the chains that are measured when they are first needed, and finds those that are kept.

Each chain has a folder of its own. In it `chain` is the chain; `imported.json`, which is written
last, tells that it is whole and what its import took. An interrupted import is continued.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from loadtests.processes import Service, backend, running

RECORD = "imported.json"


@dataclass(frozen=True, slots=True)
class Chain:
    """Tells where a chain is on disk, and what its import took."""

    label: str
    folder: Path
    flights: int
    import_wall_s: float
    import_cpu_s: float

    @property
    def block_bytes(self) -> int:
        """Return the size in bytes of the blocks and their table of heights."""
        return size_bytes(self.folder / "blocks")

    @property
    def index_bytes(self) -> int:
        return size_bytes(self.folder / "index")


@dataclass(frozen=True, slots=True)
class Source:
    """Names flights that can be imported. arguments: those of `python -m backend import`."""

    label: str
    arguments: tuple[str, ...]
    is_known_month: bool = False

    @property
    def is_file(self) -> bool:
        """Return whether they are in a file, and are not made up."""
        return len(self.arguments) == 1


def generated(flights: int) -> Source:
    """Return a source of made-up flights; a short one is the beginning of a longer one."""
    return Source(f"{flights:,} generated flights", ("--generate", str(flights)))


def is_imported(home: Path) -> bool:
    """Return whether a whole chain is below `home`."""
    return (home / RECORD).exists()


def size_bytes(folder: Path) -> int:
    """Return the size in bytes of all files in `folder`; links to files in it count nothing."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files)


def imported(source: Source, home: Path, log: Path | None) -> Chain:
    """Return the chain of `source` below `home`, imported now unless it is there already.

    log: takes the import's progress; None shows it. Raises ProgramFailed.
    """
    folder, record = home / "chain", home / RECORD
    if not record.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _, spent = backend(folder, "import", *source.arguments, log=log)
        tip, _ = backend(folder, "tip", log=log)
        facts = {
            "label": source.label,
            "flights": json.loads(tip)["transactions"],
            "import_wall_s": spent.wall_s,
            "import_cpu_s": spent.cpu_s,
        }
        record.write_text(json.dumps(facts), encoding="utf-8")
    return Chain(folder=folder, **json.loads(record.read_text(encoding="utf-8")))


@contextmanager
def copied(chain: Chain | None, folder: Path) -> Iterator[Path]:
    """Copy a chain (None: an empty one) for a `with` block, in which it may be written to."""
    if chain is None:
        folder.mkdir(parents=True)
    else:
        shutil.copytree(chain.folder, folder, symlinks=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def copy_served(
    chain: Chain | None, folder: Path, log: Path, settings: Mapping[str, object] | None = None
) -> Iterator[Service]:
    """Run a service on a copy of a chain as `copied` makes it, ready to answer and to mine.

    The index of a copy answers nothing until the miner has added it up, so it is waited for.
    """
    with (
        copied(chain, folder) as copy,
        running(copy, log, asking="/health/ready", settings=settings) as service,
    ):
        yield service
