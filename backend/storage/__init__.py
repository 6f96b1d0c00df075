"""Stores blocks under their heights: block files, their recovery, and two caches in front of them.

    layout       where things are: names, frames, the table of heights (arithmetic only)
    codec        frames <-> blocks
    block_store  reading, by any number of processes, without locks
    block_writer appending, by one process under the writer lock
    recovery     what the writer does with the end of the files before it appends
    damage_notes which blocks readers found to be damaged
    caches       the last blocks, and the neighbourhood of the block last asked for

Besides these, files that other packages share: SQLite with checksums (`checked_sqlite`), a
cluster's receipts (`receipt_store`), and the tokens of who may write (`tokens`). `genesis` names
the ledger of a file, `scan_costs` and `emulated` serve the lab.

Blocks are written and synced first, then the table of heights that points to them. A reader
trusts the table, and checks every block against its header before it is used.
"""
