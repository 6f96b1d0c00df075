"""What is shipped for installing: names exist, limits fit, the installer lays out what it says.

`tests/units` starts the units' processes as systemd does; `scripts/soak installed` boots Debian.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import fields

from backend.api.body_types import Problem
from backend.base.settings import Settings, from_environment
from backend.base.version import commit
from backend.cli.commands import main
from backend.cluster.engine import VERSION
from backend.serving import gunicorn_app
from backend.serving.connection import READ_WITHIN_S
from backend.storage.tokens import are_needed
from frontend.bodies import FORM_BYTES
from tests import test_cli, test_scripts
from tests.api.processes import ROOT, environment, free_port, ran, serving, until
from tests.cases import each_of
from tests.cluster.engine import make as make_cluster_in
from tests.flights import transactions_in
from tests.http_servers import Handler, served_by
from tests.settings_table import table
from tests.units import UNITS, unit

pytestmark = pytest.mark.slow

DEPLOY = ROOT / "scripts" / "deploy"
SHIPPED = [ROOT / "Dockerfile", *(path for path in sorted(DEPLOY.rglob("*")) if path.is_file())]


def text_of(name: str) -> str:
    return (DEPLOY / name).read_text(encoding="utf-8")


def ran_alone(stand_ins: str, call: str) -> "subprocess.CompletedProcess[str]":
    """Call a function of the installer. stand_ins: take the place of what it uses."""
    name = call.split(maxsplit=1)[0]
    (function,) = re.findall(rf"(?ms)^{name}\(\) \{{.*?^\}}$", text_of("install"))
    return ran("bash", "-euc", f"{stand_ins}\n{function}\n{call}")


DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load(text_of("compose.yaml"))
CONTAINERS: dict[str, dict[str, Any]] = COMPOSE["services"]
NGINX = text_of("nginx.conf")


@each_of("path", SHIPPED)
def test_every_setting_that_is_named_exists(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    known = {row[0] for row in table()}
    assert set(re.findall(r"FLIGHTCHAIN_[A-Z_]*[A-Z]", text)) <= known
    set_here = re.findall(r"^(?:ENV|Environment=)?\s*(FLIGHTCHAIN_\w+)=", text, re.MULTILINE)
    assert set(set_here) <= known


# --- commands --------------------------------------------------------------------------------


def test_every_command_exists_with_its_options() -> None:
    (of_image,) = re.findall(r"^CMD (.*)$", DOCKERFILE, re.MULTILINE)
    of_containers = [each["command"] for each in CONTAINERS.values() if "command" in each]
    of_units = [unit(name).last("ExecStart").split()[2:] for name in UNITS]
    started = [json.loads(of_image), *of_containers, *of_units]
    commands = [words for program, *words in started if program == "backend"]
    assert len(commands) == 1 + 4 + 5
    for command, *words in commands:
        parameters = main.commands[command].params
        options = {word for word in words if word.startswith("-")}
        assert options <= {option for parameter in parameters for option in parameter.opts}
        arguments = [each for each in parameters if each.param_type_name == "argument"]
        assert len(words) - len(options) <= len(arguments)


def test_cosigning_ends_where_nobody_is_named() -> None:
    done = test_cli.call(ROOT / "no ledger", "cosign")
    assert done.returncode == 0
    assert "names no witness" in done.stderr


def test_the_commands_of_the_compose_file_make_a_token_before_the_service_starts() -> None:
    lines = text_of("compose.yaml").splitlines()
    commands = [line[4:] for line in lines if line.startswith("#   docker")]
    assert " token add " in commands[0]
    install = (ROOT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
    assert commands[0].removesuffix("first").strip() in install


def health_checks() -> list[str]:
    """The Python programs by which containers of service, miner and frontend are looked at."""
    unfolded = DOCKERFILE.replace("\\\n", "")
    (of_image,) = re.findall(r"^HEALTHCHECK .* CMD (\[.*\])$", unfolded, re.MULTILINE)
    others = (CONTAINERS[name]["healthcheck"]["test"] for name in ("miner", "frontend"))
    return [json.loads(of_image)[2], *(command[3] for command in others)]


def is_healthy(check: str, folder: Path, ports: dict[str, int]) -> bool:
    proxy = {"http_proxy": "http://127.0.0.1:9"}  # is not asked
    done = ran(sys.executable, "-c", check, env=environment(folder, **ports, **proxy))
    return done.returncode == 0


def free_ports() -> dict[str, int]:
    return {"FLIGHTCHAIN_PORT": free_port(), "FLIGHTCHAIN_FRONTEND_PORT": free_port()}


def test_health_checks_tell_a_running_service_from_none(tmp_path: Path) -> None:
    folder, ports = tmp_path / "chain", free_ports()
    with serving(folder, "--frontend", **ports) as service:
        until(lambda: "open http" in service.said())
        assert [is_healthy(check, folder, ports) for check in health_checks()] == [True] * 3
    assert not any(is_healthy(check, folder, free_ports()) for check in health_checks())


def test_the_frontend_is_public_in_containers_only_where_writing_needs_a_token() -> None:
    defaults = dict(re.findall(r"(FLIGHTCHAIN_\w*HOST)=(\S+)", DOCKERFILE))
    assert defaults == {"FLIGHTCHAIN_HOST": "0.0.0.0", "FLIGHTCHAIN_FRONTEND_HOST": "0.0.0.0"}
    assert are_needed(from_environment(defaults))


# --- containers and units --------------------------------------------------------------------

HOSTS = "${FLIGHTCHAIN_HOSTS:-localhost}"  # the names in their addresses
COUNTING = {
    "environment": {
        "FLIGHTCHAIN_METRICS_DIR": "/run/flightchain",
        "FLIGHTCHAIN_HOSTS": f"backend,{HOSTS}",
    },
    "volumes": ["chain:/var/lib/flightchain", "metrics:/run/flightchain"],
}
OWN, OUTSIDE = "none", None  # networks; the first has nobody else
CONFIGURED: dict[str, dict[str, object]] = {
    "fill": {"network_mode": OUTSIDE},  # it downloads months
    "cosign": {
        "network_mode": OUTSIDE,
        "environment": {"FLIGHTCHAIN_WITNESSES": "${FLIGHTCHAIN_WITNESSES:-none}"},
    },
    "miner": {"network_mode": OWN, **COUNTING},
    "backend": {"network_mode": OUTSIDE, "ports": ["127.0.0.1:8000:8000"], **COUNTING},
    "frontend": {
        "network_mode": OUTSIDE,
        "ports": ["127.0.0.1:5000:5000"],
        "environment": {
            "FLIGHTCHAIN_BACKEND_URL": "http://backend:8000",
            "FLIGHTCHAIN_HOSTS": HOSTS,
        },
    },
}
COUNTS = {
    "Environment": ["FLIGHTCHAIN_METRICS_DIR=/run/flightchain", "TMPDIR=/run/%N"],
    "RuntimeDirectory": ["flightchain", "%N"],  # the numbers of both, and temporary files
    "RuntimeDirectoryPreserve": ["yes"],  # else the first to stop removes the numbers
}
DIRECTIVES: dict[str, dict[str, list[str]]] = {
    "backend": {"Wants": ["flightchain-cosign.service"], "TimeoutStartSec": ["10min"], **COUNTS},
    "miner": COUNTS,
    "cosign": {"PartOf": ["flightchain-backend.service"], "PrivateNetwork": []},
    "frontend": {"Type": ["notify"], "TimeoutStartSec": ["10min"]},  # a port may be taken
}


@each_of("name", CONFIGURED)
def test_a_container_reaches_what_it_needs_and_counts_in_one_volume(name: str) -> None:
    expected = CONFIGURED[name]
    assert {key: CONTAINERS[name].get(key) for key in expected} == expected


def test_the_image_is_built_once() -> None:
    """Builds of one name at a time end some stores of images with "already exists"."""
    assert [name for name in CONTAINERS if "build" in CONTAINERS[name]] == ["fill"]


@each_of("name", ["verify", "backup"])
def test_a_timer_that_is_enabled_starts_with_the_machine_and_with_the_backend(name: str) -> None:
    (line,) = re.findall(r"^WantedBy=(.*)$", text_of(f"flightchain-{name}.timer"), re.MULTILINE)
    assert line.split() == ["timers.target", "flightchain-backend.service"]


@each_of("name", DIRECTIVES)
def test_units_belong_together_and_count_in_one_folder_that_outlives_each(name: str) -> None:
    for directive, words in DIRECTIVES[name].items():
        actual = unit(name).words(directive)
        assert {*words} <= {*actual} if words else actual == []


def test_the_volume_of_numbers_is_in_memory_and_belongs_to_the_user_of_the_image() -> None:
    (user,) = re.findall(r"^USER (\d+):\d+$", DOCKERFILE, re.MULTILINE)
    volume = COMPOSE["volumes"]["metrics"]["driver_opts"]
    assert volume["type"] == "tmpfs"
    assert f"uid={user}," in volume["o"]


# --- nginx -----------------------------------------------------------------------------------


def in_nginx(directive: str) -> str:
    (value,) = re.findall(rf"^\s*{directive} (\S+?)[; ]", NGINX, re.MULTILINE)
    return str(value)


def test_limits_of_nginx_fit_those_of_the_service() -> None:
    defaults = Settings()
    most_mib = int(in_nginx("client_max_body_size").removesuffix("m"))
    assert most_mib * 2**20 > defaults.max_body_bytes + FORM_BYTES
    assert int(in_nginx("proxy_read_timeout").removesuffix("s")) > defaults.commit_wait_s
    assert int(in_nginx("send_timeout").removesuffix("s")) >= READ_WITHIN_S
    for port in (defaults.port, defaults.frontend_port):
        assert f"server 127.0.0.1:{port};" in NGINX
    kept_s = re.findall(r"keepalive_timeout (\d+)s;", NGINX)
    assert int(kept_s[0]) < gunicorn_app.COMMON["keepalive"]
    assert int(kept_s[1]) < gunicorn_app.COMMON["keepalive"]


def test_problems_of_nginx_have_the_members_that_those_of_the_service_have() -> None:
    """Generated clients stop at a problem without them."""
    (problem,) = re.findall(r"return 500 '({.*})';", NGINX)
    required = {field.name for field in fields(Problem) if field.required}
    assert json.loads(problem.replace("$status", "413")).keys() == required
    (statuses,) = re.findall(r"error_page ([\d ]+) /", NGINX)
    titled = set(re.findall(r'^ +(\d+) +"[A-Z].*";', NGINX, re.MULTILINE))
    assert titled == set(statuses.split()) - {"400", "494"}  # both are a bad request


def test_what_waits_in_the_container_of_nginx_is_on_a_disk() -> None:
    """In its memory, a few exports to slow clients would end it."""
    container = CONTAINERS["nginx"]
    paths = re.findall(r"_temp_path (\S+)/\w+;", container["command"][2])
    assert paths == ["/var/tmp"] * 2
    assert "/var/tmp" in container["volumes"]


# --- the installer ---------------------------------------------------------------------------

INSTALL = DEPLOY / "install"
put, stand_in = test_scripts.put, test_scripts.stand_in


def run(
    python: Path, *arguments: object, install: Path = INSTALL, **more: object
) -> "subprocess.CompletedProcess[str]":
    """The installer with a stand-in for Python; it installs below `root` beside that."""
    given = map(str, ("--root", python.parent / "root", *arguments))
    return test_scripts.script(install, python.parent, *given, PYTHON=python, **more)


def laid_out(root: Path) -> dict[str, str]:
    """Every text file below `root` but the code and the blocks, by its path."""
    return {
        str(path.relative_to(root)): path.read_text(encoding="utf-8")
        for path in sorted(root.rglob("*"))
        if path.is_file() and not {"opt", "blocks"} & set(path.relative_to(root).parts)
    }


def test_it_lays_out_everything_and_the_second_time_nothing_changes(
    stand_in: Path,
) -> None:
    root = stand_in.parent / "root"
    before = os.umask(0o077)  # as some administrators have it
    done = run(stand_in, "/mnt/disk/chain")
    os.umask(before)
    assert done.returncode == 0, done.stderr
    first = laid_out(root)
    modes = {"etc/flightchain.env": 0o640, "mnt/disk": 0o755, "mnt/disk/chain": 0o750}
    modes |= {"opt/flightchain/backend/cli/commands.py": 0o644, "usr/local/bin/flightchain": 0o755}
    assert {name: (root / name).stat().st_mode & 0o777 for name in modes} == modes
    units = "etc/systemd/system"
    assert set(first) >= {
        "etc/flightchain.env",
        f"{units}/flightchain-.service.d/hardening.conf",
        f"{units}/flightchain-backend.service",
        f"{units}/flightchain-miner.service",
        f"{units}/flightchain-cosign.service",
        f"{units}/flightchain-frontend.service",
        f"{units}/flightchain-verify.service",
        f"{units}/flightchain-verify.timer",
        "usr/local/bin/flightchain",
    }
    assert f"{units}/flightchain-backup.timer" not in first
    assert "/var/lib/flightchain" not in "".join(first.values())
    hardening = first[f"{units}/flightchain-.service.d/hardening.conf"]
    assert "RequiresMountsFor=/mnt/disk/chain\n" in hardening
    assert "ReadWritePaths=/mnt/disk/chain\n" in hardening
    assert "\nFLIGHTCHAIN_DIR=/mnt/disk/chain\n" in first["etc/flightchain.env"]
    assert (root / "mnt/disk/chain").is_dir()
    assert (root / "opt/flightchain/backend/cli/commands.py").is_file()
    recorded = (root / "opt/flightchain/COMMIT").read_text("ascii").strip()
    assert recorded == commit()
    assert has_what_runs(root / "opt/flightchain")
    assert not (root / "opt/flightchain/loadtests/lab").exists()
    installed = "installing the packages of requirements.txt frontend/requirements.txt\n"
    assert installed in done.stderr
    pips = (stand_in.parent / "calls").read_text().count(" install ")
    assert run(stand_in).returncode == 0  # remembers the folder
    assert laid_out(root) == first
    assert (stand_in.parent / "calls").read_text().count(" install ") == pips == 1


def test_a_backup_is_made_every_hour_where_wanted_and_uninstalling_keeps_the_chain(
    stand_in: Path,
) -> None:
    root, units = stand_in.parent / "root", "etc/systemd/system"
    folders = ("--backup", "/mnt/usb/backup", "/srv/chain")
    assert run(stand_in, *folders).returncode == 0
    first = laid_out(root)
    assert f"{units}/flightchain-backup.timer" in first
    service = first[f"{units}/flightchain-backup.service"]
    assert " backup /mnt/usb/backup\n" in service
    assert "\nReadWritePaths=/mnt/usb/backup\n" in service
    assert "\nRequiresMountsFor=/mnt/usb/backup\n" in service
    assert (root / "mnt/usb/backup").is_dir()
    assert run(stand_in).returncode == 0  # remembers the folder
    assert laid_out(root) == first
    done = run(stand_in, "--uninstall")
    assert "needs --backup /mnt/usb/backup, to make backups again" in done.stderr
    assert run(stand_in, "--backup", "none").returncode == 0
    assert not [path for path in laid_out(root) if "backup" in path]
    (root / "srv/chain/blocks").mkdir()
    done = run(stand_in, "--uninstall")
    assert done.returncode == 0, done.stderr
    assert "/srv/chain" in done.stderr and "--backup" not in done.stderr
    assert list(laid_out(root)) == ["etc/flightchain.env"]
    assert not (root / "opt/flightchain").exists()
    assert (root / "srv/chain/blocks").is_dir()


PLACES = [
    ("", "", "127.0.0.1:8000"),
    ("0.0.0.0", "80", "127.0.0.1:80"),
    ("192.168.1.10", "", "192.168.1.10:8000"),
    ("::", "", "[::1]:8000"),
    ("fd00::1", "9", "[fd00::1]:9"),
]


@each_of(("host", "port", "place"), PLACES)
def test_the_services_are_asked_and_shown_where_they_listen(
    host: str, port: str, place: str
) -> None:
    stand_in = f'setting() {{ case $1 in H) echo "{host}" ;; P) echo "{port}" ;; esac; }}'
    done = ran_alone(stand_in, "reached_at H P 8000")
    assert (done.returncode, done.stdout) == (0, f"{place}\n")


def test_a_check_or_backup_that_runs_is_stopped_before_its_code_is_removed(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    stand_ins = f"""
        system() {{ [ ! -d {tmp_path}/code ] || echo "$*"; }}
        is_booted() {{ false; }}
        setting() {{ :; }}
        say() {{ :; }}
        CODE={tmp_path}/code COMMAND={tmp_path}/command UNITS={tmp_path}
        BACKUP= ENV_FILE= STARTED=(a)
    """
    done = ran_alone(stand_ins, "uninstall")
    assert "systemctl stop flightchain-*" in done.stdout.splitlines()
    assert not (tmp_path / "code").exists()


def test_an_import_that_fails_leaves_nobody_waiting_for_the_services() -> None:
    stand_ins = """
        reached_at() { :; }
        fail() { echo "$1"; exit 1; }
        COMMAND=false DATA=flights.zip
    """
    done = ran_alone(stand_ins, "start")
    assert done.returncode == 1
    assert "the services are not started: run this again, with --data none" in done.stdout


def test_an_upgrade_that_breaks_off_leaves_the_code_of_running_services(stand_in: Path) -> None:
    """They import parts of it later, and all of it when they are started again."""
    root = stand_in.parent / "root"
    assert run(stand_in).returncode == 0
    code = root / "opt/flightchain"
    before = sorted(code.rglob("*.py"))
    put(stand_in.parent, "cp", '[ "$2" != frontend ] && exec /bin/cp "$@"')  # the disk is full
    assert run(stand_in, PATH=f"{stand_in.parent}:/usr/bin:/bin").returncode == 1
    assert {*before} <= {*code.rglob("*.py")}
    assert run(stand_in).returncode == 0
    assert sorted(code.rglob("*.py")) == before


def test_a_service_that_starts_slowly_is_not_waited_for_in_silence(tmp_path: Path) -> None:
    put(tmp_path, "systemctl", "sleep 1; exit 1")
    around = f"PATH={tmp_path}:$PATH STARTED=(a-service) READY_WITHIN_S=0.1"
    done = ran_alone(around, "require_started")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_clock_of_a_restored_ledger_is_trusted_before_the_installer_gives_up() -> None:
    (most_s,) = re.findall(r"\$\{READY_WITHIN_S:-(\d+)\}", text_of("install"))
    assert int(most_s) > Settings().clock_wait_s + 30


def test_it_says_how_other_machines_reach_what_listens_for_this_one_alone() -> None:
    stand_ins = """
        is_booted() { :; }
        grep() { :; }
        say() { echo "$*"; }
        reached_at() { echo 127.0.0.1:1; }
        system() { :; }
        systemctl() { :; }
        require_started() { :; }
        require_answers() { :; }
        DATA=none STARTED=(a) ENV_FILE=/etc/flightchain.env
    """
    done = ran_alone(stand_ins, "start")
    assert done.returncode == 0, done.stderr
    assert "set FLIGHTCHAIN_HOST and FLIGHTCHAIN_FRONTEND_HOST in /etc/" in done.stdout


def test_programs_of_root_are_found_in_a_shell_of_su(stand_in: Path) -> None:
    """Debian has them in folders that `su`, unlike `sudo`, does not put into PATH."""
    folder = stand_in.parent
    put(folder, "chmod", f'type useradd runuser >>"{folder}/found"; exec /bin/chmod "$@"')
    assert run(stand_in, PATH=f"{folder}:/usr/bin:/bin").returncode == 0
    assert "useradd is /" in (folder / "found").read_text()
    put(folder, "id", '[ "$1" = -u ] && echo 0 || echo root')
    done = ran("sh", DEPLOY / "flightchain", "tip", env={"PATH": f"{folder}:/usr/bin:/bin"})
    assert "runuser: not found" not in done.stderr


class Unready(Handler):
    """A service whose answer is the status in its path, with a reason if there is room for one."""

    def do_GET(self) -> None:
        self.send_response(int(self.path[1:4]))
        self.end_headers()
        self.wfile.write(b'{"detail": "block 3 is damaged"}' if self.path[4:] else b"no")


@each_of(
    ("path", "reason"),
    [
        ("/200?", ""),
        ("/503?", "block 3 is damaged\n"),
        ("/500", "it answers with status 500\n"),
        ("", "no answer at 127.0.0.1:1: [Errno 111] Connection refused\n"),
    ],
)
def test_why_a_service_is_not_ready_is_said_in_its_own_words(path: str, reason: str) -> None:
    with served_by(Unready) as url:
        place = url.removeprefix("http://") if path else "127.0.0.1:1"
        done = ran_alone(
            f"VENV={Path(sys.executable).parents[1]}", f"problem_at {place} {path or '/'}"
        )
    assert (done.stdout, done.stderr) == (reason, "")


def test_it_says_once_why_it_waits_for_long() -> None:
    around = """
        say() { echo "$*"; }
        sleep() { SECONDS=$((SECONDS + 4)); }
        problem_at() { [ $SECONDS -gt 40 ] || echo "the clock is doubted"; }
        READY_WITHIN_S=90
    """
    done = ran_alone(around, "require_answer a-service")
    assert (done.returncode, done.stdout) == (0, "waiting for a-service: the clock is doubted\n")


def test_a_folder_that_is_gone_is_not_made_again_unless_it_is_named(stand_in: Path) -> None:
    """Its disk may not be mounted; then the chain, or the backups, would go on without it."""
    root = stand_in.parent / "root"
    named = ("--backup", "/mnt/usb/backup", "/mnt/disk/chain")
    assert run(stand_in, *named).returncode == 0
    for folder in ("mnt/disk", "mnt/usb"):
        (root / folder).rename(root / "unmounted")
        done = run(stand_in)
        assert done.returncode == 1
        assert f"/{folder}/" in done.stderr
        assert " is missing; mount its disk, or name it" in done.stderr
        assert not (root / folder).exists()
        (root / "unmounted").rename(root / folder)
    shutil.rmtree(root / "mnt")
    assert run(stand_in, *named).returncode == 0


@each_of("written", ["/mnt/disk", "/mnt/disk/"])
@each_of("folder", ["/mnt/disk", "/mnt/disk/chain", "{0}/link/chain"])
def test_a_disk_that_is_not_mounted_is_noticed_however_it_is_written(
    tmp_path: Path, written: str, folder: str
) -> None:
    """Nothing is mounted at / in a chroot, such as one in which an image is made."""
    link = tmp_path / "link"
    link.unlink(missing_ok=True)
    link.symlink_to("/mnt/disk")
    stand_ins = f"""
        fail() {{ echo "$1" >&2; exit 1; }}
        findmnt() {{ printf '%s\\n' none / /mnt/disk2 {written}; }}
        mountpoint() {{ false; }}
    """
    named = folder.format(tmp_path)
    for otherwise, said in (("", ""), ("'end it'", ", or end it")):
        done = ran_alone(stand_ins, f"require_disk {named} {otherwise}")
        assert done.returncode == 1
        assert done.stderr == f"nothing is mounted at {written}; mount the disk of {named}{said}\n"


UNUSABLE = [
    ("touch -c", "the disk of {0}/chain is mounted read-only;"),
    ("runuser -u flightchain -- test -x", "may not enter {0};"),
    ("runuser -u flightchain -- test -w", "sudo chown -R flightchain: {0}/chain\n"),
    ("runuser -u flightchain -- ln", "the disk of {0}/chain has no symbolic links"),
]


@each_of(("fails", "reason"), UNUSABLE)
def test_a_folder_that_services_cannot_use_is_refused(
    tmp_path: Path, fails: str, reason: str
) -> None:
    stand_ins = f"""
        ROOT= FOLDER={tmp_path}/chain NAMED=({tmp_path}/chain)
        fail() {{ echo "$1" >&2; exit 1; }}
        chown() {{ :; }}
        system() {{ [[ "$*" != "{fails}"* ]] || {{ echo Read-only file system >&2; false; }}; }}
    """
    done = ran_alone(stand_ins, f"install_folder {tmp_path}/chain")
    assert (done.returncode, done.stdout) == (1, "")
    assert reason.format(tmp_path) in done.stderr


def test_a_share_on_which_root_may_do_nothing_is_taken(tmp_path: Path) -> None:
    """NFS lets root be nobody."""
    stand_ins = f"""
        ROOT= FOLDER={tmp_path}/chain NAMED=({tmp_path}/chain)
        fail() {{ echo "$1" >&2; exit 1; }}
        say() {{ :; }}
        rm() {{ false; }}
        system() {{ [ "$1" = runuser ] || {{ echo Permission denied >&2; false; }}; }}
    """
    done = ran_alone(stand_ins, f"install_folder {tmp_path}/chain")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_file_that_services_cannot_read_is_refused_first(tmp_path: Path) -> None:
    stand_ins = f"""
        DATA={tmp_path}
        fail() {{ echo "$1" >&2; exit 1; }}
        system() {{ [ "$*" != "runuser -u flightchain -- test -r {tmp_path}" ]; }}
    """
    done = ran_alone(stand_ins, "require_data")
    assert done.returncode == 1
    assert f"flightchain may not read {tmp_path}; leave out --data" in done.stderr
    text = text_of("install")
    assert text.index("\nrequire_data\n") < text.index("\ninstall_code\n")


def test_nothing_is_imported_if_the_settings_name_nothing() -> None:
    stand_ins = """
        ROOT= ENV_FILE=/ FOLDER= DATA=
        mkdir() { :; }
        keep_setting() { :; }
        setting() { :; }
        chmod() { :; }
        system() { :; }
    """
    done = ran_alone(stand_ins, "install_settings && echo $DATA")
    assert (done.returncode, done.stdout) == (0, "none\n")


# Folder, where its disk is mounted, and what is said about that.
NOTES = [
    ("/mnt/usb/chain", "/mnt/usb", ""),
    ("/mnt/new/chain", "/mnt/new", "note: /mnt/new is not in /etc/fstab; enter it, "),
    ("/mnt/usb/chain", "/", "note: /mnt/usb/chain is on the disk of the system; "),
    ("/var/lib/flightchain", "/", ""),
]


@each_of(("folder", "mount", "note"), NOTES)
def test_it_says_where_a_folder_is_if_that_may_not_be_meant(
    folder: str, mount: str, note: str
) -> None:
    """Under an automount, findmnt names two: where the kernel waits for its use, and the disk."""
    stand_ins = f"""
        ROOT= FOLDER={folder} NAMED=({folder})
        fail() {{ echo "$1" >&2; exit 1; }}
        say() {{ echo "$1"; }}
        mkdir() {{ :; }}
        chmod() {{ :; }}
        system() {{ :; }}
        findmnt() {{
          case "$*" in
            "--fstab /mnt/usb") ;;
            --first-only*) echo {mount} ;;
            *--target*) printf '{mount}\\n{mount}\\n' ;;
            *) return 1 ;;
          esac
        }}
    """
    done = ran_alone(stand_ins, f"install_folder {folder}")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(note) and bool(done.stdout) == bool(note)


IMPORTING = """
import frontend.site
from backend.api.evidence_zip import VERIFY
print(frontend.site.__file__, VERIFY.is_file())
"""


def has_what_runs(folder: Path) -> bool:
    """Returns whether `folder` has all of the project that pages import and the service sends."""
    done = ran(sys.executable, "-c", IMPORTING, cwd=folder, env=environment(folder))
    return done.stdout == f"{folder}/frontend/site.py True\n"


def test_examples_of_the_lab_are_installed_without_their_raw_rows(stand_in: Path) -> None:
    project, root = stand_in.parent / "project", stand_in.parent / "root"
    parts = ("scripts", "backend", "frontend", "loadtests/models")
    for part in parts:
        shutil.copytree(ROOT / part, project / part)
    for name in ("requirements.txt", "loadtests/__init__.py"):
        shutil.copy(ROOT / name, project / name)
    result = project / "loadtests/examples/open workload"
    result.mkdir(parents=True)
    for name in ("manifest.json", "report.html", "flames.svg", "requests.csv", "server.log"):
        (result / name).write_text("", encoding="utf-8")
        (result / name).chmod(0o600)  # as in a clone that was made with umask 077
    done = run(stand_in, install=project / "scripts" / "deploy" / "install")
    assert done.returncode == 0, done.stderr
    installed = root / "opt/flightchain/loadtests/examples/open workload"
    assert {path.name: path.stat().st_mode & 0o777 for path in installed.iterdir()} == {
        "manifest.json": 0o644,
        "report.html": 0o644,
        "flames.svg": 0o644,
    }


def test_the_image_has_what_runs(tmp_path: Path) -> None:
    """`.dockerignore` leaves out everything but what it names."""
    rules = (ROOT / ".dockerignore").read_text(encoding="utf-8").split("\n*\n")[1].splitlines()
    for name in (rule[1:] for rule in rules if rule.startswith("!")):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name)
        else:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    assert has_what_runs(tmp_path)
    assert not (tmp_path / "loadtests/lab").exists()


def test_settings_of_the_owner_are_kept_and_default_data_is_installed_if_wanted(
    stand_in: Path,
) -> None:
    root, packages = stand_in.parent / "root", "backend/sources/requirements.txt"
    assert run(stand_in).returncode == 0
    assert packages not in (stand_in.parent / "calls").read_text()
    settings = root / "etc/flightchain.env"
    edited = settings.read_text().replace("PORT=8000", "PORT=8001") + "FLIGHTCHAIN_WORKERS=3\n"
    settings.write_text(edited)
    assert run(stand_in, "--data", "nycflights").returncode == 0
    assert settings.read_text() == edited.replace("_DATA=none", "_DATA=nycflights")
    assert packages in (stand_in.parent / "calls").read_text()


def test_a_file_to_import_is_found_from_where_the_installer_is_called(stand_in: Path) -> None:
    (stand_in.parent / "flights.csv").touch()
    assert run(stand_in, "--data", "flights.csv").returncode == 0
    settings = (stand_in.parent / "root/etc/flightchain.env").read_text("utf-8")
    assert f"\nFLIGHTCHAIN_DATA={stand_in.parent / 'flights.csv'}\n" in settings


QUOTED = {
    "as it is": "KEY URL",
    "single": "'KEY URL'",
    "double": '"KEY URL"',
    "spaces at the end": "KEY URL  ",
    "as on Windows": '"KEY URL"\r',
    "spaces around the sign": ' "KEY URL"',
}


@pytest.mark.parametrize("written", QUOTED.values(), ids=[*QUOTED])
def test_the_command_line_reads_the_settings_as_systemd_does(tmp_path: Path, written: str) -> None:
    """It runs here for a Python that shows what it was given, and believes to be flightchain."""
    settings = tmp_path / "flightchain.env"
    space = " " if written.startswith(" ") else ""
    lines = ["# a comment", "; another", "", f"{space}FLIGHTCHAIN_WITNESSES{space}={written}"]
    lines += ["FLIGHTCHAIN_LAB=", "FLIGHTCHAIN_DATA=$HOME/a=b"]
    settings.write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    shown = "$FLIGHTCHAIN_WITNESSES|$FLIGHTCHAIN_DATA|$*"
    put(tmp_path / "venv" / "bin", "python", f'echo "{shown}"')
    put(tmp_path, "id", "echo flightchain")
    command = text_of("flightchain").replace("/etc", str(tmp_path))
    command = command.replace("/opt/flightchain", str(tmp_path))
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = ran("sh", "-c", command, "flightchain", "tip", env=path)
    assert (done.stdout, done.stderr) == ("KEY URL|$HOME/a=b|-P -m backend tip\n", "")


def test_quotes_are_no_part_of_the_settings_and_the_last_one_counts(stand_in: Path) -> None:
    root = stand_in.parent / "root"
    settings = root / "etc/flightchain.env"
    settings.parent.mkdir(parents=True)
    settings.write_text(
        "FLIGHTCHAIN_DIR=/mnt/b\nFLIGHTCHAIN_DIR=\"/mnt/a\"\r\nFLIGHTCHAIN_DATA='none'\n",
        "utf-8",
        newline="",
    )
    (root / "mnt/a").mkdir(parents=True)
    done = run(stand_in)
    assert done.returncode == 0, done.stderr
    hardening = "etc/systemd/system/flightchain-.service.d/hardening.conf"
    assert "\nReadWritePaths=/mnt/a\n" in laid_out(root)[hardening]


def test_settings_are_found_and_added_however_the_file_is_written(stand_in: Path) -> None:
    root = stand_in.parent / "root"
    settings = root / "etc/flightchain.env"
    settings.parent.mkdir(parents=True)
    (root / "mnt/a").mkdir(parents=True)
    settings.write_text(" FLIGHTCHAIN_DIR = /mnt/a\nFLIGHTCHAIN_HOSTS=pi.lan", encoding="utf-8")
    done = run(stand_in, "--data", "generate:9")
    assert done.returncode == 0, done.stderr
    added = "FLIGHTCHAIN_HOSTS=pi.lan\nFLIGHTCHAIN_DATA=generate:9\n"
    assert settings.read_text("utf-8") == f" FLIGHTCHAIN_DIR = /mnt/a\n{added}"
    done = run(stand_in, "/mnt/b")
    assert settings.read_text("utf-8") == f"FLIGHTCHAIN_DIR=/mnt/b\n{added}"


def test_a_folder_in_the_settings_is_checked_like_one_of_the_command(stand_in: Path) -> None:
    root = stand_in.parent / "root"
    settings = root / "etc/flightchain.env"
    settings.parent.mkdir(parents=True)
    settings.write_text("FLIGHTCHAIN_DIR=/home/pi/chain\n", encoding="utf-8")
    done = run(stand_in)
    assert done.returncode == 2
    assert "kept out of there" in done.stderr
    assert list(laid_out(root)) == ["etc/flightchain.env"]
    assert run(stand_in, "--uninstall").returncode == 0


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """A stand-in for CometBFT, which knows its version."""
    put(tmp_path, "cometbft", f"echo {VERSION}")
    return tmp_path / "cometbft"


def test_a_node_of_a_cluster_is_installed_with_its_keys_and_chain(
    stand_in: Path, engine: Path
) -> None:
    root, configured = stand_in.parent / "root", stand_in.parent / "cluster"
    make_cluster_in(configured)
    node, other = configured / "node1", configured / "node2"
    assert run(stand_in, "--backup", "/mnt/usb/backup", "/srv/chain").returncode == 0
    done = run(stand_in, "--cluster", node, "/mnt/disk/chain", COMETBFT=engine)
    assert done.returncode == 0, done.stderr
    first = laid_out(root)
    assert not [path for path in first if "backup" in path]
    settings = first["etc/flightchain.env"]
    assert "\nFLIGHTCHAIN_CLUSTER=/mnt/disk/chain/engine\n" in settings
    assert "\nFLIGHTCHAIN_PORT=8001\n" in settings
    networked = first["etc/systemd/system/flightchain-miner.service.d/cluster.conf"]
    assert "PrivateNetwork=no" in networked
    installed = root / "opt/flightchain/cometbft"
    assert f"COMETBFT=/{installed.relative_to(root)}\n" in networked
    assert installed.read_bytes() == engine.read_bytes()
    chain = root / "mnt/disk/chain"
    for path in (node / "engine").rglob("*.json"):
        copy = chain / "engine" / path.relative_to(node / "engine")
        assert copy.read_bytes() == path.read_bytes()
        assert not copy.stat().st_mode & 0o077
    assert transactions_in(chain) == transactions_in(node / "chain")
    # It remembers that it is a node, and its engine.
    again = run(stand_in, HOME=stand_in.parent, PATH="/usr/bin:/bin")
    assert again.returncode == 0, again.stderr
    assert laid_out(root) == first
    done = run(stand_in, "--backup", "/mnt/usb/backup")
    assert "neither --data nor --backup" in done.stderr
    done = run(stand_in, "--cluster", other, COMETBFT=engine)
    assert done.returncode == 1
    assert "is another node" in done.stderr
    assert laid_out(root) == first
    assert run(stand_in, "--uninstall").returncode == 0
    assert not (root / "etc/systemd/system/flightchain-miner.service.d").exists()
    assert (chain / "engine").is_dir()


def test_an_installation_of_a_node_that_was_interrupted_goes_on(
    stand_in: Path, engine: Path
) -> None:
    root, configured = stand_in.parent / "root", stand_in.parent / "cluster"
    make_cluster_in(configured)
    node, chain = configured / "node1", root / "mnt/disk/chain"
    install = ("--cluster", node, "/mnt/disk/chain")
    for part in ("/chain/blocks", "/engine"):  # what is being copied when the disk is full
        breaking = f'case "$*" in *{part}\\ *) mkdir -p "${{@: -1}}/config"; exit 1 ;; esac'
        put(stand_in.parent, "cp", f'{breaking}\nexec /bin/cp "$@"')
        programs = f"{stand_in.parent}:/usr/bin:/bin"
        assert run(stand_in, *install, COMETBFT=engine, PATH=programs).returncode == 1
        (stand_in.parent / "cp").unlink()
    done = run(stand_in, *install, COMETBFT=engine)
    assert done.returncode == 0, done.stderr
    for part in ("engine", "chain/blocks"):
        for path in (node / part).rglob("*"):
            copy = chain / part.removeprefix("chain/") / path.relative_to(node / part)
            assert path.is_dir() or copy.read_bytes() == path.read_bytes()
    assert {path.name for path in chain.iterdir()} == {"blocks", "engine"}


def test_the_disk_of_a_node_is_one_on_another_machine_and_at_another_place(
    stand_in: Path, engine: Path
) -> None:
    """docs/how-to/cluster.md has it moved to another Pi, docs/how-to/backup.md to another disk."""
    root, configured = stand_in.parent / "root", stand_in.parent / "cluster"
    make_cluster_in(configured)
    node = configured / "node1"
    done = run(stand_in, "--cluster", node, "/mnt/disk/chain", COMETBFT=engine)
    assert done.returncode == 0, done.stderr
    (root / "mnt/disk").rename(root / "mnt/new")
    for is_new in (False, True):
        if is_new:
            shutil.rmtree(root / "etc")
        done = run(stand_in, "/mnt/new/chain", COMETBFT=engine)
        assert done.returncode == 0, done.stderr
        settings = (root / "etc/flightchain.env").read_text("utf-8")
        assert "\nFLIGHTCHAIN_CLUSTER=/mnt/new/chain/engine\n" in settings
        assert (root / "etc/systemd/system/flightchain-miner.service.d/cluster.conf").is_file()


def test_an_engine_that_is_named_and_does_not_fit_is_not_called_missing(
    stand_in: Path, engine: Path
) -> None:
    configured = stand_in.parent / "cluster"
    make_cluster_in(configured)
    engine.write_text("#!/bin/sh\necho 0.37.1\n")
    install = ("--cluster", configured / "node0", "/srv/chain")
    done = run(stand_in, *install, COMETBFT=engine, HOME=stand_in.parent, PATH="/usr/bin:/bin")
    assert done.returncode == 1
    assert f"; {engine} is another version, or does not run here" in done.stderr


def test_a_node_is_not_installed_over_a_ledger(stand_in: Path, engine: Path) -> None:
    root, configured = stand_in.parent / "root", stand_in.parent / "cluster"
    make_cluster_in(configured)
    (root / "srv/chain/blocks").mkdir(parents=True)
    node = configured / "node0"
    done = run(stand_in, "--cluster", node, "/srv/chain", COMETBFT=engine)
    assert done.returncode == 1
    assert "holds a ledger already" in done.stderr
    assert not (root / "srv/chain/engine").exists()


REFUSED = [
    (["chain"], "must begin with /"),
    (["/home/pi/chain"], "kept out of there"),
    (["/srv/../home/pi"], "kept out of there"),
    (["/"], "kept out of there"),
    (["/srv/my chain"], "letters, digits"),
    (["--data", "$(reboot)"], "letters, digits"),
    (["/srv/a", "/srv/b"], "one FOLDER"),
    (["--data"], "needs a value"),
    (["--backup", "/tmp/backup"], "kept out of there"),
    (["--backup", "backup"], "must begin with /"),
    (["--backup", "/srv/a", "/srv/a"], "must not be in one folder"),
    (["--backup", "/srv/a/b", "/srv/a"], "must not be in one folder"),
    (["--backup", "/srv/a", "/srv/a/b"], "must not be in one folder"),
    (["--backup", "/srv/../var/lib/flightchain/b"], "must not be in one folder"),
    (["--cluster", "/no/such/node"], "no folder of a node"),
    (["--cluster", "/no/such/node", "--data", "nycflights"], "neither --data nor --backup"),
    (["--cluster", "/no/such/node", "--backup", "/srv/b"], "neither --data nor --backup"),
    (["--fast"], "no option --fast"),
]


@each_of(("arguments", "reason"), REFUSED)
def test_a_wrong_call_changes_nothing(
    stand_in: Path,
    arguments: list[str],
    reason: str,
) -> None:
    root = stand_in.parent / "root"
    done = run(stand_in, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr
    assert not root.exists()


def test_a_system_of_32_bits_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "python", "exit 1")
    done = run(tmp_path / "python")
    assert done.returncode == 1
    assert "32 bits" in done.stderr
    assert not (tmp_path / "root").exists()


@each_of("prefix", ["/home/pi/.pyenv/versions/3.12.1", "/root/.local/share/uv/python"])
def test_a_python_that_services_cannot_see_is_refused(tmp_path: Path, prefix: str) -> None:
    put(tmp_path, "python", f'case "$2" in *base_prefix*) echo {prefix} ;; esac')
    stand_ins = f"""
        ROOT= PYTHON={tmp_path}/python
        fail() {{ echo "$1" >&2; exit 1; }}
        id() {{ echo 0; }}
        systemctl() {{ :; }}
    """
    done = ran_alone(stand_ins, "require_machine")
    assert done.returncode == 1
    assert f"the services cannot run {tmp_path}/python, because they see neither" in done.stderr
