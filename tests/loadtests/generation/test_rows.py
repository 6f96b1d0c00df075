"""Raw rows in their file, whole lines or none; and what counts of a closed run."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.generation.rows import (
    Row,
    closed_index,
    closed_window,
    customer_of,
    number_of,
    read_rows,
    row_file,
)

ROW = Row("open-1", 3, "known", 1.5, 1.500125, 1.501, 1.55, 0.04, 200, "4711")
SILENT = replace(ROW, index=4, server_start_s=None, service_s=None, worker="", status=0)


def written(path: Path, *rows: Row) -> None:
    file = row_file(path)
    file.add(*rows)
    file.close()


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "requests.csv"
    written(path, ROW, SILENT)
    assert read_rows(path) == [ROW, SILENT]
    assert path.read_bytes().splitlines()[:2] == [
        b"run,index,kind,intended_s,sent_s,server_start_s,done_s,service_s,status,worker",
        b"open-1,3,known,1.500000,1.500125,1.501000,1.550000,0.040000,200,4711",
    ]


def test_a_row_is_in_the_file_before_the_next_comes(tmp_path: Path) -> None:
    path = tmp_path / "requests.csv"
    file = row_file(path)
    for count in (1, 2):
        file.add(ROW)
        assert len(read_rows(path)) == count
    file.close()


def test_runs_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "requests.csv"
    written(path, ROW)
    size = path.stat().st_size
    other = replace(ROW, run="open-2")
    written(path, other)
    assert read_rows(path) == [ROW, other]
    assert read_rows(path, "open-2") == read_rows(path, "open-2", size) == [other]
    assert path.read_text().count("intended_s") == 1


@given(cut=st.integers(0, 250))
def test_a_file_cut_anywhere_keeps_its_whole_rows(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("rows") / "requests.csv"
    written(path, ROW, SILENT)
    content = path.read_bytes()
    kept = content[: max(0, len(content) - cut)]
    path.write_bytes(kept)
    whole = [ROW, SILENT][: max(0, kept.count(b"\n") - 1)]
    assert read_rows(path) == whole
    written(path, ROW)
    assert read_rows(path) == [*whole, ROW]


def test_a_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("do not lose this")
    with pytest.raises(ValueError, match="has other columns than run,index,kind"):
        row_file(path)
    assert path.read_text() == "do not lose this"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("open-1,x", "number of cells: 2 for 10 columns"),
        ("open-1,x,a,0,0,,0,,200,", "index: .*'x'"),
        ("open-1,0,a,nan,0,,0,,200,", "intended_s: nan is not a finite number"),
        ("open-1,0,a,0,0,,0,inf,200,", "service_s: inf is not a finite number"),
        ("open-1,0,a,0,0,,0,,200,,1", "number of cells: 11 for 10 columns"),
    ],
)
def test_a_line_that_is_no_row_is_named(tmp_path: Path, line: str, why: str) -> None:
    path = tmp_path / "requests.csv"
    written(path, ROW)
    path.write_text(f"{path.read_text()}{line}\r\n")
    with pytest.raises(ValueError, match=f"requests.csv: .* is not a Row, {why}"):
        read_rows(path)


def test_a_file_with_the_line_ends_of_another_program_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "requests.csv"
    written(path, ROW)
    path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n"))
    written(path, SILENT)
    assert read_rows(path) == [ROW, SILENT]


def test_response_times_count_from_the_intended_arrival_if_open_and_from_sending_if_closed() -> (
    None
):
    assert ROW.open_response_s == pytest.approx(0.05)
    assert ROW.closed_response_s == pytest.approx(0.049875)
    assert ROW.lag_s == pytest.approx(0.000125)


@pytest.mark.parametrize(
    ("status", "good"), [(0, False), (200, True), (304, True), (404, False), (503, False)]
)
def test_what_succeeded(status: int, good: bool) -> None:
    assert replace(ROW, status=status).succeeded == good


@given(customer=st.integers(0, 9999), number=st.integers(0, 10**6))
def test_an_index_names_the_customer_and_the_number(customer: int, number: int) -> None:
    row = replace(ROW, index=closed_index(customer, number))
    assert (customer_of(row), number_of(row)) == (customer, number)


def test_there_is_an_end_of_customers() -> None:
    with pytest.raises(ValueError, match="customer is 10000"):
        closed_index(10_000, 0)


# --- what counts of a closed run -----------------------------------------------------------------


def rows_of(customer: int, *done_s: float, status: int = 200) -> list[Row]:
    """A customer's requests, each begun when the one before was answered."""
    sent_s = [0.0, *done_s]
    return [
        Row("r", closed_index(customer, n), "k", at, at, None, done, None, status, "")
        for n, (at, done) in enumerate(zip(sent_s, done_s, strict=False))
    ]


def test_it_ends_with_the_first_customer_to_finish() -> None:
    quick, slow = rows_of(0, 1, 2, 3, 4), rows_of(1, 2, 4.5, 6, 9)
    window = closed_window([*slow, *quick])
    assert (window.customers, window.start_s, window.end_s) == (2, 0.0, 4)
    assert [row.done_s for row in window.rows] == [1, 2, 2, 3, 4]
    assert window.throughput_per_s == 5 / 4
    assert window.mean_response_s == pytest.approx((1 + 1 + 2 + 1 + 1) / 5)


def test_it_begins_when_the_last_has_warmed_up() -> None:
    quick, slow = rows_of(0, 1, 2, 3, 4), rows_of(1, 1.5, 2.5, 3.5, 4.5)
    window = closed_window([*quick, *slow], warm_up=2)
    assert window.start_s == 2.5
    assert [row.done_s for row in window.rows] == [3, 3.5, 4]


def test_failures_are_no_throughput() -> None:
    window = closed_window([*rows_of(0, 1, 2), *rows_of(1, 1, 2, status=503)])
    assert [row.done_s for row in window.rows] == [1, 2]


@pytest.mark.parametrize("warm_up", [2, 3])
def test_nothing_between_warm_up_and_end_is_an_error(warm_up: int) -> None:
    with pytest.raises(ValueError, match=r"before the last was ready|did not do 3 requests"):
        closed_window([*rows_of(0, 1, 2), *rows_of(1, 3, 9)], warm_up)


def test_no_rows_is_an_error() -> None:
    with pytest.raises(ValueError, match="without rows"):
        closed_window([])
