"""Asks witnesses to cosign the newest checkpoint of this ledger (C2SP tlog-witness).

The note with their signatures stands in `cosigned` in the chain's folder. It is made again for each
checkpoint. A witness that does not answer keeps nobody waiting but the other witnesses. It is asked
again with the next checkpoint, or after a while.
"""

import http
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from backend.errors import FlightchainError, InvalidSetting
from backend.http_requests import NoAnswer, ask
from backend.storage import files
from backend.transparency import CHECKPOINT_NAME, COSIGNED_NAME, checkpoints, notes
from backend.transparency.notes import (
    COSIGNATURE,
    Note,
    NoteError,
    Signature,
    VerifierKey,
    encoded,
    parse_signature,
)
from backend.transparency.tree import HistoryTree
from backend.transparency.verifying import signed_at

LOOK_EVERY_S = 0.5
AGAIN_AFTER_S = 60.0

Report = Callable[[str], None]


class WitnessAddress(NamedTuple):
    """A witness: the key with which it cosigns, and the URL below which it is asked."""

    key: VerifierKey
    url: str


class Refused(FlightchainError):
    """A witness does not cosign."""


def witnesses_in(text: str) -> list[WitnessAddress]:
    """The witnesses that a setting names: `KEY URL, KEY URL`. Raises InvalidSetting."""
    found = []
    for part in filter(None, map(str.strip, text.split(","))):
        written, _, url = part.partition(" ")
        try:
            key = notes.parse_key(written)
        except NoteError as error:
            raise InvalidSetting("FLIGHTCHAIN_WITNESSES", part, str(error)) from None
        if key.kind != COSIGNATURE or not url.startswith(("http://", "https://")):
            reason = "must be `KEY URL`, with the key of a witness, which has the type 4"
            raise InvalidSetting("FLIGHTCHAIN_WITNESSES", part, reason)
        found.append(WitnessAddress(key, url.rstrip("/")))
    return found


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
        self._sizes: dict[str, int] = {}  # what each witness has cosigned last, as far as is known
        self._said: dict[str, str] = {}
        self._asked = ""
        self._ask_again_at = 0.0
        self._stopping = threading.Event()

    def stop(self) -> None:
        """End `run`."""
        self._stopping.set()

    def run(self) -> None:
        """Ask for each new checkpoint, until told to stop."""
        while not self._stopping.wait(LOOK_EVERY_S):
            self.look()

    def look(self) -> bool:
        """Ask, if there is a new checkpoint or some witness has to be asked again.

        Returns whether all have cosigned the newest checkpoint.
        """
        note = self._newest()
        if note is None:
            return False
        is_new = note.text != self._asked
        if is_new or (self._said and time.monotonic() >= self._ask_again_at):
            self._asked, self._ask_again_at = note.text, time.monotonic() + AGAIN_AFTER_S
            self._ask(note)
        return not self._said

    def _newest(self) -> Note | None:
        try:
            return notes.parse((self._folder / CHECKPOINT_NAME).read_bytes())
        except (OSError, NoteError):  # the miner makes it, and makes it again
            return None

    def _ask(self, note: Note) -> None:
        """Ask every witness, and write what those answer who cosign."""
        cosignatures: list[Signature] = []
        for witness in self._witnesses:
            name = witness.key.name
            try:
                cosignatures.append(self._cosignature(witness, note))
            except FlightchainError as error:
                if self._said.get(name) != str(error):
                    self._report(f"the witness {name} does not cosign: {error}")
                self._said[name] = str(error)
                continue
            if self._said.pop(name, None) is not None:
                self._report(f"the witness {name} cosigns again")
        whole = Note(note.text, (*note.signatures, *cosignatures))
        files.replace_unsynced(self._folder / COSIGNED_NAME, str(whole).encode())

    def _cosignature(self, witness: WitnessAddress, note: Note) -> Signature:
        """The signature of one witness. Raises Refused."""
        name, new = witness.key.name, checkpoints.parse(note.text)
        for _ in range(2):  # it may know another checkpoint than we think, and says so
            old = self._sizes.get(name, 0)
            body = self._body(note, old, new.size)
            try:
                found = ask(f"{witness.url}/add-checkpoint", body)
            except NoAnswer as error:
                raise Refused(f"it cannot be reached: {error}") from error
            status, answer = found.status, found.text
            if status != http.HTTPStatus.CONFLICT:
                break
            if not answer.strip().isdigit() or int(answer) > new.size:
                raise Refused(
                    f"it has cosigned {answer.strip()[:40]!r} blocks, more than there are"
                )
            self._sizes[name] = int(answer)
        if status != http.HTTPStatus.OK:
            raise Refused(f"it answers {status}: {answer.strip()[:200]}")
        try:
            signatures = [parse_signature(line) for line in answer.splitlines()]
            is_signed = signed_at(Note(note.text, tuple(signatures)), witness.key) is not None
        except NoteError as error:
            raise Refused(str(error)) from error
        if not is_signed:
            raise Refused("its answer has no signature of it")
        self._sizes[name] = new.size
        return next(one for one in signatures if one.key_id == witness.key.key_id)

    def _body(self, note: Note, old: int, size: int) -> bytes:
        """The request: the size that is known, the proof of consistency, and the checkpoint."""
        proof: list[bytes] = []
        if 0 < old < size:
            proof = self._tree.consistency_proof(old, size)
        lines = [f"old {old}", *map(encoded, proof), "", str(note)]
        return "\n".join(lines).encode()
