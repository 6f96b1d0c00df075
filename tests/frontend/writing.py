"""A ledger to write to, and a visitor who fills in forms."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from io import BytesIO
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.datastructures import FileStorage
from werkzeug.test import TestResponse, encode_multipart

from frontend.app import create_app
from frontend.bodies import ANY_FILE
from frontend.settings import Settings
from tests.api.processes import Service, serving
from tests.api.worlds import generated, seal, settings_for

FLIGHTS = generated(60)

GOOD_FORM = {
    "FL_DATE": "2013-01-02",
    "OP_CARRIER_AIRLINE_ID": "other",
    "OTHER_CARRIER": "19977",
    "OP_CARRIER_FL_NUM": "1545",
    "ORIGIN": "xna",
    "ORIGIN_CITY_NAME": "Fayetteville, AR",
    "ORIGIN_STATE_NM": "Arkansas",
    "DEST": "ITH",
    "DEST_CITY_NAME": "Ithaca, NY",
    "DEST_STATE_NM": "New York",
    "DEP_TIME": "5:17",
    "DEP_DELAY": "−3",
    "ARR_TIME": "08:30",
    "ARR_DELAY": "11",
    "AIR_TIME": "127",
}
"""Of airports that made-up flights never touch."""

Form = Mapping[str, str]
NO_CHANGES: Form = {}


@dataclass(frozen=True, slots=True)
class Visitor:
    """service: the backend. client: of the pages, which posts as a browser at their forms does."""

    service: Service
    client: FlaskClient

    def hidden(self, path: str = "/add") -> dict[str, str]:
        """The hidden fields of the form at `path`, as it is shown anew."""
        return hidden(self.client.get(path).text)

    def send(self, changes: Form = NO_CHANGES, form: Form = GOOD_FORM) -> TestResponse:
        """Fill in the form for one flight, anew, check it, and add it if nothing is wrong.

        TOKEN is given where the flight is added.
        """
        sent = {**form, **self.hidden(), **changes}
        token = {"TOKEN": sent.pop("TOKEN")} if "TOKEN" in sent else {}
        page = self.client.post("/add", data={**sent, "step": "check"})
        if page.status_code != 200:
            return page
        return self.client.post("/add", data={**hidden(page.text), **token, "step": "add"})

    def upload(self, body: bytes, name: str = "flights.csv", **fields: str) -> TestResponse:
        """Send a file in one piece. Returns its page, when it is checked."""
        boundary, data = encode_multipart({**fields, "file": FileStorage(BytesIO(body), name)})
        kind = f"multipart/form-data; boundary={boundary}"
        return self.settled(self.client.post("/upload", data=data, content_type=kind))

    def go_on(self, page: TestResponse, **fields: str) -> TestResponse:
        """Send the form on the page of a file, which adds it unless `fields` say otherwise."""
        form = page.text.partition('<section id="outcome"')[2].partition("</form>")[0]
        address = re.findall(r'method="post" action="([^"]*)"', form)[0]
        sent = {**hidden(form), "action": "add", **fields}
        return self.settled(self.client.post(address, data=sent))

    def added(self, body: bytes, name: str = "flights.csv", **fields: str) -> TestResponse:
        """Send a file, and add what is in it. Returns its page then."""
        return self.go_on(self.upload(body, name, **fields), **fields)

    def settled(self, page: TestResponse) -> TestResponse:
        """Return the page of a file when nothing is being done with that any more."""
        while page.status_code == 303 or "data-refresh" in page.text:
            address = page.headers.get("Location") or page.request.path
            page = self.client.get(address)
        return page

    def part(self, body: bytes = b"", token: str = "", **parameters: object) -> TestResponse:
        """Send what upload.js sends."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        address = f"/upload.json?{urlencode(parameters)}"
        return self.client.post(address, data=body, content_type=ANY_FILE, headers=headers)


def hidden(page: str) -> dict[str, str]:
    """The hidden fields of a page."""
    matches = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page)
    return {name: unescape(text) for name, text in matches}


def errors_beside(page: TestResponse) -> dict[str, str]:
    """Field -> what is said beside it."""
    matches = re.findall(r'class="error" id="(\w+)-error"[^>]*>([^<]*)<', page.text)
    return {name: unescape(text) for name, text in matches}


def notice(page: TestResponse) -> str:
    """What is said above the form."""
    match = re.search(r'role="alert">\s*<p>(.*?)</p>', page.text, re.DOTALL)
    return unescape(match[1]) if match else ""


def value_of(page: TestResponse, name: str) -> str:
    """What stands in a field."""
    text = page.text
    match = re.search(rf'<input id="{name}"[^>]*? value="([^"]*)"', text)
    return unescape(match[1]) if match else ""


def chosen(page: TestResponse, name: str) -> str:
    """What is chosen of a list."""
    text = page.text
    options = re.search(rf'<select id="{name}".*?</select>', text, re.DOTALL)
    match = re.search(r'value="([^"]*)" selected', options[0]) if options else None
    return match[1] if match else ""


class TakingTurns(FlaskClient):
    """A browser that keeps no cookies, at two frontends of which each gets every second request.

    So nothing but what is sent with a form decides about it: no session, and nothing that a server
    knows until it is restarted.
    """

    apps: Iterator[Flask]

    def open(self, *arguments: Any, **how: Any) -> TestResponse:
        self.application = next(self.apps)
        return super().open(*arguments, **how)


@contextmanager
def visiting(folder: Path, **settings: Any) -> Iterator[Visitor]:
    """A visitor of a ledger of its own, with `FLIGHTS` in it. settings: of the backend."""
    seal(settings_for(folder), [FLIGHTS])
    with serving(folder, **settings) as service:
        apps = [create_app(Settings(backend_url=service.url)) for _ in range(2)]
        client = TakingTurns(apps[0], apps[0].response_class, use_cookies=False)
        client.apps = cycle(apps)
        client.environ_base["HTTP_ORIGIN"] = "http://localhost"
        yield Visitor(service, client)
