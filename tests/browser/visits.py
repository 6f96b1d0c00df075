"""A visitor: a browser context in which nothing goes wrong unnoticed."""

from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, Request

from tests.browser.sites import Site

LOUD = {"error", "warning"}


class Visitor:
    """Somebody with a browser of his own at `site`.

    faults: requests to other hosts, messages on the console, errors of scripts. Whoever makes a
    visitor looks at them in the end. tolerated: what a message holds that is expected.
    """

    def __init__(self, browser: Browser, site: Site, *tolerated: str, **options: Any) -> None:
        self.site = site
        self.faults: list[str] = []
        self.requests: list[str] = []
        self._tolerated = tolerated
        self.context = browser.new_context(base_url=site.url, **options)
        self.context.on("request", self._note_request)
        self.context.on("console", self._note_message)
        self.context.on("weberror", lambda error: self.faults.append(f"script: {error.error}"))

    def open(self, address: str, status: int | None = 200, page: Page | None = None) -> Page:
        """A new page, or this one, at `address`, a template of the table.

        status: None for any below 500.
        """
        page = page or self.context.new_page()
        answer = page.goto(self.site.address(address))
        assert answer is not None
        assert answer.status == status or (status is None and answer.status < 500), answer.status
        return page

    def _note_request(self, request: Request) -> None:
        self.requests.append(request.url)
        if not request.url.startswith((self.site.url + "/", "data:", "blob:")):
            self.faults.append(f"request to {request.url}")

    def _note_message(self, message: ConsoleMessage) -> None:
        if message.type not in LOUD or any(part in message.text for part in self._tolerated):
            return
        if message.text.startswith("Failed to load resource") and self._is_page(message):
            return  # the page itself; its status is looked at by `open`
        self.faults.append(f"console: {message.text} at {message.location['url']}")

    def _is_page(self, message: ConsoleMessage) -> bool:
        page = message.page
        return page is not None and _path(page.url) == _path(message.location["url"])


def _path(url: str) -> str:
    return urlsplit(url).path
