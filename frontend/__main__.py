"""`python -m frontend`: serve the pages until SIGTERM or Ctrl-C."""

import os
import sys

from backend.base.errors import InvalidSetting
from frontend.settings import from_environment
from frontend.site import run

if __name__ == "__main__":
    try:
        settings = from_environment(os.environ)
    except InvalidSetting as error:
        sys.exit(f"error: {error}")
    run(settings)
