"""Turns a form into a question and its page, and a refusal into a message beside its field.

Forms are sent with GET and have the parameter names of the backend's REST interface, so that a
page and the answer at the backend have the same address.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from flask import render_template, request

from frontend.context import coverage
from frontend.errors import Refused
from frontend.evidence import Citation, uncited
from frontend.filters import sentence
from frontend.question import AS_OF, DAY, DAYS, Question
from frontend.search.fields import DAYS_FIELD, require_clear_days

Values = Mapping[str, str]
Answer = TypeVar("Answer")

BAD_INPUT = {400, 422}
NO_CARRIER = "Must be the name, code or number of one carrier of this ledger."
REWORDED = {  # beginning of a message of the backend -> what is said beside the field
    "is missing": "Please fill this in.",
    "is after FINAL_DATE": "The first day must not be after the last day.",
    "must be a whole number; GET": NO_CARRIER,
    "must be between 1 and 99999; GET": NO_CARRIER,
    "must be a date": (
        "Not understood; write it as in 2013-07-31, 31 July 2013, July 2013 or 1 to 7 July 2013."
    ),
}


@dataclass(frozen=True)
class FormRequest(Generic[Answer]):
    """A form that was sent. answer: None if no field was filled in, or if it was `refused`."""

    values: Values = field(default_factory=dict)
    answer: Answer | None = None
    refused: Refused | None = None

    @property
    def status(self) -> int:
        return self.refused.status if self.refused else 200

    @property
    def days(self) -> str:
        """The days as they were typed."""
        return " to ".join(self.values[name] for name in (DAY, *DAYS) if name in self.values)

    @property
    def wrong(self) -> list[str]:
        """The names of the fields at fault; one field has both ends of an interval."""
        fields = self.refused.fields if self.refused else []
        return list(dict.fromkeys(DAYS_FIELD if name in DAYS else name for name in fields))

    def beside(
        self, question: Question | None, fields: Collection[str]
    ) -> list[tuple[str, str, str]]:
        """Return what `Question.beside` does; of a refused one, what is typed and not wrong."""
        typed = {n: text for n, text in self.values.items() if n not in {*DAYS, *self.wrong}}
        return (question or Question("", typed)).beside(fields, coverage.last_known())

    def error(self, name: str) -> str:
        """Return what is wrong with a field, as a sentence; "" if nothing is."""
        names = (name, *DAYS) if name == DAYS_FIELD else (name,)
        reasons = (self.refused.message_for(name) for name in names) if self.refused else ()
        reason = next(filter(None, reasons), "")
        reworded = (text for start, text in REWORDED.items() if reason.startswith(start))
        return next(reworded, sentence(reason) if reason else "")


def filled_in(values: Values) -> dict[str, str]:
    """Return the fields of a form that are not empty, without spaces around.

    Browsers send all fields.
    """
    return {name: text.strip() for name, text in values.items() if text.strip()}


def submit(
    values: Values, answer: Callable[[dict[str, str]], Answer], *, may_be_empty: bool = False
) -> FormRequest[Answer]:
    """Return the form with the answer to the fields that are filled in.

    may_be_empty: whether a form without any is answered, too. Raises BackendAway, and Refused for
    everything but bad input.
    """
    given = filled_in(values)
    if not (given or may_be_empty):
        return FormRequest()
    try:
        return FormRequest(given, answer(given))
    except Refused as error:
        if error.status not in BAD_INPUT:
            raise
        return FormRequest(given, None, error)


# --- pages of forms -----------------------------------------------------------------------------


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
