"""Hold the layer rule: read every import of the package and compare it with the table below.

Imports inside functions and under `TYPE_CHECKING` count like any other, and so do calls of
`import_module` and `__import__` with a literal name: a hidden import is still a dependency.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "weft"

# A layer imports itself and the layers to its left.
CHAIN = (
    "core",
    "ops",
    "graph",
    "autodiff",
    "passes",
    "lower",
    "plan",  # kernel programs for a device: products, fetching, memory layout, threads
    "backends",
    "compiler",
    "eager",  # kernels for single operations: the compiler's first user
    "capture",
    "train",
    "cli",
)
# Siblings stand above autodiff; they see one another only through the package's `__init__`.
SIBLINGS = ("nn", "optim", "data", "io", "viz")
SIBLINGS_STAND_ON = "autodiff"
# The compiler knows graphs, not networks: of the chain, only these may use siblings and doors.
MAY_USE_SIBLINGS = ("capture", "train", "cli")

# Modules directly under the package that are no layer themselves, and the highest layer each may
# import. They are doors for users; the layers below `MAY_USE_SIBLINGS` never go through them.
DOORS = {"extend": "cli", "linalg": "autodiff", "__main__": "cli"}

# They wire the layers together, may import all of them, and are imported by none.
WIRING = ("__init__", "injections")

FORBIDDEN_EVERYWHERE = ("scipy", "torch", "jax", "tensorflow")
MAY_USE_LLVMLITE = ("backends", "compiler")
HARD_DEPENDENCIES = ("numpy", "llvmlite")


@dataclass(frozen=True)
class Import:
    """One imported name: `from weft.ops import exp` has target `weft.ops` and name `exp`."""

    target: str
    name: str | None
    line: int
    at_import_time: bool


@dataclass
class ImportCollector(ast.NodeVisitor):
    """Collect the imports of one module, resolving relative ones against its package."""

    package: tuple[str, ...]
    found: list[Import] = field(default_factory=list)
    function_depth: int = 0

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(alias.name, None, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        target = self._absolute(node.level, node.module or "")
        for alias in node.names:
            self._add(target, alias.name, node.lineno)

    def visit_Call(self, node: ast.Call) -> None:
        called = getattr(node.func, "attr", getattr(node.func, "id", None))
        if called in {"import_module", "__import__"} and node.args:
            argument = node.args[0]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                name = argument.value.lstrip(".")
                level = len(argument.value) - len(name)
                self._add(self._absolute(level, name), None, node.lineno)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._visit_deferred(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_deferred(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._visit_deferred(node)

    def _visit_deferred(self, node: ast.AST) -> None:
        self.function_depth += 1
        self.generic_visit(node)
        self.function_depth -= 1

    def _absolute(self, level: int, name: str) -> str:
        base = self.package[: max(0, len(self.package) - level + 1)] if level else ()
        return ".".join([*base, name] if name else base)

    def _add(self, target: str, name: str | None, line: int) -> None:
        self.found.append(Import(target, name, line, at_import_time=self.function_depth == 0))


@dataclass(frozen=True)
class Module:
    """A source file of the package, and the row of the tables that it falls under."""

    root: Path
    path: Path

    @property
    def parts(self) -> tuple[str, ...]:
        return self.path.relative_to(self.root).with_suffix("").parts

    @property
    def layer(self) -> str:
        """The name under the package: a layer, a door, or `__init__` for the facade."""
        return self.parts[1]

    def imports(self) -> list[Import]:
        collector = ImportCollector(package=self.parts[:-1])
        collector.visit(ast.parse(self.path.read_text(encoding="utf-8"), str(self.path)))
        return collector.found


def violations(root: Path) -> list[str]:
    """Return `file:line: rule` for each import under `root` that breaks a rule."""
    return [
        f"{path.relative_to(root).as_posix()}:{line}: {rule}"
        for path in sorted((root / PACKAGE).rglob("*.py"))
        for line, rule in _module_violations(Module(root, path))
    ]


def _module_violations(module: Module) -> Iterator[tuple[int, str]]:
    if module.layer not in (*CHAIN, *SIBLINGS, *DOORS, *WIRING):
        yield 1, f"'{module.layer}' has no row in the layer tables of tests/test_architecture.py"
        return
    try:
        imports = module.imports()
    except SyntaxError as error:
        yield error.lineno or 1, f"does not parse on Python {sys.version_info[:2]}: {error.msg}"
        return
    for imported in imports:
        inside = imported.target.split(".")[0] == PACKAGE
        rule = _internal_rule(module, imported) if inside else _external_rule(module, imported)
        if rule is not None:
            yield imported.line, rule


def _external_rule(module: Module, imported: Import) -> str | None:
    """Return the rule that an import from outside the package breaks, if any."""
    package = imported.target.split(".")[0]
    if package in sys.stdlib_module_names or package == "numpy":
        return None
    if package in FORBIDDEN_EVERYWHERE:
        return f"imports {package}, which nothing in {PACKAGE} may import"
    if package == "llvmlite" and module.layer not in MAY_USE_LLVMLITE:
        return f"imports llvmlite, which only {', '.join(MAY_USE_LLVMLITE)} may import"
    if imported.at_import_time and package not in HARD_DEPENDENCIES:
        return f"imports {package} when it loads; only numpy and the standard library may be"
    return None


def _internal_rule(module: Module, imported: Import) -> str | None:
    """Return the rule that an import of the package itself breaks, if any."""
    if module.layer in WIRING:
        return None
    layer = _layer_of(imported)
    if layer is None:
        return f"imports the facade '{PACKAGE}'; import the layer that defines the name"
    if layer not in _importable(module.layer):
        return f"layer rule: '{module.layer}' may not import '{layer}'"
    if layer != module.layer and {layer, module.layer} <= set(SIBLINGS):
        return _sibling_rule(module, imported, layer)
    return None


def _layer_of(imported: Import) -> str | None:
    """Return the layer or door an import reaches, or None if it is the facade."""
    inner = imported.target.split(".")[1:]
    if inner:
        return inner[0]
    return imported.name if imported.name in (*CHAIN, *SIBLINGS, *DOORS) else None


def _importable(layer: str) -> set[str]:
    """Return every layer and door that modules of `layer` may import."""
    if layer in DOORS:
        return {layer} | _importable(DOORS[layer])
    if layer in SIBLINGS:
        return {*_importable(SIBLINGS_STAND_ON), *SIBLINGS, *_doors_up_to(SIBLINGS_STAND_ON)}
    below = set(CHAIN[: CHAIN.index(layer) + 1])
    return below | {*SIBLINGS, *_doors_up_to(layer)} if layer in MAY_USE_SIBLINGS else below


def _doors_up_to(layer: str) -> set[str]:
    """Return the doors that reach no higher than `layer`."""
    return {door for door, top in DOORS.items() if CHAIN.index(top) <= CHAIN.index(layer)}


def _sibling_rule(module: Module, imported: Import, sibling: str) -> str | None:
    """Return the rule broken by an import that reaches into a sibling's inner modules."""
    public = f"{PACKAGE}.{sibling}"
    inner = imported.target not in {public, PACKAGE}
    if inner or _is_private_submodule(module.root, public, imported):
        return f"reaches into '{sibling}'; import what '{public}' exports"
    return None


def _is_private_submodule(root: Path, public: str, imported: Import) -> bool:
    """Tell whether `from weft.nn import name` fetches a module that `__all__` does not list."""
    if imported.target != public or imported.name is None:
        return False
    folder = root.joinpath(*public.split("."))
    is_module = (folder / imported.name).is_dir() or (folder / f"{imported.name}.py").is_file()
    return is_module and imported.name not in _exports(folder / "__init__.py")


def _exports(init: Path) -> set[str]:
    """Return the strings of the literal `__all__` in a package's `__init__`."""
    if not init.is_file():
        return set()
    for node in ast.parse(init.read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            return {leaf.value for leaf in ast.walk(node) if isinstance(leaf, ast.Constant)}
    return set()


# --- the package -------------------------------------------------------------------------------


def test_every_import_points_to_a_lower_layer() -> None:
    found = violations(ROOT)
    assert not found, "\n" + "\n".join(found)


def test_importing_weft_loads_only_numpy_and_the_standard_library() -> None:
    """Run in a new process: this one has loaded the test tools already.

    NumPy comes first, with the parts that load on demand, so that what it brings along is not
    charged to Weft. Without `-S` a site hook may load things too; they come before as well.
    """
    program = """
        import sys
        import numpy, numpy.fft, numpy.linalg, numpy.random
        before = set(sys.modules)
        import weft
        loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
        print(*sorted(loaded - sys.stdlib_module_names - {"numpy", "weft"}))
    """
    command = [sys.executable, "-c", dedent(program)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == []


# --- the checker itself ------------------------------------------------------------------------


def check(root: Path, **sources: str) -> list[str]:
    """Write a package from `layer__module=source` arguments and return its violations."""
    for name, source in sources.items():
        path = root / PACKAGE / (name.replace("__", "/", 1) + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(source))
    return violations(root)


UPWARD = "weft/ops/exp.py:{line}: layer rule: 'ops' may not import 'graph'"


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("import weft.graph", 1),
        ("import numpy\nimport weft.graph.node as node", 2),
        ("from weft.graph import Graph", 1),
        ("from weft import graph", 1),
        ("from ..graph import node", 1),
        ("from .. import graph", 1),
        ("def f():\n    from weft.graph import Graph", 2),
        ("async def f():\n    from ..graph.node import Node", 2),
        ("class A:\n    def f(self):\n        import weft.graph", 3),
        ("try:\n    import weft.graph\nexcept ImportError:\n    pass", 2),
        ("if TYPE_CHECKING:\n    from weft.graph import Graph", 2),
        ("import importlib\nimportlib.import_module('weft.graph')", 2),
        ("f = lambda: import_module('..graph', __package__)", 1),
        ("__import__('weft.graph.node')", 1),
    ],
)
def test_upward_import_is_caught(tmp_path: Path, source: str, line: int) -> None:
    assert check(tmp_path, ops__exp=source) == [UPWARD.format(line=line)]


def test_relative_import_in_an_init_starts_from_its_own_package(tmp_path: Path) -> None:
    path = tmp_path / "weft" / "ops" / "__init__.py"
    path.parent.mkdir(parents=True)
    path.write_text("from . import graph\nfrom .graph import x\nfrom ..graph import y\n")
    assert violations(tmp_path) == [
        "weft/ops/__init__.py:3: layer rule: 'ops' may not import 'graph'"
    ]


def test_downward_imports_pass(tmp_path: Path) -> None:
    sources = {
        f"{layer}__module": "".join(f"import weft.{lower}.module\n" for lower in CHAIN[: rank + 1])
        for rank, layer in enumerate(CHAIN)
    }
    assert check(tmp_path, **sources) == []


@pytest.mark.parametrize("layer", SIBLINGS)
@pytest.mark.parametrize("upper", ["passes", "backends", "compiler", "capture", "train", "cli"])
def test_sibling_importing_upward_is_caught(tmp_path: Path, layer: str, upper: str) -> None:
    (message,) = check(tmp_path, **{f"{layer}__module": f"import weft.{upper}"})
    assert message == f"weft/{layer}/module.py:1: layer rule: '{layer}' may not import '{upper}'"


@pytest.mark.parametrize(
    "source",
    [
        "from weft.nn.linear import Linear",
        "import weft.nn.linear",
        "from weft.nn import linear",
        "from ..nn.linear import Linear",
    ],
)
def test_reaching_into_a_sibling_is_caught(tmp_path: Path, source: str) -> None:
    (message,) = check(tmp_path, optim__sgd=source, nn__linear="")
    assert message == "weft/optim/sgd.py:1: reaches into 'nn'; import what 'weft.nn' exports"


def test_public_names_of_a_sibling_pass(tmp_path: Path) -> None:
    source = """
        import weft.nn
        from weft import nn
        from weft.nn import Module, functional
        from weft.autodiff.reverse import backward
    """
    package = {"nn__functional": "", "nn____init__": "__all__ = ['Module', 'functional']"}
    assert check(tmp_path, optim__sgd=source, **package) == []
    assert check(tmp_path, train__fit="import weft.nn.functional") == []


def test_compiler_does_not_know_networks(tmp_path: Path) -> None:
    (message,) = check(tmp_path, compiler="from weft.nn import Module")
    assert message == "weft/compiler.py:1: layer rule: 'compiler' may not import 'nn'"


@pytest.mark.parametrize(
    "source",
    ["import weft", "import weft as wf", "from weft import tensor", "from .. import tensor"],
)
def test_importing_the_facade_is_caught(tmp_path: Path, source: str) -> None:
    (message,) = check(tmp_path, train__fit=source)
    assert message.startswith("weft/train/fit.py:1: imports the facade 'weft'")


def test_doors_reach_up_to_their_layer(tmp_path: Path) -> None:
    fine = "import weft.core\nfrom .autodiff import vjp\n"
    found = check(
        tmp_path, extend=fine, linalg=fine + "import weft.passes\n", __main__="import weft.cli"
    )
    assert found == ["weft/linalg.py:3: layer rule: 'linalg' may not import 'passes'"]


def test_facade_may_import_every_layer(tmp_path: Path) -> None:
    path = tmp_path / "weft" / "__init__.py"
    path.parent.mkdir()
    path.write_text("".join(f"from weft.{layer} import *\n" for layer in (*CHAIN, *SIBLINGS)))
    assert violations(tmp_path) == []


def test_module_without_a_row_is_caught(tmp_path: Path) -> None:
    (message,) = check(tmp_path, misc="")
    assert message.startswith("weft/misc.py:1: 'misc' has no row in the layer tables")


def test_file_that_does_not_parse_is_named_and_hides_no_other(tmp_path: Path) -> None:
    broken, upward = check(tmp_path, core__dtype="x = 1\ny = (", ops__exp="import weft.graph")
    assert broken.startswith("weft/core/dtype.py:2: does not parse on Python")
    assert upward == UPWARD.format(line=1)


@pytest.mark.parametrize("package", FORBIDDEN_EVERYWHERE)
def test_forbidden_package_is_caught_even_inside_a_function(tmp_path: Path, package: str) -> None:
    (message,) = check(tmp_path, train__fit=f"def f():\n    import {package}.special\n")
    assert message.startswith(f"weft/train/fit.py:2: imports {package}, which nothing")


def test_llvmlite_is_for_the_compiler_only(tmp_path: Path) -> None:
    source = "def f():\n    from llvmlite import binding\n"
    (message,) = check(tmp_path, capture__call=source, backends__emit=source, compiler=source)
    assert message.startswith("weft/capture/call.py:2: imports llvmlite, which only backends")


def test_optional_package_is_imported_only_where_it_is_used(tmp_path: Path) -> None:
    source = "def f():\n    import ml_dtypes\nimport numpy.linalg, os.path\nimport ml_dtypes\n"
    (message,) = check(tmp_path, core__dtype=source)
    assert message.startswith("weft/core/dtype.py:4: imports ml_dtypes when it loads")
