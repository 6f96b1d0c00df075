"""The ledger grows by made-up months, is measured on the way, and what was measured is drawn."""

import json
from itertools import islice
from pathlib import Path
from xml.etree import ElementTree

import pytest

from loadtests.bench import benchmark, growth, made_months
from loadtests.bench.growth_curves import CURVES, extrapolated, markdown, points, svg
from loadtests.bench.made_months import months

MACHINE = {
    "cpu": "Cortex-A72",
    "cores": 4,
    "ram_mb": 3981,
    "kernel": "Linux 6.6 aarch64",
    "python": "3.11.2",
    "file_system": "ext4 on /dev/sda1",
}


def test_months_follow_each_other_as_in_reality(tmp_path: Path) -> None:
    years = list(islice(months(1), 121))
    january, decade_later = years[0], years[120]
    assert (str(january), str(decade_later)) == ("1999-01", "2009-01")
    assert 1.3 < len(decade_later.legs) / len(january.legs) < 1.4
    carriers, later = (set(month.legs["carrier"]) for month in (years[60], decade_later))
    assert all((carriers & later, carriers - later, later - carriers))
    january.write(tmp_path / "a.csv")
    next(months(1)).write(tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


@pytest.mark.long
def test_a_ledger_grows_and_goes_on_where_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(made_months, "FIRST_A_DAY", 70)
    monkeypatch.setattr(growth, "RECENT", 1000)
    monkeypatch.setattr(growth, "QUESTIONS", 5)
    arguments = ["--growth", "3000", "--folder", str(tmp_path)]
    assert benchmark.main(arguments) == 0
    table = capsys.readouterr().out
    first = json.loads((tmp_path / "growth.json").read_text())
    assert [month["month"] for month in first["months"]] == ["1999-01", "1999-02"]
    (size,) = first["sizes"]
    assert size.keys() >= {curve.name for curve in CURVES}
    assert f"| {size['chain_bytes']:.3g} |" in table
    assert benchmark.main(arguments) == 0
    assert json.loads((tmp_path / "growth.json").read_text()) == first
    assert list(tmp_path.glob("*.csv")) == []


def test_curves_go_on_as_straight_lines() -> None:
    sizes = [{"flights": n * 1e6, "chain_bytes": 14.5, "verify_s": 6.0 * n} for n in (1, 2, 5, 10)]
    measured = {"sizes": sizes, "date": "2026-11-26", "commit": "abc", "machine": MACHINE}
    assert extrapolated(*points(measured, "verify_s")) == pytest.approx(1320)
    lines = list(markdown(measured))
    assert lines[0] == "| Million flights | 1.0 | 2.0 | 5.0 | 10.0 | 220 |"
    assert "| whole ledger, s: verify | 6 | 12 | 30 | 60 | *1,320* |" in lines
    ElementTree.fromstring(svg(measured))
