"""Asks a running service what it is: version, workers, caches, and the machine below it.

All of it is in `GET /` and `GET /metrics`, so it is known of a service on any machine.
"""

import ssl
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

from loadtests.processes import NO_FLIGHTCHAIN, ProgramFailed, Site
from loadtests.tables import Line

NAME = "Flightchain"
FACTS_WITHIN_S = 30.0  # for an address at which nobody says anything
Numbers = dict[str, float]
"""Name of a metric, with the labels that matter as `{role="worker"}` -> its number."""


@dataclass(frozen=True, slots=True)
class ServiceFacts(Line):
    """Holds what a service says of itself. answer_limit_bytes: for kept answers; 0: none is kept.

    cores: of its machine. None: it is of a release that does not tell.
    """

    version: str
    workers: int
    cores: int | None
    processor: str
    answer_limit_bytes: float | None

    @classmethod
    def ask(cls, site: Site) -> Self:
        """Ask a service. Raises ProgramFailed with a sentence if it is not a Flightchain."""
        try:
            version, (samples, processor) = _version(site), _samples(site)
        except OSError as problem:
            why = f"no service answers at {site.url}: {problem}{_hint(site, problem)}"
            raise ProgramFailed(why) from problem
        cores = samples.get("flightchain_machine_cores")
        return cls(
            version,
            max(1, int(samples.get('flightchain_processes{role="worker"}', 1))),
            None if cores is None else int(cores),
            processor,
            samples.get("flightchain_answer_cache_limit_bytes"),
        )

    @property
    def is_simplest(self) -> bool:
        """Return whether it has one worker and, as far as it says, keeps no answers."""
        return self.workers == 1 and not self.answer_limit_bytes


def numbers(site: Site) -> Numbers:
    """Return the service's metrics now. Raises ProgramFailed, OSError."""
    return _samples(site)[0]


def _hint(site: Site, problem: OSError) -> str:
    """Return what may help, with a semicolon before it, or nothing."""
    if isinstance(problem, ssl.SSLError):
        return "; the service itself answers at http://, without TLS"
    if not isinstance(problem, ConnectionRefusedError):
        return ""
    if urlsplit(site.url).port is None:
        return f"; the service has a port of its own, like {site.url}:8000"
    if site.is_here:
        return "; start it first"
    return "; unless FLIGHTCHAIN_HOST=0.0.0.0 is set there, it answers its own machine only"


def _version(site: Site) -> str:
    try:
        root: Any = site.get("/", FACTS_WITHIN_S)
    except ProgramFailed as problem:
        raise _other_server(site, str(problem).removesuffix(NO_FLIGHTCHAIN)) from problem
    if not isinstance(root, dict) or root.get("service") != NAME:
        raise _other_server(site, "GET / does not say so")
    return str(root.get("version", "unknown"))


def _other_server(site: Site, why: str) -> ProgramFailed:
    return ProgramFailed(
        f"{site.url} is a server, but not a {NAME} that can be asked: {why}. The lab asks the "
        "questions of that service; give the address of one, with its port."
    )


def _samples(site: Site) -> tuple[Numbers, str]:
    """Return the metrics, and the name of the processor."""
    text, metrics, processor = site.text("/metrics", FACTS_WITHIN_S), Numbers(), ""
    try:
        families = list(text_string_to_metric_families(text))
    except ValueError as problem:
        raise _other_server(site, f"GET /metrics was answered {text[:60]!r}") from problem
    for sample in chain.from_iterable(family.samples for family in families):
        processor = sample.labels.get("processor", processor)
        role = sample.labels.get("role")
        metrics[sample.name + (f'{{role="{role}"}}' if role else "")] = sample.value
    return metrics, processor
