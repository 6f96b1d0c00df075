"""Compares two results of one experiment: before and after a change, for example."""

from collections.abc import Mapping, Sequence, Set
from math import hypot
from typing import Any

from loadtests.lab.repeated import Estimate
from loadtests.lab.report.content import Cell, Section, Table
from loadtests.lab.report.page import plain_page
from loadtests.lab.results import Results, ResultsError
from loadtests.lab.running import experiment_of

MOST_NAMED = 12  # results that only one side has, by name

Metrics = Mapping[str, Mapping[str, Any]]  # name -> metric, as in a summary


def comparison_page(before: Results, after: Results) -> str:
    """A page with all results that both have, and a verdict on each.

    Times that were divided by different K are not compared, only results without a unit. Raises
    ResultsError if the results are of different experiments or modes, or have nothing in common.
    """
    manifests = before.manifest(), after.manifest()
    for field in ("experiment", "mode"):
        values = [manifest[field] for manifest in manifests]
        if values[0] != values[1]:
            raise ResultsError(
                f"cannot compare: {field} is {values[0]} in the first and {values[1]} in the second"
            )
    of_before, of_after = (_metrics(results) for results in (before, after))
    notes = [
        f"Only the {which} has: {_named(alone)}."
        for which, alone in (
            ("first", of_before.keys() - of_after.keys()),
            ("second", of_after.keys() - of_before.keys()),
        )
        if alone
    ]
    scales = [manifest["scale"] for manifest in manifests]
    if scales[0] != scales[1]:
        notes.append(
            f"K is {scales[0]} in the first and {scales[1]} in the second: what does not divide by "
            "K (HTTP, timers, the generator) differs, and only results without a unit are compared."
        )
        of_before = {name: one for name, one in of_before.items() if not one["unit"]}
    rows = [
        _compared(name, of_before[name], of_after[name]) for name in of_before if name in of_after
    ]
    if not rows:
        raise ResultsError(f"cannot compare: no result in common. {' '.join(notes)}".rstrip())
    found = experiment_of(before)
    sections = [Section("Results", notes, [_table(rows)]), _machines(*manifests)]
    return plain_page(f"{found.title}: two runs compared", [found.about], sections)


def _named(names: Set[str]) -> str:
    """The names in order; of many, how many more there are."""
    first, more = sorted(names)[:MOST_NAMED], len(names) - MOST_NAMED
    return ", ".join(first) + (f" and {more} more" if more > 0 else "")


def _table(rows: Sequence[Sequence[Cell]]) -> Table:
    return Table(
        "Before and after",
        ("Result", "Unit", "Before", "After", "After / before", "Verdict"),
        rows,
        "Intervals are 95 % confidence intervals. A result is more or less if the 95 % interval of "
        "the difference leaves out 0. Results without intervals are not decided.",
    )


def _machines(before: Mapping[str, Any], after: Mapping[str, Any]) -> Section:
    rows = [
        [name, str(before["machine"].get(name)), str(value)]
        for name, value in after["machine"].items()
    ]
    return Section("Machines", parts=[Table("The machines", ("", "Before", "After"), rows)])


def _metrics(results: Results) -> Metrics:
    return {metric["name"]: metric for metric in results.summary()["metrics"]}


def _compared(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Sequence[Cell]:
    ratio = after["value"] / before["value"] if before["value"] else None
    told = [str(Estimate(of["value"], of["low"], of["high"])) for of in (before, after)]
    return name, after["unit"], *told, ratio, _verdict(before, after)


def _verdict(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Whether after − before is decided, by the interval of a difference of independent values.

    Its ends are those of R. G. Newcombe, Statistics in Medicine 17 (1998), method 10: the distances
    to the ends of both intervals, added as squares.
    """
    if None in {before["low"], before["high"], after["low"], after["high"]}:
        return "not decided"
    difference = after["value"] - before["value"]
    if difference > hypot(after["value"] - after["low"], before["high"] - before["value"]):
        return "more"
    if -difference > hypot(after["high"] - after["value"], before["value"] - before["low"]):
        return "less"
    return "no difference seen"
