"""Reads the tables of a result, and computes the window and the demands of every run."""

from collections.abc import Sequence
from dataclasses import dataclass

from loadtests.experiments.mixed_clients.measuring import PLAN, PlanLine
from loadtests.experiments.mixed_clients.plan import LOCAL
from loadtests.generation import samples as sampling
from loadtests.generation.interactions import whole
from loadtests.generation.rows import Row
from loadtests.generation.run import SAMPLES
from loadtests.generation.samples import Sample
from loadtests.generation.window import Window, closed_window
from loadtests.lab.repeated import accepted_by_run, rows_by_run
from loadtests.lab.results import Results
from loadtests.scenarios import STEPS

LEAST_SAMPLED_S = 2.0  # less is too short to measure the generator


@dataclass(frozen=True, slots=True)
class MixedRun:
    """A run. service_demand_s: processor time of the service for an interaction.

    generator_demand_s: that of the load generator; None in process, where there is none, and for
    runs that are too short to measure it.
    """

    place: str
    blocks: int
    customers: int
    window: Window
    service_demand_s: float
    generator_demand_s: float | None
    is_accepted: bool


def mixed_runs(results: Results) -> list[MixedRun]:
    """All runs with a window, in the order in which they were made."""
    rows, accepted = rows_by_run(results), accepted_by_run(results)
    path = results.folder / SAMPLES
    samples = sampling.read(path) if path.exists() else {}
    made = (
        _run(line, rows[line.run], samples.get(line.run, []), accepted.get(line.run, False))
        for line in results.lines(PLAN, PlanLine)
    )
    return [run for run in made if run is not None]


def _run(
    line: PlanLine, rows: Sequence[Row], samples: Sequence[Sample], is_accepted: bool
) -> MixedRun | None:
    interactions = whole(rows, STEPS)
    try:
        window = closed_window(interactions, line.warm_up)
    except ValueError:  # the first customer finished before the last was ready: no window
        return None
    generator_s = None if line.place == LOCAL else _generator_s(interactions, samples)
    service_s = line.cpu_s / line.interactions
    place, blocks, customers = line.place, line.blocks, line.customers
    return MixedRun(place, blocks, customers, window, service_s, generator_s, is_accepted)


def _generator_s(interactions: Sequence[Row], samples: Sequence[Sample]) -> float | None:
    """The generator's processor time for an interaction, over the seconds that have samples."""
    end_s = max(row.done_s for row in interactions)
    during = [sample for sample in samples if sample.at_s <= end_s]
    if not during or during[-1].at_s < LEAST_SAMPLED_S:
        return None
    until_s, used_s, before_s = during[-1].at_s, 0.0, 0.0
    for sample in during:
        used_s += sample.client_cpu * (sample.at_s - before_s)
        before_s = sample.at_s
    return used_s / sum(row.done_s <= until_s for row in interactions)
