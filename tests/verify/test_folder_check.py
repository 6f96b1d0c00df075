"""What the parts of a folder say of each other."""

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from backend.base.errors import Damage
from backend.index.index_file import index_path
from backend.storage.block_store import BlockStore
from backend.trust.log import KEY_NAME, VERIFIER_NAME
from backend.trust.log.tree import HistoryTree
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
