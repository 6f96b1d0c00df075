"""Scenarios of harm: what is done to a running service, and what has to be true afterwards.

A scenario harms real processes and real files: it kills, lets system calls fail, cuts the power,
damages files, floods ports. Whatever it does, the same has to hold, and `auditing` looks:

- Every acknowledged flight is there, once, under its id, as it was sent; or the ledger says in
  words that it was lost. What is there was submitted.
- No answer is wrong: the index, the scan and a plain loop over what was submitted agree.
- Nothing is forgotten in silence: damage is named in the log, by `/health/ready` or by `verify`.

`scenarios` is the table of all of them. `scripts/soak` runs them at full length with a seed and
prints a report; `test_scenarios.py` runs each for a few seconds.
"""
