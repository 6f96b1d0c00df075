"""Makes blocks where no cluster does: the miner, the import, and the clock that both trust.

Only one process at a time seals blocks, the one that holds the writer lock.
"""
