"""Processes of a service get ports that are free, and folders wherever they run."""

import os
import socket
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from backend.base.errors import FlightchainError
from backend.base.settings import Settings, variable
from backend.cli.commands import main
from backend.service import supervisor
from backend.service.supervisor import require_ports
from backend.trust.log.secret_keys import LOG, new_key
from tests.api.processes import environment, free_port, processes_of, ran
from tests.cases import each_of


def test_a_port_is_free_as_soon_as_nobody_listens_whatever_the_system_remembers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        settings = Settings(port=listener.getsockname()[1])
        with pytest.raises(FlightchainError, match=f"port {settings.port}: Address already in use"):
            require_ports(settings, frontend=False)
        with socket.create_connection(listener.getsockname()):
            listener.accept()[0].close()  # who closes first has to remember the connection
    require_ports(settings, frontend=False)


def test_service_and_pages_need_a_port_each_and_an_address_of_this_machine() -> None:
    port = free_port()
    with pytest.raises(FlightchainError, match=f"^FLIGHTCHAIN_FRONTEND_PORT {port} is "):
        require_ports(Settings(port=port, frontend_port=port), frontend=True)
    for host in ("203.0.113.7", "no.such.host.invalid", "::ffff"):
        with pytest.raises(FlightchainError, match=rf"^[^\n]*{host}[^\n]*$"):
            require_ports(Settings(port=port, host=host), frontend=False)


def test_a_port_that_a_witness_cannot_have_is_said_in_one_line(tmp_path: Path) -> None:
    key = new_key("log", LOG).verifier
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        arguments = ["witness", "--folder", str(tmp_path), "--key", str(key), "--listen", address]
        done = CliRunner().invoke(main, arguments)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "cannot listen at 127.0.0.1 port" in done.stderr
    assert done.stderr.endswith("Address already in use; choose another HOST:PORT for --listen\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@each_of(
    ("setting", "command"),
    [
        ("FLIGHTCHAIN_PORT", "backend serve --only-http"),
        ("FLIGHTCHAIN_PORT", "backend serve --frontend"),
        ("FLIGHTCHAIN_FRONTEND_PORT", "backend import --generate 9 --then-serve --frontend"),
        ("FLIGHTCHAIN_FRONTEND_PORT", "frontend"),
    ],
)
def test_each_server_that_cannot_have_its_port_says_so_at_once(
    folder: Path, setting: str, command: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        env = environment(folder, **{"FLIGHTCHAIN_PORT": free_port(), setting: port})
        done = ran(sys.executable, "-m", *command.split(), env=env, timeout_s=20)
    said = f"error: cannot listen at 127.0.0.1 port {port}: Address already in use; choose another "
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
    assert done.stderr.startswith(f"{said}{setting} or ")
    assert not folder.exists()
    assert processes_of(folder) == {}


@pytest.mark.slow
def test_the_pages_take_no_arguments_and_have_a_help(tmp_path: Path) -> None:
    env = environment(tmp_path, FLIGHTCHAIN_FRONTEND_PORT=free_port())
    for argument, status, words in (("foo", 2, "arguments: foo"), ("--help", 0, "Serve the pages")):
        done = ran(sys.executable, "-m", "frontend", argument, env=env, timeout_s=20)
        assert (done.returncode, words in done.stdout + done.stderr) == (status, True)


def test_children_in_another_folder_find_the_folders_of_their_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setattr(supervisor, "_supervise", lambda *_arguments, **_named: None)
    names = {"dir": "led", "cluster": "engine", "lab_dir": "lab", "metrics_dir": "counts"}
    supervisor.supervise(Settings(**names), print, frontend=False)  # type: ignore[arg-type]
    expected = {variable(name): str(tmp_path / text) for name, text in names.items()}
    assert os.environ == expected
    os.environ.clear()
    supervisor.supervise(Settings(dir="led", metrics_dir="m"), print, frontend=False)
    assert variable("cluster") not in os.environ
