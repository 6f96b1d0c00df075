"""Asks witnesses to cosign the newest checkpoint of this ledger (C2SP tlog-witness).

The note with their signatures stands in `cosigned` in the chain's folder. It is made again for each
checkpoint. A witness that does not answer keeps nobody waiting but the other witnesses. It is asked
again with the next checkpoint, or after a while.
"""

import threading
import time
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

from backend.base import files
from backend.base.errors import FlightchainError, InvalidSetting
from backend.base.http_requests import NoAnswer, ask
from backend.base.settings import require_http
from backend.base.words import Report, counted, printable
from backend.trust.log import COSIGNED_NAME, checkpoints, notes
from backend.trust.log.checkpoints import Checkpoint
from backend.trust.log.notes import (
    COSIGNATURE,
    Note,
    NoteError,
    Signature,
    VerifierKey,
    encoded,
    parse_signature,
    seconds_of,
    signature_by,
)
from backend.trust.log.tree import HistoryTree

LOOK_EVERY_S = 0.5
AGAIN_AFTER_S = 60.0
MOST_OFF_S = 86_400  # between the clock of a witness and ours


class WitnessAddress(NamedTuple):
    """A witness: the key with which it cosigns, and the URL below which it is asked."""

    key: VerifierKey
    url: str


class Refused(FlightchainError):
    """A witness does not cosign."""


def witnesses_in(text: str) -> list[WitnessAddress]:
    """Return the witnesses that a setting names: `KEY URL, KEY URL`. Raises InvalidSetting."""
    addresses = []
    for part in filter(None, map(str.strip, text.split(","))):
        written, _, url = part.partition(" ")
        try:
            key = notes.parse_key(written)
        except NoteError as error:
            raise InvalidSetting("FLIGHTCHAIN_WITNESSES", part, str(error)) from None
        if key.kind != COSIGNATURE:
            reason = "must be `KEY URL`, with the key of a witness, which has the type 4"
            raise InvalidSetting("FLIGHTCHAIN_WITNESSES", part, reason)
        try:
            require_http(url)
        except ValueError as error:
            reason = f"must be `KEY URL`, and the URL {error}"
            raise InvalidSetting("FLIGHTCHAIN_WITNESSES", part, reason) from None
        addresses.append(WitnessAddress(key, url.rstrip("/")))
    return addresses


class Asker:
    """Keeps `cosigned` in `folder` up to date, in one process at a time."""

    def __init__(
        self, folder: Path, tree: HistoryTree, witnesses: Sequence[WitnessAddress], report: Report
    ) -> None:
        """report: takes a line when a witness refuses, or cosigns again after that."""
        self._folder = folder
        self._tree = tree
        self._witnesses = witnesses
        self._report = report
        # What each witness has cosigned last, as far as is known, and why it does not cosign. Two
        # witnesses may have the same name.
        self._sizes: dict[WitnessAddress, int] = {}
        self._last_problems: dict[WitnessAddress, str] = {}
        self._asked: Note | None = None
        self._ask_again_at = 0.0
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        """Ask for each new checkpoint, until told to stop."""
        while not self._stopping.wait(LOOK_EVERY_S):
            self.look()

    def look(self) -> bool:
        """Ask, if there is a new checkpoint or some witness has to be asked again.

        Returns whether all have cosigned the newest checkpoint.
        """
        newest = checkpoints.newest_in(self._folder)
        if newest is None:  # the miner makes it, and makes it again
            return False
        note, checkpoint = newest
        is_new = note != self._asked  # be it that only the log's key is new
        if is_new or (self._last_problems and time.monotonic() >= self._ask_again_at):
            self._asked, self._ask_again_at = note, time.monotonic() + AGAIN_AFTER_S
            self._ask(note, checkpoint)
        return not self._last_problems

    def _ask(self, note: Note, checkpoint: Checkpoint) -> None:
        """Ask every witness, and write what those answer who cosign."""
        cosignatures: list[Signature] = []
        for witness in self._witnesses:
            who = f"the witness {witness.key.name} at {witness.url}"
            try:
                cosignatures.append(self._cosignature(witness, note, checkpoint))
            except FlightchainError as error:
                if self._last_problems.get(witness) != str(error):
                    self._report(printable(f"{who} does not cosign: {error}"))
                self._last_problems[witness] = str(error)
                continue
            if self._last_problems.pop(witness, None) is not None:
                self._report(printable(f"{who} cosigns again"))
        whole = Note(note.text, (*note.signatures, *cosignatures))
        files.replace_unsynced(self._folder / COSIGNED_NAME, str(whole).encode())

    def _cosignature(self, witness: WitnessAddress, note: Note, new: Checkpoint) -> Signature:
        """Return the signature of one witness. Raises Refused."""
        for _ in range(2):  # it may know another checkpoint than we think, and says so
            old = self._sizes.get(witness, 0)
            body = self._body(note, old if old <= new.size else 0, new.size)
            try:
                answer = ask(f"{witness.url}/add-checkpoint", body)
            except NoAnswer as error:
                raise Refused(f"it cannot be reached: {error}") from error
            size = checkpoints.size_in(answer.text.strip())
            if answer.status != HTTPStatus.CONFLICT or size is None:
                break
            if size > new.size:
                blocks = counted(size, "block")
                raise Refused(f"it has cosigned {blocks}, more than the {new.size} that there are")
            self._sizes[witness] = size
        if answer.status != HTTPStatus.OK:
            raise Refused(f"it answers with status {answer.status}: {answer.text.strip()[:200]}")
        signature = _signature_in(answer.text, note, witness.key)
        self._sizes[witness] = new.size
        return signature

    def _body(self, note: Note, old: int, size: int) -> bytes:
        """Return the request: the known size, the proof of consistency, and the checkpoint."""
        proof = self._tree.consistency_proof(old, size)
        lines = [f"old {old}", *map(encoded, proof), "", str(note)]
        return "\n".join(lines).encode()


def _signature_in(answer: str, note: Note, key: VerifierKey) -> Signature:
    """Return the line of an answer with which a witness has signed a note, a short time ago.

    What else is in the answer may be in the name of others, and nobody has verified it. Raises
    Refused.
    """
    try:
        signatures = tuple(map(parse_signature, answer.splitlines()))
        signature = signature_by(Note(note.text, signatures), key)
    except NoteError as error:
        raise Refused(str(error)) from error
    if signature is None:
        raise Refused("its answer does not have its signature")
    ahead_s = seconds_of(signature, key) - int(time.time())
    if abs(ahead_s) > MOST_OFF_S:
        days = f"{counted(abs(ahead_s) // 86_400, 'day')} {'from now' if ahead_s > 0 else 'ago'}"
        raise Refused(f"it says that it signed {days}: one of the two clocks is wrong")
    return signature
