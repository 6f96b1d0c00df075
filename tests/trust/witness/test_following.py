"""What a look at a log finds, and what the command for it says and does."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from backend.cli.commands import main
from backend.trust.log import notes, tiles
from backend.trust.log.secret_keys import SecretKey, log_key
from backend.trust.log.tree import HistoryTree
from backend.trust.witness import following
from backend.trust.witness.following import Finding, Follower, Verdict, worst
from backend.trust.witness.witness import Witness
from tests.api.processes import free_port
from tests.trust.witness.logs import answering, signed

HOUR_S = 3600.0
OTHER = SecretKey("flightchain/ffffffffffffffff", b"\x09" * 32)


class Served:
    """A log that shows what a test wants."""

    def __init__(self, url: str, files: dict[str, bytes]) -> None:
        self.url = url
        self.files = files

    def show(self, key: SecretKey, size: int, root: bytes) -> None:
        self.files["/checkpoint"] = signed(key, size, root)
        self.files["/key"] = f"{key.verifier}\n".encode()


@contextmanager
def serving() -> Iterator[Served]:
    files: dict[str, bytes] = {}

    def reply(path: str, _body: bytes) -> tuple[int, bytes]:
        return (200, files[path]) if path in files else (404, b"")

    with answering(reply) as url:
        yield Served(url, files)


@pytest.fixture
def log(folder: Path, tree: HistoryTree) -> Iterator[Served]:
    """The log of `folder`, with all its 5 blocks."""
    with serving() as served:
        for width in range(1, 6):
            tile = tiles.Tile(0, 0, width)
            served.files[f"/tile/{tile.name}"] = tiles.content(tree, tile)
        served.show(log_key(folder), 5, tree.root(5))
        yield served


# --- the log ------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_key_given", [True, False])
def test_a_ledger_that_was_replaced_is_wrong(
    log: Served, folder: Path, tree: HistoryTree, witness: Witness, is_key_given: bool
) -> None:
    key = log_key(folder)
    follower = Follower(witness, [key.verifier] if is_key_given else [], HOUR_S)
    log.show(key, 4, tree.root(4))
    assert follower.look(log.url).verdict is Verdict.FINE
    log.show(OTHER, 2, bytes(32))
    for url in (log.url, f"{log.url}/"):
        findings = follower.look(url)
        assert findings.verdict is Verdict.WRONG
        assert (
            f"was the log {key.verifier.name}, and is {OTHER.verifier.name} now" in findings.message
        )
    assert witness.memory.note(OTHER.verifier.name) is None
    log.show(key, 5, tree.root(5))
    assert follower.look(log.url).verdict is Verdict.FINE


def test_a_ledger_may_be_replaced_if_somebody_says_so(
    log: Served, folder: Path, witness: Witness
) -> None:
    follower = Follower(witness, [], HOUR_S)
    assert follower.look(log.url).verdict is Verdict.FINE
    log.show(OTHER, 2, bytes(32))
    (path,) = witness.folder.glob("*.url")
    assert str(path) in follower.look(log.url).message
    path.unlink()
    assert follower.look(log.url).verdict is Verdict.FINE


def test_who_names_keys_takes_no_other_at_first_sight(log: Served, witness: Witness) -> None:
    findings = Follower(witness, [OTHER.verifier], HOUR_S).look(log.url)
    assert (findings.verdict, "--key" in findings.message) == (Verdict.WRONG, True)
    assert list(witness.folder.glob("*.vkey")) == [witness.folder / "witness.vkey"]
    assert Follower(witness, [], HOUR_S).look(log.url).verdict is Verdict.FINE
    assert Follower(witness, [OTHER.verifier], HOUR_S).look(log.url).verdict is Verdict.FINE


def test_a_key_that_did_not_sign_is_not_kept(log: Served, folder: Path, witness: Witness) -> None:
    other = SecretKey(log_key(folder).verifier.name, b"\x33" * 32)
    right, log.files["/key"] = log.files["/key"], f"{other.verifier}\n".encode()
    assert Follower(witness, [], HOUR_S).look(log.url).verdict is Verdict.WRONG
    log.files["/key"] = right
    assert Follower(witness, [], HOUR_S).look(log.url).verdict is Verdict.FINE


def test_a_new_key_has_to_be_named_once(
    log: Served, folder: Path, tree: HistoryTree, witness: Witness
) -> None:
    new = SecretKey(log_key(folder).verifier.name, b"\x33" * 32)
    assert Follower(witness, [], HOUR_S).look(log.url).verdict is Verdict.FINE
    log.show(new, 5, tree.root(5))
    finding = Follower(witness, [], HOUR_S).look(log.url)
    assert (finding.verdict, "name that one with --key" in finding.message) == (Verdict.WRONG, True)
    assert Follower(witness, [new.verifier], HOUR_S).look(log.url).verdict is Verdict.FINE
    assert Follower(witness, [], HOUR_S).look(log.url).verdict is Verdict.FINE


def test_what_a_log_says_cannot_write_on_the_terminal(log: Served, witness: Witness) -> None:
    bad = SecretKey("x\x9b2J\u202efine", b"\x09" * 32)
    log.show(bad, 2, bytes(32))
    for keys in ([], [OTHER.verifier]):
        findings = Follower(witness, keys, HOUR_S).look(log.url)
        assert findings.message.isprintable()
        assert r"x\x9b2J\u202efine" in findings.message


def test_a_look_has_a_limit_of_time(
    log: Served, folder: Path, tree: HistoryTree, witness: Witness, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.show(log_key(folder), 3, tree.root(3))
    assert Follower(witness, [], HOUR_S).look(log.url).verdict is Verdict.FINE
    monkeypatch.setattr(following, "LOOK_WITHIN_S", 0.5)

    def slow(path: str, _body: bytes) -> tuple[int, bytes]:
        time.sleep(0.3)
        return (200, log.files[path]) if path in log.files else (404, b"")

    log.show(log_key(folder), 5, tree.root(5))
    with answering(slow) as url:
        started = time.monotonic()
        findings = Follower(witness, [], HOUR_S).look(url)
        assert (findings.verdict, time.monotonic() - started < 30) == (Verdict.SILENT, True)


def test_an_answer_that_was_overtaken_is_no_log_that_was_put_back(
    log: Served, folder: Path, tree: HistoryTree, witness: Witness
) -> None:
    """The log may have asked this witness for more blocks while an older checkpoint was read."""
    key = log_key(folder)
    answers = [signed(key, 4, tree.root(4)), signed(key, 5, tree.root(5))]
    witness.cosign(answers[1], key.verifier, tree.consistency_proof)
    left = list(answers)

    def reply(path: str, _body: bytes) -> tuple[int, bytes]:
        return (200, left.pop(0)) if path == "/checkpoint" else (404, b"")

    follower = Follower(witness, [key.verifier], HOUR_S)
    with answering(reply) as url:
        assert follower.look(url).verdict is Verdict.FINE
        left = [answers[0], answers[0]]
        assert follower.look(url).verdict is Verdict.WRONG
    assert len(list(witness.folder.glob("*.rollback"))) == 1


# --- this witness -------------------------------------------------------------------------------


def test_a_witness_that_cannot_work_says_so_of_each_log_apart(
    log: Served, witness: Witness
) -> None:
    follower = Follower(witness, [], HOUR_S)
    assert follower.look(log.url).verdict is Verdict.FINE
    (path,) = witness.folder.glob("flightchain*.note")
    path.write_text("x")
    findings = follower.look(log.url)
    assert findings.verdict is Verdict.UNABLE
    assert findings.message.startswith("UNABLE: ")
    with serving() as other:
        other.show(OTHER, 2, bytes(32))
        assert follower.look(other.url).verdict is Verdict.FINE


def test_what_a_log_does_wrong_is_worse_than_what_a_witness_cannot() -> None:
    order = [Verdict.FINE, Verdict.SILENT, Verdict.UNABLE, Verdict.WRONG]
    for at, verdict in enumerate(order):
        for other in order[: at + 1]:
            assert worst([Finding(verdict, ""), Finding(other, "")]) is verdict
            assert worst([Finding(other, ""), Finding(verdict, "")]) is verdict


# --- the command --------------------------------------------------------------------------------


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run `witness`."""
    monkeypatch.setenv("FLIGHTCHAIN_DIR", str(tmp_path / "none"))

    def called(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["witness", "--folder", str(tmp_path / "w"), *arguments])

    return called


@pytest.fixture
def alarm(tmp_path: Path) -> Path:
    """A command that writes its message into a file beside it, `told`."""
    path = tmp_path / "alarm"
    path.write_text('#!/bin/sh\necho "$1" >> "$0".told\n')
    path.chmod(0o755)
    return path


def alarms(alarm: Path) -> list[str]:
    path = alarm.with_name("alarm.told")
    return path.read_text().splitlines() if path.exists() else []


def test_each_log_is_looked_at_and_each_alarm_is_raised(
    log: Served, call: Callable[..., Result], tmp_path: Path, alarm: Path
) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    with serving() as other:
        other.show(OTHER, 2, bytes(32))
        assert call(log.url, other.url).exit_code == 0
        (path,) = (tmp_path / "w").glob(f"flightchain-{OTHER.verifier.name[12:]}-*.note")
        path.write_text("x")
        done = call(other.url, nobody, log.url, "--alarm", str(alarm))
        assert done.exit_code == 5
        assert [line.partition(":")[0] for line in alarms(alarm)] == ["UNABLE", "SILENT"]
        assert "cosigned: " in done.stderr
        log.show(OTHER, 2, bytes(32))
        assert call(other.url, nobody, log.url, "--alarm", str(alarm)).exit_code == 4


def test_a_witness_whose_key_is_damaged_raises_the_alarm(
    log: Served, call: Callable[..., Result], tmp_path: Path, alarm: Path
) -> None:
    assert call(log.url).exit_code == 0
    (tmp_path / "w" / "witness.key").write_text("x")
    assert call(log.url, "--alarm", str(alarm)).exit_code == 5
    (line,) = alarms(alarm)
    assert line.startswith("UNABLE: ")


def test_an_alarm_that_cannot_be_raised_is_told_and_the_others_are_raised(
    call: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = [f"http://127.0.0.1:{free_port()}" for _ in range(2)]
    done = call(*urls, "--alarm", "no-such-command")
    assert done.exit_code == 3
    assert done.stderr.count("the alarm command failed: no-such-command") == 2
    done = call(*urls, "--alarm", "sh -c 'exit 7'")
    assert done.exit_code == 3
    assert done.stderr.count("ended with status 7") == 2
    monkeypatch.setattr(following, "ALARM_WITHIN_S", 0.2)
    started = time.monotonic()
    done = call(*urls, "--alarm", "sh -c 'sleep 20'")
    assert (done.exit_code, time.monotonic() - started < 10) == (3, True)
    assert done.stderr.count("did not end within 0.2 s") == 2


USELESS = [
    *(("--alarm", command) for command in ("mail 'me", " ", "''")),
    *(("--name", name) for name in ("", "a b", "a+b", "a\x1b", "a\u202e")),
]


@pytest.mark.parametrize(("option", "value"), USELESS)
def test_a_name_or_an_alarm_that_nobody_can_use_is_refused_at_once(
    call: Callable[..., Result], option: str, value: str, tmp_path: Path
) -> None:
    done = call("http://127.0.0.1:1", option, value)
    assert (done.exit_code, option in done.stderr) == (2, True)
    assert not (tmp_path / "w").exists()


def test_a_witness_has_the_name_that_it_was_given(
    call: Callable[..., Result], log: Served, tmp_path: Path
) -> None:
    assert call(log.url, "--name", "example.org/second-pi").exit_code == 0
    key = notes.parse_key((tmp_path / "w" / "witness.vkey").read_text())
    assert key.name == "example.org/second-pi"
    assert call(log.url).exit_code == 0
    assert call(log.url, "--name", "example.org/second-pi").exit_code == 0
    done = call(log.url, "--name", "example.org/other")
    assert (done.exit_code, "named example.org/second-pi" in done.stderr) == (2, True)


def test_a_name_may_have_any_letters(
    call: Callable[..., Result], log: Served, tmp_path: Path
) -> None:
    for _ in range(2):
        done = call(log.url, "--name", "zürich.example/π")
        assert done.exit_code == 0, done.stderr
    log.show(SecretKey("zürich/log", b"\x09" * 32), 2, bytes(32))
    next((tmp_path / "w").glob("*.url")).unlink()
    for _ in range(2):
        done = call(log.url)
        assert done.exit_code == 0, done.stderr


def test_a_witness_whose_key_is_open_to_others_says_so(
    call: Callable[..., Result], log: Served, tmp_path: Path
) -> None:
    assert "open to others" not in call(log.url).stderr
    (tmp_path / "w" / "witness.key").chmod(0o644)
    done = call(log.url)
    assert (done.exit_code, "witness.key is open to others" in done.stderr) == (0, True)


def test_what_is_no_url_is_no_silent_log(call: Callable[..., Result]) -> None:
    done = call("127.0.0.1:8000/log")
    assert (done.exit_code, "must begin with https:// or http://" in done.stderr) == (2, True)
    done = call("http://:8000/log")
    assert (done.exit_code, "must have a host" in done.stderr) == (2, True)


def test_an_address_where_no_log_is_is_to_be_that_of_a_log(call: Callable[..., Result]) -> None:
    with serving() as no_log:
        done = call(no_log.url)
    assert (done.exit_code, "status 404; a log's address is such as" in done.stderr) == (3, True)


# --- clocks that leapt, tiles that are kept back, redirections ------------------------------------


def test_a_clock_that_was_years_ahead_hides_no_silence_for_ever(
    log: Served, witness: Witness, monkeypatch: pytest.MonkeyPatch
) -> None:
    follower = Follower(witness, [], HOUR_S)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 10 * 365 * 24 * HOUR_S)
    assert follower.look(log.url).verdict is Verdict.FINE
    monkeypatch.setattr(time, "time", lambda: now)
    assert follower.look(log.url).verdict is Verdict.FINE  # from here on it counts
    monkeypatch.setattr(time, "time", lambda: now + 2 * HOUR_S)
    findings = follower.look(log.url)
    assert (findings.verdict, "the same for 2.0 hours" in findings.message) == (
        Verdict.SILENT,
        True,
    )


def test_a_checkpoint_whose_proof_is_kept_back_is_wrong_and_is_evidence(
    log: Served, folder: Path, tree: HistoryTree, witness: Witness
) -> None:
    key = log_key(folder)
    follower = Follower(witness, [], HOUR_S)
    log.show(key, 3, tree.root(3))
    assert follower.look(log.url).verdict is Verdict.FINE
    for path in [path for path in log.files if path.startswith("/tile/")]:
        del log.files[path]
    log.show(key, 5, tree.root(5))
    findings = follower.look(log.url)
    assert findings.verdict is Verdict.WRONG
    assert "nothing shows that they are still there" in findings.message
    (kept,) = witness.folder.glob("*.unproved")
    assert log.files["/checkpoint"].decode() in kept.read_text()
    note = witness.memory.note(key.verifier.name)
    assert note is not None
    assert "\n3\n" in note.text


@pytest.mark.parametrize("path", ["/checkpoint", "/tile/0/000.p/5", "/key"])
def test_a_log_cannot_send_a_witness_to_other_servers(
    log: Served, folder: Path, tree: HistoryTree, witness: Witness, path: str
) -> None:
    asked = []

    def elsewhere(_path: str, _body: bytes) -> tuple[int, bytes]:
        asked.append(_path)
        return 200, log.files[path]

    def reply(wanted: str, _body: bytes) -> tuple[Any, ...]:
        target = ("Location", f"{other}{path}")
        return (302, b"", target) if wanted == path else (200, log.files[wanted])

    with answering(elsewhere) as other, answering(reply) as url:
        log.show(log_key(folder), 3, tree.root(3))
        if path.startswith("/tile"):
            witness.cosign(log.files["/checkpoint"], log_key(folder).verifier, lambda *_: [])
        log.show(log_key(folder), 5, tree.root(5))
        findings = Follower(witness, [], HOUR_S).look(url)
    assert (findings.verdict, asked) == (Verdict.SILENT, [])
    assert f"{other}{path}" in findings.message
