"""Keeps flights that were accepted, are durable, and are not yet in a block.

`mempool` gives ids and says what is pending; `log` reads and writes the segments on the disk, whose
format `record` knows and whose names `segments`; `syncs` makes what was written durable, once for
many, and `acknowledged` remembers how far; `salvage` puts a damaged log right; `copies` recognises
a flight that is pending already; `checks` is what `verify` asks, and `in_recovery` what recovery of
the block files does. Nothing else here knows blocks: a function says how many transactions they
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
