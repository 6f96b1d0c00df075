"""Prints how many hours a pass of the scrub takes when it may hurry: its work, and its pauses.

    python -m loadtests.in_process.scrub_pass

The pauses that the scrub asks for between its pieces are counted, but not made.
"""

import os
import time
from dataclasses import replace

from backend.base.settings import Settings, from_environment
from backend.verify.scrub import Scrub
from backend.verify.scrub_state import FILE


def pass_hours(settings: Settings) -> float:
    """Return how many hours a pass takes at its pace."""
    paused_s = 0.0

    def pause(seconds: float) -> bool:
        nonlocal paused_s
        paused_s += seconds
        return scrub.state.completed_at is not None

    (settings.folder / FILE.name).unlink(missing_ok=True)
    scrub = Scrub(settings, print, pause)
    start_s = time.perf_counter()
    scrub.run()
    return (time.perf_counter() - start_s + paused_s) / 3600


if __name__ == "__main__":
    print(pass_hours(replace(from_environment(os.environ), scrub_hours=1e-9)))
