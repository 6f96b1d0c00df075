"""Keeps flights that were accepted, are durable, and are not yet in a block.

    mempool           gives ids and says what is pending
    store             reads and appends the records in the one file, `mempool/mempool.sqlite`
    database          opens and makes that file, and turns SQLite's errors into ours
    records           defines a record, which is what one offer wrote
    duplicates        recognises a flight that is pending already
    id_lock           keeps other threads and processes from giving ids
    idempotency_keys  defines the keys that clients send to post once
    syncs             makes what was written durable, with one sync for many threads
    watermark         remembers how far flights have been acknowledged (`acknowledged.dat`)
    rebuild           replaces a damaged file, and names what is lost
    lost_files        names what is kept of a damaged file
    last_release      reads the folder of the last release, once
    checks            checks the folder for `verify`
    recovery_view     answers what recovery of the block files asks

What happens to the files, what notices it, and what becomes of it:

    killed while it writes         SQLite takes back what was not committed; it was never answered
    killed before the sync, or     what was answered had been synced; the rest is there or not, in
      the power is cut               whole records
    sync or write fails            the process accepts nothing more until it is restarted; who
                                     writes first then writes the log's bytes again
    a bit of a page has flipped    the page's checksum: rows before that page are kept
    a bit of the log has flipped   while it runs the row's digest: the other rows are kept; else
                                     SQLite drops what follows, and the watermark names it
    file cut short, garbage        as above
    file gone, empty, older        the watermark: ids that are missing are lost; if blocks hold
                                     them, only keys are
    log there without its file     as above, and the log is kept: it may hold the lost flights
    log or shared memory gone      their inodes, before each write: rebuilt from what is open
    of another ledger, or the log  its genesis hash: refused, and nothing is changed
    last release was here again    its files stand beside ours: refused until a person chooses
    a link in place of the file    its log would be where that leads, and not be synced: refused
    acknowledged.dat gone          rebuilt from the store, and said; of another ledger: refused
    cannot be read now             refused until it can
    killed while it is rebuilt     the next process goes on; the old file is kept all the while
    blocks are gone                what records and watermark say that blocks held: refused until a
                                     person accepts the loss

"Lost" means: the ids are named by the log, by `ready` and by `verify` until a person has moved the
file `lost-FIRST-COUNT.bin`; void entries take their places; the damaged file is kept as
`damaged-N.sqlite`. Given up is the repair of bits, and what stands behind a bad page.

Only `recovery_view` knows blocks: the others call a function that says how many transactions blocks
hold.
"""

from backend.mempool.checks import Checked, check_mempool
from backend.mempool.mempool import FOLDER, Mempool, Offer, Refused, StaleComparison, Unrepaired
from backend.mempool.records import Accepted
from backend.mempool.recovery_view import PendingInRecovery

__all__ = [
    "FOLDER",
    "Accepted",
    "Checked",
    "Mempool",
    "Offer",
    "PendingInRecovery",
    "Refused",
    "StaleComparison",
    "Unrepaired",
    "check_mempool",
]
