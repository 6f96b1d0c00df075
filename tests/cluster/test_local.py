"""`cluster status` has a line for every node, whatever that answers."""

import os
import shutil
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from backend.base.errors import FlightchainError
from backend.cli.commands import main
from backend.cluster.configuration import BASE, CHAIN, ENGINE, Host
from backend.cluster.engine_files import STATE_NAME
from backend.cluster.local import (
    HOSTS,
    LOG_NAME,
    LOOPBACK,
    PID_NAME,
    LocalCluster,
    _descendants,
    _started,
    free_ports,
    hosts_on_loopback,
)
from backend.cluster.log_key import common_key_path
from backend.storage.genesis import genesis_in
from backend.storage.layout import BLOCKS_FOLDER, MARK_NAME
from backend.storage.receipt_store import FILE_NAME as RECEIPTS_NAME
from backend.trust.log.checkpoints import Checkpoint, origin_of
from backend.trust.log.secret_keys import LOG, SecretKey, new_key
from tests.cluster.engine import make_base
from tests.frontend.fake_backend import answering
from tests.index.worlds import make_chain

TIP = {
    "height": 3,
    "hash": "00ab" * 16,
    "transactions": 7,
    "pending": 0,
    "cluster": {"votes": 30, "votes_total": 40},
}
PROBLEM = {
    "status": 503,
    "title": "Service Unavailable",
    "detail": "block 3 is damaged: restore it",
}
ANSWERS: dict[str, tuple[Any, Any, str]] = {
    "ready": (TIP, {"status": "ready"}, "30 of 40 votes; ready"),
    "not ready": (TIP, PROBLEM, "30 of 40 votes; block 3 is damaged: restore it"),
    "no tip": (PROBLEM, PROBLEM, "cannot show its tip: block 3 is damaged: restore it"),
    "nothing": (HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.INTERNAL_SERVER_ERROR, "its tip: {}"),
    "a list": ([1], [1], "answers with no JSON object"),
    "another service": ({"height": None}, "text", "cannot show its tip"),
    "no cluster": (TIP | {"cluster": None}, {"status": "ready"}, "cannot show its tip"),
}


def status_of(folder: Path, url: str, log: str = "", bind: str = "0.0.0.0") -> str:
    """Returns what `cluster status` says of a cluster with a node at `url`, in a line."""
    port = int(url.rpartition(":")[2])
    HOSTS.write(folder, [Host("node0", "127.0.0.1", 1, port, bind)])
    (folder / "node0").mkdir(exist_ok=True)
    (folder / "node0" / LOG_NAME).write_text(log)
    done = CliRunner().invoke(main, ["cluster", "status", "--folder", str(folder)])
    assert done.exit_code == 0, done.output
    (line,) = done.stdout.splitlines()
    return line


@pytest.mark.parametrize(("tip", "ready", "words"), ANSWERS.values(), ids=ANSWERS)
def test_a_node_that_answers_has_a_line(tmp_path: Path, tip: Any, ready: Any, words: str) -> None:
    with answering(lambda path, parameters: tip if path == "/tip" else ready) as url:
        assert words in status_of(tmp_path, url)


def signed(tmp_path: Path, *, key: SecretKey | None = None, origin: str = "") -> bytes:
    """A checkpoint of the chain that the cluster in `tmp_path` began with; another `origin`'s."""
    base = tmp_path / BASE
    if not base.exists():
        make_chain(base, [])
    name = origin or origin_of(genesis_in(base))
    key = key or new_key(name, LOG)
    return str(key.note(str(Checkpoint(name, 1, bytes(32))))).encode()


def test_a_node_of_another_cluster_at_the_address_of_one_is_not_shown_as_ours(
    tmp_path: Path,
) -> None:
    notes = {"/log/checkpoint": signed(tmp_path, origin="flightchain/0123456789abcdef")}
    with answering(lambda path, _: notes.get(path, TIP)) as url:
        assert "does not run here: another service answers" in status_of(tmp_path, url)
    notes = {"/log/checkpoint": signed(tmp_path)}
    with answering(lambda path, _: notes.get(path, TIP)) as url:
        shutil.rmtree(tmp_path / "node0")
        assert "block 3" in status_of(tmp_path, url)


def test_what_answers_for_a_node_of_this_machine_that_does_not_run_is_another_service(
    tmp_path: Path,
) -> None:
    with answering(lambda path, parameters: TIP) as url:
        assert "does not run here: another" in status_of(tmp_path, url, bind="127.0.0.1")


def test_a_node_that_signs_with_another_key_than_the_cluster_is_named(tmp_path: Path) -> None:
    answer = {"/tip": TIP, "/health/ready": {"status": "ready"}}
    old, new = (new_key("flightchain/0", LOG) for _ in range(2))
    path = common_key_path(tmp_path / "node0" / ENGINE)
    for key, words in ((old, f"ready, but signs the log with another key than {path}"), (new, "")):
        answer["/log/checkpoint"] = signed(tmp_path, key=key)
        with answering(lambda path, parameters: answer[path]) as url:
            shutil.rmtree(tmp_path / "node0", ignore_errors=True)
            path.parent.mkdir(parents=True)
            path.write_text(str(new))
            line = status_of(tmp_path, url)
        assert words in line if words else line.endswith("; ready")


def test_free_ports_are_none_that_a_connection_takes_before_a_node_is_started() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert max(ports) < 32_768


def test_a_cluster_is_not_started_where_a_port_of_it_is_in_use(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    with socket.create_server((LOOPBACK, 0)) as other:
        port = other.getsockname()[1]
        for option, free in (("--port", "--peer-port"), ("--peer-port", "--port")):
            words = ["cluster", "up", "2", option, str(port), free, "0", "--folder", str(folder)]
            done = CliRunner().invoke(main, words, env={"FLIGHTCHAIN_DATA": "none"})
            assert done.exit_code == 1
            assert f"cannot listen at 127.0.0.1 port {port}: Address already in use" in done.stderr
            assert f"stop the program that uses it, or choose another {option}\n" in done.stderr
    assert not folder.exists()


def test_a_cluster_keeps_its_ports_and_its_chain_and_says_so(tmp_path: Path) -> None:
    make_base(tmp_path)
    cluster = LocalCluster(tmp_path)
    cluster.make(hosts_on_loopback(2, 0, 0), 4.0, empty=False)
    for words in (["--port", "19000"], ["--peer-port", "19000"], ["--chain", str(tmp_path)]):
        command = ["cluster", "up", "2", *words, "--folder", str(tmp_path)]
        done = CliRunner().invoke(main, command)
        assert (done.exit_code, f"leave out {words[0]}, or choose" in done.stderr) == (1, True)
    assert not any(map(cluster.pid, cluster.hosts))
    with pytest.raises(FlightchainError, match="has no node 9, but node0, node1"):
        cluster.node("9")
    with socket.create_server((LOOPBACK, cluster.hosts[0].port)):  # its own may be given again
        words = ["--port", str(cluster.hosts[0].port), "--folder", str(tmp_path)]
        done = CliRunner().invoke(main, ["cluster", "up", "2", *words])
    assert "cannot listen at" in done.stderr


def test_a_node_that_does_not_run_is_said_to_have_ended_with_the_end_of_its_log(
    tmp_path: Path,
) -> None:
    log = "begins\nends: no disk\nthe miner ended with status 1; starting it again in 0.5 s\n"
    line = status_of(tmp_path, f"http://127.0.0.1:{free_ports(1)[0]}", log)
    assert "does not run here: " in line
    assert line.endswith("the last line of its log: ends: no disk")


def test_a_node_that_has_ended_is_not_waited_for(tmp_path: Path) -> None:
    cluster, host = LocalCluster(tmp_path), hosts_on_loopback(1, 0, 0)[0]
    (tmp_path / host.name).mkdir()
    (tmp_path / host.name / LOG_NAME).write_text("error: no witness\n")
    with pytest.raises(FlightchainError, match=r"^not ready after 0 s: .* log: error: no witness"):
        cluster.wait_until_ready([host], 60)


def test_a_node_that_ended_before_its_start_was_noted_does_not_run(tmp_path: Path) -> None:
    cluster, host = LocalCluster(tmp_path), hosts_on_loopback(1, 0, 0)[0]
    (tmp_path / host.name).mkdir()
    with subprocess.Popen(["true"]) as process:
        process.wait()
    (tmp_path / host.name / PID_NAME).write_text(f"{process.pid} {_started(process.pid)}\n")
    assert cluster.pid(host) is None
    (tmp_path / host.name / PID_NAME).write_text(f"{os.getpid()} 1\n")  # of another process now
    assert cluster.pid(host) is None


@pytest.mark.parametrize("command", ["status", "down"])
def test_a_folder_without_a_cluster_is_said_to_have_none(tmp_path: Path, command: str) -> None:
    done = CliRunner().invoke(main, ["cluster", command, "--folder", str(tmp_path)])
    assert (done.exit_code, done.stdout) == (1, "")
    assert (
        done.stderr == f"error: {tmp_path} has no cluster; make one first, or name its --folder\n"
    )


def test_a_rebuilt_node_keeps_what_it_has_accepted_and_its_newest_vote(tmp_path: Path) -> None:
    make_base(tmp_path)
    cluster = LocalCluster(tmp_path)
    cluster.make(hosts_on_loopback(1, 0, 0), 4.0, empty=False)
    (host,) = cluster.hosts
    chain, data = tmp_path / host.name / CHAIN, tmp_path / host.name / ENGINE / "data"
    for path in (chain / RECEIPTS_NAME, chain / MARK_NAME, data / "wal"):
        path.touch()
    pid = tmp_path / host.name / PID_NAME
    pid.write_text(f"{os.getpid()} {_started(os.getpid())}")
    with pytest.raises(FlightchainError, match="node0 runs; kill it first"):
        cluster.rebuild(host)
    pid.unlink()
    aside = cluster.rebuild(host, engine=True)
    assert {path.name for path in aside.iterdir()} == {BLOCKS_FOLDER, RECEIPTS_NAME, "wal"}
    assert {path.name for path in chain.iterdir()} == {BLOCKS_FOLDER, MARK_NAME}
    assert [path.name for path in data.iterdir()] == [STATE_NAME]  # or it might vote twice


def test_a_node_is_killed_with_all_processes_below_its_own() -> None:
    command, pipe = ["sh", "-c", "sh -c 'cat; :'; :"], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"all run\n")
        assert process.stdout.readline() == b"all run\n"
        assert len(list(_descendants(process.pid))) == 2
        process.stdin.close()


def test_a_node_is_stopped_by_its_first_process_which_stops_the_others(tmp_path: Path) -> None:
    cluster, host = LocalCluster(tmp_path), hosts_on_loopback(1, 0, 0)[0]
    script, pipe = "trap 'echo asked' TERM; exec 3<&0; cat <&3 & wait; wait", subprocess.PIPE
    with (
        subprocess.Popen(["sh", "-c", script], stdin=pipe, stdout=pipe, bufsize=0) as process,
        ThreadPoolExecutor(1) as thread,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"both run\n")
        assert process.stdout.readline() == b"both run\n"
        (tmp_path / host.name).mkdir()
        started = f"{process.pid} {_started(process.pid)}"
        (tmp_path / host.name / PID_NAME).write_text(started, encoding="ascii")
        stopped = thread.submit(cluster.stop, [host])
        assert process.stdout.readline() == b"asked\n"
        process.stdin.write(b"one runs\n")
        assert process.stdout.readline() == b"one runs\n"
        process.stdin.close()
        stopped.result()
