"""Defines the command that imports flights. `cli` adds it to its own."""

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from backend.base.day_orders import ORDERS
from backend.base.errors import FlightchainError, InvalidInput, InvalidSetting, NotFound
from backend.base.files import require_free
from backend.base.progress import Line
from backend.base.settings import Settings, variable
from backend.base.words import COMMAND
from backend.cli.import_dialogue import KEEP, ON_CONFLICT, ImportDialogue, Skipping
from backend.cli.output import say
from backend.cli.paths import LocalPath, require_no_ledger
from backend.cli.serve_commands import require_all_to_serve
from backend.ledger.bts_months import PREFIX, Month, MonthRange, months_in

if TYPE_CHECKING:
    from backend.sources import Source
    from backend.sources.airports import Lookup

MOST_SKIPPED_PERCENT = 1.0
CHECKED = ("files", "nycflights")
NEEDS = {
    "seed": ("generate",),
    "frontend": ("then_serve",),
    "dates": ("files",),
    "skip_bad": CHECKED,
    "skip_at_most": ("skip_bad",),
    "on_conflict": CHECKED,
    "bad_rows": ("skip_bad",),
    "yes": ("skip_bad",),
}
"""Option -> those of which it needs one; without it would do nothing."""
STANDARD_INPUT = Path("-")
PIECE_BYTES = 2**20


class _ImportCommand(click.Command):
    """Lists the kinds of files at the end of its help."""

    def format_epilog(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the kinds, whose table is read only now."""
        from backend.sources.kinds import KINDS

        with formatter.section("Kinds of files"):
            formatter.write_dl([(kind.name, kind.source) for kind in KINDS])


class _FileOrMonths(LocalPath):
    """The path of a file, or months that BTS publishes."""

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> Any:
        """Check that a file is there; return what stands for months as a `MonthRange`.

        What else FLIGHTCHAIN_DATA takes is an option here.
        """
        if str(value).startswith(PREFIX):
            try:
                return months_in(value)
            except InvalidSetting as error:
                self.fail(str(error), parameter, context)
        is_named = value == "nycflights" or str(value).startswith("generate:")
        if is_named and not Path(value).exists():
            option = value.replace(":", " ", 1).replace(":", " --seed ", 1)
            self.fail(f"there is no file {value!r}; did you mean --{option}?", parameter, context)
        return super().convert(value, parameter, context)


@click.command("import", cls=_ImportCommand)
@click.argument("files", nargs=-1, type=_FileOrMonths(exists=True, allow_dash=True))
@click.option("--nycflights", is_flag=True, help="Import the 336,776 flights of New York in 2013.")
@click.option("--generate", type=click.IntRange(1), metavar="N", help="Import N made-up flights.")
@click.option("--seed", type=int, default=1, show_default=True, help="Random seed for --generate.")
@click.option(
    "--if-empty", is_flag=True, help="Import the data of FLIGHTCHAIN_DATA if the chain is empty."
)
@click.option("--then-serve", is_flag=True, help="Run `serve` after the import.")
@click.option("--frontend", is_flag=True, help="With --then-serve, also serve the pages.")
@click.option(
    "--dates", type=click.Choice(ORDERS), help="How days are written, if a file leaves that open."
)
@click.option("--skip-bad", is_flag=True, help="Leave bad rows out; ask first in a terminal.")
@click.option(
    "--skip-at-most",
    type=click.FloatRange(0, 100),
    default=MOST_SKIPPED_PERCENT,
    show_default=True,
    metavar="PERCENT",
    help="With --skip-bad, the largest share of bad rows of a file.",
)
@click.option(
    "--on-conflict",
    type=click.Choice(list(ON_CONFLICT)),
    default=KEEP,
    show_default=True,
    help=f"If flights contradict earlier ones: {'; '.join(map(': '.join, ON_CONFLICT.items()))}.",
)
@click.option(
    "--bad-rows",
    type=LocalPath(dir_okay=False),
    metavar="FILE",
    help="With --skip-bad, file for the bad rows (NAME.bad-rows.csv in the working folder).",
)
@click.option("--yes", is_flag=True, help="With --skip-bad, do not ask.")
@click.option(
    "--keep-zips",
    type=LocalPath(file_okay=False),
    metavar="FOLDER",
    help="With bts:…, keep the downloaded files there.",
)
@click.pass_context
def import_command(
    context: click.Context,
    files: tuple[Path | MonthRange, ...],
    nycflights: bool,
    generate: int | None,
    seed: int,
    if_empty: bool,
    then_serve: bool,
    frontend: bool,
    dates: str | None,
    skip_bad: bool,
    skip_at_most: float,
    on_conflict: str,
    bad_rows: Path | None,
    yes: bool,
    keep_zips: Path | None,
) -> None:
    """Import flights from FILES or from a package, or make them up.

    FILES are tables of flights of BTS, Kaggle and others (docs/reference/flight-files.md), exports
    of `GET /flights`, block files of the study, or folders of these. They may be plain, or packed
    as .gz, .xz, .bz2, .zst or .zip; - is standard input.

    bts:2008-01, bts:2008-01..2008-12 and bts:latest are months that BTS publishes. Each is
    downloaded, checked and imported while the next one is downloaded.

    All other FILES are checked to their end before the first flight is stored. If one is wrong,
    nothing is stored.

    After Ctrl-C or a crash, run the same command again: it leaves out flights that are stored.
    """
    from backend.storage.layout import require_ledger

    settings: Settings = context.obj
    if sum([bool(files), nycflights, generate is not None, if_empty]) != 1:
        raise click.UsageError("give FILES, or one of --nycflights, --generate N and --if-empty")
    _require_effect(context)
    paths = [file for file in files if isinstance(file, Path)]
    months = _months_among(files, keep_zips)
    if bad_rows:
        _require_one_for_bad_rows(paths, months)
    if months and dates:
        raise click.UsageError("--dates needs FILES")
    require_ledger(settings.folder)
    if then_serve:  # a long import should not end with an error about a port in use
        require_all_to_serve(settings, frontend=frontend)
    skipping = Skipping(skip_bad, skip_at_most, yes, bad_rows)
    if if_empty:
        _import_default(settings)
    elif months:
        _import_months(settings, months, skipping, on_conflict, keep_zips)
    else:
        with ExitStack() as pipes:
            sources = file_sources(settings, paths, dates or "", pipes)
            if nycflights:
                sources = [named_source("nycflights")]
            elif generate is not None:
                sources = [named_source(f"generate:{generate}:{seed}")]
            _import(settings, sources, skipping, on_conflict)
    if then_serve:  # in the same process, so that a signal to it stops the service
        serving = ["-m", "backend", "serve", *(["--frontend"] if frontend else [])]
        os.execv(sys.executable, [sys.executable, *serving])  # noqa: S606


def _months_among(
    files: tuple[Path | MonthRange, ...], keep_zips: Path | None
) -> MonthRange | None:
    """Return the months among FILES, or raise UsageError if there is anything beside them."""
    months = [file for file in files if isinstance(file, MonthRange)]
    if months and len(files) > 1:
        raise click.UsageError("give bts:… alone; several months are a range: bts:2008-01..2008-12")
    if keep_zips and not months:
        raise click.UsageError("--keep-zips works only with bts:…")
    if keep_zips:
        require_no_ledger(keep_zips)
    return months[0] if months else None


def _require_one_for_bad_rows(paths: list[Path], months: MonthRange | None) -> None:
    """Raise UsageError unless there is a single file or month, whose bad rows one file can hold."""
    if len(paths) != 1 and not (months and months.first == months.last):
        raise click.UsageError(
            "--bad-rows needs FILES to be a single file or month; without it, each gets a file in "
            "the working folder"
        )


def _require_effect(context: click.Context) -> None:
    """Raise UsageError for an option that would be ignored."""
    for option, needed in NEEDS.items():
        is_given = context.get_parameter_source(option) == ParameterSource.COMMANDLINE
        if is_given and not any(context.params[name] for name in needed):
            names = " or ".join(map(_shown, needed))
            raise click.UsageError(f"{_shown(option)} needs {names}")


def _shown(parameter: str) -> str:
    return "FILES" if parameter == "files" else f"--{parameter.replace('_', '-')}"


def _import_default(settings: Settings) -> None:
    """Import what FLIGHTCHAIN_DATA names into an empty chain, or continue such an import."""
    from backend.base.files import remove, write_new
    from backend.storage.layout import make_ledger_folder

    make_ledger_folder(settings.folder)
    unfinished = settings.folder / "default-import-unfinished"  # names what is being imported
    is_empty = _is_empty(settings.folder)
    if settings.data == "none" or not (is_empty or _has_begun(settings.data, unfinished)):
        return
    by_hand = f"{COMMAND} import {quote(settings.data)}"
    wanted = _default_data(settings, by_hand)
    write_new(unfinished, os.fsencode(settings.data))
    if isinstance(wanted, MonthRange):
        try:
            _import_months(settings, wanted, Skipping())
        except NotFound as error:  # the service answers about the months that are there
            say(str(error))
    else:
        otherwise = f"correct them, or leave them out: `{by_hand} --skip-bad`"
        try:
            _import(settings, [wanted], Skipping(otherwise=otherwise))
        except InvalidInput:
            if is_empty:  # nothing of the file is stored, so there is nothing to finish
                remove(unfinished)
            raise
    remove(unfinished)


def _is_empty(folder: Path) -> bool:
    """Return whether a ledger has no flights."""
    from backend.storage.block_store import BlockStore

    with closing(BlockStore(folder)) as store:
        tip = store.tip()
    return tip is None or tip[1].next_transaction == 0


def _has_begun(data: str, unfinished: Path) -> bool:
    """Return whether the import of `data` is to be continued, by the file that names what began.

    Months that are there already are skipped, so that other months may go on where some came.
    """
    begun = os.fsdecode(unfinished.read_bytes()) if unfinished.exists() else ""
    return begun == data or (data.startswith(PREFIX) and begun.startswith(PREFIX))


def _default_data(settings: Settings, by_hand: str) -> "Source | MonthRange":
    """Return what FLIGHTCHAIN_DATA names, or raise InvalidSetting. by_hand: a command for it."""
    from backend.sources.dates import DoubtfulDaysError, choice

    data = settings.data
    try:
        return months_in(data) if data.startswith(PREFIX) else named_source(data)
    except InvalidInput as error:
        if isinstance(error, DoubtfulDaysError):
            error = error.answered_by(choice(how=f"run `{by_hand}` with"))
        reason = str(error) if error.field == "file" else error.reason
        raise InvalidSetting(variable("data"), data, reason) from error


def _import_months(
    settings: Settings,
    months: MonthRange,
    skipping: Skipping,
    on_conflict: str = KEEP,
    keep: Path | None = None,
) -> None:
    """Import months of BTS. keep: the folder in which their files stay."""
    from backend.cli.month_import import import_months

    def import_file(path: Path, month: Month) -> None:
        otherwise = f"leave them out: `{COMMAND} import {PREFIX}{month} --skip-bad`"
        with ExitStack() as pipes:
            [source] = file_sources(settings, [path], "", pipes)
            source.month = str(month)
            _import(settings, [source], replace(skipping, otherwise=otherwise), on_conflict)

    import_months(settings, months, keep, import_file)


def _import(
    settings: Settings, sources: list[Any], skipping: Skipping, on_conflict: str = KEEP
) -> None:
    from backend.sealing.importer import import_all
    from backend.sealing.spool import Spool

    with ExitStack() as stack:
        bad_rows = None
        if skipping.is_wanted:
            bad_rows = stack.enter_context(closing(Spool(settings.folder)))
        dialogue = stack.enter_context(ImportDialogue(skipping, on_conflict, bad_rows))
        import_all(settings, sources, dialogue.watcher(), bad_rows)


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
    with suppress(ValueError):
        if int(count) > 0:
            return Generated(int(count), int(seed or 1))
    reason = "must be generate:N or generate:N:SEED with whole numbers, N at least 1"
    raise InvalidInput("flights", specification, reason)


def file_sources(
    settings: Settings, paths: Sequence[Path], dates: str, pipes: ExitStack
) -> list["Source"]:
    """Return the sources in files or folders, in pipes, or in standard input for "-".

    What comes through a pipe can be read only once, so it is kept in a nameless file in the chain's
    folder until `pipes` is closed. dates: as in `FlightFile`.

    Raises TryLater if the disk gets full.
    """
    from backend.index.completions import airports_in
    from backend.index.queries import IndexReader
    from backend.storage.receipt_store import require_no_cluster

    require_no_cluster(settings.folder)  # before a pipe is read
    ledger = airports_in(pipes.enter_context(closing(IndexReader(settings.folder))))
    return [_file_source(settings, path, dates, pipes, ledger) for path in paths]


def _file_source(
    settings: Settings, path: Path, dates: str, pipes: ExitStack, ledger: "Lookup"
) -> "Source":
    from backend.sealing.spool import Spool
    from backend.sources import open_source

    if path == STANDARD_INPUT:
        if sys.stdin is None:
            reason = "standard input is closed; name a file, or send one through a pipe"
            raise FlightchainError(reason)
        pipe, label = sys.stdin.buffer, "standard input"
    elif path.is_file() or path.is_dir():
        if path.is_dir():  # its files would be said to be no tables
            require_no_ledger(path, "import what its service exports (`GET /flights`)")
        return open_source(path, dates=dates, ledger=ledger)
    else:
        pipe, label = pipes.enter_context(path.open("rb")), str(path)
    spool = pipes.enter_context(closing(Spool(settings.folder)))
    with closing(Line(in_a_log=True)) as line:
        while piece := pipe.read(PIECE_BYTES):
            require_free(settings.folder, settings.min_free_bytes, len(piece))
            spool.append(piece)
            line.show(f"reading {label}: {spool.end / 1e6:,.0f} MB")
    return open_source(spool.path(), dates=dates, label=label, ledger=ledger)
