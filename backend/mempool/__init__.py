"""Keeps flights that were accepted, are durable, and are not yet in a block.

    mempool           gives ids and says what is pending
    log               reads and writes the segments on the disk
    record, segments  define the format of a record and the names of the segments
    syncs             makes what was written durable, with one sync for many threads
    acknowledged      remembers how far flights have been acknowledged
    idempotency_keys  remembers which keys were used in the last day, and for what
    salvage           puts a damaged log right
    crc               finds a flipped bit
    copies            recognises a flight that is pending already
    checks            checks the folder for `verify`
    in_recovery       answers what recovery of the block files asks

Only `in_recovery` knows blocks: the others call a function that says how many transactions blocks
hold.
"""

from backend.mempool.checks import Checked, check_mempool
from backend.mempool.in_recovery import PendingInRecovery
from backend.mempool.mempool import FOLDER, Mempool, Offer, Refused
from backend.mempool.record import Accepted

__all__ = [
    "FOLDER",
    "Accepted",
    "Checked",
    "Mempool",
    "Offer",
    "PendingInRecovery",
    "Refused",
    "check_mempool",
]
