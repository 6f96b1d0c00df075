"""Looks at logs once, as cron lets it do again and again, and says what is wrong with them.

A log that answers, and whose checkpoint extends the one that the witness keeps, is cosigned. What
is wrong is one of three: the log contradicts itself (put back, forked), it is silent (unreachable,
or without a new block for too long), or this witness cannot work (its own files).
"""

import time
from dataclasses import dataclass
from enum import IntEnum

from backend.transparency import checkpoints
from backend.transparency.notes import NoteError, VerifierKey
from backend.witness.remote import RemoteLog, Unreachable
from backend.witness.witness import NotCosigned, Witness
from backend.words import counted


class Verdict(IntEnum):
    """How a log was found. The worst of all logs is the exit status."""

    FINE = 0
    SILENT = 3
    WRONG = 4


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one log, in words."""

    verdict: Verdict
    message: str


class Follower:
    """Looks at logs, for a witness.

    keys: of logs. The key of a log that is not among them is taken from the log itself when it is
    seen for the first time, and must stay the same from then on.
    """

    def __init__(self, witness: Witness, keys: list[VerifierKey], silent_after_s: float) -> None:
        """silent_after_s: how long a log may go without a new block, in seconds."""
        self._witness = witness
        self._keys = {key.name: key for key in keys}
        self._silent_after_s = silent_after_s

    def look(self, url: str) -> Finding:
        """Look at the log at `url` once, and cosign its checkpoint if that is right."""
        log = RemoteLog(url)
        try:
            data = log.checkpoint()
            _, found = checkpoints.in_note(data)
            self._witness.cosign(data, self._key_of(log, found.origin), log.consistency_proof)
        except Unreachable as error:
            return Finding(Verdict.SILENT, f"SILENT: {error}")
        except (NotCosigned, NoteError) as error:
            return Finding(Verdict.WRONG, f"WRONG: {url}: {error}")
        idle_s = time.time() - self._witness.grew_at(found.origin)
        blocks = f"{url}: {found.origin} has {counted(found.size, 'block')}"
        if idle_s > self._silent_after_s:
            hours = f"{idle_s / 3600:.1f} hours"
            return Finding(Verdict.SILENT, f"SILENT: {blocks}, the same for {hours}")
        return Finding(Verdict.FINE, f"cosigned: {blocks}")

    def _key_of(self, log: RemoteLog, origin: str) -> VerifierKey:
        key = self._keys.get(origin) or self._witness.memory.key_of(origin)
        if key is None:
            key = log.key()
            if key.name == origin:
                self._witness.memory.remember_key(key)
        return key
