"""The direction of imports: one table, and every module of the project held against it.

`api -> ledger -> {mempool, index} -> storage -> chain`: a layer imports itself and what its row
allows, and its row allows no more. The chain core is pure besides: no files, no clock, no
threads, no network. So are the models of the performance lab, which are the one thing of it that
the frontend may import.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

COMMON = {"errors", "settings"}

# Layer of `backend` -> the other layers, or single modules of these, that it may import. None: all.
LAYERS: dict[str, set[str] | None] = {
    "errors": set(),
    "file_names": {"errors"},
    "clock": set(),
    "http_requests": {"errors"},
    "lru": set(),
    "version": set(),
    "words": set(),
    "progress": {"words"},
    "chain": {"errors", "words"},
    # limits of the format are limits of settings
    "settings": {"chain.block", "errors"},
    "storage": {"chain", "lru", "words"} | COMMON,
    "receipts": {"storage", "errors"},
    "tokens": {"storage.files"} | COMMON,
    "processes": {"storage.files"} | COMMON,
    "mempool": {"chain", "storage", "clock", "words"} | COMMON,
    "questions": {"chain", "storage.caches", "storage.scan_costs", "errors"},
    "sources": {"chain", "questions.carriers", "errors", "words"},
    "index": {"chain", "storage", "errors", "words"}
    | {"questions.values", "questions.groups", "questions.carriers", "questions.answer_types"},
    "transparency": {
        "chain.merkle",
        "chain.state",
        "storage.block_store",
        "storage.files",
        "errors",
        "words",
    },
    "witness": {
        "chain.merkle",
        "storage.files",
        "transparency",
        "http_requests",
        "errors",
        "words",
    },
    "cheating": {"chain", "storage", "transparency", "witness.witness", "checking.audit"}
    | {"index.database", "sealing.miner", "sources.generated", "sources.source"}
    | COMMON,
    "proofs": {"chain", "storage.caches", "questions.values", "transparency", "errors", "words"},
    "checking": {"chain", "storage", "index", "mempool", "processes.parent_death", "tokens"}
    | {"transparency.checks", "transparency.tree", "receipts", "clock", "words"}
    | COMMON,
    "sealing": {"chain", "storage", "index", "mempool", "sources.source", "checking.scrub"}
    | {"checking.folder_check", "transparency.signing", "processes", "receipts", "clock", "words"}
    | COMMON,
    "cluster": {"chain", "storage", "index", "mempool", "receipts", "checking.scrub", "version"}
    | {"sealing.miner_status", "transparency", "processes", "http_requests"}
    | {"clock", "file_names", "words"}
    | COMMON,
    "backup": {"chain", "storage", "mempool", "sealing.miner", "sealing.miner_status", "tokens"}
    | {"transparency.secret_keys", "transparency.successions", "transparency.succession_checks"}
    | {"checking.audit", "receipts", "file_names", "words"}
    | COMMON,
    "answers": {"chain", "index", "questions", "storage", "errors"},
    "accepting": {"chain", "index.queries", "mempool", "cluster.view", "sealing.trusted_clock"}
    | {"errors"},
    "ledger": {"chain", "storage", "index.queries", "mempool", "checking.scrub_state", "clock"}
    | {"checking.folder_check", "answers", "accepting", "transparency", "proofs", "words"}
    | {"sealing.miner_status", "sealing.trusted_clock", "cluster.view", "cluster.status"}
    | COMMON,
    "api": {"ledger", "accepting", "questions", "chain", "lru", "tokens", "version", "words"}
    | {"cheating.cheats", "proofs.prover"}
    | {
        "transparency.tiles",
        "index.suggestions",
        "mempool.idempotency_keys",
        "sources.posted_batch",
    }
    | {"storage.scan_costs", "processes.shared_numbers"}
    | COMMON,
    "service": {"api", "processes", "sealing.miner_status", "tokens", "witness", "transparency"}
    | {"http_requests", "words"}
    | COMMON,
    "lab": {"chain", "questions.values", "sources.posted_batch", "ledger"} | COMMON,
    "cli_log": {
        "receipts",
        "storage.block_store",
        "transparency",
        "witness",
        "service.witness_server",
    }
    | {"sealing.miner", "cheating.cheats", "words"}
    | COMMON,
    "cli_cluster": {"cluster", "cli_log"} | COMMON,
    "cli": None,
    "__main__": None,
}
SPEAK_HTTP = {"api", "cli", "service", "__main__"}
HTTP_PACKAGES = {"flask", "werkzeug", "gunicorn", "jinja2", "requests"}

# Pure package -> what it may import beside itself and the backend, whose layers stand above.
PURE_IMPORTS = {
    "backend.chain": {
        "abc",
        "array",
        "bisect",
        "collections",
        "dataclasses",
        "enum",
        "functools",
        "hashlib",
        "itertools",
        "json",
        "math",
        "msgspec",
        "operator",
        "re",
        "struct",
        "typing",
        "unicodedata",
        # and from these only what NAMES_ALLOWED says
        "datetime",
        "sys",
    },
    "loadtests.models": {
        "bisect",
        "collections",
        "dataclasses",
        "enum",
        "fractions",
        "functools",
        "heapq",
        "itertools",
        "math",
        "operator",
        "typing",
        "random",
        "statistics",
    },
}
NAMES_ALLOWED = {
    "datetime": {"date"},
    "random": {"Random"},  # its name: whoever calls hands one in
    "statistics": {"NormalDist"},
    "sys": {"byteorder"},
}
IMPURE_CALLS = {"open", "print", "input", "exec", "eval", "compile", "__import__", "breakpoint"}
SEEDED_ELSEWHERE = {"Random"}
IMPURE_METHODS = {"today", "now", "utcnow"}

# Part of the project -> the other parts it never imports, but for what EXCEPT says.
STRANGERS = {
    "backend": {"frontend", "loadtests", "scripts", "tests"},
    "frontend": {"backend", "loadtests", "scripts", "tests"},
    "serving": {"backend", "frontend", "loadtests", "scripts", "tests"},
    "loadtests": {"backend", "frontend", "serving", "tests"},
    "scripts": {"backend", "frontend", "serving", "loadtests", "tests"},
}
EXCEPT = {"frontend": "loadtests.models"}  # a page shows what these models say


@cache
def modules_of(part: str) -> dict[str, ast.Module]:
    """Dotted name -> syntax tree of every module of a top-level folder."""
    found = {}
    for path in sorted((ROOT / part).rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"), str(path))
    return found


@cache
def imports_of(module: str, tree: ast.Module) -> tuple[tuple[str, str], ...]:
    """(module, name) of each import in `tree`, wherever it stands; a whole module has name ""."""
    return tuple(_imports_of(module, tree))


def _imports_of(module: str, tree: ast.Module) -> Iterator[tuple[str, str]]:
    package = module.removesuffix(".__init__").split(".")
    if not module.endswith(".__init__"):
        package = package[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((origin, alias.name) for alias in node.names)


def layer_of(module: str) -> str:
    """`backend.chain.block` -> "chain"; "" for `backend` itself."""
    parts = module.removesuffix(".__init__").split(".")
    return parts[1] if len(parts) > 1 else ""


def wrong_layers(module: str, tree: ast.Module) -> list[str]:
    """What `tree`, a module of the backend, may not import."""
    layer = layer_of(module)
    if layer and layer not in LAYERS:
        return [f"{module}: no row in LAYERS for {layer}"]
    allowed = LAYERS[layer] if layer else set()
    problems = []
    for origin, name in imports_of(module, tree):
        top = origin.split(".")[0]
        if top in HTTP_PACKAGES and layer not in SPEAK_HTTP:
            problems.append(f"{module}: {origin}")
        if top == "backend" and allowed is not None:
            granted = any(is_by(grant, origin, name) for grant in {*allowed, layer})
            if not granted:
                problems.append(f"{module}: {origin} {name}".rstrip())
    return problems


def is_by(grant: str, origin: str, name: str) -> bool:
    """Whether a grant allows this import: it names the layer, or the module in it."""
    return is_within(f"{origin}.{name}".rstrip("."), f"backend.{grant}")


def unused_grants(modules: dict[str, ast.Module], table: dict[str, set[str]]) -> set[str]:
    """What `table` allows, as `layer -> grant`, and no module of the layer makes use of."""
    unused = {f"{layer} -> {grant}" for layer, grants in table.items() for grant in grants}
    for module, tree in modules.items():
        layer = layer_of(module)
        for origin, name in imports_of(module, tree):
            unused -= {f"{layer} -> {g}" for g in table.get(layer, ()) if is_by(g, origin, name)}
    return unused


def imported_modules(modules: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Module -> those of the same part that it imports, at run time or for its types alone."""
    names = {module.removesuffix(".__init__") for module in modules}
    found: dict[str, set[str]] = {}
    for module, tree in modules.items():
        wanted = {(origin, f"{origin}.{name}") for origin, name in imports_of(module, tree)}
        targets = {inner if inner in names else origin for origin, inner in wanted} & names
        own = module.removesuffix(".__init__")
        found[own] = targets - {own}
    return found


def is_within(name: str, package: str) -> bool:
    """Whether the dotted `name` is `package` or lies in it."""
    return name == package or name.startswith(f"{package}.")


def impurities(module: str, tree: ast.Module) -> list[str]:
    """What makes a module of a pure package impure."""
    package = next(pure for pure in PURE_IMPORTS if is_within(module, pure))
    own = "backend" if package.startswith("backend") else package  # LAYERS sees to the backend
    problems = []
    for origin, name in imports_of(module, tree):
        top = origin.split(".")[0]
        foreign = not is_within(f"{origin}.{name}", own) and top not in PURE_IMPORTS[package]
        if foreign or (name and name not in NAMES_ALLOWED.get(top, {name})):
            problems.append(f"{module}: {origin} {name}".rstrip())
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=called)) if called in IMPURE_CALLS | SEEDED_ELSEWHERE:
                problems.append(f"{module}: {called}()")
            case ast.Attribute(value=ast.Name(id=top), attr=name) if name not in NAMES_ALLOWED.get(
                top, {name}
            ):
                problems.append(f"{module}: {top}.{name}")
            case ast.Call(func=ast.Attribute(attr=called)) if called in IMPURE_METHODS:
                problems.append(f"{module}: .{called}()")
    return problems


def strangers(module: str, tree: ast.Module) -> list[str]:
    """What a part of the project imports of another that it may not know."""
    part = module.partition(".")[0]
    return [
        f"{module}: {origin} {name}".rstrip()
        for origin, name in imports_of(module, tree)
        if origin.split(".")[0] in STRANGERS[part]
        and not (part in EXCEPT and is_within(f"{origin}.{name}".rstrip("."), EXCEPT[part]))
    ]


def test_the_backend_imports_in_one_direction() -> None:
    modules = modules_of("backend")
    assert {"backend.errors", "backend.chain.rules", "backend.chain.state"} <= modules.keys()
    assert [problem for name in modules for problem in wrong_layers(name, modules[name])] == []


def test_every_row_of_the_table_has_its_modules() -> None:
    assert {layer_of(name) for name in modules_of("backend")} == {"", *LAYERS}


def test_every_grant_of_the_table_is_used() -> None:
    rows = {layer: allowed for layer, allowed in LAYERS.items() if allowed is not None}
    assert unused_grants(modules_of("backend"), rows) == set()


def test_a_grant_that_nobody_uses_is_found() -> None:
    source = (
        "import backend.chain.block\nfrom backend import errors\nfrom ..settings import Settings\n"
        "from backend.storage import files"
    )
    table = {"ledger": {"chain", "errors", "settings", "storage.files", "storage.codec", "index"}}
    unused = unused_grants({"backend.ledger.one": ast.parse(source)}, table)
    assert unused == {"ledger -> storage.codec", "ledger -> index"}


@pytest.mark.parametrize("part", STRANGERS)
def test_no_modules_import_each_other_in_a_circle(part: str) -> None:
    TopologicalSorter(imported_modules(modules_of(part))).prepare()


def test_a_circle_of_modules_is_found() -> None:
    one = ast.parse("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from part import two")
    modules = {
        "part.__init__": ast.parse(""),
        "part.one": one,
        "part.two": ast.parse("import part.one"),
    }
    with pytest.raises(CycleError):
        TopologicalSorter(imported_modules(modules)).prepare()


def test_a_web_worker_loads_no_code_that_writes_blocks() -> None:
    script = "import sys, backend.service.web_server; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True
    )
    loaded = {name for name in done.stdout.split() if is_within(name, "backend")}
    assert {"backend.api", "backend.ledger", "backend.service"} <= loaded
    assert {layer_of(name) for name in loaded} & {"backup", "cli"} == set()
    writers = {
        "signing",
        "log_key",
        "miner",
        "block_builder",
        "importer",
        "audit",
        "scrub",
        "block_writer",
    }
    assert {name.rpartition(".")[2] for name in loaded} & writers == set()


@pytest.mark.parametrize("package", PURE_IMPORTS)
def test_the_chain_core_and_the_models_are_pure(package: str) -> None:
    modules = modules_of(package.replace(".", "/"))
    assert len(modules) >= 10
    assert [problem for name in modules for problem in impurities(name, modules[name])] == []


@pytest.mark.parametrize("part", STRANGERS)
def test_parts_that_talk_http_do_not_import_each_other(part: str) -> None:
    modules = modules_of(part)
    assert [problem for name in modules for problem in strangers(name, modules[name])] == []


def test_the_table_allows_no_circle() -> None:
    placed: set[str] = set()
    rows = {
        layer: {grant.partition(".")[0] for grant in allowed}
        for layer, allowed in LAYERS.items()
        if allowed is not None
    }
    while ready := [r for r in rows if r not in placed and rows[r] <= placed]:
        placed |= set(ready)
    assert placed == rows.keys()


WRONG = [
    ("backend.chain.block", "from backend.storage import files"),
    ("backend.chain.block", "from backend import storage"),
    ("backend.chain.block", "from ..storage import files"),
    ("backend.chain.block", "import backend.ledger"),
    ("backend.chain.__init__", "from .. import settings"),
    ("backend.chain.block", "def late():\n    from backend.sealing.miner import seal"),
    ("backend.storage.files", "import flask"),
    ("backend.storage.files", "from backend.index import queries"),
    ("backend.index.queries", "from backend.ledger import Ledger"),
    ("backend.mempool", "from backend.sealing.miner import Miner"),
    ("backend.sealing.miner", "from flask import g"),
    ("backend.sources.bts", "from backend.settings import Settings"),
    ("backend.ledger", "from backend.api import app"),
    ("backend.ledger", "import flask"),
    ("backend.api.blocks", "from backend.storage.files import read"),
    ("backend.api.blocks", "from ..index import queries"),
    ("backend.__init__", "from backend.ledger import Ledger"),
    ("backend.errors", "from backend.chain import block"),
    ("backend.novelty", "import json"),
]


@pytest.mark.parametrize(("module", "source"), WRONG)
def test_an_import_against_the_direction_is_found(module: str, source: str) -> None:
    assert len(wrong_layers(module, ast.parse(source))) == 1


RIGHT = [
    ("backend.chain.rules", "from backend.errors import RuleViolation"),
    ("backend.chain.state", "from backend.chain import merkle\nfrom . import block"),
    ("backend.chain.__init__", "from . import block"),
    ("backend.storage.files", "import os\nfrom ..chain.block import Header"),
    ("backend.api.__init__", "import flask\nfrom backend import ledger, settings"),
    ("backend.cli", "import flask, backend.ledger\nfrom backend.storage import files"),
    ("backend.service.supervisor", "import gunicorn.app.base, werkzeug\nfrom backend import api"),
]


@pytest.mark.parametrize(("module", "source"), RIGHT)
def test_an_import_along_the_direction_is_allowed(module: str, source: str) -> None:
    assert wrong_layers(module, ast.parse(source)) == []


IMPURE = [
    "import os",
    "import time",
    "from pathlib import Path",
    "import io",
    "import threading",
    "import sqlite3",
    "import socket",
    "import flask",
    "import random",
    "import importlib",
    "from datetime import datetime",
    "import datetime\ndatetime.datetime",
    "import sys\nsys.argv",
    "from sys import argv",
    "open('file')",
    "print(1)",
    "date.today()",
]
IMPURE_MODELS = [
    "import os",
    "import time",
    "import threading",
    "import json",
    "import numpy",
    "import loadtests.wrk",
    "from loadtests import wrk",
    "from loadtests.figures import table",
    "from .. import chains",
    "from backend.errors import NotFound",
    "import random\nrandom.random",
    "from random import choice",
    "from random import Random\nRandom()",
    "from statistics import mean",
    "open('file')",
]
PURE_MODELS = [
    "from random import Random\ndef draw(rng: Random) -> float: return rng.random()",
    "from statistics import NormalDist",
    "from loadtests.models import domain",
    "from loadtests.models.domain import count\nfrom . import laws",
    "import math, heapq",
]


@pytest.mark.parametrize("source", IMPURE)
def test_an_impurity_of_the_core_is_found(source: str) -> None:
    assert len(impurities("backend.chain.block", ast.parse(source))) == 1


@pytest.mark.parametrize("source", IMPURE_MODELS)
def test_an_impurity_of_the_models_is_found(source: str) -> None:
    assert len(impurities("loadtests.models.mva", ast.parse(source))) == 1


@pytest.mark.parametrize("source", PURE_MODELS)
def test_what_the_models_need_is_pure(source: str) -> None:
    assert impurities("loadtests.models.mva", ast.parse(source)) == []


def test_a_stranger_is_found() -> None:
    assert strangers("frontend.app", ast.parse("from backend.errors import NotFound"))
    assert strangers("loadtests.run", ast.parse("import frontend"))
    assert not strangers("loadtests.run", ast.parse("import requests\nimport loadtests.models"))


@pytest.mark.parametrize(
    ("module", "source", "strange"),
    [
        ("frontend.models", "from loadtests.models import mva", 0),
        ("frontend.models", "from loadtests import models", 0),
        ("frontend.models", "import loadtests.models.mva", 0),
        ("frontend.models", "import loadtests", 1),
        ("frontend.models", "from loadtests import wrk", 1),
        ("frontend.models", "from loadtests.modelsheet import mva", 1),
        ("backend.ledger", "from loadtests.models import mva", 1),
        ("scripts.report", "from loadtests.models import mva", 1),
    ],
)
def test_only_the_frontend_may_import_the_models_and_nothing_else_of_loadtests(
    module: str, source: str, strange: int
) -> None:
    assert len(strangers(module, ast.parse(source))) == strange
