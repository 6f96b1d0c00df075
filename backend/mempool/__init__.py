"""Accepted, durable, not yet in a block.

`mempool` gives ids and says what is pending; `log` reads and writes the segments on the disk, whose
format `record` knows; `syncs` makes what was written durable, once for many; `copies` recognises a
flight that is pending already. Nothing here knows blocks: a function says how many transactions
they hold.
"""

from backend.mempool.mempool import FOLDER, Mempool, Offer, Refused
from backend.mempool.record import Accepted

__all__ = ["FOLDER", "Accepted", "Mempool", "Offer", "Refused"]
