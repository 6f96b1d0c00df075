"""Serves styles, scripts and pictures, which are read and compressed once.

Their addresses change with their content, so that no copy is ever stale and browsers keep them.
"""

import gzip
import hashlib
import mimetypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flask import Flask, Response, abort, request

FOLDER = Path(__file__).parent / "static"
KEEP = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class _File:
    body: bytes
    compressed: bytes
    mimetype: str
    version: str


def install(app: Flask) -> None:
    """Serve the files in `FOLDER` at `/static/NAME?v=VERSION`; `url_for` adds the version."""
    files = {path.name: _read(path) for path in sorted(FOLDER.iterdir()) if path.is_file()}

    @app.get("/static/<filename>", endpoint="static")
    def static(filename: str) -> Response:
        file = files.get(filename)
        if file is None:
            abort(404)
        is_compressed = bool(request.accept_encodings.quality("gzip"))
        body = file.compressed if is_compressed else file.body
        response = Response(body, mimetype=file.mimetype)
        if is_compressed:
            response.headers["Content-Encoding"] = "gzip"
        response.vary.add("Accept-Encoding")
        is_current = request.args.get("v") == file.version
        response.headers["Cache-Control"] = KEEP if is_current else "no-cache"
        response.set_etag(file.version + ("-gzip" if is_compressed else ""))
        response.make_conditional(request)
        return response

    @app.url_defaults
    def add_version(endpoint: str, values: dict[str, Any]) -> None:
        if endpoint == "static":
            values["v"] = files[values["filename"]].version


def _read(path: Path) -> _File:
    body = path.read_bytes()
    mimetype = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    version = hashlib.sha256(body).hexdigest()[:12]
    return _File(body, gzip.compress(body, 9, mtime=0), mimetype, version)
