"""The reports' numbers, verified: study.json, with the slips of the reports corrected.

The open model's are from the authors' unrounded mean and variance; the network's, for all 30
populations, equal their own solver's file; M/M/m is the report on MariaDB's with (1-ρ)²·m! in place
of its (1-ρ)^{2m!}; the protocol's are from an independent simulation of 20 000 runs a load.
"""

import json
from math import isclose
from pathlib import Path
from typing import Any

from loadtests.models.laws import Station

STUDY: dict[str, Any] = json.loads((Path(__file__).parent / "study.json").read_text("utf-8"))
SERVICE_TIME_S: float = STUDY["service_time_s"]
SERVICE_VARIANCE_S2: float = STUDY["service_variance_s2"]
SERVICE_CV = SERVICE_VARIANCE_S2**0.5 / SERVICE_TIME_S
THINK_TIME_S: float = STUDY["network"]["think_time_s"]


def network() -> list[Station]:
    """CPU, disk and delay station of the study's network."""
    printed = STUDY["network"]
    return [Station(n, d) for n, d in zip(printed["stations"], printed["demands_s"], strict=True)]


def same(value: float, expected: float) -> bool:
    """Whether two numbers are equal to nine digits."""
    return isclose(value, expected, rel_tol=1e-9)
