"""Shows every error as a page in the common layout, or as a problem at addresses of JSON or CSV."""

from typing import Any

from flask import Flask, Response, current_app, make_response, render_template, request
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from frontend.bodies import reason_of
from frontend.errors import RETRY_AFTER_S, BackendAway, Refused
from frontend.request_guard import ForeignForm
from frontend.twins import json_twin

TWINS = (".json", ".csv")


def install(app: Flask) -> None:
    """Make `app` answer every error in words."""
    for error, handler in (
        (BackendAway, _away),
        (Refused, _refused),
        (ForeignForm, _foreign),
        (RequestEntityTooLarge, _too_long),
        (HTTPException, _of_http),
        (Exception, _unexpected),
    ):
        app.register_error_handler(error, handler)


def _away(error: BackendAway) -> Response:
    return _page(503, "The ledger does not answer", str(error), "away", RETRY_AFTER_S)


def _refused(error: Refused) -> Response:
    if error.status == 404:
        return _page(404, "Not found in the ledger", error.detail, "not_found")
    if error.damaged_blocks:
        return _page(503, "A block is damaged", error.detail, "damaged")
    if error.status == 503:
        wait_s = error.retry_after_s or RETRY_AFTER_S
        return _page(503, "Please try again later", error.detail, "later", wait_s)
    if error.status < 500:
        return _page(error.status, "This request was not accepted", error.detail, "refused")
    return _page(502, "The ledger reports an error", error.detail, "failed")


def _foreign(error: ForeignForm) -> Response:
    detail = f"Nothing was added: {error.description}"
    return _page(error.code, "This form is not from here", detail, "foreign")


def _too_long(error: RequestEntityTooLarge) -> Response:
    return _page(413, "This is too long", f"Nothing was added: {reason_of(error)}", "too_long")


def _of_http(error: HTTPException) -> Response:
    status = error.code or 500
    if status < 400:  # a redirect is an HTTPException, too
        return error.get_response()  # type: ignore[return-value]
    if status == 404:
        is_ours = error.description != type(error).description
        detail = error.description if is_ours else f"no page has the address {request.path}"
        return _page(404, "Page not found", detail or "", "not_found")
    return _page(status, error.name, error.description or "", "refused")


def _unexpected(error: Exception) -> Response:
    current_app.logger.exception("unexpected error at %s", request.full_path, exc_info=error)
    return _page(
        500, "Something went wrong", "The log of the pages' server has the details.", "failed"
    )


def _page(status: int, title: str, detail: str, kind: str, wait_s: int | None = None) -> Response:
    """Return a page about an error. kind: which advice the page gives. wait_s: for Retry-After."""
    if request.path.endswith(TWINS):
        response = problem_twin(status, title, detail)
    else:
        page = render_template("error.html", title=title, detail=detail, kind=kind)
        response = make_response(page, status, {"Cache-Control": "no-store"})
    if wait_s:
        response.headers["Retry-After"] = str(wait_s)
    return response


def problem_twin(status: int, title: str, detail: str, **more: Any) -> Response:
    """Return an error as JSON (RFC 9457). more: further members."""
    problem = {"type": "about:blank", "title": title, "status": status, "detail": detail, **more}
    response = json_twin(problem)
    response.content_type = "application/problem+json"
    response.status_code = status
    response.headers["Cache-Control"] = "no-store"
    return response
