"""Repeats the client-server study (001): code that its three experiments share.

asked        the requests to each system: rows, days, a flight to write
systems      the systems, started with the same flights in them
measuring    calibrations and runs, with a file `points.csv` beside the raw rows
alone        service times without waiting, and what they depend on
predicting   the models' predictions and the verdict of each run, from those files
telling      tables, figures and sentences that the three reports share
"""
