"""Bad rows are kept as they stand in their file, each source's below its own header."""

from contextlib import closing
from pathlib import Path

from backend.base.errors import BadRow
from backend.sealing.source_check import BadRows, BadRowsOfBatch
from backend.sealing.spool import Spool


def test_the_bad_rows_of_a_source_stand_apart_from_those_before(tmp_path: Path) -> None:
    with closing(Spool(tmp_path)) as spool:
        for name in ("a", "b"):
            bad = BadRows()
            for number in (2, 3):
                problem = BadRow(f"{name}.csv, line {number}", "YEAR", "x", "is no year", number)
                bad.add(BadRowsOfBatch([(problem, "", f"{name}{number}")], "YEAR"), spool)
            content = spool.read(bad.end - bad.start, bad.start)
            assert content == f"YEAR\n{name}2\n{name}3\n".encode()
            assert (bad.count, bad.is_json) == (2, False)
