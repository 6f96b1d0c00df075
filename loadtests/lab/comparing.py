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

Metric = Mapping[str, Any]  # as in a summary


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
    metrics = [{of["name"]: of for of in one.summary()["metrics"]} for one in (before, after)]
    names = [of.keys() for of in metrics]
    alone = ("first", names[0] - names[1]), ("second", names[1] - names[0])
    notes = [f"Only the {which} has: {_named(those)}." for which, those in alone if those]
    in_both = [name for name in metrics[0] if name in metrics[1]]
    scales = [manifest["scale"] for manifest in manifests]
    if scales[0] != scales[1]:
        notes.append(
            f"K is {scales[0]} in the first and {scales[1]} in the second: what does not divide by "
            "K (HTTP, timers, the generator) differs, and only results without a unit are compared."
        )
        in_both = [name for name in in_both if not metrics[0][name]["unit"]]
    if not in_both:
        raise ResultsError(f"cannot compare: no result in common. {' '.join(notes)}".rstrip())
    results = Table(
        "Before and after",
        ("Result", "Unit", "Before", "After", "After / before", "Verdict"),
        [_compared(name, *(of[name] for of in metrics)) for name in in_both],
        "Intervals are 95 % confidence intervals. A result is more or less if the 95 % interval of "
        "the difference leaves out 0. Results without intervals are not decided.",
    )
    machine, later = (manifest["machine"] for manifest in manifests)
    rows = [[name, str(machine.get(name)), str(value)] for name, value in later.items()]
    machines = Table("The machines", ("", "Before", "After"), rows)
    found = experiment_of(before)
    sections = [Section("Results", notes, [results]), Section("Machines", parts=[machines])]
    return plain_page(f"{found.title}: two runs compared", [found.about], sections)


def _named(names: Set[str]) -> str:
    """The names in order; of many, how many more there are."""
    first, more = sorted(names)[:MOST_NAMED], len(names) - MOST_NAMED
    return ", ".join(first) + (f" and {more} more" if more > 0 else "")


def _compared(name: str, before: Metric, after: Metric) -> Sequence[Cell]:
    ratio = after["value"] / before["value"] if before["value"] else None
    told = [str(Estimate(of["value"], of["low"], of["high"])) for of in (before, after)]
    return name, after["unit"], *told, ratio, _verdict(before, after)


def _verdict(before: Metric, after: Metric) -> str:
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
