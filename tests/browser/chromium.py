"""Headless Chromium: Debian's, or another that is called so. None is downloaded.

The one without any window of its own comes first: it draws the same in two thirds of the time.
"""

import asyncio
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
MISSING = (
    "there is no browser to test the pages in; on Debian: sudo apt install chromium-headless-shell"
)


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser that finds no host but this machine.

    Playwright runs an event loop in this thread as long as the context lasts; none is left behind.
    """
    executable = next(filter(None, map(shutil.which, NAMES)), None)
    if executable is None:
        pytest.fail(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable,
            chromium_sandbox=os.geteuid() != 0,  # it refuses to have one as root
            args=["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
        )
        try:
            yield browser
        finally:
            browser.close()
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()
