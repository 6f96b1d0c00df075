"""Runs the command line: `python -m backend`."""

from backend.processes import interruption

interruption.ends_at_once()

from backend.cli import main  # noqa: E402  this import takes most of the start

main(prog_name="python -m backend")
