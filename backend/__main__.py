"""`python -m backend`."""

from backend.cli import main

main(prog_name="python -m backend")
