"""The command line of the lab: `scripts/lab`, or `python -m loadtests` with its packages installed.

\b
scripts/lab list                        lists the experiments
scripts/lab run open-workload --quick   measures and reports, in two minutes
scripts/lab run all --out results       runs every experiment, each into a folder
scripts/lab resume DIR                  continues an interrupted or disturbed run
scripts/lab analyse DIR                 makes the report anew from the raw rows
scripts/lab analyse FILE FILE           makes a report of raw rows that Locust wrote
scripts/lab compare DIR DIR             compares two runs of one experiment
scripts/lab forecast                    forecasts what changes of the service would do
scripts/lab record                      tells how many of all forecasts held
scripts/lab errata                      lists what the studies have printed wrong
scripts/lab explain                     explains why study 000 measured less than M/G/1 says
scripts/lab repeat 000                  tells how often a study's conclusion would have held
"""  # noqa: D301  click's mark for lines that it must not join

import signal
import sys
from datetime import datetime
from pathlib import Path

import click

from loadtests.experiments import NAMES, experiment
from loadtests.experiments.what_if import scoring
from loadtests.lab import conclusions, explained, running
from loadtests.lab.comparing import comparison_page
from loadtests.lab.errata import errata_section
from loadtests.lab.experiment import Mode, Options
from loadtests.lab.report.page import plain_page
from loadtests.lab.results import REPORT, Results, ResultsError
from loadtests.processes import PROJECT, ProgramFailed
from loadtests.wrk import WrkFailed

RESULTS = PROJECT / "loadtests" / "results"
INTERRUPTED = 130
WHAT_IF = "what-if"

_FOLDER = click.Path(path_type=Path, file_okay=False)
_FILE = click.Path(path_type=Path, dir_okay=False)


def _say(text: str) -> None:
    click.echo(text, err=True)


def _numbers(_: click.Context, option: click.Parameter, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(number) for number in text.split(",") if text)
    except ValueError as problem:
        told = f"{problem}; it takes numbers like 0.5,0.85"
        raise click.BadParameter(told, param=option) from None


def _new_folder(name: str, out: Path | None) -> Path:
    began = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    return (out or RESULTS) / f"{name}-{began}"


@click.group(help=__doc__)
def main() -> None:
    """The lab."""


@main.command("list")
def list_experiments() -> None:
    """List the experiments, what each reproduces, and its modes."""
    for name in NAMES:
        found = experiment(name)
        of = f"study {found.study}, {found.reproduces}" if found.study else found.reproduces
        click.echo(f"{name}: {of} ({', '.join(found.modes)})")


@main.command()
@click.argument(
    "names", nargs=-1, required=True, metavar="NAME...", type=click.Choice([*NAMES, "all"])
)
@click.option(
    "--mode",
    type=click.Choice([str(mode) for mode in Mode]),
    help="Default: the experiment's first mode.",
)
@click.option(
    "--scale",
    type=click.FloatRange(min=0, min_open=True),
    help="Times of the study are divided by this.",
)
@click.option("--seed", default=1, show_default=True, help="Seed of all random numbers.")
@click.option("--reps", type=click.IntRange(min=1), help="Number of replications.")
@click.option("--quick", is_flag=True, help="Run everything once, within two minutes.")
@click.option("--until-decided", is_flag=True, help="Measure until verdicts are decided.")
@click.option(
    "--loads",
    default="",
    callback=_numbers,
    help="Only these: shares of L for open-workload, numbers of customers for queueing-network.",
)
@click.option("--host", default="", help="URL of a running service to measure, on any machine.")
@click.option("--out", type=_FOLDER, help="Folder for results; default: loadtests/results.")
def run(
    names: tuple[str, ...],
    mode: str | None,
    scale: float | None,
    seed: int,
    reps: int | None,
    quick: bool,
    until_decided: bool,
    loads: tuple[float, ...],
    host: str,
    out: Path | None,
) -> None:
    """Run experiments; each leaves a folder with raw rows and a report.

    `list` shows the names; `all` stands for every one. The exit status is 1 if an experiment
    answers its question with no, as the selftest may, or if all its runs were rejected.
    """
    failures = []
    for name in NAMES if "all" in names else names:
        found = experiment(name)
        chosen = mode or (Mode.REAL if host else found.modes[0])
        options = Options(Mode(chosen), scale, seed, reps, quick, host, until_decided, loads)
        folder = _new_folder(name, out)
        _say(f"{name}: {found.title}")
        report = running.run(found, options, folder, _say)
        click.echo(folder)
        if report and report.failure:
            failures.append(f"{name}: {report.failure}")
    if failures:
        raise click.ClickException("\n".join(failures))


@main.command()
@click.option("--seed", default=1, show_default=True, help="Seed of all random numbers.")
@click.option("--quick", is_flag=True, help="Do everything once, within two minutes.")
@click.option("--out", type=_FOLDER, help="Folder for results; default: loadtests/results.")
def forecast(seed: int, quick: bool, out: Path | None) -> None:
    """Forecast what changes of the service would do on this machine.

    `resume` makes the changes and measures them; `run what-if` does both.
    """
    folder = _new_folder(WHAT_IF, out)
    running.forecast(experiment(WHAT_IF), Options(Mode.REAL, seed=seed, quick=quick), folder, _say)
    click.echo(folder)


@main.command()
@click.argument("folder", type=_FOLDER, default=RESULTS)
@click.option("--out", type=_FILE, default=Path("record.html"), show_default=True)
def record(folder: Path, out: Path) -> None:
    """Write all forecasts among the results in a folder as a page, and how many held."""
    out.write_text(scoring.record(folder), encoding="utf-8")
    click.echo(out)


@main.command()
@click.argument("folder", type=_FOLDER)
def resume(folder: Path) -> None:
    """Continue an open-workload or what-if that was interrupted or disturbed.

    It is disturbed if most of its runs were rejected. Runs that count are kept, and the missing
    ones are measured; so are forecasts that wait for it.
    """
    report = running.resume(folder, _say)
    click.echo(folder)
    if report and report.failure:
        raise click.ClickException(report.failure)


@main.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--workers", default=1, show_default=True, help="Of a server whose rows are brought.")
@click.option("--out", type=_FOLDER, help="Folder for results; default: loadtests/results.")
def analyse(paths: tuple[Path, ...], workers: int, out: Path | None) -> None:
    """Make summaries and reports anew from their raw rows.

    Files of raw rows make a result of open-workload together: an open run, and a closed run of one
    customer, both by Locust with --raw.
    """
    files = [path for path in paths if path.is_file()]
    folders = [path for path in paths if not path.is_file()]
    if files:
        folder = _new_folder("open-workload", out)
        running.bring(files, folder, workers)
        folders.append(folder)
    for folder in folders:
        running.analyse(Results(folder))
        click.echo(folder / REPORT)


@main.command()
@click.argument("before", type=_FOLDER)
@click.argument("after", type=_FOLDER)
@click.option("--out", type=_FILE, default=Path("comparison.html"), show_default=True)
def compare(before: Path, after: Path, out: Path) -> None:
    """Compare two runs of one experiment, side by side."""
    out.write_text(comparison_page(Results(before), Results(after)), encoding="utf-8")
    click.echo(out)


@main.command()
@click.option("--out", type=_FILE, default=Path("errata.html"), show_default=True)
def errata(out: Path) -> None:
    """Write the errata of all five studies as a page."""
    lead = ["Every number of the five studies was computed again. These do not agree."]
    out.write_text(plain_page("Errata", lead, [errata_section()]), encoding="utf-8")
    click.echo(out)


@main.command()
@click.option("--out", type=_FILE, default=Path("explained.html"), show_default=True)
@click.option("--seed", default=1, show_default=True, help="Seed of all random numbers.")
def explain(out: Path, seed: int) -> None:
    """Write why study 000 measured 102 s at 0.85 of L, where M/G/1 says 155 s, as a page."""
    out.write_text(explained.page(seed), encoding="utf-8")
    click.echo(out)


@main.command()
@click.argument("study", type=click.Choice(list(conclusions.STUDIES)))
@click.option(
    "--times", type=click.IntRange(min=1), default=conclusions.REPETITIONS, show_default=True
)
@click.option("--out", type=_FILE, default=Path("repeated.html"), show_default=True)
@click.option("--seed", default=1, show_default=True, help="Seed of all random numbers.")
def repeat(study: str, times: int, out: Path, seed: int) -> None:
    """Repeat a study's protocol in simulation: how often would its conclusion have held?

    There is no 002, because it prints neither how its times spread nor how often it measured.
    """
    out.write_text(conclusions.page(study, times, seed), encoding="utf-8")
    click.echo(out)


def run_command() -> int:
    """Run a command. Returns 0, 1 for an error, 2 for wrong usage, 130 for Ctrl-C or SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # keeps measurements then, too
    try:
        main.main(standalone_mode=False)
    except click.ClickException as problem:
        problem.show()
        return problem.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except (ResultsError, ProgramFailed, WrkFailed) as problem:
        _say(f"error: {problem}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(run_command())
