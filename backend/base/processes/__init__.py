"""Provides what every process of the service needs from the operating system.

A process dies with its parent (`parent_death`), ends quietly on Ctrl-C (`interruption`), tells
systemd that it is alive (`systemd`), starts commands of ours (`own_command`), and counts in numbers
that all processes share (`shared_numbers`).
"""
