"""Makes the page of a form, with the answer to it if it has one."""

from collections.abc import Callable
from typing import Any, TypeVar

from flask import render_template, request

from frontend.context import coverage
from frontend.evidence import Citation, uncited
from frontend.form_request import FormRequest, Values, filled_in, submit
from frontend.question import AS_OF
from frontend.search.fields import require_clear_days

Answer = TypeVar("Answer")


def answer_page(
    template: str,
    ask: Callable[[dict[str, str]], Answer],
    values: Values | None = None,
    *,
    may_be_empty: bool = False,
    **more: Any,
) -> tuple[str, int]:
    """Return a page and its status; the template has `known` and `form_request`, with its answer.

    ask: as for `submit`; an empty ledger is asked nothing, nor is any for days that may be others.
    values: of the request if not given. more: further values of the template.
    """
    values = request.args if values is None else values
    known, form = coverage.at(request.args.get(AS_OF)), FormRequest[Answer](filled_in(values))

    def ask_clearly(given: dict[str, str]) -> Answer:
        require_clear_days(given, known)
        return ask(given)

    if known.first_date:
        form = submit(values, ask_clearly, may_be_empty=may_be_empty)
    return render_template(template, known=known, form_request=form, **more), form.status


def cited_page(
    template: str, ask: Callable[[dict[str, str]], Answer], **more: Any
) -> tuple[str, int]:
    """Return what `answer_page` does, of an answer with `evidence`; with its `citation`, too."""
    citation = Citation(request.args)
    ask_again = citation.or_newest(ask)
    return answer_page(template, ask_again, uncited(request.args), citation=citation, **more)
