"""Measurements in the file that the documents show: each has its origin, and replaces its row."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from loadtests.bench import benchmark
from loadtests.bench.benchmark import options_from
from loadtests.bench.figures import Figure
from loadtests.bench.measurements import Measurement, markdown, measured, read, write
from loadtests.processes import ProgramFailed

EARLIER = Measurement(
    1, "questions", "0.8", "at least 0.9", False, "a month", "an old machine", "2026-01-01", "abc"
)
HEADER = {
    "date": "2026-11-26T04:00:00+00:00",
    "month": "January 2008",
    "commit": "0123456789ab",
    "cpu": "Cortex-A72",
    "cores": 4,
    "ram_mb": 3981,
    "kernel": "Linux 6.6 aarch64",
    "python": "3.11.2",
    "file_system": "ext4 on /dev/sda1",
    "noise": "quiet before the start",
}


def test_a_figure_becomes_a_measurement_with_its_origin() -> None:
    figure = Figure(6, "start", "1.2 s", "under 1 s", reached=False, noisy=True)
    (row,) = measured([figure], HEADER)
    assert (row.number, row.name, row.value) == (6, "start", "1.2 s, noisy")
    assert (row.target, row.reached) == ("under 1 s", False)
    assert row.origin == (
        "2026-11-26, commit 0123456789ab, January 2008, Cortex-A72, 4 cores, 4 GB, ext4, "
        "Linux 6.6 aarch64, Python 3.11.2, quiet before the start"
    )


def test_a_row_that_is_measured_again_replaces_its_measurements_alone(tmp_path: Path) -> None:
    file = tmp_path / "performance.json"
    other = replace(EARLIER, number=4, name="import")
    write(file, [other, EARLIER, replace(EARLIER, name="gone")])
    again = replace(EARLIER, value="0.95", reached=True, date="2026-02-02")
    write(file, [again])
    assert read(file) == [again, other]
    assert len(file.read_text().splitlines()) == 4  # a line each, for those who compare versions


def test_a_table_says_what_is_missed_and_where_each_row_comes_from() -> None:
    other = replace(EARLIER, number=4, target="", reached=None, date="2026-02-02")
    lines = list(markdown([EARLIER, other, replace(other, number=5)]))
    assert lines[2:] == [
        "| 1 | questions | 0.8 | at least 0.9: missed |",
        "| 4 | questions | 0.8 |  |",
        "| 5 | questions | 0.8 |  |",
        "",
        "Row 1: 2026-01-01, commit abc, a month, an old machine.",
        "",
        "Rows 4, 5: 2026-02-02, commit abc, a month, an old machine.",
    ]


@pytest.mark.parametrize("content", ["", "{", "7", "[7]", '[{"number": 1}]', '{"figures": []}'])
def test_a_file_of_something_else_is_not_written_over(tmp_path: Path, content: str) -> None:
    file = tmp_path / "notes.json"
    file.write_text(content)
    with pytest.raises(ProgramFailed, match="no measurements"):
        write(file, [EARLIER])
    with pytest.raises(SystemExit):
        options_from(["--json", str(file)])
    assert file.read_text() == content


def test_numbers_of_a_quick_run_do_not_come_among_real_ones(tmp_path: Path) -> None:
    file = tmp_path / "performance.json"
    assert options_from(["--quick", "--json", str(file)]).json == file
    write(file, [EARLIER])
    assert options_from(["--json", str(file)]).json == file
    with pytest.raises(SystemExit):
        options_from(["--quick", "--json", str(file)])


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(
    tmp_path: Path,
) -> None:
    for path in (tmp_path, tmp_path / "nowhere" / "performance.json"):
        with pytest.raises(SystemExit):
            options_from(["--json", str(path)])


def test_a_row_that_failed_keeps_its_earlier_measurements(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(bench: object) -> Iterator[Figure]:
        yield Figure(1, "questions", "0.1")
        raise ProgramFailed("it broke")

    def whole(bench: object) -> Iterator[Figure]:
        yield Figure(5, "chain on disk", "14")

    file = tmp_path / "performance.json"
    write(file, [EARLIER])
    monkeypatch.setattr(benchmark, "ROWS", {1: broken, 5: whole})
    monkeypatch.setattr("signal.signal", lambda *given: None)
    assert benchmark.main(["--json", str(file)]) == 1
    assert [(row.number, row.value) for row in read(file)] == [(1, "0.8"), (5, "14")]
    assert json.loads(file.read_text())[1]["date"] > EARLIER.date
