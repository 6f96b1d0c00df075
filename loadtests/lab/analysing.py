"""Makes the summary and report of a folder of results, and the comparison of two folders."""

from collections.abc import Mapping
from typing import Any

from loadtests.experiments import experiment
from loadtests.lab.errata import errata_section
from loadtests.lab.experiment import Experiment
from loadtests.lab.report.content import Report, Section, Table, summary
from loadtests.lab.report.page import emulated_words, plain_page, report_page, shown
from loadtests.lab.results import Results, ResultsError

RUNS = "runs"  # the table of all runs, accepted or rejected


def analyse(results: Results) -> Report:
    """Write summary.json and report.html anew from the tables of `results`.

    Raises ResultsError if it is not a folder of results or lacks a table that it needs.
    """
    manifest, found = results.manifest(), experiment_of(results)
    report = found.analyse(results)
    more = [*_runs(results), *([errata_section(found.study)] if found.study else [])]
    reproduces = f"Reproduces {found.reproduces} of study {found.study}." if found.study else ""
    lead = [found.about, *([reproduces] if reproduces else [])]
    emulated = f"{emulated_words(manifest, found.report_seconds)} {found.emulated_so}".rstrip()
    page = report_page(found.title, lead, manifest, report, more, emulated)
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


def _runs(results: Results) -> list[Section]:
    """A section with all runs, accepted and rejected."""
    if not results.has(RUNS):
        return []
    rows = results.rows(RUNS)
    columns = list(rows[0]) if rows else ["run"]
    rejected = sum(row.get("accepted") == "no" for row in rows)
    told = f"Runs: {len(rows)}. Rejected by rule: {rejected}; these are kept, but count nowhere."
    table = Table("All runs", columns, [[_cell(row[name]) for name in columns] for row in rows])
    return [Section("Runs", [told], [table])]


def _cell(text: str) -> str | float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return text


def comparison_page(before: Results, after: Results) -> str:
    """A page that compares two results of one experiment: before and after a change, for example.

    A difference counts only where the 95 % intervals do not overlap. Raises ResultsError if the
    results are of different experiments, modes or scales.
    """
    manifests = before.manifest(), after.manifest()
    for field in ("experiment", "mode", "scale"):
        values = [manifest[field] for manifest in manifests]
        if values[0] != values[1]:
            raise ResultsError(
                f"cannot compare: {field} is {values[0]} in the first and {values[1]} in the second"
            )
    found = experiment(manifests[0]["experiment"])
    of_before, of_after = (_metrics(results) for results in (before, after))
    rows = [
        _compared(name, of_before[name], of_after[name]) for name in of_before if name in of_after
    ]
    table = Table(
        "Before and after",
        ("Result", "Unit", "Before", "After", "After / before", "Verdict"),
        rows,
        "Intervals are 95 % confidence intervals. Results without them are not decided.",
    )
    machines = Table(
        "The machines",
        ("", "Before", "After"),
        [
            [name, str(manifests[0]["machine"].get(name)), str(value)]
            for name, value in manifests[1]["machine"].items()
        ],
    )
    missing = sorted(of_before.keys() ^ of_after.keys())
    notes = [f"Only one of the two has: {', '.join(missing)}."] if missing else []
    sections = [Section("Results", notes, [table]), Section("Machines", parts=[machines])]
    return plain_page(f"{found.title}: two runs compared", [found.about], sections)


def _metrics(results: Results) -> dict[str, Mapping[str, Any]]:
    return {metric["name"]: metric for metric in results.summary()["metrics"]}


def _compared(
    name: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[str, str, str, str, float | None, str]:
    ratio = after["value"] / before["value"] if before["value"] else None
    told = _with_interval(before), _with_interval(after)
    return name, after["unit"], *told, ratio, _verdict(before, after)


def _with_interval(metric: Mapping[str, Any]) -> str:
    value = shown(metric["value"])
    if metric["low"] is None or metric["high"] is None:
        return value
    return f"{value} ({shown(metric['low'])} to {shown(metric['high'])})"


def _verdict(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    if None in {before["low"], before["high"], after["low"], after["high"]}:
        return "not decided"
    if after["low"] > before["high"]:
        return "more"
    return "less" if after["high"] < before["low"] else "no difference seen"
