"""Hours of everything at once, at a pace that a small computer keeps up with.

Clients post one by one and in batches, ask questions of both engines, export and look at pages. The
memory of all processes stays flat: in the last quarter it is at most `GROWTH` times that of the
second. In the end the chain is audited like after any harm.
"""

import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from tests.api.processes import Service, free_port, is_answered, serving, until
from tests.api.worlds import Json
from tests.faults.auditing import as_row, audit, compare_answers
from tests.faults.clients import Memory, memories, posting
from tests.faults.hostile import EXPORT
from tests.faults.house import house_in
from tests.faults.probes import Probe, probes, probing
from tests.faults.report import Outcome, Task
from tests.flights import flight
from tests.units.supervised import serving_confined

CLIENTS = 3
POST_EVERY_S = 0.05
SAMPLES = 40
FEWEST_SAMPLES = 8
GROWTH = 1.05
SLACK_BYTES = 4 * 2**20  # what the allocator may keep one day and not the next
READY_SERIALS = 50


def run(task: Task) -> Outcome:
    """Go on for `task.count` seconds."""
    outcome = Outcome(done=task.count)
    folder, remembered = task.folder / "chain", memories(CLIENTS)
    pages = free_port()
    with serving_confined(folder, "--frontend", FLIGHTCHAIN_FRONTEND_PORT=pages) as service:
        until(lambda: is_answered(f"http://127.0.0.1:{pages}/"))
        samples = _load(service, pages, remembered, task, outcome)
        outcome.notes.append(f"memory, MB: {', '.join(f'{s / 2**20:.0f}' for s in samples)}")
        if len(samples) >= FEWEST_SAMPLES:
            _judge(samples, outcome)
        assert service.stop() == 0, service.said()
    house = house_in(task.folder)
    if not house.seal_the_rest():
        outcome.add("refused", f"the miner does not end well\n{house.log()}")
    flights = audit(folder, remembered, outcome)
    with serving(folder) as service:
        compare_answers(service.json, flights, task.chance, outcome)
    return outcome


def _load(
    service: Service, pages: int, remembered: Sequence[Memory], task: Task, outcome: Outcome
) -> list[int]:
    """Memory of all processes now and then, while everybody is at work."""
    rows = [as_row(n, flight(remembered[0].first + n)) for n in range(READY_SERIALS)]
    some = [probe for probe in probes(service.port, pages, rows, 0) if probe.name != "single posts"]
    some += _readers(service, rows)
    samples: list[int] = []
    with posting(service.port, remembered, POST_EVERY_S), probing(some):
        for number in range(SAMPLES):
            time.sleep(task.count / SAMPLES)
            samples.append(sum(_proportional_bytes(pid) for pid in service.processes()))
            if number % 10 == 9:
                task.says(f"{number + 1} of {SAMPLES}: {samples[-1] / 2**20:.0f} MB")
    for probe in some:
        if probe.failures:
            outcome.add("refused", f"{len(probe.failures)} like {probe.failures[0]}")
        outcome.notes.append(f"{probe.name}: p99 {1000 * probe.p99_s():.0f} ms")
    return samples


def _readers(service: Service, rows: Sequence[Json]) -> list[Probe]:
    """Those who ask for what takes long."""
    row = rows[0]
    days = f"INITIAL_DATE={row['FL_DATE']}&FINAL_DATE={row['FL_DATE']}"
    scan = (
        f"/average_delays?OP_CARRIER_AIRLINE_ID={row['OP_CARRIER_AIRLINE_ID']}&{days}&engine=scan"
    )
    return [
        Probe("scans", service.port, lambda connection: connection.request("GET", scan)),
        Probe("exports", service.port, lambda connection: connection.request("GET", EXPORT)),
    ]


def _proportional_bytes(pid: int) -> int:
    """The memory of a process, what it shares counted in its part; 0 if it has ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    (line,) = (line for line in text.splitlines() if line.startswith("Pss:"))
    return int(line.split()[1]) * 1024


def _judge(samples: Sequence[int], outcome: Outcome) -> None:
    quarter = len(samples) // 4
    before = statistics.median(samples[quarter : 2 * quarter])
    after = statistics.median(samples[-quarter:])
    if after > GROWTH * before + SLACK_BYTES:
        grown = f"from {before / 2**20:.0f} to {after / 2**20:.0f} MB"
        outcome.add("slow", f"memory grows {grown}")
