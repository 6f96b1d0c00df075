"""Copies the flights of a chain into Parquet files for other programs, and compares the two.

It reads the blocks alone. The files name the block up to which they stand, and a manifest names the
files, so that a copy can be compared with the chain at any time. pyarrow is needed, and imported
only by `parquet`.
"""
