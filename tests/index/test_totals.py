"""How a batch of flights is added: within the memory that SQLite's cache takes."""

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import apsw

from backend.index import totals
from backend.index.index_file import open_to_write
from backend.index.totals import FlightRow
from backend.index.writer import IndexWriter

ROUTES, PAGE_BYTES = 400, 4096
DAY = 13_879  # 2008-01-01


def rows(ids: Iterable[int]) -> list[FlightRow]:
    """Rows of table flight: each transaction is on the next route."""
    return [(n % ROUTES, DAY, n, 1, 19393, 755, -5, 900, 3, 0, 60, 0) for n in ids]


def test_a_batch_for_all_routes_takes_no_copy_of_each_page_that_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    IndexWriter(path).close()
    with closing(open_to_write(path)) as connection:
        totals.prepare(connection)
        filling = rows(range(100 * ROUTES))  # so that each route has pages of its own
        batch = rows(range(100 * ROUTES, 101 * ROUTES))
        for added in filling, batch:
            totals.stage(connection, added)
            connection.execute("BEGIN")
            before, _ = apsw.status(apsw.SQLITE_STATUS_MEMORY_USED, True)
            totals.add_staged(connection, added)
            _, most = apsw.status(apsw.SQLITE_STATUS_MEMORY_USED)
            connection.execute("COMMIT")
    assert most - before < ROUTES * PAGE_BYTES / 2
