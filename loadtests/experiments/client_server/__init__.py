"""Repeats the client-server study (001): code that its three experiments share.

systems      the systems, started with the same flights, and the requests to each
measuring    calibrations and runs, with a file `points.csv` beside the raw rows
predicting   service times without waiting, predictions and verdicts, from those files
telling      tables, figures and sentences that the three reports share
"""
