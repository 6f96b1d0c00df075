"""The client-server study (001) again: what its three experiments share.

asked        what is asked of each system: rows, days, a flight to write
systems      the systems, and how they are started with the same flights in them
measuring    calibrations and runs; leaves `points.csv` beside the raw rows
predicting   from those files: the models' predictions and the verdict of each run
telling      tables, figures and sentences that the three reports have in common
"""
