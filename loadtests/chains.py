"""The chains that are measured: imported when first needed, and kept between runs on request.

Each has a folder of its own below the bench's folder. In it `chain` is the chain; `imported.json`,
which is written last, tells that it is whole and what its import took. An interrupted import is
continued.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from loadtests.processes import ProgramFailed, backend

RECORD = "imported.json"
FREE_DISK_FACTOR = 1.2
KNOWN_FACTOR = 4  # the needs of longer chains are guessed from the chain with this factor

Say = Callable[[str], None]


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
    """A copy of a chain at `folder`, which may be written to and is removed at the end.

    None copies an empty chain.
    """
    if chain is None:
        folder.mkdir(parents=True)
    else:
        shutil.copytree(chain.folder, folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Chains:
    """The chains of one run, below `folder`. Attribute: `month_source`.

    month: the source of the month. flights: those of the shortest generated chain.
    """

    def __init__(
        self, folder: Path, log: Path | None, month: Source, flights: int, say: Say
    ) -> None:
        self._folder, self._log, self._flights, self._say = folder, log, flights, say
        self.month_source = month

    def month(self) -> Chain:
        """The chain of the month."""
        return self._chain(self.month_source)

    def generated(self, factor: int) -> Chain:
        """A generated chain `factor` times as long as the shortest."""
        return self._chain(generated(factor * self._flights))

    def has_generated(self, factor: int) -> bool:
        """Whether an earlier run has kept that chain."""
        return self._has(generated(factor * self._flights))

    def require_room(self, factor: int) -> None:
        """Say what the chain `factor` times as long will take, judging by `KNOWN_FACTOR`'s chain.

        Nothing is said if that chain is short, or there already. Raises ProgramFailed if the disk
        has too little room.
        """
        if factor <= KNOWN_FACTOR or self.has_generated(factor):
            return
        known = self.generated(KNOWN_FACTOR)
        scale = factor / KNOWN_FACTOR
        need_bytes = scale * (known.block_bytes + known.index_bytes)
        free_bytes = shutil.disk_usage(self._folder).free
        self._say(
            f"{factor * self._flights:,} generated flights will take about "
            f"{scale * known.import_wall_s / 60:.0f} minutes and {need_bytes / 1e9:.1f} GB of the "
            f"{free_bytes / 1e9:.0f} GB free in {self._folder}"
        )
        if free_bytes < FREE_DISK_FACTOR * need_bytes:
            raise ProgramFailed(
                f"{self._folder} has too little room for that; choose another folder with --keep"
            )

    def _chain(self, source: Source) -> Chain:
        if not self._has(source):
            self._say(f"importing {source.label}")
        return imported(source, self._home(source), self._log)

    def _has(self, source: Source) -> bool:
        return (self._home(source) / RECORD).exists()

    def _home(self, source: Source) -> Path:
        return self._folder / source.label.replace(" ", "-").replace(",", "").replace("/", "-")
