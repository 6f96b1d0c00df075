"""What every experiment of the lab shares: how one is described, run, kept and reported.

An experiment has two halves that meet only in a folder of files. `measure` runs load against a
server and writes what it saw; `analyse` reads those files and nothing else, so a report can be made
again, anywhere, byte for byte. Whoever reads a result later has the same files.
"""
