"""Holds what all other packages share. Of these it imports nothing, but for limits in `settings`.

errors         what this project raises
settings       every setting, its default and its limits
files          the only module that makes bytes durable
file_names     names from outside, which are checked before they become paths
processes      what every process needs from the operating system
http_requests  requests to other services, with a deadline
download       large files from a server, in pieces
machine        what the system says of processor, memory, temperature and disk
day_orders     the orders in which a day may be written
clock, lru, once, progress, state_file, version, words
"""
