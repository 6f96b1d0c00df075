"""Offers forms to start from: the study's numbers, and what an SSD, a faster processor or our index
would change. Each is a form that is filled in, and all but the study's are compared with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from frontend.lab import study
from frontend.lab.closed_network_form import STUDIED, Visited
from frontend.lab.quantities import plain

SHOWN_CUSTOMERS = 30  # as in the study's figures
INDEX_CV = 1.0
SPEED_UP = 2.0  # of the processor

STUDY = "The study's Pi"
QUEUE_PATH, NETWORK_PATH = "/lab/calculator/open", "/lab/calculator/closed"


@dataclass(frozen=True, slots=True)
class Preset:
    """A form to start from. name: of the link. assumptions: and their source."""

    name: str
    path: str
    assumptions: str
    values: Mapping[str, str]

    @property
    def address(self) -> str:
        return f"{self.path}?{urlencode(self.values)}"

    def as_json(self) -> dict[str, str]:
        named = {"name": self.name, "assumes": self.assumptions, "address": self.address}
        return {**named, **self.values}


def _compared(name: str) -> dict[str, str]:
    """Return the parameter that compares with the study; none for the study itself."""
    return {} if name == STUDY else {"against": "study"}


# --- what each question assumes --------------------------------------------------------------

_READING_S = study.BLOCK_READS * study.FILE_READ_S  # per request
_NOT_FILE_S = study.SERVICE_TIME_S - _READING_S  # per request, the work of the processor

_SSD = (
    "Each visit to the disk takes 46 ms. The authors' profile shows that about 17 ms of this read "
    "the file, and the rest decodes JSON and creates objects. So even an infinitely fast SSD saves "
    "only 17 ms on each of the 513 reads."
)
_CPU = (
    "The processor does all of the work but reading the file: 29 of the 46 ms of each visit to the "
    "disk are its work, too. A processor that is twice as fast halves this work; reading the file "
    "still takes 17 ms."
)
_ONE_PROCESSOR = (
    "The stations are the files and the processor, because DISK and DELAY of the study's network "
    "are mostly work of one processor: as two stations they would do it at the same time, and with "
    "an SSD the bound would seem to be 0.05/s."
)
_INDEX = (
    "The index answers with one visit and reads no blocks. The 0.14 ms are from our benchmark "
    "(about 7,400 answers a second on two cores of a Xeon; see docs/performance.md), not from a "
    "Pi: enter what you measure on yours."
)


def _queue(name: str, assumptions: str, service_time_s: float, cv: float = study.CV) -> Preset:
    """Return a preset of the open queue, at the arrival rate of the study's highest load."""
    values = {
        "arrivals": plain(study.HIGHEST_LOAD * study.MAXIMUM_RATE_PER_S),
        "arrivals_in": "per_s",
        "service_time_s": plain(service_time_s),
        "cv": f"{cv:.4g}",
        "servers": "1",
    }
    return Preset(name, QUEUE_PATH, assumptions, values | _compared(name))


QUEUES = (
    _queue(
        STUDY,
        "The server takes one request at a time, for 40.5 s that hardly vary (cv 0.029). Requests "
        "arrive at the highest rate of the study, 0.85 of the highest throughput.",
        study.SERVICE_TIME_S,
    ),
    _queue("What would an SSD do?", _SSD, _NOT_FILE_S),
    _queue("What would a CPU twice as fast do?", _CPU, _READING_S + _NOT_FILE_S / SPEED_UP),
    _queue(
        "What would our index do?",
        f"{_INDEX} How much its service times vary was not measured; cv 1 is a cautious guess.",
        study.INDEX_S,
        INDEX_CV,
    ),
)


def _network(name: str, assumptions: str, visited: tuple[Visited, ...]) -> Preset:
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
    return Preset(name, NETWORK_PATH, assumptions, values | more | _compared(name))


NETWORKS = (
    _network(
        STUDY,
        "This network is that of the study's report. It describes a server with several threads; "
        "the study's own server took one request at a time, so its throughput could not exceed "
        "1/D = 0.0227/s.",
        STUDIED,
    ),
    _network(
        "What would an SSD do?", f"{_SSD} {_ONE_PROCESSOR}", (Visited("Processor", 1, _NOT_FILE_S),)
    ),
    _network(
        "What would a CPU twice as fast do?",
        f"{_CPU} {_ONE_PROCESSOR}",
        (
            Visited("Files", study.BLOCK_READS, study.FILE_READ_S),
            Visited("Processor", 1, _NOT_FILE_S / SPEED_UP),
        ),
    ),
    _network("What would our index do?", _INDEX, (Visited("Service", 1, study.INDEX_S),)),
)


def chosen(presets: tuple[Preset, ...], values: Mapping[str, str]) -> Preset | None:
    """Return the preset that the form shows unchanged, if any."""
    return next((preset for preset in presets if preset.values == values), None)
