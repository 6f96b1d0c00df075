"""Takes from the table of all settings where the frontend listens and where the backend is."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from backend.base import settings as table
from backend.base import words

EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  addresses to listen at, and to ask
COMMAND = words.COMMAND
EXAMPLES = table.PROJECT / "loadtests" / "examples"
_DEFAULT = table.Settings()


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

    host: str = _DEFAULT.frontend_host
    port: int = _DEFAULT.frontend_port
    backend_url: str = "http://127.0.0.1:8000"
    backend_host: str = ""
    threads: int = 8
    lab_dirs: tuple[Path, ...] = (Path(_DEFAULT.lab_dir), EXAMPLES)
    hosts: str = _DEFAULT.hosts
    more_backends: tuple[str, ...] = ()
    max_body_bytes: int = _DEFAULT.max_body_bytes


def from_environment(environment: Mapping[str, str]) -> Settings:
    """Return the settings in `environment`. Raises InvalidSetting for any that does not fit."""
    given = table.from_environment(environment)
    urls, host = given.backend_url, given.host
    if urls == table.AUTO:
        urls = f"http://{for_url(EVERYWHERE.get(host, host))}:{given.port}"
    elif host not in EVERYWHERE:
        host = ""
    first, *others = [url.strip().rstrip("/") for url in urls.split(",")]
    return Settings(
        given.frontend_host,
        given.frontend_port,
        first,
        host,
        lab_dirs=(Path(given.lab_dir), EXAMPLES),
        hosts=given.hosts,
        more_backends=tuple(others),
        max_body_bytes=given.max_body_bytes,
    )


def for_url(host: str) -> str:
    """Return `host` as an address has it: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host
