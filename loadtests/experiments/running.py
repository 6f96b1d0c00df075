"""Runs an experiment: makes a folder and a manifest, measures, and makes the report of the folder.

If the measurement is interrupted, the manifest says so; what was measured is kept, and analysed as
far as possible.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from loadtests.experiments import OF_FILES, experiment, tool_results
from loadtests.generation.run import Say
from loadtests.lab import response_times
from loadtests.lab.content import Report, Section, Table, capital, summary
from loadtests.lab.experiment import Experiment, Options, Run
from loadtests.lab.generator_check import generator_section
from loadtests.lab.repeated import judged_runs, most_common_reason
from loadtests.lab.report.page import report_page
from loadtests.lab.results import (
    MANIFEST,
    NO,
    REPORT,
    NothingCounts,
    Results,
    ResultsError,
)
from loadtests.lab.studies import errata_section
from loadtests.lab.tool_outputs import read_all
from loadtests.machine import commit, description
from loadtests.processes import ProgramFailed, Site, is_of_network

FILES, INTERRUPTED = "files", "interrupted"
REACHED_WITHIN_S = 10
NO_LOAD = (
    "no threshold was judged, because no open run counts, and no closed run of several customers"
)

_FIELDS = ("experiment", "mode", "scale", "seed", "quick", "state")  # of every manifest
_PACKAGES = ("Flask", "gunicorn", "gevent", "locust", "matplotlib", "msgspec", "zstandard")


def run(experiment: Experiment, options: Options, folder: Path, say: Say) -> Report | None:
    """Measure and analyse `experiment`, leaving everything in `folder`, which must not exist.

    Returns None if too little was measured for a report. Raises ResultsError if the folder exists
    or the experiment cannot do what the options ask for, and KeyboardInterrupt after the
    measurements until then have been analysed.
    """
    require_possible(experiment, options)
    results = _new(folder)
    if experiment.scales and not options.scale:
        options = replace(options, scale=experiment.scales[options.quick])
    results.write_manifest(_manifest(experiment, options, folder))
    return _measured(experiment, options, results, say)


def require_possible(experiment: Experiment, options: Options) -> None:
    """Raise ResultsError if the experiment cannot do what the options ask for."""
    if options.scale and not experiment.scales:
        raise ResultsError(f"--scale divides emulated times, and {experiment.name} has none")
    if options.fail_if and not experiment.has_loads:
        raise ResultsError(f"{experiment.name} has no loads, which --fail-if judges; leave it out")
    loads = experiment.loads(options)
    if unknown := [load for load in options.loads if load not in loads]:
        choices = ", ".join(f"{load:g}" for load in loads) or "none to choose"
        raise ResultsError(f"{experiment.name} has no load {unknown[0]:g}; it has {choices}")


def _new(folder: Path) -> Results:
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise ResultsError(f"{folder} exists; results are never written over") from None
    return Results(folder)


def bring(files: Sequence[Path], folder: Path, workers: int, alone: Sequence[Path] = ()) -> None:
    """Make `folder`, which must not exist, a result of runs that any load generator made.

    workers: of the server. alone: further files, of one customer. Raises ResultsError.
    """
    runs, results = read_all(files, alone), _new(folder)
    manifest = _manifest(tool_results.EXPERIMENT, Options(), folder)
    manifest |= {"mode": FILES, "machine": {"cpu": "not known, because the files were brought"}}
    manifest |= {"workers": workers, "state": "complete", "ended": _now()}
    tool_results.write(runs, results)
    results.write_manifest(manifest)


def resume(folder: Path, say: Say) -> Report | None:
    """Measure what the results in `folder` still lack, with the same options, and analyse all.

    Raises ResultsError if it is not a folder of results or its experiment cannot be resumed, and
    KeyboardInterrupt as `run` does.
    """
    results = Results(folder)
    manifest, experiment = results.manifest(), experiment_of(results)
    if not experiment.can_resume:
        raise ResultsError(f"{folder} is a result of {experiment.name}, which cannot be resumed")
    names = {field.name for field in fields(Options)} & manifest.keys()
    chosen = {name: manifest[name] for name in names}
    chosen |= {name: tuple(manifest.get(name, ())) for name in ("loads", "fail_if")}
    manifest["state"] = INTERRUPTED
    now = " at ".join(filter(None, (_now(), commit())))  # the commit may not be the first one
    manifest["resumed"] = [*manifest.get("resumed", []), now]
    results.write_manifest(manifest)
    return _measured(experiment, Options(**chosen), results, say)


def _measured(
    experiment: Experiment, options: Options, results: Results, say: Say
) -> Report | None:
    manifest = results.manifest()
    manifest.pop("problem", None)
    again = f"; `scripts/lab resume {results.folder}` goes on" if experiment.can_resume else ""
    try:
        with TemporaryDirectory(prefix="flightchain-lab-", ignore_cleanup_errors=True) as scratch:
            experiment.measure(Run(options, results, Path(scratch), say))
        manifest["state"] = "complete"
    except KeyboardInterrupt:
        say(f"interrupted; what was measured is kept{again}")
        raise
    except Exception as problem:
        if lost := _lost_service(problem, options.host):
            manifest["problem"] = lost + again
            raise ProgramFailed(lost + again) from problem
        manifest["problem"] = str(problem)
        raise
    finally:
        results.write_manifest(manifest | {"ended": _now()})
        report = _analysed(results, say)
    return report


def _lost_service(problem: Exception, host: str) -> str:
    """Say that the service is not reached any more, at `host` if it is not ours; "" if it is."""
    try:
        if isinstance(problem, OSError) and is_of_network(problem):
            raise problem
        if host:
            with Site(host).connection(REACHED_WITHIN_S) as connection:
                connection.connect()
    except OSError as cause:
        return f"the service is not reached any more: {cause}"
    return ""


def _analysed(results: Results, say: Say) -> Report | None:
    """Analyse. Returns None, with a message, if an interrupted run has too little."""
    try:
        report = analyse(results)
    except Exception as problem:
        if results.manifest()["state"] == "complete":
            raise
        why = str(problem) if isinstance(problem, (ResultsError, OSError)) else repr(problem)
        say(f"no report was made: {why}")
        return None
    for finding in report.findings:
        say(f"- {finding}")
    say(f"report: {results.folder / REPORT}")
    return report


def _manifest(experiment: Experiment, options: Options, folder: Path) -> dict[str, Any]:
    return {
        "experiment": experiment.name,
        "title": experiment.title,
        "mode": experiment.mode,
        **asdict(options),
        "state": INTERRUPTED,  # until the run is complete
        "started": _now(),
        "ended": None,
        "commit": commit(),
        "machine": description(folder),
        "versions": dict(_versions()),
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _versions() -> Iterator[tuple[str, str]]:
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            yield package, version(package)


def analyse(results: Results, fail_if: Sequence[str] | None = None) -> Report:
    """Write summary.json and report.html anew from the tables of `results`.

    fail_if: thresholds, in place of those with which it was measured. A report is a failure if the
    runs that it needs were rejected, and if a threshold is true. Raises ResultsError if it is not a
    folder of results or lacks a table that it needs.
    """
    manifest, experiment = results.manifest(), experiment_of(results)
    runs, groups = judged_runs(results), _groups(results)
    rejected = sum(run.get("accepted") == NO for run in runs)
    report = _made(experiment, results, len(runs), rejected)
    failures = report.failure.rstrip("."), (broken := broken_thresholds(results, fail_if))
    metrics = [*report.metrics, *response_times.metrics(groups)]
    report = replace(report, metrics=metrics, failure="; ".join(filter(None, failures)))
    if broken:
        report = replace(report, findings=[*report.findings, f"By --fail-if this fails: {broken}."])
    if manifest.get("shared") and report.conclusion:
        report = replace(report, conclusion=f"On a shared machine: {report.conclusion}")
    more = [
        generator_section(results),
        response_times.section(groups) if groups else None,
        _runs_section(runs, rejected) if runs else None,
        errata_section(experiment.study) if experiment.study else None,
    ]
    page = report_page(experiment, manifest, report, [section for section in more if section])
    results.write_analysis(summary(report), page)
    return report


def _made(experiment: Experiment, results: Results, runs: int, rejected: int) -> Report:
    """Return the experiment's report; it says how many of the runs were rejected, if any."""
    if not rejected:
        return experiment.analyse(results)
    many = f"all runs ({runs})" if rejected == runs else f"{rejected} of {runs} runs"
    reason = most_common_reason(results)
    why = f"{many} were rejected by rule" + (f", mostly because {reason}" if reason else "")
    try:
        report = experiment.analyse(results)
    except NothingCounts as lack:
        lacking = str(lack).replace(str(results.folder), "this result")  # wherever it lies
        report = Report([f"{capital(lacking)}."], [], failure=f"{why}, so {lacking}")
    if rejected == runs:
        failure = f"{why}, so nothing was measured that counts"
        return replace(report, failure=report.failure or failure, conclusion=f"{capital(failure)}.")
    more = f"{capital(why)}. They count nowhere; the table of runs has the reasons."
    return replace(report, findings=[*report.findings, more])


def _runs_section(runs: Sequence[Mapping[str, str]], rejected: int) -> Section:
    """Return the section with all runs of runs.csv, and how many of them were rejected."""
    kept = "; these are kept, but count nowhere" if rejected else ""
    words = f"Runs: {len(runs)}. Rejected by rule: {rejected}{kept}."
    rows = [[_cell(text) for text in run.values()] for run in runs]
    return Section("Runs", [words], [Table("All runs", list(runs[0]), rows, is_folded=True)])


def broken_thresholds(results: Results, fail_if: Sequence[str] | None) -> str:
    """Describe which thresholds are true of a load, or cannot be judged; "" if none is.

    fail_if: as of `analyse`.
    """
    thresholds = results.manifest().get("fail_if", ()) if fail_if is None else fail_if
    if not thresholds:
        return ""
    groups = [group for group in _groups(results, with_failed=True) if group.is_load]
    if not any(group.runs for group in groups):
        return NO_LOAD
    return "; ".join(response_times.broken(thresholds, groups))


def _groups(results: Results, *, with_failed: bool = False) -> list[response_times.Group]:
    """Return the runs of each load. with_failed: as of `response_times.groups_of`."""
    if experiment_of(results).name == OF_FILES:
        return tool_results.groups(results)
    return response_times.groups_of(results, with_failed=with_failed)


def experiment_of(results: Results) -> Experiment:
    """Return the experiment that made `results`. Raises ResultsError if that is not known."""
    manifest = results.manifest()
    if lacking := [field for field in _FIELDS if field not in manifest]:
        why = "it was changed, or is of another program"
        raise ResultsError(f"{results.folder / MANIFEST} lacks {lacking[0]}; {why}")
    name, mode = str(manifest["experiment"]), manifest["mode"]
    try:
        known = experiment(name)
    except KeyError:
        raise ResultsError(
            f"{results.folder} is a result of the experiment {name!r}, which is unknown"
        ) from None
    if mode not in {known.mode, FILES}:
        raise ResultsError(f"{results.folder} has the mode {mode}, which {name} no longer has")
    return known


def _cell(text: str) -> str | float | None:
    if not text:
        return None
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        return text
