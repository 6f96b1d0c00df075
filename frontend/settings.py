"""Reads from the environment where the frontend listens and where the backend is.

The table of all settings, with these among them, is in docs/reference/settings.md; other variables
are not looked at.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from backend.serving.host_policy import names_in
from frontend.errors import InvalidSetting

EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  addresses to listen at, and to ask
AUTO = "auto"
MOST_DIGITS, PORTS = 15, (1, 65535)
LAB = Path(__file__).resolve().parent.parent / "loadtests"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of the frontend.

    host, port: where it listens. backend_url: has no slash at the end. more_backends: of further
    nodes of its cluster, which are asked, too. backend_host: where the backend listens; "" if that
    is not known. threads: how many requests are in hand at a time.
    lab_dirs: folders of the lab's results: those of this machine, then the examples that come with
    the project. hosts: further names by which it may be asked. max_body_bytes: how long a file
    may be that is sent in one piece; it is the setting of the backend, which takes no longer ones.
    """

    host: str = "127.0.0.1"
    port: int = 5000
    backend_url: str = "http://127.0.0.1:8000"
    backend_host: str = ""
    threads: int = 8
    lab_dirs: tuple[Path, ...] = (LAB / "results", LAB / "examples")
    hosts: str = "localhost"
    more_backends: tuple[str, ...] = ()
    max_body_bytes: int = 16 * 2**20


DEFAULT = Settings()


def from_environment(environment: Mapping[str, str]) -> Settings:
    """Return the settings in `environment`. Raises InvalidSetting."""
    urls = environment.get("FLIGHTCHAIN_BACKEND_URL", AUTO)
    host = ""
    if urls == AUTO:
        host = environment.get("FLIGHTCHAIN_HOST", DEFAULT.host)
        port = _number(environment, "FLIGHTCHAIN_PORT", 8000)
        urls = f"http://{for_url(EVERYWHERE.get(host, host))}:{port}"
    lab_dir = environment.get("FLIGHTCHAIN_LAB_DIR", str(DEFAULT.lab_dirs[0]))
    if not lab_dir:
        raise InvalidSetting("FLIGHTCHAIN_LAB_DIR must not be empty")
    first, *others = [url.strip().rstrip("/") for url in urls.split(",")]
    for url in (first, *others):
        if not url.startswith(("http://", "https://")):
            raise InvalidSetting(
                f"FLIGHTCHAIN_BACKEND_URL {url!r} must begin with http:// or https://"
            )
    return Settings(
        environment.get("FLIGHTCHAIN_FRONTEND_HOST", DEFAULT.host),
        _number(environment, "FLIGHTCHAIN_FRONTEND_PORT", DEFAULT.port),
        first,
        host,
        lab_dirs=(Path(lab_dir), *DEFAULT.lab_dirs[1:]),
        hosts=_hosts(environment),
        more_backends=tuple(others),
        max_body_bytes=_number(
            environment, "FLIGHTCHAIN_MAX_BODY_BYTES", DEFAULT.max_body_bytes, (2**16, 2**30)
        ),
    )


def for_url(host: str) -> str:
    """Return `host` as an address has it: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


def _hosts(environment: Mapping[str, str]) -> str:
    name = "FLIGHTCHAIN_HOSTS"
    text = environment.get(name, DEFAULT.hosts)
    try:
        names_in(text)
    except ValueError as error:
        raise InvalidSetting(f"{name} {text!r}: {error}") from None
    return text


def _number(
    environment: Mapping[str, str], name: str, default: int, bounds: tuple[int, int] = PORTS
) -> int:
    text = environment.get(name, str(default))
    least, most = bounds
    is_number = text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS
    if is_number and least <= int(text) <= most:
        return int(text)
    raise InvalidSetting(f"{name} {text!r} must be a whole number, {least} to {most}")
