"""`/upload`: sends a file of flights to the ledger, which checks it, and then adds it.

Browsers send it in one piece, `upload.js` in parts to `/upload.json`, however long it is. The page
`/upload/ID` says how far it is, then what is in it, with a button that adds it.

No file is in memory as a whole: it comes as one on the disk (see `bodies`), and is sent on from it.
"""

import json
from contextlib import suppress

from flask import Blueprint, Response, current_app, redirect, render_template, request
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.wrappers import Response as AnyResponse

from frontend.adding.submitted_form import SubmittedForm, form_after, token_in
from frontend.adding.uploads import UploadedFile, sent, settled
from frontend.bodies import NO_ROOM, PART_BYTES, reason_of
from frontend.context import backend, settings
from frontend.errors import RETRY_AFTER_S, BackendAway, Refused
from frontend.field_labels import TEXTS
from frontend.filters import size
from frontend.pages.error_pages import problem_twin
from frontend.settings import COMMAND
from frontend.twins import in_csv, json_twin

ADD = "add"
NO_FILE = "Please choose a file."
EMPTY = "It is empty; download it again."
UNTICKED = "Nothing was added, because many rows are bad and the box below was not ticked."
AGAIN = "Please choose the file again."
KEPT = "What was sent is kept."
TOO_LONG = "The file is longer than {}, the most that can be sent in one piece; nothing was added."
NOT_IN_ONE_PIECE = "This cannot be taken in one piece: {}. Nothing was added."
ONWARD = (
    "With JavaScript a file is sent in parts, however long it is. You can also cut it into several "
    f"files, each with the header, or run on the ledger's machine: {COMMAND} import FILE"
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


def part_bytes() -> int:
    """Return how much of a file is sent at once."""
    return min(PART_BYTES, settings.max_body_bytes)


# --- sending -------------------------------------------------------------------------------------


@routes.get("/upload")
def empty_form() -> Response:
    return _form(SubmittedForm(), wants_token=backend.wants_token())


@routes.post("/upload")
def whole() -> AnyResponse:
    """Take a file in one piece, and have it checked: 303 to its page."""
    file, token = request.files.get("file"), token_in(request.form)
    if file is None or not file.filename:
        return _again(Refused({"detail": NO_FILE}, 422))
    if not file.stream.read(1):
        return _again(Refused({"detail": EMPTY}, 422))
    try:
        import_id = sent(backend, file.stream, file.filename, part_bytes(), token)
    except (BackendAway, Refused) as problem:
        return _again(problem)
    with suppress(BackendAway, Refused):  # as while another is checked: its page has a button
        backend.check_import(import_id, "", token)
        settled(backend, import_id)
    return redirect(f"/upload/{import_id}", 303)


@routes.post("/upload.json")
def part() -> Response:
    """Begin a file that `upload.js` sends, take a part of it, remove it, or have it checked."""
    given, token = request.args, _token_in_header()
    try:
        if "NAME" in given:
            return json_twin(backend.begin_import(given["NAME"], given.get("SIZE", ""), token))
        import_id = given.get("IMPORT_ID", "")
        if "OFFSET" in given:
            body = request.get_data()
            return json_twin(backend.send_part(import_id, given["OFFSET"], body, token))
        if "remove" in given:
            backend.remove_import(import_id, token)
            return json_twin({})
        return json_twin(backend.check_import(import_id, "", token))
    except (BackendAway, Refused) as problem:
        return _failed(problem)


def _form(form: SubmittedForm, *, wants_token: bool) -> Response:
    return form.response(
        render_template(
            "upload.html",
            filled=form,
            wants_token=wants_token,
            max_file_bytes=settings.max_body_bytes,
            part_bytes=part_bytes(),
        )
    )


def _again(problem: Exception) -> Response:
    """Return the form with the problem. Browsers forget the file, so it is chosen again."""
    token = ""
    with suppress(RequestEntityTooLarge):
        token = token_in(request.form)
    if isinstance(problem, RequestEntityTooLarge):
        form = SubmittedForm(problems={"file": f"{_too_long(problem)} {ONWARD}"}, status=413)
    elif isinstance(problem, Refused) and problem.status == 422:
        form = SubmittedForm(problems={"file": problem.detail}, status=422)
    else:
        form = form_after(problem, {}, token, AGAIN)
    return _form(form, wants_token=bool(token) or form.wants_token)


def _too_long(problem: RequestEntityTooLarge) -> str:
    if (request.content_length or 0) > settings.max_body_bytes:
        return TOO_LONG.format(size(settings.max_body_bytes))
    return NOT_IN_ONE_PIECE.format(reason_of(problem))


def _failed(problem: Exception) -> Response:
    if isinstance(problem, RequestEntityTooLarge):
        return problem_twin(413, "Too long", reason_of(problem))
    form = form_after(problem, {}, _token_in_header(), KEPT)
    return form.response(problem_twin(form.status, "Not added", form.notice or form.error("TOKEN")))


def _token_in_header() -> str:
    return request.headers.get("Authorization", "").removeprefix("Bearer").strip()


# --- a file that was sent ------------------------------------------------------------------------


@routes.get("/upload/<import_id>")
def page(import_id: str) -> Response:
    file = UploadedFile(backend.sent_file(import_id))
    return _page(file, SubmittedForm(status=422 if file.answer["state"] == "refused" else 200))


@routes.get("/upload/<import_id>/state")
def state(import_id: str) -> str:
    return _state(UploadedFile(backend.sent_file(import_id)), SubmittedForm())


@routes.post("/upload/<import_id>")
def go_on(import_id: str) -> AnyResponse:
    """Have the file checked again, or added: 303 to its page."""
    values, token = request.form, token_in(request.form)
    file = UploadedFile(backend.sent_file(import_id))
    is_checked = file.answer["state"] == "checked"
    try:
        if values.get("action") != ADD:
            backend.check_import(import_id, values.get("dates", ""), token)
        elif is_checked and file.is_doubtful and "leave_out" not in values:
            return _page(file, SubmittedForm(notice=UNTICKED, status=422))
        else:
            backend.add_import(import_id, values.get("on_error", ""), token)
    except (BackendAway, Refused) as problem:
        return _page(file, form_after(problem, {}, token, "Please send the form again."))
    settled(backend, import_id)
    return redirect(f"/upload/{import_id}", 303)


def _page(file: UploadedFile, form: SubmittedForm) -> Response:
    return form.response(
        render_template("uploaded.html", file=file, state=_state(file, form), filled=form)
    )


def _state(file: UploadedFile, form: SubmittedForm) -> str:
    wants_token = form.wants_token or (not file.is_at_work and backend.wants_token())
    return render_template("file_state.html", file=file, filled=form, wants_token=wants_token)


# --- samples -------------------------------------------------------------------------------------


@routes.get("/upload/sample.<any(csv, ndjson):form>")
def sample(form: str) -> Response:
    """Return a file that shows the columns, and can be uploaded."""
    names, _, _, examples = zip(*TEXTS["columns"], strict=True)
    rows = [[None if cell == "" else cell for cell in row] for row in zip(*examples, strict=True)]
    flights = [dict(zip(names, row, strict=True)) for row in rows]
    lines = "".join(json.dumps(flight) + "\n" for flight in flights)
    kind, content = (
        ("text/csv", in_csv(names, flights)) if form == "csv" else ("application/x-ndjson", lines)
    )
    response = Response(content, content_type=f"{kind}; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="flights.{form}"'
    return response
