"""Pages over a year of made-up answers, besides those of the folder above."""

from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient

from tests.frontend.fake_backend import answering
from tests.frontend.pages.reading import pages_over
from tests.frontend.years import Year


@pytest.fixture
def year() -> Year:
    return Year()


@pytest.fixture
def year_pages(year: Year) -> Iterator[FlaskClient]:
    with answering(year) as url:
        yield pages_over(url)
