"""The chain itself: what a flight, a transaction and a block are, and how they are proved.

This package is pure: no files, no clock, no threads, no Flask, no SQLite. Time, height and
transactions come in as arguments; bytes and values go out. It imports nothing of this project but
`base.errors`, `base.words` and `base.lru`, so another engine than the local miner can drive it.

    fields, flight       the 19 fields, and what a valid flight is
    identity             whether two records are of one flight, and whether they agree
    transaction          a flight with its place in the ledger
    block, block_rules   headers, blocks, and the rules that a valid block keeps
    state                where a chain stands: what the next block must continue
    columns              the stored body of a block; single_transactions reads parts of it
    summary              the sums by carrier and day that a header commits to
    merkle               trees and proofs
    canonical            the one JSON text of a value; json_objects reads JSON strictly
    placeholder          the void entry in the place of a lost flight
    parse_cache          what was made of repeated values

The format is frozen: `tests/chain/vectors` holds bytes that must never change.
"""
