"""Looks at logs once, as cron lets it do again and again, and says what is wrong with them.

A log that answers, and whose checkpoint extends the one that the witness keeps, is cosigned. What
is wrong is one of three: the log contradicts itself (put back, forked, replaced by another), it is
silent (unreachable, or without a new block for too long), or this witness is unable to work (its
own files). Each log is looked at for itself: what is wrong with one keeps no other from it.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial

from backend.base.errors import FlightchainError
from backend.base.words import counted, printable
from backend.chain import merkle
from backend.trust.log import checkpoints
from backend.trust.log.checkpoints import Checkpoint
from backend.trust.log.notes import NoteError, VerifierKey
from backend.trust.witness.remote import Gone, RemoteLog, Unreachable
from backend.trust.witness.witness import NotCosigned, NotSigned, Witness


class Verdict(IntEnum):
    """Says how a log was found, with the exit status for it; the worst stands last."""

    FINE = 0
    SILENT = 3
    UNABLE = 5
    WRONG = 4


@dataclass(frozen=True, slots=True)
class Finding:
    """Says in words what was found of one log."""

    verdict: Verdict
    message: str


def finding(verdict: Verdict, message: object) -> Finding:
    """Return a finding, whose message may hold what a log has written."""
    words = "cosigned" if verdict is Verdict.FINE else verdict.name
    return Finding(verdict, printable(f"{words}: {message}"))


def worst(findings: Iterable[Finding]) -> Verdict:
    """Return the verdict that counts for all logs together."""
    return max((finding.verdict for finding in findings), key=list(Verdict).index)


def _proof(log: RemoteLog, old_size: int, size: int) -> Sequence[bytes]:
    """Return the proof of consistency that a log gives. Raises ProofError if it keeps back a tile.

    Such a log answers, and has signed a larger tree: that is no silence.
    """
    try:
        return log.consistency_proof(old_size, size)
    except Gone as error:
        raise merkle.ProofError(str(error)) from error


class OtherLog(NotCosigned):
    """Another log stands where one was seen before."""


class Follower:
    """Looks at logs, for a witness.

    keys: of logs. If there are none, the key of a log is taken from the log itself when it is seen
    for the first time, and must stay the same from then on. So must the log at a URL.
    """

    def __init__(
        self, witness: Witness, keys: Sequence[VerifierKey], silent_after_s: float
    ) -> None:
        """silent_after_s: how long a log may go without a new block, in seconds."""
        self._witness = witness
        self._keys = {key.name: key for key in keys}
        self._silent_after_s = silent_after_s

    def look(self, url: str) -> Finding:
        """Look at the log at `url` once, and cosign its checkpoint if that is right."""
        try:
            return self._look(RemoteLog(url))
        except Unreachable as error:
            return finding(Verdict.SILENT, error)
        except (NotCosigned, NoteError) as error:
            return finding(Verdict.WRONG, f"{url}: {error}")
        except FlightchainError as error:
            return finding(Verdict.UNABLE, f"{url}: {error}")

    def _look(self, log: RemoteLog) -> Finding:
        data, checkpoint = self._newest(log)
        if checkpoint.size < self._witness.size_of(checkpoint.origin):
            data, checkpoint = self._newest(log)  # a newer one may have come while it was read
        key = self._key_of(log, checkpoint.origin)
        self._witness.cosign(data, key, partial(_proof, log))
        self._witness.remember(log.url, key)
        idle_s = time.time() - self._witness.grew_at(checkpoint.origin)
        blocks = f"{log.url}: {checkpoint.origin} has {counted(checkpoint.size, 'block')}"
        if idle_s > self._silent_after_s:
            hours = f"{idle_s / 3600:.1f} hours"
            return finding(Verdict.SILENT, f"{blocks}, the same for {hours}")
        return finding(Verdict.FINE, blocks)

    def _newest(self, log: RemoteLog) -> tuple[bytes, Checkpoint]:
        """Return the newest checkpoint of a log, as a note and as what it says. Raises OtherLog."""
        data = log.checkpoint()
        _, checkpoint = checkpoints.in_note(data)
        self._require_same(log.url, checkpoint.origin)
        return data, checkpoint

    def _require_same(self, url: str, origin: str) -> None:
        """Raise OtherLog if another log was seen at this URL. A new chain has another origin."""
        known = self._witness.memory.origin_at(url)
        if known not in {None, origin}:
            raise OtherLog(
                f"this was the log {known}, and is {origin} now: another ledger stands here. "
                f"If that is right, remove {self._witness.memory.origin_file(url)}"
            )

    def _key_of(self, log: RemoteLog, origin: str) -> VerifierKey:
        key = self._keys.get(origin) or self._witness.memory.key_of(origin)
        if key is None and self._keys:
            raise NotSigned(f"no --key is that of the log {origin}, which was not seen before")
        return key or log.key()
