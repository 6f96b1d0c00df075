"""Small programs that do what the service does in the usual ways of Python, timed from outside.

Each takes the same files as `python -m backend.lab.measure`, which is the service's own code, and
does the same so many times; each is a whole process, its start included.
"""
