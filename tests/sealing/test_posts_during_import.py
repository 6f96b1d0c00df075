"""Posts while an import runs: they are answered at once, and every flight is stored once."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backend.base.errors import TryLater
from backend.base.settings import Settings
from backend.chain.flight import Flight
from backend.index.writer import IndexWriter
from backend.ledger.ledger import Ledger
from backend.sealing import importer, newcomers
from backend.sealing.importer import Tally, Watcher, import_all
from backend.sources.flight_file import FlightFile
from tests.flights import changed, csv_of, flights, import_flights, on_disk
from tests.same_flights import CANCELLED

SOON_S = 0.3
AT_ONCE_S = 3  # with room for a busy machine; the index is waited for up to 5 s


@pytest.fixture
def chosen(tmp_path: Path) -> Settings:
    return Settings(dir=str(tmp_path / "chain"), difficulty_bits=4)


@pytest.fixture
def ledger(chosen: Settings) -> Iterator[Ledger]:
    with closing(Ledger(chosen, print)) as ledger:
        yield ledger


def written(folder: Path, rows: Sequence[Flight], name: str = "flights.csv") -> FlightFile:
    path = folder / name
    path.write_text(csv_of(rows), encoding="utf-8")
    return FlightFile(path)


def after_batch(number: int, act: Callable[[], object]) -> Watcher:
    """Call `act` when that batch of blocks is sealed, between the locks of two batches."""
    sealed: list[int] = []

    def on_progress(tally: Tally) -> None:
        if tally.blocks >= number and not sealed:
            sealed.append(tally.blocks)
            act()

    return Watcher(on_progress=on_progress)


def counts(answer: dict[str, Any]) -> list[int]:
    return [answer[name] for name in ("accepted", "already_there", "conflicts")]


def let_the_index_wait(monkeypatch: pytest.MonkeyPatch, above: int) -> threading.Event:
    """Let the index take in no block above a height until the event is set."""
    goes_on, apply = threading.Event(), IndexWriter.apply

    def late(writer: IndexWriter, blocks: Any) -> None:
        if blocks[0].header.height > above:
            goes_on.wait(60)
        apply(writer, blocks)

    monkeypatch.setattr(IndexWriter, "apply", late)
    return goes_on


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importer, "BLOCKS_AT_ONCE", 2)


@pytest.mark.usefixtures("small_batches")
def test_what_the_index_lacks_is_compared_without_waiting_for_it(
    tmp_path: Path, chosen: Settings, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = let_the_index_wait(monkeypatch, above=1)  # that of the chain so far is there
    rows, answers = flights(6000), dict[str, Any]()

    def post() -> None:
        started, submitter = time.monotonic(), ledger.submitter
        lag = ledger.index_lag_blocks()
        answers["tried"] = submitter.try_batch(rows[1000:3000], skips=True)
        answers["counted"] = submitter.try_batch(rows[1000:3000])
        answers["compared"] = submitter.compared([rows[1500]])
        answers["added"] = submitter.add_batch(rows[1500:2500], skips=True)
        goes_on.set()
        answers["took_s"] = time.monotonic() - started
        assert lag == 2

    import_flights(chosen, written(tmp_path, rows[:1], "first.csv"))
    tally = import_flights(chosen, written(tmp_path, rows[1:]), after_batch(2, post))
    assert answers["took_s"] < AT_ONCE_S
    assert counts(answers["tried"]) == [999, 1001, 0]
    assert answers["counted"]["duplicates"] == 1001
    assert [stored.transaction_id for stored in answers["compared"].copies.values()] == [1500]
    assert counts(answers["added"]) == [499, 501, 0]
    assert (tally.imported, tally.already_there) == (5500, 499)
    stored = on_disk(chosen.folder).flights
    assert stored == [*rows[:2001], *rows[2001:2500], *rows[2500:]]


@pytest.mark.usefixtures("small_batches")
def test_a_post_does_not_wait_until_the_index_has_the_batch_before(
    tmp_path: Path, chosen: Settings, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, took_s = let_the_index_wait(monkeypatch, above=0), [0.0]

    def post() -> None:
        time.sleep(SOON_S)  # the next blocks are built, and their turn comes
        started = time.monotonic()
        ledger.submitter.add_batch(rows[5500:5600], skips=True)
        took_s[0] = time.monotonic() - started
        goes_on.set()

    rows, client = flights(6000), threading.Thread(target=post)
    tally = import_flights(chosen, written(tmp_path, rows), after_batch(2, client.start))
    client.join()
    assert 0 < took_s[0] < AT_ONCE_S
    assert (tally.imported, tally.already_there) == (5900, 100)
    assert sorted(map(str, on_disk(chosen.folder).flights)) == sorted(map(str, rows))


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("skips", [True, False])
def test_flights_that_are_posted_between_two_batches_are_not_imported_again(
    tmp_path: Path, chosen: Settings, ledger: Ledger, skips: bool
) -> None:
    """The import has compared them with the ledger long before, and built their blocks."""
    rows = flights(7000)
    posted = [
        *rows[4990:5010],
        *(changed(row, ORIGIN_AIRPORT_ID=None) for row in rows[5010:5020]),
        changed(rows[5020], ORIGIN_CITY_NAME="Elsewhere"),
        changed(rows[5021], **CANCELLED),
    ]

    def post() -> None:
        ledger.submitter.add_batch(posted, skips=skips)

    later = [*flights(100, 7000), *rows[5000:5005]]
    sources = [written(tmp_path, rows), written(tmp_path, later, "later.csv")]
    first, second = import_all(chosen, sources, after_batch(2, post))
    assert (first.imported, first.already_there, first.conflicts) == (6968, 30, 2)
    assert (second.imported, second.already_there) == (100, 5)
    assert on_disk(chosen.folder).flights == [
        *rows[:2000], *posted, *rows[2000:4990], *rows[5022:], *later[:100],
    ]  # fmt: skip


@pytest.mark.usefixtures("small_batches")
def test_an_import_that_stores_nothing_of_its_last_blocks_ends_well(
    tmp_path: Path, chosen: Settings, ledger: Ledger
) -> None:
    rows = flights(4500)

    def post() -> None:
        ledger.submitter.add_batch(rows[2000:])

    tally = import_flights(chosen, written(tmp_path, rows), after_batch(2, post))
    assert (tally.imported, tally.already_there, tally.blocks) == (2000, 2500, 2)
    assert on_disk(chosen.folder).flights == rows


@pytest.mark.usefixtures("small_batches")
def test_more_posts_than_an_import_can_remember_end_it_with_a_word(
    tmp_path: Path, chosen: Settings, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newcomers, "MOST_REMEMBERED", 50)
    rows, posted = flights(6000), flights(51, 10_000)
    source = written(tmp_path, rows)

    def post() -> None:
        ledger.submitter.add_batch(posted)

    with pytest.raises(TryLater, match=r"51 flights were posted .* run the import again"):
        import_flights(chosen, source, after_batch(2, post))
    assert import_flights(chosen, source).imported == 4000
    assert on_disk(chosen.folder).flights == [*rows[:2000], *posted, *rows[2000:]]


@pytest.mark.usefixtures("with_children")
def test_a_file_that_is_posted_while_it_is_imported_is_stored_once(
    tmp_path: Path, chosen: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients post all of it in any order, as fast as they are answered."""
    monkeypatch.setattr(importer, "BLOCKS_AT_ONCE", 3)
    rows, is_done = flights(12_000), threading.Event()
    parts = [rows[start : start + 250] for start in range(0, len(rows), 250)]
    slowest_s = [0.0]

    def send(order: Sequence[list[Flight]]) -> None:
        with closing(Ledger(chosen, print)) as own:
            for part in order:
                if is_done.is_set():
                    return
                started = time.monotonic()
                own.submitter.add_batch(part, skips=True)
                slowest_s[0] = max(slowest_s[0], time.monotonic() - started)

    clients = [
        threading.Thread(target=send, args=(order,)) for order in (parts[::-1], parts[16:36])
    ]
    source = written(tmp_path, rows)

    def start() -> None:
        send(parts[-1:])  # however late the clients come
        for client in clients:
            client.start()

    tally = import_flights(chosen, source, after_batch(3, start))
    is_done.set()
    for client in clients:
        client.join()
    import_flights(chosen, source)  # what is pending
    stored = on_disk(chosen.folder).flights
    assert len(stored) == len(rows)
    assert set(stored) == set(rows)
    assert tally.already_there
    assert slowest_s[0] < 2 * AT_ONCE_S
