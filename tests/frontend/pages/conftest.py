"""Pages over a year of made-up answers, besides those of the folder above."""

from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient

from frontend.app import create_app
from frontend.settings import Settings
from tests.frontend.fake_backend import answering
from tests.frontend.years import Year


@pytest.fixture
def year() -> Year:
    return Year()


@pytest.fixture
def year_pages(year: Year) -> Iterator[FlaskClient]:
    with answering(year) as url:
        yield create_app(Settings(backend_url=url)).test_client()
