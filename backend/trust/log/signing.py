"""Signs checkpoints of the log, in the one process that writes blocks.

`checkpoint` in the chain's folder is the newest signed checkpoint, a note. It can be made again at
any time, so it is not synced. It does not go back in silence: whoever writes blocks refuses to if
the one before named more blocks, or other blocks (`verify.folder_check`). Where it goes back all
the same, because a torn block was left out or a person has decided, that is reported, and every
witness will refuse what follows.
"""

from pathlib import Path

from backend.base import files
from backend.base.errors import Damage, FlightchainError
from backend.base.words import Report, Trouble
from backend.chain.state import ChainState
from backend.storage.block_store import BlockStore
from backend.trust.log import CHECKPOINT_NAME, checkpoints
from backend.trust.log.checkpoints import Checkpoint
from backend.trust.log.log_checks import foreign_log, signed_by_us
from backend.trust.log.notes import is_signed
from backend.trust.log.rotation import finish_rotation, note_predecessor
from backend.trust.log.secret_keys import LOG, SecretKey, exposure, secret_key, write_checkpoint
from backend.trust.log.successions import SUCCESSIONS_NAME
from backend.trust.log.tree import HistoryTree


class CheckpointSigner:
    """Keeps the checkpoint of the chain in `folder` at its tip, in one process at a time."""

    def __init__(self, folder: Path, store: BlockStore, tree: HistoryTree, report: Report) -> None:
        """Read nothing yet. report: takes a line when something keeps it from signing."""
        self._folder = folder
        self._store = store
        self._tree = tree
        self._report = report
        self._signed: Checkpoint | None = None  # by this process
        self._trouble = Trouble(report)

    def sign(self, state: ChainState) -> None:
        """Sign the tree of all blocks up to the tip. What goes wrong is reported, once."""
        if state.height < 0:
            return
        try:
            self._sign(state.height + 1, state.history.root())
            self._trouble.end()
        except FlightchainError as error:
            self._trouble.report(f"no checkpoint is signed: {error}")

    def _sign(self, size: int, root: bytes) -> None:
        finish_rotation(self._folder)
        key = self._key()
        checkpoint = Checkpoint(key.verifier.name, size, root)
        before, is_ours = self._signed, True
        if before is None and (newest := checkpoints.newest_in(self._folder)):
            before, is_ours = signed_by_us(self._folder), is_signed(newest[0], key.verifier)
        if before != checkpoint or not is_ours:
            self._warn_of_fork(before, checkpoint)
            write_checkpoint(self._folder, key, checkpoint)
        self._signed = checkpoint

    def _key(self) -> SecretKey:
        """Return the key of this log, which is made if there never was one. Raises Damage."""
        if problem := foreign_log(self._folder):
            raise Damage(problem)
        self._make_room_for_new_key()
        origin = checkpoints.origin_of(self._store.place(0).hash.hex())
        key = secret_key(self._folder, LOG, origin)
        if self._signed is None:
            note_predecessor(self._folder, key)
            if warning := exposure(self._folder, LOG):
                self._report(warning)
        return key

    def _make_room_for_new_key(self) -> None:
        """Put the successions of earlier keys aside if there is no key that they could lead to."""
        names = (LOG.secret, LOG.public, CHECKPOINT_NAME)
        path = self._folder / SUCCESSIONS_NAME
        if path.exists() and not any((self._folder / name).exists() for name in names):
            aside = path.with_name(f"{path.name}.old")
            files.rename(path, aside)
            self._report(
                f"the log gets a new key; {path} does not lead to it, and is now {aside.name}"
            )

    def _warn_of_fork(self, before: Checkpoint | None, after: Checkpoint) -> None:
        """Say so if the tree that was signed before is no beginning of this one."""
        if before is None or before.origin != after.origin:
            return
        is_shorter = after.size < before.size
        if is_shorter or self._tree.root(before.size) != before.root:
            self._report(
                f"the last signed checkpoint named {before.size} blocks, but the chain now has "
                f"{after.size}, {'fewer' if is_shorter else 'not the same ones'}: witnesses of "
                "this log will refuse what follows"
            )
