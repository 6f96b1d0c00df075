"""Names of runs: none is used twice, whatever an earlier run has left."""

from pathlib import Path

from loadtests import machine_samples
from loadtests.generation.rows import Row, RowFile
from loadtests.generation.run import REQUESTS, SAMPLES
from loadtests.lab.repeated import unused_name
from loadtests.lab.results import Results


def test_a_name_is_new_even_if_an_earlier_run_was_broken_off(tmp_path: Path) -> None:
    results = Results(tmp_path)
    assert unused_name(results, "closed") == "closed-1"
    rows = RowFile(tmp_path / REQUESTS)
    rows.write([Row("closed-1", 0, "k", 0.0, 0.0, None, 0.1, None, 200, "")])
    rows.close()
    sample = machine_samples.Sample(1.0, 0.1, None, 0.0)
    machine_samples.append(tmp_path / SAMPLES, "closed-2", [sample])
    with results.table("runs", ("run", "accepted")) as table:
        table.write(run="closed-4", accepted="no")
    assert unused_name(results, "closed") == "closed-3"
    assert unused_name(results, "open") == "open-1"
