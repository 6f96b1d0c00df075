"""Chains to be measured: imported when first needed, and found again where they are kept.

Each has a folder of its own. In it `chain` is the chain; `imported.json`, which is written last,
tells that it is whole and what its import took. An interrupted import is continued.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from loadtests.processes import Service, backend, running

RECORD = "imported.json"


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain on disk, and what its import took."""

    label: str
    folder: Path
    flights: int
    import_wall_s: float
    import_cpu_s: float

    @property
    def block_bytes(self) -> int:
        """Bytes of the blocks and their table of heights."""
        return size_bytes(self.folder / "blocks")

    @property
    def index_bytes(self) -> int:
        """Bytes of the index."""
        return size_bytes(self.folder / "index")


@dataclass(frozen=True, slots=True)
class Source:
    """A source of flights. arguments: those of `python -m backend import`."""

    label: str
    arguments: tuple[str, ...]
    is_known_month: bool = False


def generated(flights: int) -> Source:
    """A source of made-up flights; a short one is the beginning of a longer one."""
    return Source(f"{flights:,} generated flights", ("--generate", str(flights)))


def is_imported(home: Path) -> bool:
    """Whether a whole chain is below `home`."""
    return (home / RECORD).exists()


def size_bytes(folder: Path) -> int:
    """The lengths of all files in `folder`, added up; links to files in it count nothing."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files)


def imported(source: Source, home: Path, log: Path | None) -> Chain:
    """The chain of `source` below `home`. It is imported now unless it is there already.

    log: takes the import's progress; None shows it. Raises ProgramFailed.
    """
    folder, record = home / "chain", home / RECORD
    if record.exists():
        found = json.loads(record.read_text(encoding="utf-8"))
        return Chain(folder=folder, **found)
    folder.mkdir(parents=True, exist_ok=True)
    _, spent = backend(folder, "import", *source.arguments, log=log)
    tip, _ = backend(folder, "tip", log=log)
    chain = Chain(source.label, folder, json.loads(tip)["transactions"], spent.wall_s, spent.cpu_s)
    facts = asdict(chain)
    del facts["folder"]
    record.write_text(json.dumps(facts), encoding="utf-8")
    return chain


@contextmanager
def copied(chain: Chain | None, folder: Path) -> Iterator[Path]:
    """A copy of a chain (None: an empty one), which may be written to and is removed at the end."""
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
    """A service on a copy of a chain as `copied` makes it, ready to answer and to mine.

    The index of a copy answers nothing until the miner has added it up, so it is waited for.
    """
    with (
        copied(chain, folder) as copy,
        running(copy, log, asking="/health/ready", settings=settings) as service,
    ):
        yield service
