"""Makes backups of a ledger while it runs, and restores them.

    manifest      writes and reads `backup.json`, which says what a backup holds
    block_copies  compares blocks with those of the ledger, and copies those that are new
    accepted      copies what is in no block: pending flights, idempotency keys, tokens
    making        makes a backup, in an order in which nothing can be missed
    restoring     makes a ledger from a backup, whole or not at all

A backup has the layout of a chain's folder, without the index, which is rebuilt from the blocks.
So `verify` reads it like any other chain. Files only grow, so the backup of an earlier run is good
until a later run has replaced its `backup.json`.
"""

from backend.verify.backup.making import Made, back_up
from backend.verify.backup.restoring import require_restorable, restore

__all__ = ["Made", "back_up", "require_restorable", "restore"]
