"""A break whose piece of code has changed would find no hole in the tests."""

from tests.cases import each_of
from tests.mutations import BREAKS, ROOT, break_of


@each_of("line", BREAKS.strip().splitlines())
def test_every_break_fits_the_code(line: str) -> None:
    assert break_of(line, ROOT) is not None
