"""Numbers of the study that Flightchain goes back to, from which the calculator starts.

Source: its report, "Blockchain app Report": the query flight_counter on a Raspberry Pi 4B with a
USB hard disk, 522 blocks; unrounded values and the split of the disk's time from its authors' own
files. Numbers of our own are marked as ours.
"""

from loadtests.models import open_queue

SERVICE_TIME_S = 40.499375
SERVICE_VARIANCE_S2 = 1.38635369655895
CV = SERVICE_VARIANCE_S2**0.5 / SERVICE_TIME_S
MAXIMUM_RATE_PER_S = open_queue.maximum_rate_per_s(SERVICE_TIME_S)
HIGHEST_LOAD = 0.85  # the highest load that was tested

CPU_VISITS, CPU_S = 523, 0.0008
BLOCK_READS, DISK_S, DELAY_S = 513, 0.046, 0.039
THINK_TIME_S = 5.0

FILE_READ_S = 0.017
"""The part of DISK_S that reads the file; the other 29 ms decode JSON and build objects."""

INDEX_S = 0.00021
"""Ours: the processor time of a random question, row 13 of docs/performance.md."""
