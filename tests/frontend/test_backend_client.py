"""Asking the backend: what is no answer of it, is said."""

import pytest

from frontend.backend_client import Backend
from frontend.errors import BackendAway
from tests.frontend.fake_backend import answering


@pytest.mark.parametrize("answer", ["text", ["a", "list"], 7, None, {"half": "\ud800"}])
def test_what_is_no_object_is_no_answer_of_a_backend(answer: object) -> None:
    with (
        answering(lambda path, parameters: answer) as url,
        pytest.raises(BackendAway, match="is not JSON"),
    ):
        Backend(url).get("/tip")
