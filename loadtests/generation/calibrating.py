"""The names of calibrations, for callers that know them from here."""

from loadtests.generation.calibration import WARM_UP, calibration_of
from loadtests.generation.run import calibrate

__all__ = ["WARM_UP", "calibrate", "calibration_of"]
