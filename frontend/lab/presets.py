"""Offers forms to start from: the study's numbers, and what an SSD, a faster processor or our index
would change. Each is a form that is filled in, and all but the study's are compared with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from frontend.field_labels import TEXTS
from frontend.lab import study
from frontend.lab.closed_network_form import STUDIED, Visited
from frontend.lab.quantities import plain

SHOWN_CUSTOMERS = 30  # as in the study's figures
INDEX_CV = 1.0
SPEED_UP = 2.0  # of the processor

STUDY = "The study's Pi"
SSD, CPU = "What would an SSD do?", "What would a CPU twice as fast do?"
INDEX = "What would our index do?"
QUEUE_PATH, NETWORK_PATH = "/lab/calculator/open", "/lab/calculator/closed"


@dataclass(frozen=True, slots=True)
class Preset:
    """A form to start from. name: of the link. assumes: names of `assumptions` in the texts."""

    name: str
    path: str
    assumes: tuple[str, ...]
    values: Mapping[str, str]

    @property
    def assumptions(self) -> str:
        """What is assumed, and the source of it."""
        return " ".join(TEXTS["assumptions"][name] for name in self.assumes)

    @property
    def address(self) -> str:
        return f"{self.path}?{urlencode(self.values)}"

    def as_json(self) -> dict[str, str]:
        named = {"name": self.name, "assumes": self.assumptions, "address": self.address}
        return {**named, **self.values}


AGAINST = {"against": "study"}


# --- what each question assumes --------------------------------------------------------------

_READING_S = study.BLOCK_READS * study.FILE_READ_S  # per request
_NOT_FILE_S = study.SERVICE_TIME_S - _READING_S  # per request, the work of the processor


def _queue(
    name: str, *assumes: str, service_time_s: float = study.SERVICE_TIME_S, cv: float = study.CV
) -> Preset:
    """Return a preset of the open queue, at the arrival rate of the study's highest load."""
    values = {
        "arrivals": plain(study.HIGHEST_LOAD * study.MAXIMUM_RATE_PER_S),
        "arrivals_in": "per_s",
        "service_time_s": plain(service_time_s),
        "cv": f"{cv:.4g}",
        "servers": "1",
    }
    return Preset(name, QUEUE_PATH, assumes, values | (AGAINST if name != STUDY else {}))


QUEUES = (
    _queue(STUDY, "queue"),
    _queue(SSD, "ssd", service_time_s=_NOT_FILE_S),
    _queue(CPU, "cpu", service_time_s=_READING_S + _NOT_FILE_S / SPEED_UP),
    _queue(INDEX, "index", "index_varies", service_time_s=study.INDEX_S, cv=INDEX_CV),
)


def _network(name: str, assumes: tuple[str, ...], *visited: Visited) -> Preset:
    values: dict[str, str] = {}
    for row, station in enumerate(visited, start=1):
        values |= {
            f"name_{row}": station.name,
            f"visits_{row}": plain(station.visits),
            f"service_time_s_{row}": plain(station.service_time_s),
            f"kind_{row}": "queue",
            f"servers_{row}": str(station.servers),
        }
    more = {"customers": str(SHOWN_CUSTOMERS), "think_time_s": plain(study.THINK_TIME_S)}
    return Preset(name, NETWORK_PATH, assumes, values | more | (AGAINST if name != STUDY else {}))


NETWORKS = (
    _network(STUDY, ("network",), *STUDIED),
    _network(SSD, ("ssd", "one_processor"), Visited("Processor", 1, _NOT_FILE_S)),
    _network(
        CPU,
        ("cpu", "one_processor"),
        Visited("Files", study.BLOCK_READS, study.FILE_READ_S),
        Visited("Processor", 1, _NOT_FILE_S / SPEED_UP),
    ),
    _network(INDEX, ("index",), Visited("Service", 1, study.INDEX_S)),
)


def chosen(presets: tuple[Preset, ...], values: Mapping[str, str]) -> Preset | None:
    """Return the preset that the form shows unchanged, if any."""
    return next((preset for preset in presets if preset.values == values), None)
