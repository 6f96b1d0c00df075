"""Backups of a ledger while it runs, and restoring them.

    manifest     what a backup says of itself: `backup.json`, written last
    blocks       block files, copied as far as they are new, and checked where they arrived
    accepted     what is in no block: pending flights, idempotency keys, tokens
    making       a backup, in the order in which nothing can be missed
    restoring    a ledger from a backup, which is there whole or not at all

A backup has the layout of a chain's folder, without the index, which is made anew from the blocks.
So `verify` reads it like any other. Files only grow, and what an earlier run left is good as its
`backup.json` says, until a later run has replaced that.
"""

from backend.backup.making import Made, back_up
from backend.backup.restoring import restore

__all__ = ["Made", "back_up", "restore"]
