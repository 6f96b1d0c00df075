"""Looks at logs once, as cron lets it do again and again, and says what is wrong with them.

A log that answers, and whose checkpoint extends the one that the witness keeps, is cosigned. What
is wrong is one of three: the log contradicts itself (put back, forked, replaced by another), it is
silent (unreachable, or without a new block for too long), or this witness is unable to work (its
own files). Each log is looked at for itself: what is wrong with one keeps no other from it.
`raise_alarm` runs the command that tells somebody.
"""

import shlex
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache, partial
from http import HTTPStatus

from backend.base.errors import FlightchainError
from backend.base.http_requests import ANSWER_WITHIN_S, NoAnswer, ask
from backend.base.words import counted, printable
from backend.chain import merkle
from backend.trust.log import checkpoints, notes
from backend.trust.log.checkpoints import HASH_BYTES, Checkpoint
from backend.trust.log.notes import NoteError, VerifierKey
from backend.trust.log.tiles import Tile
from backend.trust.log.tree import TILE_WIDTH, range_root, whole_root
from backend.trust.witness.witness import NotCosigned, NotSigned, Witness

LOOK_WITHIN_S = 60.0
ALARM_WITHIN_S = 60.0


class Unreachable(FlightchainError):
    """The log does not answer, or not as a log does."""


class Gone(Unreachable):
    """The log has no such file; a partial tile may be removed once its tile is full."""


class RemoteLog:
    """The log whose `checkpoint` and `tile/…` are below `url` (C2SP tlog-tiles), ours or another.

    All that is read of it has to be there within `LOOK_WITHIN_S`, from now on.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._deadline = time.monotonic() + LOOK_WITHIN_S

    def checkpoint(self) -> bytes:
        """Return the newest checkpoint, a note. Raises Unreachable."""
        try:
            return self._read("checkpoint")
        except Gone as error:
            raise Gone(f"{error}; a log's address is such as http://pi:8000/log") from error

    def key(self) -> VerifierKey:
        """Return the key that a Flightchain gives as its own. Raises Unreachable."""
        try:
            return notes.parse_key(self._read("key").decode(errors="replace"))
        except NoteError as error:
            raise Unreachable(f"{self.url}/key is not a key: {error}") from error

    def consistency_proof(self, old_size: int, size: int) -> Sequence[bytes]:
        """Return the proof that the tree of `old_size` entries is a beginning of that of `size`.

        It is computed from tiles, which prove nothing by themselves, and is empty if there is
        nothing to prove. Raises Unreachable.
        """
        if old_size == 0:
            return []

        @lru_cache(maxsize=256)
        def tile(level: int, index: int) -> bytes:
            there = size // TILE_WIDTH**level - index * TILE_WIDTH
            return self._tile(Tile(level, index, min(TILE_WIDTH, there)))

        def hashes(level: int, first: int, count: int) -> list[bytes]:
            data, start = tile(level, first // TILE_WIDTH), first % TILE_WIDTH
            return [
                data[HASH_BYTES * at : HASH_BYTES * (at + 1)] for at in range(start, start + count)
            ]

        whole = partial(whole_root, hashes=hashes)
        return merkle.consistency_path(old_size, size, partial(range_root, whole=whole))

    def _tile(self, tile: Tile) -> bytes:
        """Return the hashes of a tile, or of one with more of them if that alone is left."""
        try:
            data = self._read(f"tile/{tile.name}")
        except Gone:
            if tile.width < TILE_WIDTH:
                with suppress(Gone):
                    return self._tile(Tile(tile.level, tile.index))[: tile.width * HASH_BYTES]
            raise
        if len(data) != tile.width * HASH_BYTES:
            raise Unreachable(f"{self.url}/tile/{tile.name} has {len(data)} bytes")
        return data

    def _read(self, path: str) -> bytes:
        url = f"{self.url}/{path}"
        left_s = self._deadline - time.monotonic()
        try:
            answer = ask(url, within_s=min(left_s, ANSWER_WITHIN_S))
        except NoAnswer as error:
            raise Unreachable(str(error)) from error
        if answer.status in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}:
            raise Gone(f"{url} answers with status {answer.status}")
        if answer.status != HTTPStatus.OK:
            raise Unreachable(f"{url} answers with status {answer.status}")
        return answer.body


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
        """Return the newest checkpoint, as a note and as what it says. Raises NotCosigned."""
        data = log.checkpoint()
        _, checkpoint = checkpoints.in_note(data)
        self._require_same(log.url, checkpoint.origin)
        return data, checkpoint

    def _require_same(self, url: str, origin: str) -> None:
        """Raise NotCosigned if another log was seen at this URL. A new chain has another origin."""
        known = self._witness.memory.origin_at(url)
        if known not in {None, origin}:
            raise NotCosigned(
                f"this was the log {known}, and is {origin} now: another ledger is at this "
                f"address. If that is right, remove {self._witness.memory.origin_file(url)}"
            )

    def _key_of(self, log: RemoteLog, origin: str) -> VerifierKey:
        key = self._keys.get(origin) or self._witness.memory.key_of(origin)
        if key is None and self._keys:
            raise NotSigned(f"the log {origin} was not seen before; give its key with --key")
        return key or log.key()


class AlarmFailed(FlightchainError):
    """The alarm could not be raised, or its command says that it failed."""


def command_in(text: str) -> list[str]:
    """Return the words of a command, as a shell reads them. Raises ValueError if it is empty."""
    words = shlex.split(text)
    if not words or not words[0]:
        raise ValueError("the command is empty")
    return words


def raise_alarm(command: list[str], message: str) -> None:
    """Run a command with a message as its last argument. Raises AlarmFailed."""
    try:
        done = subprocess.run(  # noqa: S603  as whoever called us wants
            [*command, message], stdin=subprocess.DEVNULL, check=False, timeout=ALARM_WITHIN_S
        )
    except OSError as error:
        raise AlarmFailed(f"{command[0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        reason = f"{command[0]} did not end within {ALARM_WITHIN_S:g} s and was killed"
        raise AlarmFailed(reason) from error
    if done.returncode:
        raise AlarmFailed(f"{command[0]} ended with status {done.returncode}")
