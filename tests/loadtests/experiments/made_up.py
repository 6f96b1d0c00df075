"""Results and runs that are made up, to see what is made of rows and tables."""

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from loadtests.experiments.open_workload_loads import STEADY, STUDY, OpenRun
from loadtests.generation.rows import Row, row_file
from loadtests.generation.run import REQUESTS
from loadtests.lab.results import Line, Results
from loadtests.models.open_queue import ONE, Queue
from loadtests.models.random_times import Gamma, poisson_times
from tests.loadtests.experiments.planted_servers import open_run

SERVICE_S = 0.04


@dataclass(frozen=True, slots=True)
class JudgedLine(Line):
    """What the lab reads of a line of `runs.csv`."""

    run: str
    accepted: bool
    reasons: str = ""
    requests: int = 0
    workload: str = ""


def results_of(
    experiment: str, folder: Path, mode: str = "real", cores: int = 1, **more: object
) -> Results:
    """The folder of a complete run of an experiment, with nothing but its manifest."""
    folder.mkdir(exist_ok=True)
    results = Results(folder)
    manifest = {"experiment": experiment, "mode": mode, "scale": None, "quick": False, "seed": 1}
    results.write_manifest(manifest | {"state": "complete", "machine": {"cores": cores}} | more)
    return results


def keep(results: Results, rows: Iterable[Row]) -> None:
    """Add raw rows."""
    with closing(row_file(results.folder / REQUESTS)) as file:
        file.add(*rows)


def judge(results: Results, accepted: Mapping[str, bool]) -> None:
    """List runs as accepted or rejected."""
    with results.table("runs", JudgedLine) as table:
        for run, is_accepted in accepted.items():
            table.add(JudgedLine(run, is_accepted))


def a_run(
    fraction: float,
    slower: float = 1.0,
    seed: int = 1,
    arrivals: int = 600,
    *,
    cv: float = 0.0,
    queue: Queue = ONE,
    reports_times: bool = True,
    part: str = STEADY,
    counts: bool = True,
    server: str = STUDY,
) -> OpenRun:
    """A run whose server takes `slower` times what it took at the calibration."""
    random, law = Random(seed), Gamma(SERVICE_S, cv)
    rate_per_s = fraction * queue.servers / SERVICE_S
    times_s = poisson_times(rate_per_s, random, count=arrivals)
    services_s = [slower * law.draw(random) for _ in times_s]
    responses_s = queue.replayed_s(times_s, services_s)
    calibrated = f"c{seed}", fraction, [law.draw(random) for _ in range(4000)]
    run = open_run(f"r{seed}", *calibrated, times_s, services_s, responses_s, servers=queue.servers)
    return replace(
        run,
        server=server,
        part=part,
        rate_per_s=rate_per_s,
        service_time_s=SERVICE_S,
        service_variance_s2=(cv * SERVICE_S) ** 2,
        overhead_s=0.0 if reports_times else None,
        is_accepted=counts,
    )
