"""Samples of the machine: parsed from what the kernel says, and true for a process that works."""

import multiprocessing
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from time import monotonic, process_time, sleep

import pytest

from loadtests.machine_samples import (
    TICKS_PER_S,
    Sample,
    Sampler,
    append,
    busy_s,
    cpu_s,
    read,
    used_s,
)
from tests.api.processes import until

STAT = """\
cpu  10 1 5 100 3 1 1 4 0 0
cpu0 4 1 2 60 1 0 1 2 0 0
cpu1 6 0 3 40 2 1 0 2 0 0
intr 12345
"""


def test_busy_is_all_but_idle_and_waiting_for_a_disk_and_stolen_time_is_busy() -> None:
    assert busy_s(STAT) == (10 + 1 + 5 + 1 + 1 + 4) / TICKS_PER_S


def _work(until: float) -> None:
    while monotonic() < until:
        pass


def test_work_of_the_client_is_the_clients_and_not_foreign() -> None:
    worker = multiprocessing.get_context("spawn").Process(target=_work, args=(monotonic() + 60,))
    worker.start()
    pid = worker.pid or 0
    try:
        sampler, start_s, before = Sampler(pid, os.getpid()), monotonic(), cpu_s([pid])
        until(lambda: used_s(cpu_s([pid]), before) > 0.3)
        sample = sampler.sample()
    finally:
        worker.terminate()
        worker.join()
    assert sample.client_cpu * (sample.at_s - start_s) >= 0.29
    assert 0 <= sample.foreign_cpu <= len(os.sched_getaffinity(0)) - sample.client_cpu + 0.1
    assert 0 <= monotonic() - sample.at_s < 60


@pytest.mark.parametrize(
    ("server", "server_cpu", "foreign_cpu"),
    [
        pytest.param({7: 2.0, 8: 3.0}, 0.5, 0.75, id="the rest is foreign"),
        pytest.param({7: 9.0, 8: 3.0}, 4.0, 0.0, id="never negative"),
        pytest.param({8: 3.0, 9: 0.5}, 0.25, 1.0, id="one that ended takes nothing from others"),
    ],
)
def test_what_nobody_of_ours_used_is_foreign(
    server: dict[int, float],
    server_cpu: float,
    foreign_cpu: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = iter([(10.0, 100.0, [{1: 5.0}, {7: 1.0, 8: 3.0}]), (12.0, 103.0, [{1: 5.5}, server])])
    monkeypatch.setattr(Sampler, "_looked", lambda _: next(looks))
    sample = Sampler(None, 7).sample()
    assert (sample.client_cpu, sample.server_cpu) == (0.25, server_cpu)
    assert sample.foreign_cpu == foreign_cpu


def test_without_a_client_our_own_work_and_that_of_ended_children_is_the_clients() -> None:
    sampler, start_s = Sampler(None, None), monotonic()
    burn = "import time\nwhile time.process_time() < 0.1: pass"
    subprocess.run([sys.executable, "-c", burn], check=True)
    until_s = process_time() + 0.1
    while process_time() < until_s:
        pass
    sample = sampler.sample()
    assert sample.client_cpu * (sample.at_s - start_s) >= 0.19


def test_a_server_elsewhere_has_no_processor_here() -> None:
    sampler = Sampler(os.getpid(), None)
    process_time()
    sleep(0.05)
    sample = sampler.sample()
    assert sample.server_cpu is None


def test_samples_are_read_as_they_were_written_run_by_run(tmp_path: Path) -> None:
    path = tmp_path / "samples.csv"
    first, second = Sample(1.0, 0.125, 0.5, 0.0), Sample(2.0, 0.0, None, 1.0)
    append(path, "a", [first, second])
    append(path, "b", [second])
    append(path, "c", [])
    a = [replace(first, run="a"), replace(second, run="a")]
    assert read(path) == {"a": a, "b": [replace(second, run="b")]}
    assert path.read_text().splitlines()[0] == "at_s,client_cpu,server_cpu,foreign_cpu,run"
