"""Gives all nodes of a cluster one key for the log, so that they sign a tree with the same bytes.

An Ed25519 signature is a function of key and text: whichever node a browser, a witness or a proof
comes from, the checkpoint of so many blocks is the same note. The price is that each node can sign
in the name of the log; witnesses notice if one signs another tree.

The key stands in `config/log.key` of each node's engine, from where the node takes it when it
starts. If its chain was signed with another key, be it a new one of the cluster or one of the node
from before there was a common one, that signs the new key first (`trust.log.rotation`).
"""

import shutil
from pathlib import Path

from backend.base import files
from backend.base.errors import FlightchainError
from backend.base.words import Report
from backend.trust.log.rotation import rotate
from backend.trust.log.secret_keys import LOG, SecretKey, key_in, public_text, read_key
from backend.trust.log.successions import SUCCESSIONS_NAME

_COPY = (
    "with a key of its own this node would sign the log differently from the others, and browsers "
    "would raise an alarm; put a copy of another node's file there"
)


def common_key_path(home: Path) -> Path:
    """Return where the key of the cluster's log stands, in the folder of a node's engine."""
    return home / "config" / LOG.secret


def common_key_in(home: Path, origin: str = "") -> SecretKey | None:
    """Return the key of the cluster's log that a node has; None without one.

    origin: of the chain's log, if that is known. Raises FlightchainError.
    """
    path = common_key_path(home)
    key = read_key(path, LOG.kind, _COPY)
    if key and origin and key.verifier.name != origin:
        raise FlightchainError(
            f"{path} is the key of the log {key.verifier.name}, but this is {origin}; put a copy "
            "of another node's file of this cluster there"
        )
    return key


def adopt_common_key(home: Path, folder: Path, origin: str, report: Report) -> None:
    """Have the chain in `folder` signed with the key of the cluster, if the node has it.

    home: the folder of the engine. origin: of the chain's log. Raises FlightchainError.
    """
    common = common_key_in(home, origin)
    if common is None:
        report(
            f"{common_key_path(home)} is missing, so this node signs the log with a key of its "
            "own, and whoever knows another node's takes its checkpoints for forged; run "
            "`scripts/cluster log-key` where the cluster was configured"
        )
        return
    own = key_in(folder)
    if own is None:
        _begin_with(home, folder, common)
    elif own.verifier != common.verifier:
        rotate(folder, common)
        report("the key of this node's log has signed the key of the cluster, which replaces it")


def _begin_with(home: Path, folder: Path, key: SecretKey) -> None:
    """Put the cluster's key into a folder whose chain nobody has signed, secret part first."""
    successions = common_key_path(home).with_name(SUCCESSIONS_NAME)
    if successions.exists() and not (folder / SUCCESSIONS_NAME).exists():
        files.write_new(folder / SUCCESSIONS_NAME, successions.read_bytes())
    files.write_new(folder / LOG.secret, str(key).encode(), files.LOCK_MODE)
    files.write_new(folder / LOG.public, public_text(key))


def take_key(chain: Path, base: Path) -> None:
    """Let a cluster's log go on with the key of the single ledger in `chain`, copied to `base`."""
    for name in (LOG.secret, LOG.public):  # its successions are in the restored backup
        if (chain / name).exists():
            shutil.copy2(chain / name, base / name)
