"""`python -m frontend`: serve the pages until SIGTERM or Ctrl-C."""

import os
import sys
from argparse import ArgumentParser

from backend.base.errors import InvalidSetting
from backend.serving.ports import why_not_free
from frontend.settings import from_environment

HELP = (
    "Serve the pages until SIGTERM or Ctrl-C. Environment variables set everything; "
    "docs/reference/settings.md lists them."
)

if __name__ == "__main__":
    ArgumentParser("python -m frontend", description=HELP).parse_args()
    try:
        settings = from_environment(os.environ)
    except InvalidSetting as error:
        sys.exit(f"error: {error}")
    if problem := why_not_free(settings.host, settings.port):
        remedy = "choose another FLIGHTCHAIN_FRONTEND_PORT or FLIGHTCHAIN_FRONTEND_HOST"
        sys.exit(f"error: {problem}; {remedy}")
    from frontend.site import run  # takes most of the start, and what is wrong is said before

    run(settings)
