"""Row 4 reads from an import how long it checked, and writes a month as other kinds."""

import lzma
from pathlib import Path

import pytest

from loadtests.bench.imports import KAGGLE, OTHERS, READY_MADE, STRAIGHT, titles_of, write_as
from loadtests.processes import environment, finished
from tests.api.processes import backend
from tests.flights import csv_of, flights, on_disk, transactions_in


def test_an_import_without_its_check_makes_the_same_chain(tmp_path: Path) -> None:
    file = tmp_path / "some.csv"
    file.write_text(csv_of(flights(3000)), encoding="utf-8")
    assert backend(tmp_path / "checked", "import", str(file)).returncode == 0
    finished([*STRAIGHT, str(file)], environment(tmp_path / "straight", {}), None)
    checked, straight = (on_disk(tmp_path / name) for name in ("checked", "straight"))
    assert straight.flights == checked.flights == flights(3000)


@pytest.mark.parametrize(("kind", "others"), [(KAGGLE, []), (READY_MADE, OTHERS)])
def test_the_month_as_another_kind_is_taken_for_that_kind(
    kind: str, others: list[str], tmp_path: Path
) -> None:
    month, file = tmp_path / "month.csv.xz", tmp_path / "another.csv"
    with lzma.open(month, "wt", encoding="utf-8", newline="") as text:
        text.write(csv_of(flights(300)))
    write_as(month, file, kind, others)
    header, first = file.read_text(encoding="utf-8").splitlines()[:2]
    assert len(header.split(",")) == len(titles_of(kind)) + len(others)
    assert ".0," in first
    done = backend(tmp_path / "chain", "import", str(file))
    assert done.returncode == 0, done.stderr
    assert ("ready-made month, downloaded since 2018" in done.stderr) == (kind == READY_MADE)
    assert transactions_in(tmp_path / "chain") == 300
