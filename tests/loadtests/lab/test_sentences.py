"""Sentences of reports are made of templates, whose parts are those that experiments ask for."""

import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from loadtests.lab import sentences
from loadtests.lab.content import format_time
from loadtests.lab.sentences import FOLDER, Sentences
from loadtests.number_format import format_number

USED_PART = re.compile(r'(?:SENTENCES|[Ss]entences(?:\("\w+"\))?)(?:\.paragraph)?\(\s*"(\w+)"')


@pytest.fixture
def some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sentences:
    text = "# items\n{% for item in items %}\n{{ item|ms }} of\n work.\n\n{% endfor %}\n# none\n\n"
    (tmp_path / "some.txt").write_text(text, encoding="utf-8")
    monkeypatch.setattr(sentences, "FOLDER", tmp_path)
    return Sentences("some")


def test_a_part_has_a_paragraph_for_each_item(some: Sentences) -> None:
    assert some("items", items=[0.001, 0.25]) == ["1 ms of work.", "250 ms of work."]
    assert some.paragraph("items", items=[0.001]) == "1 ms of work."
    assert some.paragraph("none") == ""
    with pytest.raises(ValueError, match="items has 2 paragraphs"):
        some.paragraph("items", items=[1, 2])


def test_a_large_number_has_no_exponent(some: Sentences) -> None:
    assert some("items", items=[12.345]) == ["12,345 ms of work."]
    times = [format_time(seconds) for seconds in (0.0123, 0.9994, 0.9996, 12.34, 1234.5)]
    assert times == ["12.3 ms", "999 ms", "1 s", "12.3 s", "1,234 s"]
    assert format_number(1234.5, "+.3g") == "+1,234"
    assert format_number(1e6, "g") == "1,000,000"  # as K may be


def test_what_is_not_given_is_an_error_and_not_left_out(some: Sentences) -> None:
    with pytest.raises(UndefinedError, match="items"):
        some("items")


def test_every_part_that_an_experiment_asks_for_is_there() -> None:
    sources = [path.read_text(encoding="utf-8") for path in FOLDER.parent.glob("*.py")]
    parts = {part for source in sources for part in USED_PART.findall(source)}
    files = [path.stem for path in FOLDER.glob("*.txt")]
    assert len(files) > 9
    assert parts - {part for name in files for part in Sentences(name).parts} - set(files) == set()
    assert {"findings", "conclusion", "correspondence", "gaps"} <= parts
