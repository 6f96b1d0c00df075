"""What a program takes that runs to its end, and what is said of one that fails."""

import os
import socket
import sys
from pathlib import Path

import pytest

from loadtests.processes import ProgramFailed, Site, finished, plain_environment


def test_waiting_takes_wall_time_and_working_takes_user_time(tmp_path: Path) -> None:
    wait = [sys.executable, "-c", "import time; time.sleep(0.5); print('done')"]
    output, waits = finished(wait, plain_environment(), tmp_path / "log")
    assert output == "done\n"
    assert waits.wall_s > 0.5 > waits.cpu_s
    work = [sys.executable, "-c", "import time\nwhile time.process_time() < 0.4: pass"]
    _, works = finished(work, plain_environment(), tmp_path / "log")
    assert works.cpu_s >= 0.39  # the clock of the kernel's accounts is coarser


def test_a_program_that_fails_is_named_with_what_it_said(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('error: no lines')"]
    with pytest.raises(ProgramFailed, match="status 1: error: no lines"):
        finished(command, plain_environment(), tmp_path / "log")


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_the_process_of_a_service_on_this_machine_is_found(name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://{name}:{server.getsockname()[1]}"
        assert Site.at(url).pid == os.getpid()
    assert Site.at(url).pid is None
