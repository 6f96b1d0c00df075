"""Every type that msgspec reads is built while its module is imported, before there are threads.

msgspec derives how to read a type (its fields, their bounds) at the type's first use, and marks the
type as done before it is. Two threads that use it for the first time at the same moment therefore
crash the process. A `Decoder` that is made while a module is imported is safe, because imports
finish before there are threads and before workers are forked. Types that are only written are
derived for OpenAPI, by one thread.
"""

import ast
import gc
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from inspect import unwrap
from pathlib import Path
from typing import Any

import msgspec
import pytest

from backend.api import schemas
from backend.base.once import once
from tests.api.processes import ROOT, ran

pytestmark = pytest.mark.slow

PARTS = ("backend", "frontend", "loadtests", "scripts")
# What reads a type -> the place of the type among its arguments; None: it has a name, `type=`.
READERS = {"convert": 1, "decode": None, "Decoder": 0, "StateFile": 1}
MAKES_DECODERS = ROOT / "backend" / "base" / "state_file.py"  # of what whoever calls it gives
BUILT_NAME = "StructInfo"  # what msgspec hangs on a Struct once it has been built

LIST_STRUCTS = """
import msgspec, sys
from importlib import import_module
for name in sys.argv[1:]:
    import_module(name)
from backend.api.schemas import schemas
from backend.questions.answer_types import Answer
from tests.test_prebuilt import is_built, structs_below
schemas()  # answers are only written, and described under a lock
for struct in structs_below(msgspec.Struct):
    if not issubclass(struct, Answer):  # the bases of others are described by none
        print(is_built(struct), struct.__module__, struct.__qualname__)
"""


def structs_below(kind: type[Any]) -> Iterator[type[Any]]:
    """Every subclass of `kind`, and theirs."""
    for below in kind.__subclasses__():
        yield below
        yield from structs_below(below)


def is_built(kind: Any) -> bool:
    """Returns whether msgspec can read `kind` without building anything any more."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return any(type(held).__name__ == BUILT_NAME for held in gc.get_referents(kind))
    return "__msgspec_cache__" in vars(kind)


def _name_of(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def types_read_in_functions(tree: ast.Module) -> Iterator[ast.expr]:
    """Types that are handed to msgspec by code that runs after the import of its module."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and (name := _name_of(call.func)) in READERS:
                place = READERS[name]
                yield from (word.value for word in call.keywords if word.arg == "type")
                yield from call.args[place : place + 1] if place is not None else ()


def sources() -> Iterator[tuple[Path, ast.Module]]:
    """Every module of the project that reads with msgspec."""
    for part in PARTS:
        for path in sorted((ROOT / part).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if "msgspec" in text or "StateFile" in text:
                yield path, ast.parse(text, str(path))


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[1:] if parts[0] == "scripts" else parts).removesuffix(".__init__")


def test_every_struct_is_built_when_its_module_has_been_imported() -> None:
    names = [dotted(path) for path, _ in sources()]
    lines = ran(sys.executable, "-c", LIST_STRUCTS, *names).stdout.splitlines()
    structs = [line.split() for line in lines]
    built = {name: is_built == "True" for is_built, _, name in structs}
    assert built["ScrubState"]
    assert built["_Keyed"]
    lazy = [n for _, module, n in structs if not built[n] and not module.startswith("msgspec.")]
    assert not lazy, f"make a Decoder of these beside their definition: {lazy}"


def test_no_function_hands_a_type_to_msgspec() -> None:
    places = [
        f"{path.relative_to(ROOT)}:{given.lineno}: {ast.unparse(given)}"
        for path, tree in sources()
        if path != MAKES_DECODERS
        for given in types_read_in_functions(tree)
    ]
    assert not places, f"make a Decoder of these when the module is imported: {places}"


def test_schemas_are_derived_by_one_thread_however_many_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(schemas, "schemas", once(unwrap(schemas.schemas)))
    derive, derived = msgspec.json.schema_components, list[str]()

    def slowly(*types: Any, **more: Any) -> Any:
        derived.append("begun")
        time.sleep(0.05)
        return derive(*types, **more)

    monkeypatch.setattr(msgspec.json, "schema_components", slowly)
    with ThreadPoolExecutor(4) as pool:
        first, *others = [pool.submit(schemas.schemas) for _ in range(4)]
        assert all(other.result() is first.result() for other in others)
    assert derived == ["begun"]


@pytest.mark.parametrize(
    "call", ["convert(data, Flown)", "json.decode(data, type=Flown)", "json.Decoder(Flown)"]
)
def test_a_type_that_a_function_hands_to_msgspec_is_found(call: str) -> None:
    (given,) = types_read_in_functions(ast.parse(f"def read(data):\n    return msgspec.{call}"))
    assert ast.unparse(given) == "Flown"


def test_a_type_is_built_when_a_decoder_is_made_of_it() -> None:
    struct = msgspec.defstruct("Flown", [("minutes", int)])
    assert not is_built(struct)
    msgspec.json.Decoder(struct)
    assert is_built(struct)
