"""Decides which peers the engine of a node talks to: members, and the readers that it was told of.

The engine asks for each peer (`filter_peers` in its configuration) after that has proved its key.
A stranger could else claim a height that nobody has reached, keep a node that starts from catching
up, or take the places of others. A reader has no vote and so is not in the genesis; its id stands
in `config/readers` of every node, ids separated by white space, which is read each time.
"""

from pathlib import Path

from backend.base.words import Report
from backend.cluster.membership import Membership

READERS_NAME = "readers"
MOST_NAMED = 20  # strangers that are reported, so that they cannot fill the log


class Admission:
    """The peers that the engine with the folder `home` talks to."""

    def __init__(self, home: Path, membership: Membership, report: Report) -> None:
        """report: takes a line for a stranger."""
        self._path = home / "config" / READERS_NAME
        self._members = {member.peer_id for member in membership.members}
        self._report = report
        self._strangers: set[str] = set()

    def refusal(self, peer_id: str) -> str:
        """Return why a peer is not talked to; "" if it is. peer_id: hexadecimal."""
        if peer_id in self._members or peer_id in self._readers():
            return ""
        reason = f"the peer {peer_id} is no member of this cluster, and not named in {self._path}"
        if peer_id not in self._strangers and len(self._strangers) < MOST_NAMED:
            self._strangers.add(peer_id)
            self._report(f"{reason}: it is refused; if it is a reader of yours, add its id there")
        return reason

    def _readers(self) -> list[str]:
        try:
            return self._path.read_text("ascii", errors="replace").split()
        except OSError:  # most clusters have none
            return []
