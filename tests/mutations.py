"""Breaks the code in many places, one at a time, and lists the breaks that no test notices.

    python -m tests.mutations [--count N] [--seed N] [FOLDER...]

Each break changes one expression of a module below FOLDER (`backend`, `frontend`) in a copy of the
project: a comparison, a constant, a condition, an arithmetic sign, or a statement that is left out.
Then the tests of that module's package run until the first failure; if there is none, all quick
tests and those that ask every question. The exit status is 1 if a break was not noticed. Such a
break is either a hole in the tests, or code that does nothing.
"""

import argparse
import ast
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent
LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", ".mypy_cache", "chain_data", "results")
LONGEST_S = 600.0
ASKS_EVERYTHING = "tests/index/test_answers.py"

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
SIGNS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
}


@dataclass(frozen=True, slots=True)
class Break:
    """One change of one module. line: where the changed expression stands, from 1."""

    path: Path
    line: int
    before: str
    after: str
    source: str


def breaks_of(path: Path) -> Iterator[Break]:
    """Every change that can be made to the module at `path`."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        for changed in changes(node):
            before = ast.get_source_segment(source, node) or ""
            after = ast.unparse(changed)
            if isinstance(node, ast.expr | ast.stmt) and before != after:
                text = replaced(source, node, after)
                yield Break(path, node.lineno, before, after, text)


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in place of a node."""
    match node:
        case ast.Compare(left, [operator], others) if type(operator) in COMPARISONS:
            yield ast.Compare(left, [COMPARISONS[type(operator)]()], others)
        case ast.BinOp(left, operator, right) if type(operator) in SIGNS and not _is_text(node):
            yield ast.BinOp(left, SIGNS[type(operator)](), right)
        case ast.BoolOp(ast.And(), values):
            yield ast.BoolOp(ast.Or(), values)
        case ast.BoolOp(ast.Or(), values):
            yield ast.BoolOp(ast.And(), values)
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() as value):
            yield ast.Constant(value + 1)
        case ast.Expr(ast.Call()):
            yield ast.Pass()


def _is_text(node: ast.BinOp) -> bool:
    return any(isinstance(part, ast.JoinedStr | ast.List) for part in (node.left, node.right))


def replaced(source: str, node: ast.expr | ast.stmt, text: str) -> str:
    """`source` with `text`, in brackets if it is an expression, in place of a node."""
    lines = source.encode().splitlines(keepends=True)
    assert node.end_lineno is not None
    start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: node.end_lineno - 1])) + (node.end_col_offset or 0)
    data = source.encode()
    new = f"({text})" if isinstance(node, ast.expr) else text
    return (data[:start] + new.encode() + data[end:]).decode()


def tests_for(path: Path) -> list[str]:
    """The tests of the package of a module."""
    parts = path.relative_to(ROOT).parts
    own = Path("tests", *parts[parts[0] == "backend" : -1])
    while not (ROOT / own).is_dir():
        own = own.parent
    return [str(own)] if own != Path("tests") else sorted(map(str, own.glob("test_*.py")))


def is_noticed(broken: Break, folder: Path) -> bool:
    """Whether a test fails, or does not end, in a copy of the project with this break."""
    target = folder / broken.path.relative_to(ROOT)
    kept = target.read_bytes()
    target.write_text(broken.source, encoding="utf-8")
    try:
        return fails(folder, tests_for(broken.path)) or fails(folder, ["tests", ASKS_EVERYTHING])
    finally:
        target.write_bytes(kept)


def fails(folder: Path, tests: list[str]) -> bool:
    """Whether the quick ones of some tests fail in `folder`, or do not end."""
    options = ("-x", "-q", "-n2", "-p", "no:cacheprovider", "--quick")
    command = [sys.executable, "-m", "pytest", *options, *tests]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, timeout=LONGEST_S, check=False
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def main() -> int:
    """Break, test, report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="*", default=["backend", "frontend"])
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    paths = [path for folder in given.folders for path in sorted((ROOT / folder).rglob("*.py"))]
    possible = [broken for path in paths for broken in breaks_of(path)]
    chosen = random.Random(given.seed).sample(possible, min(given.count, len(possible)))
    print(f"{len(chosen)} of {len(possible)} breaks, seed {given.seed}", flush=True)
    missed = 0
    with TemporaryDirectory() as copy:
        folder = Path(copy, "project")
        shutil.copytree(ROOT, folder, ignore=LEFT_OUT)
        for broken in chosen:
            noticed = is_noticed(broken, folder)
            missed += not noticed
            place = f"{broken.path.relative_to(ROOT)}:{broken.line}"
            word = "noticed" if noticed else "NOT NOTICED"
            print(f"{word}: {place}: {broken.before!r} -> {broken.after!r}", flush=True)
    print(f"{missed} of {len(chosen)} were not noticed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
