import json
from pathlib import Path

import pytest

from backend.base.errors import InvalidInput
from backend.sources import open_source
from backend.sources.bts import BtsFile
from backend.sources.study import StudyBlocks
from tests.sources.samples import PACKINGS, ROWS, csv_text, flights_of, monthly_text, written

BLOCK = json.dumps({"transactions": ROWS})


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("text", [csv_text(ROWS), monthly_text(ROWS), "\ufeff" + csv_text(ROWS)])
def test_a_bts_file_is_known_by_its_content(tmp_path: Path, packing: str, text: str) -> None:
    source = open_source(written(tmp_path, PACKINGS[packing](text.encode()), "download.json"))
    assert isinstance(source, BtsFile)
    assert (source.label, source.unit) == ("download.json", "line")
    assert len(flights_of(source)) == 3


@pytest.mark.parametrize("text", [BLOCK, "\n " + BLOCK, "\ufeff" + BLOCK])
def test_a_study_file_is_known_by_its_content(tmp_path: Path, text: str) -> None:
    source = open_source(str(written(tmp_path, text, "block.csv")))
    assert isinstance(source, StudyBlocks)
    assert (source.label, source.unit) == ("block.csv", "transaction")
    assert len(flights_of(source)) == 3


def test_a_folder_is_one_of_block_files(tmp_path: Path) -> None:
    written(tmp_path, BLOCK, "block1.json")
    assert len(flights_of(open_source(tmp_path))) == 3


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "is empty"),
        ("\n\n", "does not have any column of a flight"),
        (
            "a letter\nto somebody\n",
            "does not have any column of a flight; its first line is 'a letter'",
        ),
        ("YEAR,ORIGIN\n", "lacks the columns FL_DATE, "),
        (b"\x1f\x8b\x08 and no more", "is damaged or incomplete"),
        (b"BZh91AY&SY\xff\xff\n", "line 1: .* is not UTF-8"),
    ],
)
def test_what_is_neither_is_refused_at_once(
    tmp_path: Path, content: str | bytes, complaint: str
) -> None:
    with pytest.raises(InvalidInput, match=rf"flights\.csv.*{complaint}"):
        open_source(written(tmp_path, content))


def test_what_does_not_exist_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="does not exist"):
        open_source(tmp_path / "flights.csv")
