"""Bounds how much may be posted to each page, and keeps it while it is worked on.

A request that announces more than its page takes is refused by its head. What is longer than a form
is a file, and kept on a disk: the pages run in little memory.
"""

from typing import IO, Any

from flask import Flask, Request
from werkzeug.exceptions import RequestEntityTooLarge

from backend.serving.body_files import body_file
from backend.serving.environs import Environ

ANY_FILE = "application/octet-stream"

FORM_BYTES = 64 * 1024  # of a form, or of all that stands beside a file in one
PART_BYTES = 4 * 2**20  # of a file that is sent in parts
MAX_FORM_PARTS = 32
FIELD_BYTES = 2 * FORM_BYTES  # of a form in parts; Werkzeug counts what it reads ahead of a file

NO_ROOM = "the disk of these pages has no room to receive a file"
FORM_TOO_LARGE = "the form has too many fields, or too long ones"

TAKES_FILES = {"/upload": {"multipart/form-data"}, "/upload.json": {ANY_FILE}}
"""Path -> the Content-Types in which a file may be sent to it. All else that is sent is a form."""


def most_bytes(environ: Environ, max_file_bytes: int) -> int:
    """Return how long the body of a request may be."""
    kind = environ.get("CONTENT_TYPE", "").partition(";")[0].strip().lower()
    if kind not in TAKES_FILES.get(environ["PATH_INFO"], ()):
        return FORM_BYTES
    return min(PART_BYTES, max_file_bytes) if kind == ANY_FILE else FORM_BYTES + max_file_bytes


def install(app: Flask, max_file_bytes: int) -> None:
    """Bound what `app` reads of a form. `request_guard` judges the length that a head announces."""
    app.request_class = BoundedRequest
    app.config["MAX_CONTENT_LENGTH"] = FORM_BYTES + max_file_bytes
    app.config["MAX_FORM_PARTS"] = MAX_FORM_PARTS
    app.config["MAX_FORM_MEMORY_SIZE"] = FIELD_BYTES


def reason_of(error: RequestEntityTooLarge) -> str:
    """Return why a form or file is refused; Werkzeug does not say it of a form's parts."""
    is_ours = error.description != RequestEntityTooLarge.description
    return str(error.description) if is_ours else FORM_TOO_LARGE


class BoundedRequest(Request):
    """A request whose form may hold one file, which is kept on a disk unless it is short.

    The head of a part that holds a file is kept in memory, and may have thousands of lines.
    """

    _file: IO[bytes] | None = None

    def _get_file_stream(self, total_content_length: int | None, *_: Any, **__: Any) -> IO[bytes]:
        if self._file is not None:
            raise RequestEntityTooLarge("a form may hold one file, and this one holds several")
        self._file = body_file(total_content_length or 0, FORM_BYTES)
        return self._file

    def close(self) -> None:
        """Close the file, even if the form around it could not be read to its end."""
        super().close()
        if self._file is not None:
            self._file.close()
