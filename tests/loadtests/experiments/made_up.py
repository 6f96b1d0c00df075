"""Folders of results that are made up, to see what is made of rows and tables."""

from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path

from loadtests.generation.rows import Row, RowFile
from loadtests.generation.run import REQUESTS
from loadtests.lab.results import Results


def results_of(experiment: str, folder: Path, mode: str = "real", cores: int = 1) -> Results:
    """The folder of a complete run of an experiment, with nothing but its manifest."""
    folder.mkdir(exist_ok=True)
    results = Results(folder)
    manifest = {"experiment": experiment, "mode": mode, "scale": None, "quick": False, "seed": 1}
    results.write_manifest(manifest | {"state": "complete", "machine": {"cores": cores}})
    return results


def keep(results: Results, rows: Iterable[Row]) -> None:
    """Add raw rows."""
    with closing(RowFile(results.folder / REQUESTS)) as file:
        file.write(list(rows))


def judge(results: Results, accepted: Mapping[str, bool]) -> None:
    """List runs as accepted or rejected."""
    with results.table("runs", ("run", "accepted", "reasons")) as table:
        for run, is_accepted in accepted.items():
            table.write(run=run, accepted=is_accepted, reasons="")
