"""Makes blocks: the miner, the import of whole sources, and the clock that both trust.

Only one process at a time seals blocks, the one that holds the writer lock.
"""
