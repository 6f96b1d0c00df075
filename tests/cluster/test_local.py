"""`cluster status` has a line for every node, whatever that answers."""

from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from backend.cli.commands import main
from backend.cluster.configuration import Host
from backend.cluster.local import HOSTS, LOG_NAME, free_ports
from tests.frontend.fake_backend import answering

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


def status_of(folder: Path, url: str, log: str = "") -> str:
    """What `cluster status` says of a cluster with a node at `url`, in a line."""
    port = int(url.rpartition(":")[2])
    HOSTS.write(folder, [Host("node0", "127.0.0.1", 1, port)])
    (folder / "node0").mkdir()
    (folder / "node0" / LOG_NAME).write_text(log)
    done = CliRunner().invoke(main, ["cluster", "status", "--folder", str(folder)])
    assert done.exit_code == 0, done.output
    (line,) = done.stdout.splitlines()
    return line


@pytest.mark.parametrize(("tip", "ready", "words"), ANSWERS.values(), ids=ANSWERS)
def test_a_node_that_answers_has_a_line(tmp_path: Path, tip: Any, ready: Any, words: str) -> None:
    with answering(lambda path, parameters: tip if path == "/tip" else ready) as url:
        assert words in status_of(tmp_path, url)


def test_a_node_that_does_not_run_is_said_to_have_ended_with_the_end_of_its_log(
    tmp_path: Path,
) -> None:
    line = status_of(tmp_path, f"http://127.0.0.1:{free_ports(1)[0]}", "begins\nends: no disk\n")
    assert "does not run here: " in line
    assert "the last line of its log: ends: no disk" in line


@pytest.mark.parametrize("command", ["status", "down"])
def test_a_folder_without_a_cluster_is_said_to_have_none(tmp_path: Path, command: str) -> None:
    done = CliRunner().invoke(main, ["cluster", command, "--folder", str(tmp_path)])
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == f"error: {tmp_path} has no cluster\n"
