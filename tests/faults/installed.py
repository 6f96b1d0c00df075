"""The installation on a Debian that boots: everything that systemd does with our units.

Installs the last release with a chain, upgrades it to this one, asks every route and page, reboots,
checks, makes a backup, lets the miner hang, takes its program away, and uninstalls.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

from frontend.app import create_app
from frontend.settings import Settings
from tests.api.processes import until
from tests.api.test_specification import OPERATIONS
from tests.api.worlds import GOOD
from tests.faults.report import Outcome, Task
from tests.units.machines import (
    RELEASES,
    Machine,
    Release,
    debian_in,
    last_release,
    machine,
    project_in,
    reason_without_machines,
    wheels_in,
)

SERVICE, PAGES = "http://127.0.0.1:8000", "http://127.0.0.1:5000"
READY = f"{SERVICE}/health/ready"
FLIGHTS = 2000
WITHIN_S = 60.0
CHAIN, BACKUP = "/srv/chain", "/srv/backup"
UNITS = "/etc/systemd/system"
SHOWN = 1500  # characters of what a command said


def run(task: Task) -> Outcome:
    """Try the installation on `task.count` releases of Debian."""
    outcome = Outcome(skipped=reason_without_machines())
    for release in RELEASES[: 0 if outcome.skipped else task.count]:
        _try(release, task, outcome)
        outcome.done += 1
    return outcome


def _try(release: Release, task: Task, outcome: Outcome) -> None:
    """Everything, on one release."""
    folders = {"new": task.folder / f"new-{release.name}"}
    project_in(folders["new"], "")
    if old := last_release():
        folders["old"] = task.folder / f"old-{release.name}"
        project_in(folders["old"], old)
    else:
        outcome.notes.append(f"{release.name}: without an upgrade, as there is no earlier release")
    wheels = task.folder / f"wheels-{release.name}"
    for project in folders.values():
        wheels_in(wheels, project, release)
    disk = task.folder / release.name
    debian_in(disk, release)
    task.says(f"{release.name} is installed")
    with machine(disk, task.folder / f"{release.name}.log", {**folders, "wheels": wheels}) as host:
        for step in (
            _install,
            _answers,
            _reboots,
            _checks,
            _hangs,
            _says_what_is_wrong,
            _uninstalls,
        ):
            if reason := step(host):
                outcome.add("wrong", f"{release.name}: {step.__name__[1:]}: {reason}")
            task.says(f"{release.name}: {step.__name__[1:]}, {len(outcome.findings)} findings")


def _installer(host: Machine, version: str, *arguments: str, within_s: int = 60) -> str:
    """Returns what is wrong with what the installer says; "" if it ends well."""
    packages = ("PIP_NO_INDEX=1", "PIP_FIND_LINKS=/mnt/wheels", f"READY_WITHIN_S={within_s}")
    done = host.run("env", *packages, f"/mnt/{version}/scripts/deploy/install", *arguments)
    return f"{done.stdout}{done.stderr}"[-SHOWN:] if done.returncode else ""


def _install(host: Machine) -> str:
    """Install the last release with a chain, and this one over it."""
    data = ("--data", f"generate:{FLIGHTS}", "--backup", BACKUP, CHAIN)
    has_old = not host.run("test", "-d", "/mnt/old").returncode
    if problem := _installer(host, "old" if has_old else "new", *data):
        return problem
    # Requests that wait for a block are answered sooner. An upgrade keeps the setting.
    host.must("tee", "-a", "/etc/flightchain.env", given="FLIGHTCHAIN_MINE_INTERVAL_S=1\n")
    return _installer(host, "new")


def _requests() -> Iterator[tuple[str, str, str, str]]:
    """Every route with its examples, and every page that has no parameter in its path."""
    for row in OPERATIONS:
        for query in row.examples():
            for kind, body in [*row.bodies()] or [("", "")]:
                text = body if isinstance(body, str) else json.dumps(body)
                yield row.method, SERVICE + row.target(query), kind, text
    for rule in create_app(Settings()).url_map.iter_rules():
        if "GET" in (rule.methods or ()) and not rule.arguments:
            yield "GET", PAGES + rule.rule, "", ""


def _answers(host: Machine) -> str:
    """Which requests fail, of all that there are; and that each question has an answer."""
    requests = [*_requests()]
    statuses = host.statuses(requests)
    failed = [
        f"{request[0]} {request[1]}: {status}"
        for request, status in zip(requests, statuses, strict=True)
        if not 200 <= status < 500
    ]
    day = {"FL_DATE": GOOD["FL_DATE"], "OP_CARRIER_FL_NUM": GOOD["OP_CARRIER_FL_NUM"]}
    posted = ("POST", f"{SERVICE}/transactions?mode=commit", "application/json", json.dumps(GOOD))
    commands = [posted, ("GET", READY, "", ""), ("GET", f"{PAGES}/tip", "", "")]
    commands += [("GET", f"{SERVICE}/filter_transactions?{urlencode(day)}", "", "")]
    if (got := host.statuses(commands)) not in ([201, 200, 404, 200], [202, 200, 404, 200]):
        failed.append(f"a post, ready, an unknown page, a question: {got}")
    return "; ".join(failed[:5])


def _is_ready(host: Machine) -> bool:
    """Checks whether the service is ready and the pages are shown."""
    return host.statuses([("GET", READY, "", ""), ("GET", f"{PAGES}/", "", "")]) == [200, 200]


def _tip(host: Machine) -> dict[str, int]:
    tip: dict[str, int] = json.loads(host.must("flightchain", "tip"))
    return tip


def _reboots(host: Machine) -> str:
    """Checks whether all comes up again by itself, with all flights."""
    before = _tip(host)["transactions"]
    host.stop()
    host.boot()
    until(lambda: _is_ready(host), WITHIN_S)
    failed = host.run("systemctl", "--failed", "--no-legend", "flightchain-*").stdout
    after = _tip(host)["transactions"]
    return failed or ("" if after >= before > FLIGHTS else f"{before} flights, then {after}")


def _checks(host: Machine) -> str:
    """Checks whether the check and the backup do what their timers are for, and find damage."""
    host.must("systemctl", "is-enabled", "flightchain-verify.timer")
    for name in ("verify", "backup"):
        if host.run("systemctl", "start", f"flightchain-{name}.service").returncode:
            return _messages(host, name)
    if host.run("test", "-s", f"{BACKUP}/backup.json").returncode:
        return "there is no backup"
    return ""


def _messages(host: Machine, name: str) -> str:
    unit = f"flightchain-{name}.service"
    return host.run("journalctl", "--unit", unit, "--lines", "20", "--no-pager").stdout[-SHOWN:]


def _pid(host: Machine, name: str) -> str:
    unit = f"flightchain-{name}.service"
    return host.must("systemctl", "show", "--property=MainPID", "--value", unit).strip()


def _drop_in(host: Machine, name: str, *lines: str) -> str:
    """Let more lines hold for a unit; the file that says so."""
    path = f"{UNITS}/flightchain-{name}.service.d/test.conf"
    host.must("mkdir", "-p", str(Path(path).parent))
    host.must("tee", path, given="\n".join(["[Service]", *lines, ""]))
    host.must("systemctl", "daemon-reload")
    return path


def _hangs(host: Machine) -> str:
    """Whether a miner that is stopped is started again, as a killed service and page server are."""
    path = _drop_in(host, "miner", "WatchdogSec=4s")
    host.must("systemctl", "restart", "flightchain-miner.service")
    until(lambda: _is_ready(host), WITHIN_S)
    for name, signal in (("miner", "STOP"), ("backend", "KILL"), ("frontend", "KILL")):
        pid = _pid(host, name)
        host.must(
            "systemctl", "kill", "--kill-whom=main", f"--signal={signal}", f"flightchain-{name}"
        )
        until(lambda pid=pid, name=name: _pid(host, name) not in {pid, "0"}, WITHIN_S)  # type: ignore[misc]
        until(lambda: _is_ready(host), WITHIN_S)
    host.must("rm", path)
    host.must("systemctl", "daemon-reload")
    return ""


def _says_what_is_wrong(host: Machine) -> str:
    """Whether the installer fails with the reason if the service is not ready or has no pages."""
    wrong = []
    idle = ("Type=exec", "ExecStart=", "ExecStart=sleep infinity", "WatchdogSec=0")
    for name, needed in (
        ("miner", "no miner is running"),
        ("frontend", "flightchain-frontend is not ready"),
    ):
        path = _drop_in(host, name, *idle)
        problem = _installer(host, "new", within_s=8)
        host.must("rm", path)
        if needed not in problem or f"flightchain-{name}" not in problem + "flightchain-miner":
            wrong.append(f"without {name} it says: {problem or 'nothing'}")
    if "Usage: sudo flightchain " not in (usage := host.run("flightchain", "--help").stdout):
        wrong.append(usage)
    host.must("tee", "-a", "/etc/flightchain.env", given="FLIGHTCHAIN_BOGUS=1\n")
    if "is not a setting" not in (problem := _installer(host, "new", within_s=8)):
        wrong.append(f"with an unknown setting it says: {problem or 'nothing'}")
    host.must("sed", "-i", "/BOGUS/d", "/etc/flightchain.env")
    wrong.append(_installer(host, "new"))
    return "".join(wrong)


def _uninstalls(host: Machine) -> str:
    """Checks whether services and code are gone, and the chain is left."""
    if problem := _installer(host, "new", "--uninstall"):
        return problem
    left = host.run("systemctl", "list-units", "--all", "--no-legend", "flightchain-*").stdout
    chain = host.run("test", "-e", f"{CHAIN}/blocks/heights.dat").returncode
    code = host.run("test", "-e", "/opt/flightchain").returncode
    return left or ("" if (chain, code) == (0, 1) else "the code is left, or the chain is not")
