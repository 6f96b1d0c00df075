"""What a machine tells of itself; here a made-up Raspberry Pi."""

import os
import platform
from pathlib import Path

import pytest

from backend.base import machine

FILES = {
    "_BOARD": "Raspberry Pi 4 Model B Rev 1.5\0",
    "_PROCESSOR": "processor\t: 0\nmodel name\t: Cortex-A72\n",
    "_STAT": "cpu  1000 200 300 40000 5000 60 7 8 900 90\ncpu0 1 1 1 1 1 1 1 1 1 1\n",
    "_MEMORY": "MemTotal: 4000 kB\nMemFree: 1000 kB\nMemAvailable: 3000 kB\n",
    "_TEMPERATURE": "48686\n",
    "_FREQUENCY": "1500000\n",
}


@pytest.mark.parametrize(
    ("flags", "is_throttled"), [("0", 0), ("50000", 0), ("50005", 1), ("8", 1)]
)
def test_a_pi_tells_what_it_is_how_warm_and_busy_and_whether_it_is_slowed_down_now(
    flags: str, is_throttled: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {**FILES, "_THROTTLED": f"{flags}\n"}.items():
        (tmp_path / name).write_text(text)
        monkeypatch.setattr(machine, name, tmp_path / name)
    readings = {reading.name: reading.value for reading in machine.readings(tmp_path)}
    assert machine.processor() == "Raspberry Pi 4 Model B Rev 1.5, Cortex-A72"
    assert readings["cpu_seconds"] == (1000 + 200 + 300 + 60 + 7 + 8) / os.sysconf("SC_CLK_TCK")
    assert readings["memory_available_bytes"] == 3000 * 1024
    assert readings["temperature_celsius"] == 48.686
    assert readings["frequency_hertz"] == 1.5e9
    assert readings["throttled"] == is_throttled


def test_the_disk_has_worked_as_long_as_the_table_of_all_disks_says(tmp_path: Path) -> None:
    device = tmp_path.stat().st_dev
    numbers = [str(os.major(device)), str(os.minor(device))]
    table = [line.split() for line in Path("/proc/diskstats").read_text().splitlines()]
    if not (before_s := [int(row[12]) / 1000 for row in table if row[:2] == numbers]):
        pytest.skip("the temporary folder is on no disk")
    readings = {reading.name: reading.value for reading in machine.readings(tmp_path)}
    assert before_s[0] <= readings["disk_busy_seconds"] < before_s[0] + 60


def test_a_unit_that_sees_only_processes_tells_what_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_PROCESSOR", "_STAT", "_MEMORY", "_BOARD", "_FREQUENCY"):
        monkeypatch.setattr(machine, name, tmp_path / "none")
    (tmp_path / "cpu.stat").write_text("usage_usec 7500000\nuser_usec 1\n")
    monkeypatch.setattr(machine, "_ROOT_GROUP", tmp_path / "cpu.stat")
    readings = {reading.name: reading.value for reading in machine.readings(tmp_path)}
    assert readings["cpu_seconds"] == 7.5
    assert readings["memory_bytes"] > 0
    assert not readings.keys() & {"memory_available_bytes", "frequency_hertz"}
    assert machine.processor() == platform.machine()
