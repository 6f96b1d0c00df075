"""The code that all experiments of the lab share: to describe, run, keep and report them.

An experiment has two halves that meet only in a folder of files. `measure` runs load against a
server and writes what it saw; `analyse` reads those files and nothing else, so a report can be made
again, anywhere, byte for byte. Later readers of a result have the same files.
"""
