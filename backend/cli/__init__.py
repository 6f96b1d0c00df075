"""The command line: `python -m backend COMMAND`.

`commands` has the commands for a ledger, `log_commands` those for its transparency log and its
witnesses, and `cluster_commands` those for the nodes of a cluster.
"""
