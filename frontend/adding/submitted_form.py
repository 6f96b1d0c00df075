"""A form that is shown again because nothing was added: what was typed, and what is wrong."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from flask import Response, make_response

from frontend.errors import RETRY_AFTER_S, BackendAway, Refused
from frontend.filters import duration
from frontend.form_request import Values

AWAY = "The ledger does not answer, so it is unknown whether anything was added."
NEVER_TWICE = "Nothing is added twice."
ASKS_FOR_ONE = "This needs a token. Please enter yours."
KNOWS_ANOTHER = "This token is unknown or was revoked. Please enter another one."


@dataclass(frozen=True, slots=True)
class SubmittedForm:
    """A form with its values and what is to be said about them.

    values: what was typed. notice: text above the form. problems: texts beside fields. status: the
    HTTP status. retry_after_s: when another try may help, if that is known.
    """

    values: Values = field(default_factory=dict)
    notice: str = ""
    problems: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    retry_after_s: int | None = None

    def error(self, name: str) -> str:
        """Return what is wrong with a field; "" if nothing is."""
        return self.problems.get(name, "")

    @property
    def wants_token(self) -> bool:
        """Whether the backend asked for a token, or for another one."""
        return "TOKEN" in self.problems

    def response(self, page: str | Response) -> Response:
        """Return `page` with the status, and with the time for another try."""
        response = make_response(page, self.status)
        if self.retry_after_s:
            response.headers["Retry-After"] = str(self.retry_after_s)
        return response


def form_after(problem: Exception, values: Values, token: str, again: str) -> SubmittedForm:
    """Return the form after a problem that belongs to none of its own fields.

    problem: a BackendAway or Refused. token: the one that came with the form. again: a
    sentence that says how to send the form again.
    """
    match problem:
        case Refused(status=401):
            problem_with_token = KNOWS_ANOTHER if token else ASKS_FOR_ONE
            return SubmittedForm(values, problems={"TOKEN": problem_with_token}, status=401)
        case Refused(status=503, retry_after_s=wait_s):
            wait = f" Another try may help in about {duration(wait_s)}." if wait_s else ""
            notice = f"The ledger cannot take this now: {problem.detail}."
            notice = f"{notice} Nothing was added. {again}{wait}"
            return SubmittedForm(values, notice, status=503, retry_after_s=wait_s)
        case Refused(status=status) if status < 500:
            return SubmittedForm(
                values, f"The ledger does not accept this: {problem}.", status=status
            )
        case Refused():
            return SubmittedForm(
                values, f"The ledger reports an error: {problem}. {again}", status=502
            )
        case BackendAway():
            notice = f"{AWAY} {again} {NEVER_TWICE}"
            return SubmittedForm(values, notice, status=503, retry_after_s=RETRY_AFTER_S)
    raise problem


def token_in(values: Values) -> str:
    """Return the write token that was typed; it is sent to the backend and nowhere else."""
    return values.get("TOKEN", "").strip()
