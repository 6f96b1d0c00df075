"""Tries to cheat, on a throw-away copy of a small chain, and tells which check notices it.

`python -m backend cheat` shows it in a terminal, the page "Try to cheat" in a browser. `editor`
writes a chain as a cheat would who knows everything about its files; `cheats` are the attempts.
"""
