"""A writer dies when a block is in its file and no reader can see it yet, and posts go on.

Their flights get the ids that the block has, too. Whoever writes next may take in the block only if
it has nothing else under an id that was given.
"""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from backend.base.clock import now_ms
from backend.base.settings import Settings
from backend.sealing.sealer import Sealer
from backend.sources.generated import Generated
from backend.storage.block_writer import BlockWriter
from backend.verify.audit import verify
from tests.dying import Killed
from tests.flights import flight, import_flights, on_disk
from tests.submitting import accept_in, sealing

FLIGHTS = 1500


def die(work: Callable[[], object], below: int) -> None:
    """Do what ends before it commits blocks with more transactions than `below`."""
    commit = BlockWriter.commit

    def commit_or_die(writer: BlockWriter) -> None:
        if writer.state.transactions > below:
            raise Killed
        commit(writer)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(BlockWriter, "commit", commit_or_die)
        work()


def seal(folder: Path) -> list[str]:
    """Seal what is pending; returns what was reported."""
    messages: list[str] = []
    with sealing(settings_of(folder), messages.append) as sealer:
        sealer.seal_pending()
    return messages


def settings_of(folder: Path) -> Settings:
    return Settings(dir=str(folder))


def accept(folder: Path, serials: range) -> list[int]:
    """Post flights as a worker does; their ids."""
    with closing(Sealer(settings_of(folder), print)) as sealer:
        return [
            accept_in(sealer.mempool, [flight(serial)], now_ms()).first_transaction
            for serial in serials
        ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A chain with three flights, and an import that died when its blocks were in the file."""
    chain = tmp_path / "chain"
    accept(chain, range(3))
    seal(chain)
    die(lambda: import_flights(settings_of(chain), Generated(FLIGHTS, 1)), below=3)
    return chain


def test_flights_that_were_accepted_meanwhile_keep_their_ids(folder: Path) -> None:
    assert accept(folder, range(3, 9)) == list(range(3, 9))
    (message,) = seal(folder)
    assert "the mempool holds another flight as transaction 3" in message
    assert "these bytes are now in" in message
    assert on_disk(folder).flights == [flight(serial) for serial in range(9)]
    import_flights(settings_of(folder), Generated(FLIGHTS, 1))
    assert verify(folder).transactions == FLIGHTS + 9


def test_blocks_of_an_import_are_taken_in_if_nothing_was_accepted_meanwhile(folder: Path) -> None:
    messages: list[str] = []
    with sealing(settings_of(folder), messages.append):
        pass
    assert messages == ["blocks 2 to 3 were added to the table of heights"]
    tally = import_flights(settings_of(folder), Generated(FLIGHTS, 1))
    assert (tally.imported, tally.already_there) == (0, FLIGHTS)
    assert verify(folder).transactions == FLIGHTS + 3


def test_a_block_of_pending_flights_is_taken_in_and_what_came_after_it_stays_pending(
    tmp_path: Path,
) -> None:
    chain = tmp_path / "chain"
    accept(chain, range(5))
    die(lambda: seal(chain), below=0)
    assert accept(chain, range(5, 7)) == [5, 6]
    assert seal(chain) == ["blocks 1 to 1 were added to the table of heights"]
    assert on_disk(chain).flights == [flight(serial) for serial in range(7)]
