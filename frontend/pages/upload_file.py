"""`/upload`: checks a file of flights, and then adds it.

`upload.js` sends a file in slices to `/upload.json` and puts their outcomes together. Without
JavaScript a form sends the file in one piece, and the page shows what is in it, with a button that
adds it. Browsers do not keep a file from one page to the next: a short one is kept in the page, a
longer one has to be chosen again. What is added is always what was checked, by its digest.

No file is in memory as a whole: it comes as one on the disk (see `bodies`), and is sent on from it.
"""

import csv
import io
import json
import os
import shutil
from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from io import BytesIO
from typing import IO, Any, NamedTuple

from flask import Blueprint, Response, current_app, render_template, request
from werkzeug.exceptions import RequestEntityTooLarge

from backend.serving.environs import body_file
from frontend.adding.submitted_form import NEVER_TWICE, SubmittedForm, form_after, token_in
from frontend.adding.uploads import (
    DAY_ORDERS,
    DoubtfulDays,
    Unreadable,
    added,
    checked,
    digest_of,
    key_of,
)
from frontend.bodies import FORM_BYTES, KEPT_FILE_BYTES, NO_ROOM, reason_of
from frontend.context import backend, settings, texts
from frontend.errors import RETRY_AFTER_S, BackendAway, Refused
from frontend.filters import size
from frontend.pages.error_pages import problem_twin
from frontend.twins import json_twin

SKIP, REJECT = "skip", "reject"
NO_FILE = "Please choose a file."
ANOTHER = "Nothing was added, because this is not the file that was checked."
UNTICKED = "Nothing was added, because many rows are bad and the box below was not ticked."
AGAIN = "Please choose the file again."
TOO_LONG = "The file is longer than {}, the most that can be sent in one piece; nothing was added."
NOT_IN_ONE_PIECE = "This cannot be taken in one piece: {}. Nothing was added."
ONWARD = (
    "With JavaScript a file is sent in parts, however long it is. You can also cut it into several "
    "files, each with the header, or run on the ledger's machine: python -m backend import FILE"
)
SLICE_TOO_LONG = (
    "This ledger is set to accept less at once than this page sends. Run on its machine: "
    "python -m backend import FILE"
)

routes = Blueprint("uploading", __name__)


@routes.errorhandler(RequestEntityTooLarge)
def refused(problem: Exception) -> Response:
    return _failed(problem) if request.path.endswith(".json") else _again(problem)


@routes.errorhandler(OSError)
def no_room(error: OSError) -> Response:
    """Answer a request whose file could not be kept, so that nothing was done with it."""
    current_app.logger.error("cannot keep a file that was sent: %s", error)
    return refused(Refused({"detail": NO_ROOM}, 503, RETRY_AFTER_S))


# --- a file in one piece -------------------------------------------------------------------------


class _File(NamedTuple):
    name: str
    body: IO[bytes]

    def kept(self) -> str:
        """Return its content in base64 if it is so short that a page can keep it, else ""."""
        if self.body.seek(0, os.SEEK_END) > KEPT_FILE_BYTES:
            return ""
        self.body.seek(0)
        return b64encode(self.body.read()).decode()


@routes.get("/upload")
def empty_form() -> Response:
    return _page(SubmittedForm(), wants_token=backend.wants_token())


@routes.post("/upload")
def whole() -> Response:
    """Check a file in one piece, or add the one that was checked."""
    sent = _sent_file()
    try:
        if sent is None:
            raise Unreadable(NO_FILE)
        return _outcome(sent)
    except (Unreadable, BackendAway, Refused) as problem:
        return _again(problem)


def _sent_file() -> _File | None:
    """Return the file of this request; it comes as a file, or as the page of its check kept it."""
    file = request.files.get("file")
    if file is not None and file.filename:
        return _File(file.filename, file.stream)
    if content := request.form.get("content"):
        with suppress(ValueError):
            return _File(request.form.get("name", ""), BytesIO(b64decode(content, validate=True)))
    return None


def _page(form: SubmittedForm, *, wants_token: bool, **result: Any) -> Response:
    """Return the page with the form. result: further values of the template, about a file."""
    return form.response(
        render_template(
            "upload.html",
            filled=form,
            wants_token=wants_token,
            max_file_bytes=settings.max_body_bytes,
            **result,
        )
    )


def _outcome(sent: _File) -> Response:
    """Check the file that was sent, or add it if it is the one that was checked."""
    digest = digest_of(sent.body)
    wants_to_add = request.form.get("action") == "add"
    is_check = not (wants_to_add and request.form.get("checked") == digest)
    on_error, dates = _options(request.form)
    token = token_in(request.form)
    about_file: dict[str, Any] = {
        "name": sent.name,
        "content": sent.kept(),
        "wants_token": bool(token) or backend.wants_token(),
    }
    notice = ANOTHER if is_check and wants_to_add else ""
    try:
        if is_check or (on_error == SKIP and "leave_out" not in request.form):
            outcome = checked(backend, sent.body, dates, token)
            if not is_check and outcome.is_doubtful:
                is_check, notice = True, UNTICKED
        if not is_check:
            key = key_of(sent.body, on_error, dates)
            outcome = added(backend, sent.body, dates, on_error, key, token)
    except DoubtfulDays as doubt:
        return _page(SubmittedForm(status=422), doubt=doubt, **about_file)
    is_refused = bool(outcome.bad) and not outcome.added and not is_check
    return _page(
        SubmittedForm(notice=notice, status=422 if is_refused else 200),
        outcome=outcome,
        is_check=is_check,
        digest=digest,
        dates=dates,
        **about_file,
    )


def _again(problem: Exception) -> Response:
    """Return the form with the problem. Browsers forget the file, so it is chosen again."""
    token = ""
    with suppress(RequestEntityTooLarge):
        token = token_in(request.form)
    if _is_too_long(problem):
        form = SubmittedForm(problems={"file": f"{_too_long(problem)} {ONWARD}"}, status=413)
    elif isinstance(problem, Unreadable):
        where = f"Line {problem.line}: " if problem.line else ""
        form = SubmittedForm(problems={"file": f"{where}{problem}"}, status=422)
    else:
        form = form_after(problem, {}, token, AGAIN)
    return _page(form, wants_token=bool(token) or form.wants_token)


def _is_too_long(problem: Exception) -> bool:
    is_refused = isinstance(problem, Refused) and problem.status == 413
    return is_refused or isinstance(problem, RequestEntityTooLarge)


def _too_long(problem: Exception) -> str:
    if (request.content_length or 0) > settings.max_body_bytes:
        return TOO_LONG.format(size(settings.max_body_bytes))
    reason = reason_of(problem) if isinstance(problem, RequestEntityTooLarge) else problem
    return NOT_IN_ONE_PIECE.format(reason)


# --- slices --------------------------------------------------------------------------------------


@routes.post("/upload.json")
def slice_of_file() -> Response:
    """Take a slice that `upload.js` sends; the answer is its outcome, or a problem."""
    (on_error, dates), token = _options(request.args), _token_in_header()
    with body_file(request.content_length or 0, FORM_BYTES) as body:
        shutil.copyfileobj(request.stream, body)
        key = request.headers.get("Idempotency-Key") or key_of(body, on_error, dates)
        try:
            if request.args.get("action") == "check":
                return json_twin(asdict(checked(backend, body, dates, token)))
            return json_twin(asdict(added(backend, body, dates, on_error, key, token)))
        except (Unreadable, DoubtfulDays, BackendAway, Refused) as problem:
            return _failed(problem)


def _failed(problem: Exception) -> Response:
    if isinstance(problem, Unreadable):
        return problem_twin(422, "Not readable", str(problem), line=problem.line)
    if isinstance(problem, DoubtfulDays):
        members = {"day": problem.day, "meanings": problem.meanings}
        return problem_twin(422, "Days in doubt", str(problem), **members)
    if _is_too_long(problem):
        return problem_twin(413, "Too long", SLICE_TOO_LONG)
    form = form_after(problem, {}, _token_in_header(), NEVER_TWICE)
    detail = form.notice or form.error("TOKEN")
    return form.response(problem_twin(form.status, "Not added", detail))


def _token_in_header() -> str:
    return request.headers.get("Authorization", "").removeprefix("Bearer").strip()


def _options(values: Mapping[str, str]) -> tuple[str, str]:
    """Return what to do about bad rows, and in which order days are written, if that is said."""
    dates = values.get("dates", "")
    on_error = SKIP if values.get("on_error") == SKIP else REJECT
    return on_error, dates if dates in DAY_ORDERS else ""


# --- samples -------------------------------------------------------------------------------------


@routes.get("/upload/sample.csv", defaults={"form": "csv"})
@routes.get("/upload/sample.ndjson", defaults={"form": "ndjson"})
def sample(form: str) -> Response:
    """Return a file that shows the columns, and can be uploaded."""
    kind = "text/csv" if form == "csv" else "application/x-ndjson"
    content = _sample_csv() if form == "csv" else _sample_ndjson()
    response = Response(content, content_type=f"{kind}; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="flights.{form}"'
    return response


def _samples() -> list[dict[str, Any]]:
    names, _, _, examples = zip(*texts("columns"), strict=True)
    return [dict(zip(names, flight, strict=True)) for flight in zip(*examples, strict=True)]


def _sample_csv() -> str:
    samples, text = _samples(), io.StringIO(newline="")
    writer = csv.DictWriter(text, [*samples[0]])
    writer.writeheader()
    writer.writerows(samples)
    return text.getvalue()


def _sample_ndjson() -> str:
    return "".join(json.dumps(flight) + "\n" for flight in _samples())
