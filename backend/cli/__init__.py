"""The command line: `python -m backend COMMAND`.

commands          the commands for a ledger, and all groups of commands
serve_commands    serve, mine
import_command    import; import_dialogue: what it shows and asks
month_import      the months of BTS in an import
sent_file         checks and adds a file that was sent to the service
export_commands   export
log_commands      log, cosign, witness, cheat
cluster_commands  cluster
output, paths     how commands write, and the type of all paths that they take
"""
