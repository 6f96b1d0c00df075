"""Holds what all other packages share, and imports none of them but for the limits of the format.

errors         what this project raises
settings       every setting, its default and its limits
files          the only module that makes bytes durable
file_names     names from outside, which are checked before they become paths
processes      what every process needs from the operating system
http_requests  requests to other services, with a deadline
clock, lru, progress, state_file, version, words
"""
