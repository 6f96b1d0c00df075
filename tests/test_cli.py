"""The command line: answers as JSON on standard output, words on standard error, exit statuses."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from errno import EACCES, ENOSYS
from pathlib import Path
from unittest import mock

import pytest
from click import Group
from click.testing import CliRunner

from backend.base.files import FileLock
from backend.base.words import COMMAND
from backend.cli.commands import main
from backend.cli.output import say
from backend.mempool.watermark import Mark, Watermark
from backend.storage.genesis import Genesis
from backend.storage.layout import PARTS, make_ledger_folder
from backend.trust.log.secret_keys import SecretKey
from backend.verify.chain_check import BLOCKS_AT_ONCE
from tests.api.processes import (
    ROOT,
    WITHIN_S,
    backend,
    begun,
    environment,
    free_port,
    processes_of,
    ran,
    until,
)
from tests.api.worlds import GOOD, World, client_of, settings_for, world_in
from tests.cases import each_of
from tests.flights import transactions_in
from tests.folder_harms import as_nobody, folder_of_nobody, give_to_nobody
from tests.folders import all_below
from tests.index.worlds import make_chain
from tests.storage.chains import flip_in_block

pytestmark = pytest.mark.slow

DAYS = ["INITIAL_DATE=2015-01-01", "FINAL_DATE=2015-01-31"]


@dataclass(frozen=True)
class Done:
    """What a command printed for programs and for people, and its exit status."""

    returncode: int
    stdout: str
    stderr: str


def call(folder: Path, *arguments: str, **more: object) -> Done:
    """Run a command in this process, which is quicker; errors that are not ours are raised."""
    chosen: dict[str, str | None] = {name: str(value) for name, value in more.items()}
    for name in os.environ:
        if name.startswith("FLIGHTCHAIN_"):
            chosen.setdefault(name, None)
    runner = CliRunner(
        env={**chosen, "FLIGHTCHAIN_DIR": chosen.get("FLIGHTCHAIN_DIR", str(folder))}
    )
    result = runner.invoke(main, arguments, prog_name="python -m backend", catch_exceptions=False)
    return Done(result.exit_code, result.stdout, result.stderr)


def answer(done: Done | subprocess.CompletedProcess[str]) -> object:
    """Returns what a good command printed."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refusal(done: Done | subprocess.CompletedProcess[str], status: int = 1) -> str:
    """Returns what a command said that did not do its work: one line if it was called rightly."""
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    if status == 1:
        assert done.stderr.startswith("error: ")
        assert done.stderr.count("\n") == 1
    return done.stderr


# --- help and wrong calls ------------------------------------------------------------------------


@each_of("arguments", [[], *[[command] for command in main.commands]])
def test_help_explains_and_does_nothing(tmp_path: Path, arguments: list[str]) -> None:
    done = call(tmp_path / "none", *arguments, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(" ".join(["Usage: python -m backend", *arguments]))
    assert len(done.stdout.splitlines()) > 4
    if not arguments:
        shown = [name for name, command in main.commands.items() if not command.hidden]
        assert all(f"\n  {name} " in done.stdout for name in shown)
    assert not (tmp_path / "none").exists()


GROUPS = [[], *([name] for name, command in main.commands.items() if isinstance(command, Group))]


def test_the_summaries_of_commands_are_whole_in_a_terminal_of_80_columns(tmp_path: Path) -> None:
    for arguments in GROUPS:
        done = call(tmp_path, *arguments, "--help", COLUMNS=80)
        summaries = done.stdout.partition("\nCommands:\n")[2].splitlines()
        assert summaries
        assert all(summary.endswith(".") and "..." not in summary for summary in summaries)


LOG_KEY, OTHER_LOG_KEY = (str(SecretKey("log", bytes([at]) * 32).verifier) for at in range(2))
WRONG = [
    *("nonsense", "--nonsense", "tip extra", "show", "show -1", "show 1.0", "show \uff11"),
    *("serve --only-http --frontend", "query nonsense", "query average_delays ORIGIN"),
    *("query average_delays engine=scan engine=scan", "import", "import --then-serve"),
    *("import --generate 0", "import --generate 1 --nycflights", "import --if-empty --generate 1"),
    *("import /no/such/file", f"import {__file__} --generate 1", "backup", f"restore {__file__}"),
]
WRONG_CALLS = [
    *((command, "Error: ") for command in WRONG),
    ("witness", "give either the URLs of logs, or --listen"),
    ("witness http://x/log --listen 127.0.0.1:1", "give either the URLs of logs, or"),
    ("witness http://x/log --key nonsense", "--key: 'nonsense' is not a key"),
    (
        f"witness http://x/log --key {LOG_KEY} --key {OTHER_LOG_KEY}",
        "--key names two keys of the same log",
    ),
    ("witness --listen nowhere", "--listen takes HOST:PORT"),
    (f"witness --listen 127.0.0.1:99999 --key {LOG_KEY}", "--listen takes HOST:PORT"),
    ("witness --listen 127.0.0.1:1", "needs --key for each log to cosign"),
    ("cluster up 3 --port 99999", "99999 is not in the range 0<=x<=65535"),
    ("cluster up 3 --port 65534", "--port 65534: the last of 3 nodes would need"),
    ("cluster up 3 --peer-port 65534", "--peer-port 65534: the last of 3 nodes"),
    ("cluster configure pi0 --port 0", "0 is not in the range 1<=x<=65535"),
    ("cosign --once", "FLIGHTCHAIN_WITNESSES names no witness"),
]


@each_of(("command", "reason"), WRONG_CALLS)
def test_a_command_called_wrongly_says_how_and_does_nothing(
    tmp_path: Path, command: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert reason in refusal(call(tmp_path / "none", *command.split()), 2)
    assert list(tmp_path.iterdir()) == []


def test_without_a_command_there_is_help_and_an_error(tmp_path: Path) -> None:
    done = call(tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Usage: " in done.stderr


BAD_SETTINGS = [("FLIGHTCHAIN_PROT", "8000"), ("FLIGHTCHAIN_PORT", "x")]


@each_of(("name", "text"), BAD_SETTINGS)
def test_a_setting_that_is_wrong_or_unknown_is_named(tmp_path: Path, name: str, text: str) -> None:
    message = refusal(call(tmp_path / "none", "tip", **{name: text}))
    assert f"{name} {text!r}: " in message


# --- as processes ---------------------------------------------------------------------------------


def test_as_a_process_it_prints_and_ends_as_fits(world: World) -> None:
    folder = world.settings.folder
    shown = backend(folder, "show", "tip")
    assert (json.loads(shown.stdout)["height"], shown.stderr) == (world.tip, "")
    assert "block 31 does not exist; the newest is block 30" in refusal(
        backend(folder, "show", "31")
    )
    for arguments in (["tip", "-h"], ["--help"]):  # which is shown even if a setting is wrong
        done = backend(folder, *arguments, FLIGHTCHAIN_PORT="x")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"Usage: {COMMAND}")


# --- looking -------------------------------------------------------------------------------------


def test_tip_is_that_of_rest(world: World) -> None:
    with client_of(world.settings) as client:
        assert answer(call(world.settings.folder, "tip")) == client.get("/tip").get_json()


@each_of("height", ["0", "1", "3", "30", "tip", "007"])
def test_show_prints_a_whole_block(world: World, height: str) -> None:
    done = call(world.settings.folder, "show", height)
    with client_of(world.settings) as client:
        number = world.tip if height == "tip" else int(height)
        assert answer(done) == client.get(f"/blocks/{number}").get_json()["block"]
    assert done.stderr == ""


def test_an_export_and_its_check_tell_what_it_holds(world: World, tmp_path: Path) -> None:
    folder, export = world.settings.folder, str(tmp_path)
    with client_of(world.settings) as client:
        flights = client.get("/tip").get_json()["transactions"]
    held = {"height": world.tip, "tip_hash": world.hashes[-1], "flights": flights}
    done = call(folder, "export", "parquet", export)
    sizes = sum(path.stat().st_size for path in tmp_path.rglob("*.parquet"))
    assert answer(done) == held | {"new_flights": flights, "new_bytes": sizes}
    said = f"the {flights:,} flights of blocks 0 to {world.tip}, {flights:,} of them new"
    assert done.stderr == f"{export} holds {said}\n"
    assert answer(call(folder, "export", "check", export)) == held | {"agrees": True}


QUERIES = [
    ("filter_transactions", ["OP_CARRIER_FL_NUM=7", "FL_DATE=2015-01-07"]),
    ("average_delays", ["OP_CARRIER_AIRLINE_ID=19393", *DAYS]),
    ("flight_counter", ["ORIGIN_CITY_NAME=Chicago, IL", "DEST_CITY_NAME=Denver, CO", *DAYS]),
]
QUERIES += [
    ("average_delays", [*QUERIES[1][1], "group_by=day", "distribution=true"]),
    ("flight_counter", [*QUERIES[2][1], "group_by=carrier"]),
    ("flight_counter", ["ORIGIN_CITY_NAME=chicago, il", "DEST_CITY_NAME=Gotham", *DAYS]),
]


@each_of(("question", "parameters"), QUERIES)
@each_of("more", [[], ["engine=scan", "as_of=5"]])
def test_query_answers_as_rest_does(
    world: World, question: str, parameters: list[str], more: list[str]
) -> None:
    done = call(world.settings.folder, "query", question, *parameters, *more)
    asked = dict(parameter.split("=", 1) for parameter in [*parameters, *more])
    with client_of(world.settings) as client:
        assert answer(done) == client.get(f"/{question}", query_string=asked).get_json()
    assert done.stderr == ""


BAD_QUERIES = [
    (["filter_transactions"], "OP_CARRIER_FL_NUM"),
    (["average_delays", *QUERIES[1][1], "nonsense=1"], "nonsense '1'"),
    (["average_delays", *QUERIES[1][1], "format=csv"], "format 'csv': unknown parameter"),
    (["average_delays", *QUERIES[1][1], "as_of=31"], "block 31"),
]


@each_of(("arguments", "named"), BAD_QUERIES)
def test_a_bad_parameter_is_named(world: World, arguments: list[str], named: str) -> None:
    assert named in refusal(call(world.settings.folder, "query", *arguments))


def test_verify_says_what_it_found(world: World) -> None:
    done = call(world.settings.folder, "verify")
    assert answer(done) == {"height": world.tip, "tip_hash": world.hashes[-1], "verified": True}
    assert f"{len(world.transactions):,} transactions" in done.stderr
    assert "are as they were sealed" in done.stderr
    assert "the index agrees with every block" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        "verify",
        "show 1",
        "reindex",
        "query average_delays INITIAL_DATE=2015-01-01 FINAL_DATE=2015-01-31 engine=scan",
        "export parquet {folder}/../export",
    ],
)
def test_a_damaged_block_is_named_with_its_folder_and_what_to_do(
    world: World, tmp_path: Path, command: str
) -> None:
    folder = tmp_path / "chain"
    shutil.copytree(world.settings.folder, folder, symlinks=True)
    flip_in_block(folder, 1)
    done = call(folder, *command.format(folder=folder).split())
    remedy = f"it is in {folder}/blocks; restore the chain from a backup\n"
    assert done.stderr.endswith(f"error: block 1 is damaged: its checksum is wrong; {remedy}")


NEED_A_CHAIN = ["tip", "show tip", "show 0", "verify", "reindex", "accept-loss", "log rotate-key"]
QUESTION = "query average_delays INITIAL_DATE=2015-01-01 FINAL_DATE=2015-01-31"


@each_of("command", [*NEED_A_CHAIN, QUESTION])
def test_a_folder_without_a_chain_is_named_and_not_made(tmp_path: Path, command: str) -> None:
    folder = tmp_path / "typo"
    assert f"{folder} holds no chain" in refusal(call(folder, *command.split()))
    assert not folder.exists()


@pytest.mark.parametrize("command", [*NEED_A_CHAIN, QUESTION, "mine --once"])
def test_blocks_that_are_gone_are_missed_by_every_command(tmp_path: Path, command: str) -> None:
    world_in(tmp_path)
    shutil.rmtree(tmp_path / "blocks")
    message = refusal(call(tmp_path, *command.split()))
    assert f"there are no blocks in {tmp_path / 'blocks'}, but they once held" in message
    assert "is the disk mounted?" in message


def test_a_question_names_a_loss_of_blocks_at_once(tmp_path: Path) -> None:
    blocks, earlier = tmp_path / "blocks", tmp_path / "earlier"
    call(tmp_path, "import", "--generate", "1")
    shutil.copytree(blocks, earlier)
    call(tmp_path, "import", "--generate", "1", "--seed", "2")
    shutil.rmtree(blocks)
    earlier.rename(blocks)
    done = call(tmp_path, *QUESTION.split())
    assert f"\nerror: the chain has lost blocks: {blocks} has 2 blocks, but " in done.stderr


def test_where_nothing_is_missing_no_loss_is_accepted(tmp_path: Path) -> None:
    world_in(tmp_path)
    call(tmp_path, "mine", "--once")
    before = all_below(tmp_path, ("-shm", "-wal"))
    done = call(tmp_path, "accept-loss")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "no block is missing, so nothing is given up\n"
    assert all_below(tmp_path, ("-shm", "-wal")) == before


def test_a_loss_that_the_mempool_alone_knows_of_is_accepted(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    with closing(Watermark(tmp_path, Genesis(tmp_path))) as watermark:
        watermark.note(Mark(0, len(world.transactions) + 5))
    done = call(tmp_path, "accept-loss")
    assert (done.returncode, done.stdout) == (0, "")
    assert "5 acknowledged flights are lost" in done.stderr
    assert done.stderr.endswith("later blocks are given up\n")
    assert "no block is missing" in call(tmp_path, "accept-loss").stderr


WRITES = ["mine --once", "import --generate 1"]


@pytest.mark.parametrize("command", [*NEED_A_CHAIN[:3], *WRITES])
def test_a_folder_that_is_a_file_is_named(tmp_path: Path, command: str) -> None:
    file = tmp_path / "file"
    file.touch()
    done = call(file, *command.split())
    assert (done.returncode, done.stdout) == (1, "")
    assert f"error: {'cannot make ' if command in WRITES else ''}" in done.stderr
    assert str(file) in done.stderr


def test_a_path_that_nobody_means_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "~, which only a shell" in refusal(call(Path("~/chain"), "mine", "--once"))
    for path in ("", "~/there"):
        for command in (["backup"], ["restore"], ["export", "parquet"], ["witness", "--folder"]):
            assert "must not be empty" in refusal(done := call(tmp_path, *command, path), 2) or (
                "~, which only a shell" in done.stderr
            )
    assert list(tmp_path.iterdir()) == []


def test_a_folder_behind_a_link_to_a_disk_that_is_away_is_named(tmp_path: Path) -> None:
    link = tmp_path / "chain"
    link.symlink_to(tmp_path / "disk" / "chain")
    for folder in (link, link / "flights"):
        message = refusal(call(folder, "import", "--generate", "1"))
        assert (
            f"{link} leads to {tmp_path}/disk/chain, which does not exist; mount its disk"
        ) in message


@each_of(
    "command",
    [*WRITES, "import --if-empty", "mine", "serve", "serve --only-http", "import bts:2008-01"],
)
def test_no_ledger_is_begun_on_a_disk_that_cannot_hold_its_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Posts would be accepted there, and never mined. What is there already can be read."""
    assert call(tmp_path / "ledger", "import", "--generate", "1").returncode == 0
    monkeypatch.setattr(Path, "symlink_to", mock.Mock(side_effect=OSError(ENOSYS, "no such call")))
    message = refusal(call(tmp_path / "chain", *command.split()))
    assert message.startswith(f"error: cannot make a link in {tmp_path}/chain: no such call; a ")
    assert "; use ext4" in message
    assert not {path.name for path in (tmp_path / "chain").iterdir()} & PARTS
    assert call(tmp_path / "ledger", "verify").returncode == 0
    make_ledger_folder(tmp_path / "ledger")


def test_a_folder_of_a_ledger_is_not_taken_for_anything_else(tmp_path: Path) -> None:
    assert call(tmp_path, "import", "--generate", "1").returncode == 0
    before = sorted(tmp_path.rglob("*"))
    for folder in (tmp_path, tmp_path / "blocks", tmp_path / "mempool" / "x"):
        for command in (
            ["import", "bts:2008-01", "--keep-zips", str(folder)],
            ["witness", "http://127.0.0.1:9/log", "--folder", str(folder)],
            ["cluster", "configure", "a", "--folder", str(folder)],
            ["export", "parquet", str(folder)],
        ):
            done = call(tmp_path, *command)
            assert f"{folder} belongs to the ledger in {tmp_path}" in done.stderr, command
            assert done.returncode in {1, 5}
    for folder in (tmp_path, tmp_path / "blocks"):
        message = refusal(call(tmp_path / "other", "import", str(folder)))
        assert message.endswith("; import what its service exports (`GET /flights`)\n")
    for part in PARTS:
        message = refusal(call(tmp_path / part, "import", "--generate", "1"))
        assert message.endswith(f"is a part of a ledger: set FLIGHTCHAIN_DIR to {tmp_path}\n")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_file_that_this_user_may_not_see_is_not_said_to_be_missing() -> None:
    """As one in a home, which is closed to the user of the services."""
    with folder_of_nobody() as root:
        home = root / "home"
        home.mkdir(mode=0)
        with as_nobody():
            done = call(root / "chain", "import", str(home / "flights.csv"))
        message = " ".join(refusal(done, status=2).split())
        assert f"{home}/flights.csv: Permission denied; user " in message
        assert f" may not use the folder {home}; allow it" in message
        assert f" import - <{home}/flights.csv" in message


def test_standard_input_is_read_in_a_folder_that_this_user_may_not_see(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As `sudo flightchain import - <flights.zip` in a home, where `-` is no file to look for."""
    with folder_of_nobody() as root:
        give_to_nobody(root)
        home = root / "home"
        home.mkdir()
        monkeypatch.chdir(home)
        home.chmod(0)
        with as_nobody():
            done = call(root / "chain", "import", "-")
        assert refusal(done).startswith("error: file 'standard input': is empty")


@each_of(
    ("mode", "command", "mounted"),
    [(0o555, "import --generate 1", "is the disk mounted? If it is, "), (0, "tip", "")],
)
def test_a_folder_that_this_user_may_not_use_is_named(
    mode: int, command: str, mounted: str
) -> None:
    with folder_of_nobody() as root:
        barred = root / "barred"
        barred.mkdir(mode=mode)
        with as_nobody():
            message = refusal(call(barred / "chain", *command.split()))
        assert f" may not use the folder {barred}; {mounted}allow it, or use another" in message


def test_a_backup_of_another_user_is_said_to_be_one() -> None:
    """On another machine, the user of the services has another number."""
    with folder_of_nobody() as root:
        backup = root / "backup"
        backup.mkdir(mode=0)
        remedy = f"run `sudo chmod u+rwx {backup}`"
        if os.geteuid() == 0:
            remedy = "run this as root, who owns it, or take it over: "
            remedy += f"`sudo chown -R nobody {backup}`"
        with as_nobody():
            done = call(root / "chain", "restore", str(backup))
        message = " ".join(refusal(done, status=2).split())
        assert f"may not use it; {remedy}" in message


def test_a_file_of_a_backup_that_this_user_may_not_read_is_no_reason_for_a_new_backup() -> None:
    with folder_of_nobody() as root:
        make_chain(root / "chain", [])
        backup = root / "backup"
        assert call(root / "chain", "backup", str(backup)).returncode == 0
        (backup / "backup.lock").chmod(0)
        give_to_nobody(root)
        with as_nobody():
            message = refusal(call(backup, "verify"))
        assert message.endswith(f"may not use it; run `sudo chmod u+rw {backup}/backup.lock`)\n")


def test_what_could_not_be_shown_is_not_kept_or_it_is_said_where_it_can_be_seen(
    tmp_path: Path,
) -> None:
    make_chain(tmp_path, [])
    assert call(tmp_path, "mine", "--once").returncode == 0
    cases = {
        "tip": "; free some space on its disk",
        "token add me": "; no token was created",
        "log rotate-key": f"; `{COMMAND} log key` shows the new key",
    }
    for command, words in cases.items():
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "backend", *command.split()],
                cwd=ROOT, env=environment(tmp_path), stdout=full, stderr=subprocess.PIPE,
                text=True, check=False,
            )  # fmt: skip
        assert done.returncode == 1
        assert done.stderr.endswith(f"standard output: No space left on device{words}\n")
    none = call(tmp_path, "token", "list")
    assert (none.stdout, "there are no tokens" in none.stderr) == ("", True)
    assert call(tmp_path, "token", "add", "me").returncode == 0


def test_what_the_system_refuses_without_a_name_has_no_advice_about_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = mock.Mock(side_effect=PermissionError(EACCES, "Permission denied"))
    monkeypatch.setattr("backend.storage.layout.require_ledger", refused)
    message = refusal(call(tmp_path, "mine", "--once"))
    assert message == "error: the system: Permission denied\n"


def test_a_message_for_which_the_disk_has_no_room_ends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with io.TextIOWrapper(Path("/dev/full").open("wb", 0)) as full:
        monkeypatch.setattr(sys, "stderr", full)
        say("the disk is full")
        monkeypatch.undo()


def test_a_reader_that_has_gone_is_no_error_to_report(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    make_chain(tmp_path, [])
    done = subprocess.run(
        [sys.executable, "-m", "backend", "tip"],
        cwd=ROOT, env=environment(tmp_path), stdout=write, stderr=subprocess.PIPE, check=False,
    )  # fmt: skip
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")


def test_verify_does_not_call_a_ledger_well_whose_acknowledged_flights_were_lost(
    tmp_path: Path,
) -> None:
    make_chain(tmp_path, [])
    (tmp_path / "mempool").mkdir()
    (tmp_path / "mempool" / "lost-0-7.bin").write_bytes(b"damaged")
    done = call(tmp_path, "verify")
    assert "; but 7 acknowledged flights are lost, transactions 0 to 6; void" in done.stderr
    assert json.loads(done.stdout)["verified"] is False
    assert done.returncode == 1
    assert call(tmp_path, "verify", "--chain-only").returncode == 0


def test_a_second_miner_says_what_the_first_one_does(tmp_path: Path) -> None:
    with FileLock(tmp_path / "miner.lock"):
        done = call(tmp_path, "mine")
    assert "another miner already seals the flights of this ledger; stop it before" in refusal(done)


# --- writing -------------------------------------------------------------------------------------


def test_mine_once_seals_what_is_pending(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    with client_of(settings) as client:
        for _ in range(3):
            assert client.post("/transactions", json=GOOD).status_code == 202
    for sealed, height, empty in (("1 block", 1, 0), ("0 blocks", 1, 0), ("1 block", 2, 1)):
        done = call(tmp_path, "mine", "--once", FLIGHTCHAIN_MINE_EMPTY=empty)
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.endswith(f"sealed {sealed}\n")
        assert json.loads(call(tmp_path, "tip").stdout)["height"] == height
    assert transactions_in(tmp_path) == 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_mine_stops_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "chain"
    with begun(folder, "mine") as running:
        until((folder / "miner.json").exists)
        running.send_signal(number)
        assert running.wait(WITHIN_S) == 0
    assert not (folder / "miner.json").exists()


def test_reindex_makes_the_index_anew(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    for file in (tmp_path / "index").iterdir():
        file.unlink()
    question = ["query", "average_delays", *QUERIES[1][1]]
    assert " reindex`" in refusal(call(tmp_path, *question))
    done = call(tmp_path, "reindex")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.endswith(f"the index has blocks 0 to {world.tip}\n")
    index, scan = (call(tmp_path, *question, f"engine={name}") for name in ("index", "scan"))
    assert json.loads(index.stdout)["flights"] == json.loads(scan.stdout)["flights"] > 0


# Acts in the moment in which a process calls a function of that file for the first time.
ACTS = """
import os, signal, sys, time

file, name = os.environ["ACT_AT"].split(":")

def look(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_name == name and code.co_filename.endswith(file):
        sys.setprofile(None)
        {action}

sys.setprofile(look)
"""
PRESSES_CTRL_C = ACTS.replace("{action}", "os.kill(os.getpid(), signal.SIGINT)")
STAYS = ACTS.replace(  # and tells that it does
    "{action}", 'open(f"{os.environ[\'STAYING\']}/{os.getpid()}", "w").close(); time.sleep(600)'
)
MOMENTS = [
    "click/core.py:<module>",
    "click/core.py:main",
    "backend/base/settings.py:from_environment",
    "backend/storage/block_store.py:<module>",
]


@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_is_not_an_error_however_early_it_comes(
    world: World, tmp_path: Path, moment: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(PRESSES_CTRL_C, encoding="utf-8")
    more = {"PYTHONPATH": str(tmp_path), "ACT_AT": moment}
    command = [sys.executable, "-m", "backend", "tip"]
    env = environment(world.settings.folder, **more)
    done = ran(*command, env=env)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")


def test_ctrl_c_stays_ignored_where_it_was(world: World, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(PRESSES_CTRL_C, encoding="utf-8")
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
        "os.execv(sys.executable, [sys.executable, '-m', 'backend', 'tip'])"
    )
    env = environment(world.settings.folder)
    env |= {"PYTHONPATH": str(tmp_path), "ACT_AT": "click/core.py:main"}
    command = [sys.executable, "-c", ignoring]
    done = ran(*command, env=env)
    assert json.loads(done.stdout)["height"] == world.tip


PRESSES_AGAIN = """
import os, signal, sys
from backend.base.processes import interruption
interruption.ends_at_once()
interruption.may_be_caught()
interruption.TIDIES_FOR_S = float(sys.argv[1])
try:
    os.kill(os.getpid(), signal.SIGINT)
finally:
    os.kill(os.getpid(), signal.SIGINT)
    print("tidied up")
"""


def test_a_second_ctrl_c_does_not_stop_the_tidying_up(tmp_path: Path) -> None:
    done = ran(sys.executable, "-c", PRESSES_AGAIN, "30", env=environment(tmp_path))
    assert done.stdout == "tidied up\n"
    assert done.stderr.endswith("KeyboardInterrupt\n")


def test_a_second_ctrl_c_ends_a_program_that_hangs_while_it_tidies_up(tmp_path: Path) -> None:
    done = ran(sys.executable, "-c", PRESSES_AGAIN, "0", env=environment(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")


@pytest.mark.parametrize("processes", [1, 2])
def test_ctrl_c_while_verifying_is_not_an_error(tmp_path: Path, processes: int) -> None:
    """It comes while every process that checks blocks is in the midst of its first stretch."""
    folder, staying = tmp_path / "chain", tmp_path / "staying"
    make_chain(folder, [[] for _ in range(2 * BLOCKS_AT_ONCE)])
    staying.mkdir()
    (tmp_path / "sitecustomize.py").write_text(STAYS, encoding="utf-8")
    more = {"PYTHONPATH": tmp_path, "ACT_AT": "backend/verify/chain_check.py:checked"}
    command = ("verify", "--processes", str(processes))
    with begun(folder, *command, STAYING=staying, **more) as running:
        until(lambda: len(list(staying.iterdir())) == processes)
        running.send_signal(signal.SIGINT)
        printed, errors = running.communicate(timeout=WITHIN_S)
    assert (running.returncode, printed) == (130, "")
    assert errors.rstrip().endswith("stopped")
    until(lambda: processes_of(folder) == {})


# --- what scripts/run imports --------------------------------------------------------------------


def if_empty(folder: Path, data: str) -> Done:
    return call(folder, "import", "--if-empty", FLIGHTCHAIN_DATA=data)


def test_the_default_data_is_imported_once(tmp_path: Path) -> None:
    assert "300 flights imported" in if_empty(tmp_path, "generate:300").stderr
    for data in ("generate:300", "generate:400", "none", "/no/such/file"):
        done = if_empty(tmp_path, data)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert transactions_in(tmp_path) == 300


def test_no_default_data_imports_nothing(tmp_path: Path) -> None:
    done = if_empty(tmp_path / "chain", "none")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list((tmp_path / "chain").glob("**/*")) == []
    assert transactions_in(tmp_path / "chain") == 0


@pytest.mark.parametrize(
    "data",
    ["/no/such/file", "generate:x", "generate:0", "generate:-5", "generate:", "typo", "bts:"],
)
def test_default_data_that_is_not_there_is_named(tmp_path: Path, data: str) -> None:
    done = if_empty(tmp_path / "chain", data)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: FLIGHTCHAIN_DATA '{data}': ")
    assert "Traceback" not in done.stderr


def test_nothing_is_served_when_the_default_import_fails(tmp_path: Path) -> None:
    done = backend(
        tmp_path / "chain",
        *("import", "--if-empty", "--then-serve"),
        FLIGHTCHAIN_DATA="/no/such/file",
        FLIGHTCHAIN_PORT=free_port(),
    )
    assert "file 'file': does not exist" in refusal(done)


def test_a_default_import_that_was_stopped_is_finished_by_the_same_and_no_other(
    tmp_path: Path,
) -> None:
    mark = tmp_path / "default-import-unfinished"
    with begun(tmp_path, "import", "--if-empty", FLIGHTCHAIN_DATA="generate:8000"):
        until(mark.exists)
    until(lambda: processes_of(tmp_path) == {})
    call(tmp_path, "import", "--generate", "100")  # as if it had come that far
    had = transactions_in(tmp_path)
    assert 100 <= had < 8000
    for data in ("generate:300", "generate:8000:9", "none", "/no/such/file"):
        done = if_empty(tmp_path, data)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert transactions_in(tmp_path) == had
    assert mark.read_text() == "generate:8000"
    assert if_empty(tmp_path, "generate:8000").returncode == 0
    assert transactions_in(tmp_path) == 8000
    assert not mark.exists()


@pytest.mark.parametrize(
    "begun_with", [b"generate:400", b"generate:\xb000"], ids=["as it was", "bad"]
)
def test_an_empty_chain_takes_other_default_data_than_it_was_begun_with(
    tmp_path: Path, begun_with: bytes
) -> None:
    mark = tmp_path / "default-import-unfinished"
    mark.write_bytes(begun_with)
    assert if_empty(tmp_path, "generate:300").returncode == 0
    assert transactions_in(tmp_path) == 300
    assert not mark.exists()


def test_a_failed_default_import_does_not_come_back_into_a_chain_with_flights(
    tmp_path: Path,
) -> None:
    assert if_empty(tmp_path, "/no/such/file").returncode == 1
    assert call(tmp_path, "import", "--generate", "200").returncode == 0
    assert if_empty(tmp_path, "generate:300:9").returncode == 0
    assert transactions_in(tmp_path) == 200


def test_a_first_import_into_a_folder_that_is_not_there_reports_no_trouble(tmp_path: Path) -> None:
    done = call(tmp_path / "new", "import", "--generate", "10")
    assert done.returncode == 0
    assert "cannot" not in done.stderr


# --- the log: what it does is tested in tests/trust -----------------------------------------------


def test_a_log_without_a_chain_has_no_key(tmp_path: Path) -> None:
    assert "the log has no key yet" in refusal(call(tmp_path, "log", "key"))


def test_it_says_which_release_and_which_commit_runs_whatever_the_settings() -> None:
    command = [sys.executable, "-m", "backend", "--version"]
    environment = {**os.environ, "FLIGHTCHAIN_PORT": "nonsense"}
    done = ran(*command, env=environment)
    assert re.fullmatch(r"flightchain \d+\.\d+\.\d+ \((unknown|[0-9a-f]{7,40})\)\n", done.stdout)
