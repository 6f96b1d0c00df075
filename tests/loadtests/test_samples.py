"""Samples of the machine: parsed from what the kernel says, and true for a process that works."""

import multiprocessing
import os
import socket
from pathlib import Path
from time import monotonic, process_time, sleep

from loadtests.machine_samples import Sample, Sampler, append, core_ticks, listen_queue, read

STAT = """\
cpu  10 1 5 100 3 1 1 4 0 0
cpu0 4 1 2 60 1 0 1 2 0 0
cpu1 6 0 3 40 2 1 0 2 0 0
intr 12345
"""


def test_busy_is_all_but_idle_and_waiting_for_a_disk_and_stolen_time_is_busy() -> None:
    assert core_ticks(STAT) == [(10, 71), (12, 54)]


def test_connections_that_wait_are_counted_at_their_port_alone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)):
        port = server.getsockname()[1]
        assert listen_queue(port) == 0
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
        assert listen_queue(port) == 3
        server.accept()[0].close()
        assert listen_queue(port) == 2
        for client in clients:
            client.close()


def _work(until: float) -> None:
    while monotonic() < until:
        pass


def test_work_of_the_client_is_the_clients_and_not_foreign() -> None:
    worker = multiprocessing.get_context("spawn").Process(target=_work, args=(monotonic() + 1.5,))
    worker.start()
    assert worker.pid is not None
    try:
        sleep(0.3)
        sampler = Sampler(worker.pid, os.getpid(), 1)
        sleep(0.6)
        sample = sampler.sample()
    finally:
        worker.join()
    assert len(sample.cores) == os.cpu_count()
    assert sample.client_cpu > 0.05
    assert 0 <= sample.foreign_cpu < sum(sample.cores)
    assert sample.foreign_cpu <= max(0.0, sum(sample.cores) - sample.client_cpu) + 1e-9
    assert (sample.in_flight, sample.listen_queue) == (0, 0)
    assert 0 <= monotonic() - sample.at_s < 1.5


def test_a_server_elsewhere_has_no_processor_here() -> None:
    sampler = Sampler(os.getpid(), None, 8000)
    process_time()
    sleep(0.05)
    sample = sampler.sample()
    assert (sample.server_cpu, sample.listen_queue) == (None, None)


def test_samples_are_read_as_they_were_written_run_by_run(tmp_path: Path) -> None:
    path = tmp_path / "samples.csv"
    one = Sample(1.0, 3, (0.5, 0.25), 0.125, 0.5, 0.0, 1.25, 2)
    two = Sample(2.0, 0, (0.0, 1.0), 0.0, None, 1.0, 0.5, None)
    append(path, "a", [one, two])
    append(path, "b", [two])
    append(path, "c", [])
    assert read(path) == {"a": [one, two], "b": [two]}
    assert read(path, "b") == {"b": [two]}
    assert path.read_text().splitlines()[0] == (
        "run,at_s,in_flight,cpu_0,cpu_1,client_cpu,server_cpu,foreign_cpu,"
        "load_average_1m,listen_queue"
    )
