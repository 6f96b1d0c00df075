"""Results and runs that are made up, to see what is made of rows and tables."""

from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from random import Random

from loadtests.experiments.open_workload_loads import STEADY, STUDY, OpenRun
from loadtests.generation.rows import Row, RowFile
from loadtests.generation.run import REQUESTS
from loadtests.lab.results import Results
from loadtests.models.open_queue import ONE, Queue
from loadtests.models.random_times import Gamma, poisson_times

SERVICE_S = 0.04


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
    with closing(RowFile(results.folder / REQUESTS)) as file:
        file.write(list(rows))


def judge(results: Results, accepted: Mapping[str, bool]) -> None:
    """List runs as accepted or rejected."""
    with results.table("runs", ("run", "accepted", "reasons")) as table:
        for run, is_accepted in accepted.items():
            table.write(run=run, accepted=is_accepted, reasons="")


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
    times_s = poisson_times(fraction * queue.servers / SERVICE_S, random, count=arrivals)
    services_s = [slower * law.draw(random) for _ in times_s]
    responses_s = queue.replayed_s(times_s, services_s)
    rows = [
        Row(f"r{seed}", i, "k", at_s, at_s, None, at_s + stay_s, service_s, 200, "")
        for i, (at_s, stay_s, service_s) in enumerate(
            zip(times_s, responses_s, services_s, strict=True)
        )
    ]
    return OpenRun(
        run=f"r{seed}",
        server=server,
        part=part,
        fraction=fraction,
        rate_per_s=fraction * queue.servers / SERVICE_S,
        duration_s=times_s[-1],
        calibration=f"c{seed}",
        service_time_s=SERVICE_S,
        service_variance_s2=(cv * SERVICE_S) ** 2,
        overhead_s=0.0 if reports_times else None,
        delay_s=0.0,
        servers=queue.servers,
        is_accepted=counts,
        rows=rows,
        before=[
            Row("c", n, "k", 0.0, 0.0, None, law.draw(random), None, 200, "") for n in range(4000)
        ],
    )
