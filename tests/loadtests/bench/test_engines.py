"""The service and engines that read its export are asked the same, and compared."""

from pathlib import Path

import pytest

from loadtests.bench.engines import QUESTIONS, comparison
from loadtests.processes import ProgramFailed
from tests.api.processes import backend
from tests.flights import csv_of, flights

pytestmark = pytest.mark.long


def test_all_answer_alike_and_an_export_of_fewer_flights_is_an_error(tmp_path: Path) -> None:
    chain, export = tmp_path / "chain", tmp_path / "export"

    def done(*command: str) -> None:
        ended = backend(chain, *command)
        assert ended.returncode == 0, ended.stderr

    for number, first in enumerate((0, 5000)):
        file = tmp_path / f"{number}.csv"
        file.write_text(csv_of(flights(5000, first)), encoding="utf-8")
        done("import", str(file))
        if number == 0:
            done("export", "parquet", str(export))
            title, _, *rows = comparison(chain, export, tmp_path / "log")
    assert title.startswith("| Question, ms | service | DuckDB |")
    assert [row.split(" | ")[0] for row in rows] == [f"| {question.what}" for question in QUESTIONS]
    assert rows[-1].split(" | ")[1] == "cannot be asked"
    with pytest.raises(ProgramFailed, match="DuckDB says"):
        comparison(chain, export, tmp_path / "log")
