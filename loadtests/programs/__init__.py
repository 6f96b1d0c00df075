"""Small programs that do tasks of the service in the usual ways of Python, timed from outside.

Each takes the same files as `python -m backend.lab.measure`, which is the service's own code, and
does the same task as often. Each is timed as a whole process, with its start.
"""
