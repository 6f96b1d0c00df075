"""The twins of pages."""

from frontend.twins import in_csv
from tests.api.test_exporting import STRANGE


def test_no_name_in_csv_looks_like_a_formula() -> None:
    _, *lines, end = in_csv(["name"], [{"name": name} for name in STRANGE]).split("\r\n")
    assert len(lines) == len(STRANGE)
    assert not any(line.lstrip('"').startswith(tuple("=+-@＝")) for line in lines)
    assert not end
