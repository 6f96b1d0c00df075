"""What the parts of a folder say of each other."""

import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from backend.base.errors import Damage
from backend.index.index_file import index_path
from backend.ledger.ledger import Ledger
from backend.storage.block_store import BlockStore
from backend.storage.layout import ENTRY_BYTES
from backend.trust.log import KEY_NAME, VERIFIER_NAME
from backend.trust.log.tree import HistoryTree
from backend.verify.audit import verify
from backend.verify.folder_check import lost_part, require_one_ledger
from tests.api.worlds import seal, settings_for
from tests.flights import flights


def test_the_index_of_a_longer_chain_counts_only_if_it_is_of_this_chain(tmp_path: Path) -> None:
    ours, copy, other = (tmp_path / name for name in ("ours", "copy", "other"))
    for folder in (ours, other):
        seal(settings_for(folder), [flights(1)])
    shutil.copytree(ours, copy, symlinks=True)
    for folder in (ours, other):
        seal(settings_for(folder), [flights(1, 1), flights(1, 2)])
    with closing(BlockStore(copy)) as store:
        for folder, problem in ((other, ""), (ours, "the chain has lost blocks")):
            shutil.copy(index_path(folder), index_path(copy))
            assert lost_part(copy, HistoryTree(store), store).partition(":")[0] == problem


@pytest.mark.parametrize("file_bytes", [1, 10**6])  # a block file for each block, or for all
def test_a_table_that_ends_before_the_block_files_is_no_loss_of_blocks(
    tmp_path: Path, file_bytes: int
) -> None:
    seal(settings_for(tmp_path, block_file_bytes=file_bytes), [flights(1, n) for n in range(3)])
    table = tmp_path / "blocks" / "heights.dat"
    os.truncate(table, 2 * ENTRY_BYTES)
    settings = settings_for(tmp_path)
    with closing(BlockStore(tmp_path)) as store, closing(Ledger(settings, print)) as ledger:
        problem = lost_part(tmp_path, HistoryTree(store), store)
        reasons = [reason for reason in ledger.not_ready() if "lost" in reason]
    assert problem == (
        f"{table} ends at block 1, but the block files go on; restart the service, which adds the "
        "other blocks to the table"
    )
    assert reasons == []
    seal(settings, [])
    verify(tmp_path)


@pytest.mark.parametrize("accepts_loss", [True, False])
def test_the_log_of_another_ledger_is_no_loss_that_may_be_accepted(
    tmp_path: Path, accepts_loss: bool
) -> None:
    ours, other = tmp_path / "ours", tmp_path / "other"
    for folder in (ours, other):
        seal(settings_for(folder), [flights(1)])
    for name in (KEY_NAME, VERIFIER_NAME):
        shutil.copy(other / name, ours)
    with closing(BlockStore(ours)) as store, pytest.raises(Damage, match="another ledger's"):
        require_one_ledger(ours, store, accepts_loss=accepts_loss)
