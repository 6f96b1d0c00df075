"""Reads and writes `manifest.json`, which says what an export holds, and guards its folder.

It is replaced in one step when all files that it names are whole. Other files of the export are
what an interrupted run has left; files of anybody else are not tolerated.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec.structs import asdict

from backend.base.errors import FlightchainError
from backend.base.file_names import strange_entry
from backend.base.state_file import StateFile

NAME, LOCK_NAME = "manifest.json", "export.lock"
DATA, UNFINISHED = "flights", "unfinished"  # folders: what programs read, and what is being written
FORMAT = 1
_FILE = r"flights-\d{12}\.parquet"
_DATA_FILE = re.compile(rf"{DATA}/YEAR=\d{{4}}/MONTH=\d{{1,2}}/{_FILE}", re.ASCII)
_OTHER_FILE = re.compile(rf"{NAME}(\.tmp)?|{LOCK_NAME}|{UNFINISHED}/{_FILE}", re.ASCII)


class ExportRefused(FlightchainError):
    """An export cannot be made in a folder, or is not a good one."""


class ExportedFile(msgspec.Struct, frozen=True):
    """A file of an export: its path below the folder, its flights, bytes and hash."""

    path: str
    flights: int
    bytes: int
    sha256: str


class Run(msgspec.Struct, frozen=True):
    """Names what one export added: the flights of the blocks from `first` to `height`."""

    first: int
    height: int
    tip_hash: str
    files: list[ExportedFile]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Names what an export holds: all flights up to block `height`, whose hash is `tip_hash`."""

    format: int = FORMAT
    genesis_hash: str
    height: int = -1
    tip_hash: str = ""
    flights: int = 0
    runs: list[Run] = []

    def files(self) -> dict[str, ExportedFile]:
        return {file.path: file for run in self.runs for file in run.files}

    def with_run(self, run: Run) -> "Manifest":
        return Manifest(
            genesis_hash=self.genesis_hash,
            height=run.height,
            tip_hash=run.tip_hash,
            flights=self.flights + sum(file.flights for file in run.files),
            runs=[*self.runs, run],
        )


def not_whole(path: Path, what: str) -> ExportRefused:
    """Return the error about a file of an export that is not a good copy. what: what it is."""
    remedy = "put back a copy of it, or make a new export in an empty folder"
    return ExportRefused(f"{path} {what}; {remedy}")


FILE = StateFile(NAME, Manifest)


def read(folder: Path) -> Manifest | None:
    """Read the manifest of an export; None if there is none. Raises ExportRefused."""
    path = folder / NAME
    try:
        manifest = FILE.load(folder)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise not_whole(path, f"is damaged ({error})") from None
    if manifest.format != FORMAT or not all(map(_DATA_FILE.fullmatch, manifest.files())):
        raise not_whole(path, f"is not of format {FORMAT}, which this release writes")
    summed = Manifest(genesis_hash=manifest.genesis_hash)
    for run in manifest.runs:
        if not (first := summed.height + 1) == run.first <= run.height:
            what = f"names blocks {run.first} to {run.height}, where block {first} comes next"
            raise not_whole(path, f"{what}, so the export lacks flights or has some twice")
        summed = summed.with_run(run)
    if wrong := [
        name for name, value in asdict(summed).items() if getattr(manifest, name) != value
    ]:
        what = f"differs from its runs in {', '.join(wrong)}"
        raise not_whole(path, f"{what}, so it is unknown what the export holds")
    return manifest


def require_own_folder(folder: Path) -> None:
    """Raise ExportRefused if the folder holds anything that no export has."""
    for path in _paths_in(folder):
        name = path.relative_to(folder).as_posix()
        is_ours = _DATA_FILE.fullmatch(name) or _OTHER_FILE.fullmatch(name)
        if not is_ours or strange_entry(path):
            raise ExportRefused(
                f"{folder} holds {name}, which is not part of an export; move it away, or choose "
                "an empty folder"
            )


def require_all_files(folder: Path, manifest: Manifest) -> None:
    """Raise ExportRefused if a file that the manifest names is missing, or of another size."""
    for name, file in manifest.files().items():
        path = folder / name
        size = path.stat().st_size if path.exists() else None
        if size != file.bytes:
            has = "is missing" if size is None else f"has {size:,} bytes instead of {file.bytes:,}"
            raise not_whole(path, f"{has}, so the export lacks flights")


def left_over(folder: Path, manifest: Manifest) -> list[Path]:
    """Return the files of exports that the manifest does not name."""
    named = manifest.files().keys() | {NAME, LOCK_NAME}
    return [path for path in _paths_in(folder) if str(path.relative_to(folder)) not in named]


def _paths_in(folder: Path) -> Iterator[Path]:
    """Yield everything in a folder but folders of years and months, and what file managers add."""
    for path in sorted(folder.rglob("*")):
        is_left = path.name in {"Thumbs.db", "desktop.ini"} or (
            path.name.startswith(".") and path.suffix != ".parquet"  # such as .DS_Store
        )
        if not is_left and (path.is_symlink() or not path.is_dir()):
            yield path
