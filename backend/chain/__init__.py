"""The chain itself: what a flight, a transaction and a block are, and how they are proved.

This package is pure: no files, no clock, no threads, no Flask, no SQLite. Time, height and
transactions come in as arguments; bytes and values go out. It imports nothing of this project but
`base.errors` and `base.words`, so another engine than the local miner can drive it.

The format is frozen: `tests/chain/vectors` holds bytes that must never change.
"""
