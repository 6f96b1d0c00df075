"""What every process of the service needs from the system it runs on.

A process dies with its parent, ends quietly on Ctrl-C, tells systemd that it lives, and counts in
numbers that all processes share.
"""
