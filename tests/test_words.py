"""Counts in words, and the words of others."""

import ast
import re
import shutil
import sys
from pathlib import Path

import pytest

from backend.base import words
from backend.base.words import counted, printable
from backend.cli.commands import main
from tests.api.processes import ran


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 flights"), (1, "1 flight"), (2, "2 flights"), (1500, "1,500 flights")],
)
def test_what_is_counted_stands_in_the_singular_behind_1_alone(count: int, words: str) -> None:
    assert counted(count, "flight") == words


def test_words_that_need_more_than_an_s_are_given() -> None:
    assert counted(1, "byte is", "bytes are") == "1 byte is"
    assert counted(7, "byte is", "bytes are") == "7 bytes are"


def test_what_cannot_be_printed_is_escaped_and_what_is_long_is_cut() -> None:
    assert printable("Zürich — 5 µs\\") == "Zürich — 5 µs\\"
    assert printable("a\n\x1b[2J\r\x9b\u202e\udc80") == r"a\n\x1b[2J\r\x9b\u202e\udc80"
    assert printable("x" * 20, 20) == "x" * 20
    assert printable("x" * 21, 20) == "x" * 19 + "…"


def test_the_command_line_is_called_as_it_runs_in_a_clone(tmp_path: Path) -> None:
    (tmp_path / "backend" / "base").mkdir(parents=True)
    shutil.copy(words.__file__, tmp_path / "backend" / "base")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    program = "from backend.base.words import *; print(COMMAND, pip_install('a.txt'), sep='; ')"
    done = ran(tmp_path / ".venv" / "bin" / "python", "-c", program, cwd=tmp_path)
    assert done.stdout == ".venv/bin/python -m backend; .venv/bin/python -m pip install -r a.txt\n"


def test_an_installed_command_line_names_requirements_from_any_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(words, "_is_installed", True)
    command = words.pip_install("backend/sources/parquet/requirements.txt")
    assert command.startswith(f"sudo {sys.executable} -m pip install -r /")
    assert Path(command.rpartition(" ")[2]).is_file()
    monkeypatch.setattr(words, "_is_installed", False)
    monkeypatch.setattr(words, "_is_image", True)
    assert words.pip_install("a.txt") == "pip install -r a.txt where the image is built"


def test_messages_call_the_command_line_as_it_runs() -> None:
    wrong = re.compile(rf"(?:run|or) `(?:{'|'.join(main.commands)})\b")
    assert [
        (path.name, node.value)
        for path in Path(words.__file__).parents[1].rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if "\n" not in node.value and wrong.search(node.value)
    ] == []


def test_pages_call_the_command_line_as_messages_do() -> None:
    pages = Path(__file__).parent.parent / "frontend"
    texts = [
        path.read_text("utf-8") for path in pages.rglob("*") if path.suffix in {".py", ".html"}
    ]
    wrong = re.compile("python -m backend|python scripts")  # on Debian nothing is called `python`
    assert [text for text in texts if wrong.search(text)] == []
    assert sum("{{ command }}" in text for text in texts) > 5
