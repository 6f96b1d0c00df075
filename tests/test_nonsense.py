"""What talks to a service says in a sentence that something else answers there."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from backend.trust.witness.following import Follower, Verdict
from backend.trust.witness.witness import Witness
from flightchain_client import Client, FlightchainError
from loadtests.processes import ProgramFailed, Site
from loadtests.questions import SAMPLED_BLOCKS, sample
from tests.api.processes import ran
from tests.api.worlds import GOOD
from tests.cases import each_of
from tests.client.samples import posted
from tests.nonsense import KINDS, nonsense
from tests.test_cli import call, refusal

pytestmark = pytest.mark.slow

CALLS: dict[str, Callable[[Client], object]] = {
    "tip": lambda client: client.tip(),
    "block": lambda client: client.block(3),
    "blocks": lambda client: list(client.blocks()),
    "transaction": lambda client: client.transaction(1),
    "wait": lambda client: client.wait(1, 0.1),
    "legs": lambda client: client.filter_transactions(1, "2015-01-01"),
    "averages": lambda client: client.average_delays(1, "2015-01-01", "2015-01-02"),
    "groups": lambda client: client.flight_counter(
        "a", "b", "2015-01-01", "2015-01-02", group_by="day"
    ),
    "flights": lambda client: list(client.flights("2015-01-01", "2015-01-02")),
    "suggest": lambda client: client.suggest("airport", "J"),
    "coverage": lambda client: client.coverage(),
    "add": lambda client: client.add(GOOD),
    "add_batch": lambda client: client.add_batch([GOOD]),
}
kinds = each_of("data", KINDS.values())


def require_sentence(text: str) -> None:
    assert 10 < len(text) < 2000
    for word in ("Traceback", "KeyError", "TypeError", "NoneType", "has no attribute"):
        assert word not in text, text


@kinds
def test_the_client_raises_its_own_errors_alone(data: bytes) -> None:
    with nonsense(data) as url:
        for call in CALLS.values():
            with Client(url, timeout_s=5, attempts=1) as client:
                with pytest.raises(FlightchainError) as raised:
                    call(client)
                require_sentence(str(raised.value))


@kinds
def test_the_lab_says_that_no_service_answers(data: bytes) -> None:
    with nonsense(data) as url, pytest.raises((ProgramFailed, OSError)) as raised:
        sample(Site(url), SAMPLED_BLOCKS)
    require_sentence(str(raised.value))


@kinds
def test_a_witness_finds_no_log(data: bytes, tmp_path: Path) -> None:
    follower = Follower(Witness(tmp_path, "witness"), [], 3600)
    with nonsense(data) as url:
        findings = follower.look(url)
    assert findings.verdict in {Verdict.SILENT, Verdict.WRONG}
    require_sentence(findings.message)


SOME = (
    "HTML",
    "a captive portal",
    "another object",
    "texts for numbers",
    "deep JSON",
)


@each_of("kind", SOME)
def test_bulk_post_ends_with_a_line(kind: str) -> None:
    with nonsense(KINDS[kind]) as url:
        status, output, errors = posted("--url", url, "--generate", "1", "--threads", "1")
    assert (status, output) == (1, "")
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    require_sentence(errors)


def test_a_workload_of_locust_ends_with_a_line() -> None:
    with nonsense(KINDS["HTML"]) as url:
        workload = ["-f", "loadtests/open_workload.py", "--headless", "--host", url, "-t", "9s"]
        done = ran(sys.executable, "-m", "locust", *workload)
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if "/ERROR/" in line]
    assert "is it a Flightchain?" in line
    assert "Traceback" not in done.stderr


FILES = {
    "HTML": b"<!DOCTYPE html><html></html>",
    "deep JSON": b"[" * 100_000,
    "bytes": bytes(range(256)) * 20,
}


@pytest.mark.parametrize("what", FILES)
def test_commands_say_what_a_file_is_not(what: str, tmp_path: Path) -> None:
    (tmp_path / "backup").mkdir()
    for name in ("backup/backup.json", "flights.csv"):
        (tmp_path / name).write_bytes(FILES[what])
    for command, name in (("restore", "backup"), ("import", "flights.csv")):
        require_sentence(refusal(call(tmp_path / "chain", command, str(tmp_path / name))))
    assert not (tmp_path / "chain" / "restoring").exists()
