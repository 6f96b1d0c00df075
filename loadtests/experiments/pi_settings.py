"""Sets the service on a Pi up to be measured, by ssh, or says what to set by hand.

One worker has a queue of its own, which the models describe best; kept answers do not matter, as
each question is asked once. With several workers M/G/m is only a good approximation.
"""

import shutil
import subprocess
from collections.abc import Iterator

from loadtests.lab.service_facts import ServiceFacts
from loadtests.processes import LOOK_EVERY_S, ProgramFailed, Site, wait_for

WANTED = {"FLIGHTCHAIN_WORKERS": "1", "FLIGHTCHAIN_ANSWER_CACHE_BYTES": "0"}
ENVIRONMENT = "/etc/flightchain.env"
UNIT = "flightchain-backend"
SSH_WITHIN_S, READY_WITHIN_S = 60, 120


def advice(site: Site, ssh: str) -> Iterator[str]:
    """Set the service up by ssh, if that is given, and say what was set or is to be set by hand.

    Raises ProgramFailed if there is no Flightchain, or it cannot be set up.
    """
    facts = ServiceFacts.of(site)
    if ssh:
        set_up(ssh)
        problem = f"{site.url} does not answer {READY_WITHIN_S} s after it was restarted"
        wait_for(lambda: site.answers("/tip"), READY_WITHIN_S, problem, 100 * LOOK_EVERY_S)
        yield f"{ssh}: {' '.join(_lines())} set in {ENVIRONMENT}, and {UNIT} restarted"
    elif facts.workers != 1 or facts.answer_limit_bytes:
        yield (
            f"It is measured as it is. One worker and no kept answers make the clearest result: on "
            f"the Pi, set {' and '.join(_lines())} in {ENVIRONMENT} and restart {UNIT}, or give "
            "--ssh USER@HOST."
        )


def set_up(ssh: str) -> None:
    """Write the settings on the other machine and restart the service there."""
    if not shutil.which("ssh"):
        raise ProgramFailed("there is no ssh on this machine; install openssh-client")
    names = "|".join(WANTED)
    script = (
        f"sudo sed -i -E '/^({names})=/d' {ENVIRONMENT} && "
        f"printf '%s\\n' {' '.join(_lines())} | sudo tee -a {ENVIRONMENT} >/dev/null && "
        f"sudo systemctl restart {UNIT}"
    )
    command = ["ssh", "-o", "BatchMode=yes", "--", ssh, script]
    try:
        done = subprocess.run(  # noqa: S603  the caller's own ssh
            command, capture_output=True, text=True, timeout=SSH_WITHIN_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise ProgramFailed(f"ssh {ssh} took more than {SSH_WITHIN_S} s") from None
    if done.returncode:
        told = done.stderr.strip()[-300:] or f"status {done.returncode}"
        raise ProgramFailed(f"ssh {ssh} could not set the service up: {told}")


def _lines() -> list[str]:
    return [f"{name}={value}" for name, value in WANTED.items()]
