"""The chain as a transparency log that standard tools can read and audit.

The log's entries are the hashes of the blocks, and its Merkle tree is the history tree that every
header commits to. It is served as C2SP tlog-tiles. `notes` writes and reads signed notes,
`checkpoints` the text that is signed, `secret_keys` keeps the keys that sign, `tree` computes the
hashes of the tree, and `tiles` names and cuts the tiles. The process that writes blocks signs
(`signing`); all others only read what it has signed. `log_checks` says what is wrong with the log's
files. `rotation` gives the log a new key, and `successions` leads from old keys to it.
"""

# Files in the chain's folder.
CHECKPOINT_NAME = "checkpoint"
COSIGNED_NAME = "cosigned"  # the checkpoint that witnesses have signed last
KEY_NAME, VERIFIER_NAME = "log.key", "log.vkey"

SIGNED_ANEW = "restart the service: the miner signs it again"
