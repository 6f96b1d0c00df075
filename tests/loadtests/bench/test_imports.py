"""Row 4 reads from an import how long it checked, and makes a file that needs deriving."""

import lzma
from pathlib import Path

from loadtests.bench.imports import seconds_checked, write_derived
from tests.api.processes import backend
from tests.flights import csv_of, flights, transactions_in


def test_an_import_says_how_long_it_checked(tmp_path: Path) -> None:
    file = tmp_path / "some.csv"
    file.write_text(csv_of(flights(3000)), encoding="utf-8")
    done = backend(tmp_path / "chain", "import", str(file))
    assert 0 < seconds_checked(done.stderr) < 60
    made_up = backend(tmp_path / "other", "import", "--generate", "10")
    assert seconds_checked(made_up.stderr) == 0


def test_the_file_that_needs_deriving_can_be_imported(tmp_path: Path) -> None:
    month, derived = tmp_path / "month.csv.xz", tmp_path / "flights_sample.csv"
    with lzma.open(month, "wt", encoding="utf-8", newline="") as file:
        file.write(csv_of(flights(300)))
    write_derived(month, derived)
    header, first = derived.read_text(encoding="utf-8").splitlines()[:2]
    assert header.startswith("FL_DATE,DOT_CODE,FL_NUMBER,ORIGIN,")
    assert "ORIGIN_STATE_NM" not in header
    assert ".0," in first
    done = backend(tmp_path / "chain", "import", str(derived))
    assert done.returncode == 0, done.stderr
    assert transactions_in(tmp_path / "chain") == 300
