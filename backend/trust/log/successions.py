"""Reads, checks and rebuilds the notes with which keys of the log have signed later ones
(`rotation`).

The newest note must lead to the key that the log has now, and each other note to the key that has
signed the next one. A key that followed another one names it in its own file, so that it is noticed
if notes are missing.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from backend.base import files
from backend.base.errors import Damage, InvalidInput
from backend.base.state_file import StateFile
from backend.base.words import COMMAND
from backend.trust.log import notes
from backend.trust.log.notes import NoteError, VerifierKey, parse_key, signed_at
from backend.trust.log.secret_keys import LOG, SecretKey

SUCCESSIONS_NAME = "log.successions"
TITLE = "flightchain key succession"
MOST_BYTES = 2**24  # of the first line of a proof

FILE = StateFile(SUCCESSIONS_NAME, list[str])

REMEDY = (
    "put back a copy (backups have one, and log.successions.old is one if it is there), or rebuild "
    f"it from kept proofs with `{COMMAND} log rebuild-successions PROOF…`; until then whoever "
    "trusts an older key of this log refuses its proofs. Without a copy or a proof, move "
    "log.successions away if it exists, and remove the lines of log.key that begin with FOLLOWS: "
    "the log keeps its key, and whoever trusts an older one must be told"
)


class Succession(NamedTuple):
    """A verified note with which the key `old` has signed the key `new`."""

    old: VerifierKey
    new: VerifierKey
    note: str


def successions_in(folder: Path) -> list[str]:
    """Return the notes with which old keys have signed new ones, oldest first. Raises Damage."""
    path = folder / SUCCESSIONS_NAME
    try:
        return FILE.load(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Damage(f"cannot read {files.reason_of(error, path, REMEDY)}") from error
    except ValueError:
        raise Damage(f"{path} is damaged: it is not a list of notes; {REMEDY}") from None


def parsed_succession(text: str) -> Succession:
    """Return the succession in a note, whose signature is verified. Raises NoteError."""
    note = notes.parse(text.encode())
    lines = note.text.split("\n")
    if len(lines) != 4 or lines[0] != TITLE:
        raise NoteError("it does not name an old and a new key")
    old, new = parse_key(lines[1]), parse_key(lines[2])
    if signed_at(note, old) is None:
        raise NoteError("the old key has not signed it")
    return Succession(old, new, text)


def checked_successions(folder: Path, key: SecretKey | None) -> list[Succession]:
    """Return the successions in `folder`, all of which lead to `key`. Raises Damage.

    key: the key that the log has now; None if it is not here, as in a backup.
    """
    path = folder / SUCCESSIONS_NAME
    try:
        chain = [parsed_succession(text) for text in successions_in(folder)]
    except NoteError as error:
        raise Damage(f"{path} is damaged: {error}; {REMEDY}") from error
    for succession, following in pairwise(chain):
        if succession.new != following.old:
            raise Damage(
                f"{path} lacks the note with which {succession.new} was followed; {REMEDY}"
            )
    if key is not None:
        _require_leads_to(path, chain, key)
    return chain


def _require_leads_to(path: Path, chain: list[Succession], key: SecretKey) -> None:
    """Raise Damage unless the successions are those from the first key of the log to `key`."""
    if not chain and key.follows:
        followed = f"{key.verifier} followed other keys"
        raise Damage(f"{path} is missing or empty, but {followed}; {REMEDY}")
    _require_newest(path, chain, key)
    if chain and chain[-1].new != key.verifier:
        raise Damage(f"{path} does not lead to {key.verifier}, the key of this log; {REMEDY}")
    if missing := _missing(chain, key):
        raise Damage(f"{path} does not have the note of {', '.join(missing)}; {REMEDY}")


def _require_newest(path: Path, successions: Iterable[Succession], key: SecretKey) -> None:
    """Raise Damage if another key of the log has followed `key`."""
    for succession in successions:
        if succession.old == key.verifier:
            raise Damage(
                f"{path.with_name(LOG.secret)} is an older copy, because {succession.new} followed "
                f"its key; for that one, {LOG.advice}"
            )


def _missing(chain: list[Succession], key: SecretKey) -> list[str]:
    """Return the keys that `key` followed and whose notes are not in `chain`."""
    there = {str(succession.old) for succession in chain}
    return [old for old in key.follows if old not in there]


def add_succession(folder: Path, old: SecretKey, new: SecretKey) -> None:
    """Have the key `old` sign `new`, and note that in `folder`. Raises Damage, WriteFailed."""
    note = old.note(f"{TITLE}\n{old.verifier}\n{new.verifier}\n")
    earlier = [succession.note for succession in checked_successions(folder, old)]
    FILE.write(folder, [*earlier, str(note)])


def keys_named(folder: Path) -> list[VerifierKey]:
    """Return all keys that sound notes in `folder` name. Raises Damage if unreadable."""
    return [
        key
        for succession in _sound(successions_in(folder))
        for key in (succession.old, succession.new)
    ]


def _sound(texts: Iterable[str]) -> Iterator[Succession]:
    for text in texts:
        try:
            yield parsed_succession(text)
        except NoteError:
            continue


def notes_in_proof(path: Path) -> list[str]:
    """Return the notes in the first line of a proof. Raises InvalidInput without them."""
    try:
        with path.open("rb") as file:
            head = json.loads(file.readline(MOST_BYTES))
        texts = head["successions"]
        if isinstance(texts, list) and texts and all(isinstance(text, str) for text in texts):
            return texts
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        pass
    reason = (
        "is not a proof with notes in `successions`; take one that was made some time after the "
        "log got its present key, while log.successions was whole"
    )
    raise InvalidInput("PROOF", str(path), reason)


def rebuild_successions(folder: Path, key: SecretKey, texts: Iterable[str]) -> int:
    """Write the successions that lead to `key`, from `texts` and those in `folder`.

    Returns how many there are. Only the process that holds the lock for writing may call it. Raises
    InvalidInput if they do not lead to the key, Damage if they lead beyond it, WriteFailed.
    """
    try:
        texts = [*texts, *successions_in(folder)]
    except Damage:
        texts = list(texts)
    by_new = {str(succession.new): succession for succession in _sound(texts)}
    _require_newest(folder / SUCCESSIONS_NAME, by_new.values(), key)
    chain: list[Succession] = []
    wanted = str(key.verifier)
    while wanted in by_new:
        succession = by_new.pop(wanted)
        chain.insert(0, succession)
        wanted = str(succession.old)
    if not chain or _missing(chain, key):
        reason = (
            f"lacks notes that lead to {key.verifier}; nothing was changed; take "
            "proofs that were made after the log got that key"
        )
        raise InvalidInput("PROOF", None, reason)
    FILE.write(folder, [succession.note for succession in chain])
    return len(chain)
