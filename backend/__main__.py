"""`python -m backend`."""

from backend.processes import interruption

interruption.ends_at_once()

from backend.cli import main  # noqa: E402  takes the most of a start

main(prog_name="python -m backend")
