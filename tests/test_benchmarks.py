"""Hold that what benchmarks take from the package is there: nobody runs all of them each day."""

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


def _taken(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield modules of the package and the names that a program takes from them.

    Besides imports these are pairs of strings, by which a benchmark puts a clock around functions.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "weft":
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Tuple) and len(node.elts) > 1:
            first, second = (ast.unparse(part).strip("'") for part in node.elts[:2])
            if first.startswith("weft.") and second.isidentifier():
                yield first, second


def _is_there(module: str, name: str) -> bool:
    if hasattr(importlib.import_module(module), name):
        return True
    return importlib.util.find_spec(f"{module}.{name}") is not None


@pytest.mark.parametrize("path", sorted(BENCHMARKS.rglob("*.py")), ids=lambda path: path.stem)
def test_benchmarks_take_names_that_exist(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    missing = [f"{module}.{name}" for module, name in _taken(tree) if not _is_there(module, name)]
    assert not missing
