"""The twins of pages."""

from frontend.twins import in_csv
from tests.api.test_exporting import STRANGE


def test_no_name_in_csv_looks_like_a_formula() -> None:
    """Tabs and line breaks are in no name of the ledger, but may be in results of the lab."""
    starts = "=+-@＝＋－＠\t\r"
    names = [*STRANGE, *(f"{start}1" for start in starts)]
    _, *lines, end = in_csv(["name"], [{"name": name} for name in names]).split("\r\n")
    assert len(lines) == len(names)
    assert not any(line.lstrip('"').startswith(tuple(starts)) for line in lines)
    assert not end
