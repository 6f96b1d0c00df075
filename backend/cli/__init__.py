"""The command line: `python -m backend COMMAND`.

`commands` has the commands for a ledger, `log` those for its transparency log and its witnesses,
and `cluster` those for the nodes of a cluster.
"""
