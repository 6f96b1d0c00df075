"""A ledger's folder with every kind of file, and harms that can come to each of them.

`Houses` makes the folder, what it was at an earlier time, and that of another ledger, so that an
older and a foreign file can be put in the place of the right one.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from backend.base.clock import now_ms
from backend.base.errors import FlightchainError
from backend.base.settings import Settings
from backend.chain import merkle
from backend.ledger.ledger import Ledger
from backend.sealing.sealer import Sealer
from backend.storage.block_store import BlockStore
from backend.storage.tokens import Tokens
from backend.trust.log import checkpoints, log_checks
from backend.trust.log.rotation import rotate
from backend.verify.audit import verify
from tests.api.worlds import settings_for
from tests.flights import flights
from tests.harming import overwrite, remove
from tests.storage.chains import flip
from tests.submitting import accept_in, add, sealing

FILE_BYTES = 4000
PENDING = 3
NOBODY = 65534
OTHERS = {"mempool", "acknowledged.dat", "mempool.lock"}  # `tests/mempool` harms them
SMALL_FILES = {
    "cosigned": "",  # as the checkpoint
    "clock.json": '{"believed_ms":1700000000000}',
    "scrub.json": '{"height":2,"pieces":17,"done":3,"completed_at":null,"problems":[]}',
    "damaged.json": "{}",
    "miner.json": '{"next_block_at":1700000000000,"pid":1,"due_s":1.0}',
}


def settings_of(folder: Path) -> Settings:
    """The settings of the ledgers here: each block file holds a few blocks."""
    return settings_for(folder, block_file_bytes=FILE_BYTES, clock_wait_s=0)


def add_block(folder: Path, serial: int, count: int = 30) -> None:
    """Accept flights and seal them, as a service does in a round."""
    with sealing(settings_of(folder)) as sealer:
        accept_in(sealer.mempool, flights(count, serial), now_ms())
        sealer.seal_pending()
        sealer.trim()


@dataclass(frozen=True)
class Houses:
    """The folder of a ledger; the same folder earlier; and that of another ledger."""

    chain: Path
    older: Path
    foreign: Path

    def files(self) -> list[str]:
        """The names of all files and folders that are harmed, below the folder."""
        paths = [self.chain, *sorted(self.chain.rglob("*"))]
        names = [str(path.relative_to(self.chain)) for path in paths[1:]]
        return [name for name in names if Path(name).parts[0] not in OTHERS]


def make_houses(root: Path) -> Houses:
    """Make the three folders below `root`."""
    chain, older, foreign = root / "chain", root / "older", root / "foreign"
    for folder, start in ((chain, 0), (foreign, 5000)):
        Tokens(folder).add("somebody")
        for number in range(3):
            add_block(folder, start + 100 * number)
        rotate(folder)
        add_small_files(folder)
    shutil.copytree(chain, older, symlinks=True)
    for folder, start in ((chain, 1000), (foreign, 6000)):
        Tokens(folder).add("somebody else")
        for number in range(3):
            add_block(folder, start + 100 * number)
        rotate(folder)
        add_block(folder, start + 900)
        add_small_files(folder)
        with closing(Sealer(settings_of(folder), print)) as sealer:
            accept_in(sealer.mempool, flights(PENDING, start + 950), now_ms())
    return Houses(chain, older, foreign)


def add_small_files(folder: Path) -> None:
    """Write the files that are there only after a service or a witness has run."""
    for name, text in SMALL_FILES.items():
        (folder / name).write_bytes(text.encode() or (folder / "checkpoint").read_bytes())


# --- harms -----------------------------------------------------------------------------------


def _missing(path: Path, _: Houses, __: str) -> None:
    if os.path.lexists(path):  # what only a running service has may be gone
        remove(path)


def _empty(path: Path, _: Houses, __: str) -> None:
    overwrite(path, b"")


def _truncated(path: Path, _: Houses, __: str) -> None:
    data = path.read_bytes()
    overwrite(path, data[: len(data) // 2])


def _flipped(path: Path, _: Houses, __: str) -> None:
    if size := path.stat().st_size:
        flip(path, size // 3)


def _unreadable(path: Path, _: Houses, __: str) -> None:
    path.chmod(0)


def _folder_in_its_place(path: Path, houses: Houses, name: str) -> None:
    _missing(path, houses, name)
    path.mkdir()


def _replaced_from(source: Path, path: Path, name: str) -> None:
    """Put the file or the folder of another house in the place of `path`."""
    other = source / name
    _missing(path, None, name)  # type: ignore[arg-type]
    if other.is_dir():
        shutil.copytree(other, path, symlinks=True)
    elif other.exists():
        shutil.copy2(other, path, follow_symlinks=False)


def _foreign(path: Path, houses: Houses, name: str) -> None:
    _replaced_from(houses.foreign, path, name)


def _older(path: Path, houses: Houses, name: str) -> None:
    _replaced_from(houses.older, path, name)


Harm = Callable[[Path, Houses, str], None]
OF_FILES: dict[str, Harm] = {
    "empty": _empty,
    "truncated": _truncated,
    "flipped": _flipped,
    "a folder": _folder_in_its_place,
}
OF_ALL: dict[str, Harm] = {
    "missing": _missing,
    "unreadable": _unreadable,
    "foreign": _foreign,
    "older": _older,
}
HARMS = OF_FILES | OF_ALL


def harms_of(houses: Houses, name: str) -> list[str]:
    """The harms that can come to a file or a folder."""
    path = houses.chain / name
    if path.is_symlink() or not path.is_dir():
        return [harm for harm in HARMS if not (path.is_symlink() and harm == "unreadable")]
    return list(OF_ALL)


# --- what is said of a harmed folder ---------------------------------------------------------


@dataclass(frozen=True)
class Findings:
    """What a folder says. ready: the reasons why it is not. verify: the error, "" if all is well.

    messages: what the writer reported, and the error that kept it from writing.
    """

    ready: list[str]
    verify: str
    messages: list[str]


def findings_in(folder: Path) -> Findings:
    """Let a miner do its first round, then look at what is said; the miner itself does not run."""
    messages = mined(folder)
    with closing(Ledger(settings_of(folder), messages.append)) as ledger:
        return _findings(folder, ledger, messages)


def findings_while_running(folder: Path, harm: Callable[[], None]) -> Findings:
    """Harm a folder that a miner and a worker have open, and let both go on."""
    messages: list[str] = []
    settings = settings_of(folder)
    with (
        closing(Ledger(settings, messages.append)) as ledger,
        closing(Sealer(settings, messages.append)) as sealer,
    ):
        with sealer.writing(wait=False):
            sealer.seal_pending()
        ledger.not_ready()
        harm()
        messages += tried(lambda: _go_on(ledger, sealer))
        findings = _findings(folder, ledger, messages)
    if findings.ready or findings.verify:
        return findings
    return findings_in(folder)


def _go_on(ledger: Ledger, sealer: Sealer) -> list[str]:
    """Accept a flight and seal it."""
    add(ledger.submitter, flights(1, 990)[0])
    with sealer.writing(wait=False):
        sealer.seal_pending()
    return []


def _findings(folder: Path, ledger: Ledger, messages: list[str]) -> Findings:
    reasons = [reason for reason in tried(ledger.not_ready) if "no miner is running" not in reason]
    return Findings(reasons, verified(folder), messages)


def mined(folder: Path) -> list[str]:
    """Do a round as a miner does that has just been started; what it said."""
    messages: list[str] = []
    try:
        with sealing(settings_of(folder), messages.append) as sealer:
            sealer.seal_pending()
    except (FlightchainError, OSError) as error:
        messages.append(str(error))
    return messages


def tried(action: Callable[[], list[str]]) -> list[str]:
    """Returns what `action` returns, or its error."""
    try:
        return action()
    except (FlightchainError, OSError) as error:
        return [str(error)]


def verified(folder: Path) -> str:
    """Returns what `verify` finds; "" if all is well."""
    try:
        verify(folder)
    except (FlightchainError, OSError) as error:
        return str(error)
    return ""


def signed_wrongly(houses: Houses, folder: Path) -> str:
    """What was signed that must not be: for another ledger, or over what was signed before."""
    signed = log_checks.signed_by_us(folder)
    if signed is None:  # there is none, or it is damaged
        return ""
    put_there = {(house / "checkpoint").read_bytes() for house in (houses.older, houses.foreign)}
    if (folder / "checkpoint").read_bytes() in put_there:
        return ""
    with closing(BlockStore(houses.chain)) as store:
        hashes = [place.hash for place in store.places(0, store.height() + 1)]
    if signed.origin != checkpoints.origin_of(hashes[0].hex()):
        return f"{signed.origin} was signed"
    if signed.size < len(hashes):
        return f"{signed.size} blocks were signed, fewer than before"
    if signed.size == len(hashes) and signed.root != merkle.root(merkle.leaf_hashes(hashes)):
        return "other blocks were signed"
    return ""


@contextmanager
def folder_of_nobody() -> Iterator[Path]:
    """A temporary folder into which everybody may look, unlike those of pytest."""
    root = Path(tempfile.mkdtemp(prefix="harmed-"))
    root.chmod(0o755)
    try:
        yield root
    finally:
        _remove(root)


def give_to_nobody(root: Path) -> None:
    """Let everything below `root` belong to NOBODY, if we may give it away."""
    for path in (root, *root.rglob("*")) if os.geteuid() == 0 else ():
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


@contextmanager
def copy_for_nobody(houses: Houses) -> Iterator[Path]:
    """A copy of the chain, used as somebody who is not root."""
    with folder_of_nobody() as root:
        folder = root / "chain"
        shutil.copytree(houses.chain, folder, symlinks=True)
        give_to_nobody(root)
        with as_nobody():
            yield folder


@contextmanager
def as_nobody() -> Iterator[None]:
    """Be somebody who is not root and has to obey modes of files."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


def _remove(root: Path) -> None:
    for path in root.rglob("*"):
        with suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(root)
