"""What a machine tells of itself; here a made-up Raspberry Pi."""

import platform
from pathlib import Path

import pytest

from backend.base import machine


@pytest.mark.parametrize(("flags", "is_throttled"), [("0", 0), ("50000", 0), ("50005", 1)])
def test_a_pi_tells_its_temperature_and_whether_it_is_slowed_down_now(
    flags: str, is_throttled: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("_TEMPERATURE", "48686\n"), ("_THROTTLED", f"{flags}\n")):
        (tmp_path / name).write_text(text)
        monkeypatch.setattr(machine, name, tmp_path / name)
    monkeypatch.setattr(machine, "_FREQUENCY", tmp_path / "none")
    readings = {reading.name: reading.value for reading in machine.readings(tmp_path)}
    assert readings["temperature_celsius"] == 48.686
    assert readings["throttled"] == is_throttled
    assert "frequency_hertz" not in readings


def test_a_unit_that_sees_only_processes_tells_what_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_PROCESSOR", "_STAT", "_MEMORY", "_BOARD"):
        monkeypatch.setattr(machine, name, tmp_path / "none")
    (tmp_path / "cpu.stat").write_text("usage_usec 7500000\nuser_usec 1\n")
    monkeypatch.setattr(machine, "_ROOT_GROUP", tmp_path / "cpu.stat")
    readings = {reading.name: reading.value for reading in machine.readings(tmp_path)}
    assert readings["cpu_seconds"] == 7.5
    assert readings["memory_bytes"] > 0
    assert "memory_available_bytes" not in readings
    assert machine.processor() == platform.machine()
