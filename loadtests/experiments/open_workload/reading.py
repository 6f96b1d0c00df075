"""Reads the tables of a result: its runs, with arrivals, demands and response times."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from loadtests.experiments.open_workload.measuring import PLAN
from loadtests.experiments.open_workload.plan import FCFS, key_of, warm_up
from loadtests.generation.rows import Row
from loadtests.generation.run import SCHEDULES
from loadtests.generation.schedule import load as load_schedule
from loadtests.lab.experiment import Mode
from loadtests.lab.raw import accepted_by_run, rows_by_run
from loadtests.lab.results import Results
from loadtests.models import replay
from loadtests.models.estimates import BATCHES, without_warm_up

LEAST_SETTLED = BATCHES  # requests after the warm-up, one for each batch


@dataclass(frozen=True)
class OpenRun:
    """A run. service_time_s, service_variance_s2: from the calibration just before it.

    rows: in order of arrival. demands_s: service time that each asked for, plus the calibrated
    overhead; the calibrated mean if it did not ask for any.
    """

    name: str
    server: str
    part: str
    fraction: float
    rate_per_s: float
    duration_s: float
    service_time_s: float
    service_variance_s2: float
    overhead_s: float
    is_accepted: bool
    rows: Sequence[Row]
    demands_s: Sequence[float]

    @property
    def arrivals_s(self) -> list[float]:
        """The intended arrival times."""
        return [row.intended_s for row in self.rows]

    @property
    def responses_s(self) -> list[float]:
        """Response times, from the intended arrival."""
        return [row.open_response_s for row in self.rows]

    @property
    def is_long_enough(self) -> bool:
        """Whether enough requests are left without the warm-up."""
        return len(self.rows) >= warm_up(self.fraction) + LEAST_SETTLED

    def settled(self, values: Sequence[float]) -> Sequence[float]:
        """`values`, one for each request, without those of the warm-up.

        Raises ValueError if none is left.
        """
        return without_warm_up(values, warm_up(self.fraction))

    @cached_property
    def replayed_s(self) -> list[float]:
        """Response times of the same arrivals in the queue of the model."""
        return self._replay(self.demands_s)

    @cached_property
    def replayed_as_served_s(self) -> list[float] | None:
        """Response times replayed with the service times that the server measured.

        None if there are none, and for a shared server, whose times include turns of others.
        """
        served = [row.service_s for row in self.rows]
        if self.server != FCFS or any(service_s is None for service_s in served):
            return None
        return self._replay([(service_s or 0.0) + self.overhead_s for service_s in served])

    def _replay(self, services_s: Sequence[float]) -> list[float]:
        discipline = replay.fcfs if self.server == FCFS else replay.processor_sharing
        return discipline(self.arrivals_s, services_s)


def open_runs(results: Results) -> list[OpenRun]:
    """All runs with rows, accepted or rejected, ordered by load as in the plan.

    The order is the same if a load was resumed later.
    """
    rows, accepted = rows_by_run(results), accepted_by_run(results)
    is_judged = results.manifest()["mode"] != Mode.MODEL
    lines = [line for line in results.rows(PLAN) if rows[line["run"]]]
    in_order = list(dict.fromkeys(map(key_of, lines)))
    lines.sort(key=lambda line: in_order.index(key_of(line)))
    return [
        _open_run(
            results,
            line,
            rows[line["run"]],
            is_accepted=accepted.get(line["run"], not is_judged),
        )
        for line in lines
    ]


def _open_run(
    results: Results,
    line: Mapping[str, str],
    rows: Sequence[Row],
    *,
    is_accepted: bool,
) -> OpenRun:
    name, mean_s = line["run"], float(line["service_time_s"])
    overhead_s = float(line["overhead_s"] or 0)
    rows = sorted(rows, key=lambda row: row.index)
    return OpenRun(
        name=name,
        server=line["server"],
        part=line["part"],
        fraction=float(line["fraction"]),
        rate_per_s=float(line["rate_per_s"]),
        duration_s=float(line["duration_s"]),
        service_time_s=mean_s,
        service_variance_s2=float(line["service_variance_s2"]),
        overhead_s=overhead_s,
        is_accepted=is_accepted,
        rows=rows,
        demands_s=_demands(results, name, rows, mean_s, overhead_s),
    )


def _demands(
    results: Results, name: str, rows: Sequence[Row], mean_s: float, overhead_s: float
) -> list[float]:
    path = results.folder / SCHEDULES / f"{name}.csv"
    if not path.exists():  # the rows of a simulation have the service times
        return [row.service_s or mean_s for row in rows]
    demands = {arrival.index: arrival.demand_s for arrival in load_schedule(path)}
    told = (demands[row.index] for row in rows)
    return [mean_s if demand_s is None else demand_s + overhead_s for demand_s in told]
