"""Runs commands of the lab: `scripts/lab`, or `python -m loadtests` with its packages installed.

`COMMAND --help` tells the options of a command; loadtests/README.md has examples.
"""

import signal
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from loadtests.experiments import NAMES, OF_FILES, experiment, pi_measurements, running
from loadtests.lab import network_file, studies
from loadtests.lab.content import Report
from loadtests.lab.experiment import Options
from loadtests.lab.generator_check import selftest
from loadtests.lab.response_times import check_threshold
from loadtests.lab.results import REPORT, Results, ResultsError
from loadtests.number_format import finite
from loadtests.processes import PROJECT, ProgramFailed, Site
from loadtests.tables import TableError

SELFTEST, OPTIONS_OF_SELFTEST = "selftest", {"quick", "seed", "shared"}
RESULTS = PROJECT / "loadtests" / "results"
INTERRUPTED = 130
FAULTS = (OSError, ResultsError, ProgramFailed, TableError)

_FOLDER = click.Path(path_type=Path, file_okay=False)
_NAMES = click.Choice([SELFTEST, *NAMES, "all"])
_COUNT = click.IntRange(min=1)


class _Positive(click.FloatRange):
    """Takes a finite number above 0."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        try:
            finite(value)
        except ValueError as problem:
            self.fail(str(problem), param, ctx)
        return super().convert(value, param, ctx)


_POSITIVE = _Positive(min=0, min_open=True)


def _thresholds(_: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> Any:
    try:
        return tuple(map(check_threshold, texts))
    except ResultsError as problem:
        raise click.BadParameter(str(problem), param=option) from None


_SEED = click.option("--seed", default=1, show_default=True, help="Seed of all random numbers.")
_SHARED = click.option(
    "--shared", is_flag=True, help="Reject no run because of other programs; mark the report."
)
_QUICK = click.option("--quick", is_flag=True, help="Do everything once, within two minutes.")
_FAIL_IF = click.option(
    "--fail-if",
    multiple=True,
    metavar="THRESHOLD",
    callback=_thresholds,
    help="End with status 1 if this is true of any load: 'p99 > 50 ms'; may be repeated.",
)
_OUT = click.option("--out", type=_FOLDER, help="Folder for results; default: loadtests/results.")


def _say(text: str) -> None:
    click.echo(text, err=True)


def _numbers(_: click.Context, option: click.Parameter, text: str) -> tuple[float, ...]:
    try:
        return tuple(finite(number) for number in text.split(",") if text)
    except ValueError as problem:
        message = f"{problem}; it takes numbers like 0.5,0.85"
        raise click.BadParameter(message, param=option) from None


def _refuse_host(_: click.Context, __: click.Parameter, url: str | None) -> None:
    if url is not None:
        why = "run starts what it measures; to measure a running service, use scripts/lab pi URL"
        raise click.UsageError(f"run has no --host: {why}")


def _new_folder(name: str, out: Path | None) -> Path:
    began = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    return (out or RESULTS) / f"{name}-{began}"


def _end(folder: Path, report: Report | None) -> None:
    click.echo(folder)
    if report and report.failure:
        raise click.ClickException(report.failure)


@click.group(help=__doc__)
def main() -> None:
    """Group all commands."""


@main.command("list")
def list_experiments() -> None:
    """List the experiments, what each reproduces, and whether storage is emulated."""
    for name in NAMES:
        listed = experiment(name)
        study = f"study {listed.study}, " if listed.study else ""
        click.echo(f"{name}: {study}{listed.reproduces} ({listed.mode})")


@main.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...", type=_NAMES)
@click.option("--scale", type=_POSITIVE, help="Times of the study are divided by this.")
@click.option("--reps", type=_COUNT, help="Number of replications.")
@click.option(
    "--loads",
    default="",
    callback=_numbers,
    help="Only these shares of L (open-workload) or numbers of customers (queueing-network).",
)
@_SHARED
@_FAIL_IF
@_SEED
@_QUICK
@click.option("--host", hidden=True, expose_value=False, callback=_refuse_host)
@_OUT
def run(names: tuple[str, ...], out: Path | None, **chosen: Any) -> None:
    """Run experiments; each leaves a folder with raw rows and a report.

    `list` shows the names; `all` runs every experiment; `selftest` says whether this machine is
    good for measurements, and leaves nothing. The exit status is 1 if no run of an experiment
    counts, if a full open-workload decides no forecast, or if this machine is too noisy.
    """
    failures = []
    if SELFTEST in names:
        failures.append(_selftest(**chosen))
    for name in NAMES if "all" in names else [name for name in names if name != SELFTEST]:
        chosen_experiment, folder = experiment(name), _new_folder(name, out)
        _say(f"{name}: {chosen_experiment.title}")
        options = Options(**chosen)
        if "all" in names and not chosen_experiment.scales:
            options = replace(options, scale=None)  # of those that are emulated
        if "all" in names and not chosen_experiment.has_loads:
            options = replace(options, fail_if=())
        try:
            report = running.run(chosen_experiment, options, folder, _say)
        except FAULTS as problem:  # the others may do
            failures.append(f"{name}: {problem}")
            continue
        click.echo(folder)
        if report and report.failure:
            failures.append(f"{name}: {report.failure}")
    if any(failures):
        raise click.ClickException("\n".join(filter(None, failures)))


def _selftest(**chosen: Any) -> str:
    """Return why this machine is too noisy. Raises UsageError for options of experiments."""
    for name, value in chosen.items():
        if value and name not in OPTIONS_OF_SELFTEST:
            raise click.UsageError(f"selftest has no --{name.replace('_', '-')}; leave it out")
    return selftest(Options(**chosen), _say)


@main.command()
@click.argument("url")
@click.option(
    "--minutes",
    type=_POSITIVE,
    default=pi_measurements.MINUTES,
    show_default=True,
    help="How long to ask; a slow or busy service takes longer, as each run has a least length.",
)
@click.option("--ssh", default="", help="USER@HOST: set the service up there meanwhile.")
@click.option("--loads", default="", callback=_numbers, help="Only these shares of L.")
@_SHARED
@_FAIL_IF
@_SEED
@_OUT
def pi(url: str, out: Path | None, **chosen: Any) -> None:
    """Measure a Raspberry Pi, or any machine, on which the service runs.

    Progress is shown with the time that is left; `resume` continues an interrupted measurement. The
    exit status is 1 if nothing is decided.
    """
    site = Site.at(url)
    options = Options(host=site.url, **chosen)
    running.require_possible(experiment("pi"), options)  # before a service is set up
    for sentence in pi_measurements.advice(site, options.ssh):
        _say(sentence)
    folder = _new_folder("pi", out)
    _end(folder, running.run(experiment("pi"), options, folder, _say))


@main.command()
@click.argument("folder", type=_FOLDER)
def resume(folder: Path) -> None:
    """Continue an open-workload or pi that was interrupted or disturbed.

    Runs that count are kept, and the missing ones are measured.
    """
    _end(folder, running.resume(folder, _say))


@main.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option(
    "--workers", type=_COUNT, default=1, show_default=True, help="Workers of the server; for files."
)
@click.option(
    "--calibration",
    "alone",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A further file, of one customer alone; may be repeated.",
)
@_FAIL_IF
@_OUT
def analyse(
    paths: tuple[Path, ...],
    workers: int,
    alone: tuple[Path, ...],
    fail_if: tuple[str, ...],
    out: Path | None,
) -> None:
    """Make reports of results again, or a report of files of load generators.

    Files of wrk2, vegeta, k6, JMeter, oha, Locust and `--raw` make one result together. With rows
    of five runs of one customer and five of each load, it says whether the forecast holds.
    """
    files = [path for path in paths if path.is_file()]
    folders = [path for path in paths if not path.is_file()]
    if not files and (workers > 1 or alone or out):
        raise click.UsageError("--workers, --calibration and --out are for files; name the files")
    if files:
        folder = _new_folder(OF_FILES, out)
        running.bring(files, folder, workers, alone)
        folders.append(folder)
    failures = []
    for folder in folders:
        report = running.analyse(Results(folder), fail_if or None)
        if files and folder == folders[-1]:
            click.echo("\n".join(report.findings), err=True)
        if broken := running.broken_thresholds(Results(folder), fail_if or None):
            failures.append(f"{folder.name}: {broken}")
        click.echo(folder / REPORT)
    if failures:
        raise click.ClickException("\n".join(failures))


@main.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--json", "is_json", is_flag=True, help="Write JSON instead of tables.")
def solve(file: Path, *, is_json: bool) -> None:
    """Solve a network of queues that a TOML or JSON file describes, exactly.

    It may have open and closed classes of customers. Stations are delays, single or several
    servers, or servers whose rate depends on their number of customers. loadtests/by-hand.md has an
    example.
    """
    show = network_file.as_json if is_json else network_file.as_text
    click.echo(show(*network_file.solve(file)))


@main.command("studies")
def studies_page() -> None:
    """Make the tables of docs/explanation/studies.md again, by simulations of some minutes."""
    page = studies.regenerated(studies.PAGE.read_text(encoding="utf-8"))
    studies.PAGE.write_text(page, encoding="utf-8")
    click.echo(studies.PAGE)


def run_command() -> int:
    """Run a command. Returns 0, 1 for an error, 2 for wrong usage, 130 if it is interrupted."""
    for number in (signal.SIGTERM, signal.SIGHUP):  # these keep measurements, too
        if signal.getsignal(number) is not signal.SIG_IGN:  # as by nohup
            signal.signal(number, signal.default_int_handler)
    try:
        main.main(prog_name="scripts/lab", standalone_mode=False)
    except click.ClickException as problem:
        problem.show()
        return problem.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except FAULTS as problem:
        _say(f"error: {problem}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(run_command())
