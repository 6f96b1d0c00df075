"""Damages every kind of file that a service keeps, at rest or while it runs.

A file is changed, or an earlier copy of it or another ledger's is put in its place. After each
damage the service is asked what it was asked before. It may refuse, and it may say that something
was lost. It must not answer wrongly, forget what it acknowledged without a word, give an id again,
sign for another ledger, or say that it is ready while something is missing.
"""

import random
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import requests

from backend.chain.flight import as_mapping
from backend.verify import folder_files
from tests import folder_harms, harming
from tests.api.processes import Service, backend, until
from tests.api.worlds import Json
from tests.faults.auditing import asked_about, differing, says_lost
from tests.faults.clients import GOOD
from tests.faults.report import Outcome, Task
from tests.faults.template import (
    BLOCK_FILE_BYTES,
    FLIGHTS_A_RECORD,
    KEY,
    KEYED_PATH,
    Template,
    keyed_lines,
    template_in,
)
from tests.flights import flight
from tests.units.supervised import Supervised

READY_WITHIN_S = 4.0
ASKED = 5  # flights that the three questions are asked about
MINED_ASKED = 5  # transactions of blocks that are asked for
LIVE_SHARE = 0.3  # of the damages happen while the service runs
ANSWER_WITHIN_S = 10.0
REFUSALS = {503}
NEW_SERIAL = 5 * 10**8
NOTHING = "nothing"  # a file that is not there
MEMPOOL = "mempool/mempool.sqlite"
ONLY_LIVE = "miner.json"  # is there only while a miner runs
DERIVED = (
    "-wal",
    "-shm",
    "-settled",  # a note that spares work
)  # hold nothing that anybody was promised
AS_GOOD = {("tokens.json", "foreign"), ("tokens.json", "older"), ("acknowledged.dat", "older")}
SETTINGS: dict[str, Any] = {
    "FLIGHTCHAIN_WORKERS": 1,
    "FLIGHTCHAIN_THREADS": 2,
    "FLIGHTCHAIN_MINE_INTERVAL_S": 3600,
    "FLIGHTCHAIN_BLOCK_FILE_BYTES": BLOCK_FILE_BYTES,
    "FLIGHTCHAIN_DIFFICULTY_BITS": 0,
}
NAMED = re.compile(
    r"damage|lost|left out|cut off|anew|incomplete|malformed|torn|missing|rebuil|cannot be read|"
    r"not a database|corrupt|checksum|belongs to|another ledger",
    re.IGNORECASE,
)

MINED_AGAIN = "its transactions are mined again"
WARNS_OF_FORK = "witnesses of this log will refuse what follows"
SAYS_KEYS_ARE_FREE = re.compile("may be used (again|twice)")

SHARES = {"flip": 5, "truncate": 2, "scribble": 2, "blank": 1, "remove": 1}  # of the harms
REPLACED = {"foreign": 4, "older": 4}  # those that put another file in its place


def kind_of(path: Path, folder: Path) -> str:
    """A file's name without what tells it from others of its kind."""
    return re.sub(r"\d+", "N", str(path.relative_to(folder)))


class Damage(NamedTuple):
    """What is done to which file, and when."""

    file: str
    harm: str
    is_live: bool

    def __str__(self) -> str:
        when = "while the service runs" if self.is_live else "at rest"
        return f"{self.harm} {self.file} {when}"


@dataclass
class Trial:
    """A copy of the chain that is harmed, and what was seen of it."""

    template: Template
    folder: Path
    damage: Damage
    outcome: Outcome
    forgotten: list[str] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    harmed: bytes | None = None  # what the file holds after the damage; None if it is gone
    is_changed: bool = True
    used_again: str = ""  # the answer to a key that was used again
    ready: bool = False
    is_sound: bool = False  # as `verify` says
    messages: str = ""

    def add(self, kind: str, what: str) -> None:
        """Take down a finding of this trial, the first of its kind."""
        if kind not in self.kinds:
            self.kinds.add(kind)
            self.outcome.add(kind, f"{self.damage}: {what}")


def run(task: Task) -> Outcome:
    """Damage `task.count` copies of a chain, each in one way."""
    outcome, kinds = Outcome(), Counter[str]()
    template = template_in(task.folder)
    _require_quiet(template, task.folder / "untouched", task.chance)
    plan = _plan(template, task.chance)
    while outcome.done < task.count:
        damage, seed = next(plan), task.chance.randrange(2**32)
        folder = task.folder / f"harmed-{outcome.done}"
        shutil.copytree(template.folder, folder, symlinks=True)
        trial = Trial(template, folder, damage, outcome)
        _try(trial, random.Random(seed))
        kinds[kind_of(Path(damage.file), Path())] += 1
        outcome.done += 1
        outcome.acknowledged += len(template.flights)
        shutil.rmtree(folder)
        if outcome.done % 50 == 0:
            task.says(f"{outcome.done} damages, {len(outcome.findings)} findings")
    outcome.notes.append("harmed: " + ", ".join(f"{k} {n}" for k, n in sorted(kinds.items())))
    return outcome


def _require_quiet(template: Template, folder: Path, chance: random.Random) -> None:
    """Make sure that nothing is found, and nothing named, where nothing is damaged."""
    shutil.copytree(template.folder, folder, symlinks=True)
    trial = Trial(template, folder, Damage(NOTHING, "remove", is_live=False), Outcome())
    _try(trial, chance)
    assert trial.ready, trial.messages
    assert not trial.outcome.findings
    assert not NAMED.search(trial.messages), trial.messages


def _plan(template: Template, chance: random.Random) -> Iterator[Damage]:
    """Damages without end; every kind of file has its turn."""
    kinds: dict[str, list[str]] = {"miner.json": [ONLY_LIVE]}
    for path in sorted(template.folder.rglob("*")):
        name = str(path.relative_to(template.folder))
        kinds.setdefault(kind_of(path, template.folder), []).append(name)
    shares = REPLACED | SHARES
    while True:
        for kind in chance.sample(sorted(kinds), len(kinds)):
            file = chance.choice([*kinds[kind], kinds[kind][-1]])  # the newest more often
            is_live = file == ONLY_LIVE or chance.random() < LIVE_SHARE
            harms = _harms_of(template, file)
            harm = chance.choices(harms, [shares[harm] for harm in harms])[0]
            yield Damage(file, harm, is_live)


def _harms_of(template: Template, file: str) -> list[str]:
    """The harms that can come to a file, or to a folder or a link, which hold nothing to change."""
    path, houses = template.folder / file, template.houses
    others = {"foreign": houses.foreign / file, "older": houses.older / file}
    changes = ["remove"] if path.is_dir() or path.is_symlink() else [*SHARES]
    return changes + [harm for harm, other in others.items() if other.exists()]


def _try(trial: Trial, chance: random.Random) -> None:
    """Harm the copy, ask the service about it, and judge what was seen."""
    if not trial.damage.is_live:
        _do(trial, chance)
    with (
        closing(Supervised(trial.folder)) as units,
        Service(
            trial.folder, command=tuple(units.command()), **units.settings(), **SETTINGS
        ) as service,
    ):
        with suppress(AssertionError):  # it may refuse to be ready
            until(lambda: service.process.poll() is not None or service.answers(), READY_WITHIN_S)
        if trial.damage.is_live:
            _do(trial, chance)
        if service.process.poll() is None:
            _ask(trial, service, chance)
            trial.ready = service.answers()
            if trial.ready:  # it may have been put right meanwhile, and was not ready before
                again, trial.forgotten = trial.forgotten, []
                for path in again:
                    _answer(trial, service, path)
            trial.messages = _body(service, "/health/ready")
    trial.messages += service.said()
    service.log.unlink()
    verified = backend(trial.folder, "verify")
    trial.is_sound = not verified.stderr.startswith("error: ")  # flights may be lost all the same
    damaged = "" if trial.is_sound else " that it is damaged"
    trial.messages += f"\nverify says{damaged}: {verified.stderr}"
    _judge(trial)


def _do(trial: Trial, chance: random.Random) -> None:
    path = trial.folder / trial.damage.file
    before = path.read_bytes() if path.is_file() else None
    if trial.damage.harm in REPLACED:
        folder_harms.HARMS[trial.damage.harm](path, trial.template.houses, trial.damage.file)
    elif path.exists():  # what only a running service has may not be there yet
        harming.harm(path, trial.damage.harm, chance)
    trial.harmed = path.read_bytes() if path.is_file() else None
    trial.is_changed = before is None or trial.harmed != before  # zeros over zeros are no damage


# --- asking --------------------------------------------------------------------------------------


def _ask(trial: Trial, service: Service, chance: random.Random) -> None:
    _ask_questions(trial, service, chance)
    _ask_transactions(trial, service, chance)
    _ask_key(trial, service)
    _post(trial, service)


def _ask_questions(trial: Trial, service: Service, chance: random.Random) -> None:
    rows = trial.template.rows()
    for row in chance.sample(rows, ASKED):
        for path, wanted in asked_about(row, rows):
            for engine in ("index", "scan"):
                place = f"{path}&engine={engine}&as_of={trial.template.height}"
                got = _answer(trial, service, place)
                if got is not None and (wrong := differing(got, wanted)):
                    trial.add("wrong", f"{place}: {wrong}")


def _ask_transactions(trial: Trial, service: Service, chance: random.Random) -> None:
    template = trial.template
    pending = range(template.mined, len(template.flights), 3)
    for number in [*chance.sample(range(template.mined), MINED_ASKED), *pending]:
        got = _answer(trial, service, f"/transactions/{number}")
        if got is None:
            continue
        wanted = as_mapping(template.flights[number])
        shown = {name: got["transaction"].get(name) for name in wanted}
        if shown != wanted and not says_lost(shown):
            trial.add("wrong", f"/transactions/{number}: {shown} instead of {wanted}")


def _ask_key(trial: Trial, service: Service) -> None:
    """Send again what was sent with a key."""
    first = trial.template.keyed
    body = keyed_lines(trial.template.flights[first : first + FLIGHTS_A_RECORD])
    headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": KEY}
    answer = _sent(service, "POST", KEYED_PATH, data=body, headers=headers)
    if answer is None or answer.status_code in REFUSALS:
        return
    if answer.status_code not in GOOD:
        trial.add("refused", f"a batch with a key: {answer.status_code} {answer.text}")
    elif answer.json()["first_transaction"] != first:
        trial.used_again = answer.text


def _post(trial: Trial, service: Service) -> None:
    answer = _sent(service, "POST", "/transactions", json=as_mapping(flight(NEW_SERIAL)))
    if answer is None or answer.status_code in REFUSALS:
        return
    if answer.status_code not in GOOD:
        trial.add("refused", f"a post: {answer.status_code} {answer.text}")
    elif answer.json()["TRANSACTION_ID"] < len(trial.template.flights):
        trial.add("doubled", f"an id is given again: {answer.text}")


def _answer(trial: Trial, service: Service, path: str) -> Json | None:
    """Returns what the service answers; None if it refuses as it may, or has forgotten it."""
    answer = _sent(service, "GET", path)
    if answer is None or answer.status_code in REFUSALS:
        return None
    if answer.status_code == 404:
        trial.forgotten.append(path)
    elif answer.status_code == 200:
        body: Json = answer.json()
        return body
    else:
        trial.add("refused", f"{path}: {answer.status_code} {answer.text}")
    return None


def _sent(service: Service, method: str, path: str, **more: Any) -> requests.Response | None:
    headers = {"Connection": "close", **more.pop("headers", {})}
    try:
        return service.session.request(
            method, service.url + path, headers=headers, timeout=ANSWER_WITHIN_S, **more
        )
    except requests.RequestException:  # it has ended, or breaks off what it cannot verify
        return None


def _body(service: Service, path: str) -> str:
    answer = _sent(service, "GET", path)
    return "" if answer is None else answer.text


# --- judging -------------------------------------------------------------------------------------


def _judge(trial: Trial) -> None:
    is_named = NAMED.search(trial.messages) is not None
    if MINED_AGAIN in trial.messages:  # nothing stands at that height until then
        trial.forgotten = [path for path in trial.forgotten if "as_of=" not in path]
    if trial.forgotten:
        missing = f"what {len(trial.forgotten)} of the addresses should show: {trial.forgotten[0]}"
        if trial.ready:
            trial.add("silent", f"ready, and without {missing}")
        elif not is_named:
            trial.add("silent", f"nobody names {missing}")
    if trial.used_again and not SAYS_KEYS_ARE_FREE.search(trial.messages):
        trial.add("doubled", f"a key was used again: {trial.used_again}")
    if not is_named and not _is_derived(trial.damage.file) and not _is_harmless(trial):
        trial.add("silent", "neither the log, nor /health/ready, nor verify names it")
    is_decided = MINED_AGAIN in trial.messages and WARNS_OF_FORK in trial.messages
    wrong = folder_harms.signed_wrongly(trial.template.houses, trial.folder)
    if wrong and not is_decided:
        trial.add("signed", wrong)


def _is_derived(name: str) -> bool:
    """Whether nobody was promised what a file holds; blocks and index are judged by more."""
    kind = folder_files.kind_of(name)
    is_derived = kind is not None and kind.remedy == folder_files.LET_IT_BE
    return name.endswith(DERIVED) or (is_derived and not name.startswith(("blocks", "index")))


def _is_harmless(trial: Trial) -> bool:
    """Whether the damage changed nothing, or only an index, which is made anew if it is missing."""
    name = trial.damage.file
    path, original = trial.folder / name, trial.template.folder / name
    if name == NOTHING or not trial.is_changed or (name, trial.damage.harm) in AS_GOOD:
        return True
    if name.startswith("index"):
        is_whole = trial.damage.harm in {"remove", *REPLACED}  # then answers tell what it is
        return is_whole or path.read_bytes() != trial.harmed
    if path.is_file() and (trial.damage.harm in REPLACED or name == MEMPOOL):
        return trial.is_sound and path.read_bytes() != trial.harmed  # SQLite's log held all of it
    return path.is_file() and path.read_bytes() == original.read_bytes()
