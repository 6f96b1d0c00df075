"""Tells how far the scrub of a chain is, in `scrub.json` in its folder.

The miner writes the file; workers read it. It is never synced: after a power cut the scrub finds
its problem again.
"""

import msgspec

from backend.base.state_file import StateFile


class ScrubState(msgspec.Struct, frozen=True):
    """Says how far a scrub is.

    height: the height of the tip when this pass began; -1 if none has begun. pieces: how many the
    pass has. done: how many of them were checked. completed_at: when the last whole pass ended, UTC
    milliseconds. problem: what is wrong with pending flights, keys, tokens or the log.
    """

    height: int = -1
    pieces: int = 0
    done: int = 0
    completed_at: int | None = None
    problem: str = ""

    @property
    def progress(self) -> float:
        """The share of the pass that is done, 0 to 1."""
        return self.done / self.pieces if self.pieces else 0.0


FILE = StateFile("scrub.json", ScrubState)
