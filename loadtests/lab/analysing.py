"""Makes the summary and report of a folder of results."""

from dataclasses import replace

from loadtests.experiments import experiment
from loadtests.lab.errata import errata_section
from loadtests.lab.experiment import Experiment
from loadtests.lab.report.content import Report, Section, Table, summary
from loadtests.lab.report.page import emulated_words, report_page
from loadtests.lab.report.words import capital
from loadtests.lab.results import NO, Results, ResultsError

RUNS = "runs"  # the table of all runs, accepted or rejected


def analyse(results: Results) -> Report:
    """Write summary.json and report.html anew from the tables of `results`.

    A report of which every run was rejected is a failure. Raises ResultsError if it is not a folder
    of results or lacks a table that it needs.
    """
    manifest, found = results.manifest(), experiment_of(results)
    report = found.analyse(results)
    if rejected := _without_a_run(results):
        failure = report.failure or rejected
        report = replace(report, failure=failure, conclusion=f"{capital(rejected)}.")
    more = [*_runs(results), *([errata_section(found.study)] if found.study else [])]
    reproduces = f"Reproduces {found.reproduces} of study {found.study}." if found.study else ""
    lead = [found.about, *([reproduces] if reproduces else [])]
    emulated = emulated_words(manifest, found.emulated_so, found.report_seconds)
    page = report_page(found.title, lead, manifest, report, more, emulated, found.waited)
    results.write_analysis(summary(report), page)
    return report


def experiment_of(results: Results) -> Experiment:
    """The experiment that made `results`. Raises ResultsError if it is unknown."""
    name = results.manifest().get("experiment")
    try:
        return experiment(str(name))
    except KeyError:
        raise ResultsError(
            f"{results.folder} is a result of the experiment {name!r}, which is unknown"
        ) from None


def _without_a_run(results: Results) -> str:
    """A sentence if runs were judged and every one was rejected."""
    rows = results.rows_if_any(RUNS)
    if not rows or any(row.get("accepted") != NO for row in rows):
        return ""
    return f"all runs ({len(rows)}) were rejected by rule, so nothing was measured that counts"


def _runs(results: Results) -> list[Section]:
    """A section with all runs, accepted and rejected."""
    if not results.has(RUNS):
        return []
    rows = results.rows(RUNS)
    columns = list(rows[0]) if rows else ["run"]
    rejected = sum(row.get("accepted") == NO for row in rows)
    told = f"Runs: {len(rows)}. Rejected by rule: {rejected}; these are kept, but count nowhere."
    table = Table("All runs", columns, [[_cell(row[name]) for name in columns] for row in rows])
    return [Section("Runs", [told], [table])]


def _cell(text: str) -> str | float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return text
