"""Sentences of reports are made of templates, whose parts are those that experiments ask for."""

import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from loadtests.lab import sentences
from loadtests.lab.sentences import FOLDER, Sentences

ASKED = re.compile(r'(?:SENTENCES|[Ss]entences(?:\("\w+"\))?)(?:\.one)?\(\s*"(\w+)"')


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sentences:
    text = "# items\n{% for item in items %}\n{{ item|ms }} of\n work.\n\n{% endfor %}\n# none\n\n"
    (tmp_path / "some.txt").write_text(text, encoding="utf-8")
    monkeypatch.setattr(sentences, "FOLDER", tmp_path)
    return Sentences("some")


def test_a_part_has_a_paragraph_for_each_item(said: Sentences) -> None:
    assert said("items", items=[0.001, 0.25]) == ["1 ms of work.", "250 ms of work."]
    assert said.one("items", items=[0.001]) == "1 ms of work."
    assert said.one("none") == ""
    with pytest.raises(ValueError, match="items has 2 paragraphs"):
        said.one("items", items=[1, 2])


def test_what_is_not_given_is_an_error_and_not_left_out(said: Sentences) -> None:
    with pytest.raises(UndefinedError, match="items"):
        said("items")


def test_every_part_that_an_experiment_asks_for_is_there() -> None:
    sources = [path.read_text(encoding="utf-8") for path in FOLDER.parent.glob("*.py")]
    asked = {part for source in sources for part in ASKED.findall(source)}
    files = [path.stem for path in FOLDER.glob("*.txt")]
    assert len(files) > 9
    assert asked - {part for name in files for part in Sentences(name).parts} - set(files) == set()
    assert {"findings", "conclusion", "correspondence", "gaps"} <= asked
