"""Runs the command line: `python -m backend`."""

import gc

from backend.base.processes import interruption, standard_streams

interruption.ends_at_once()
standard_streams.open_closed()

from backend.cli.commands import main  # noqa: E402  this import takes most of the start

try:
    main(prog_name="python -m backend")
finally:
    gc.freeze()  # all of it goes now, and looking for cycles among it takes a quarter of a command
