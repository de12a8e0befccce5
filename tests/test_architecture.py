"""Hold the layer rule: read every import of the package and compare it with the tables below.

A hidden import is still a dependency. Imports inside functions and under `TYPE_CHECKING` count like
any other, and so do calls that import by name (`import_module`, `load`, `lazy_attributes` ...),
names of modules in strings, and imports in text that is run later. Names made at run time cannot be
read, and are refused. What a layer needs from above comes through the slots of weft/injections.py,
each of which is listed here with its reason.
"""

import ast
import re
import subprocess
import sys
from collections import defaultdict
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
DOORS = {"extend": "train", "linalg": "autodiff", "__main__": "cli"}

# They wire the layers together, may import all of them, and are imported by none.
WIRING = ("__init__", "injections")

# Slots of lower layers, each with the reason why the layer cannot do without what is above it.
INJECTIONS = {
    "backend_names": "`wf.device` takes the names of back ends, which are folders of weft/backends",
    "large_kernels": "generated calls on large tensors ask for machine code",
    "multiply_matrices": "kernels of operators multiply with machine code on Weft's own threads",
    "cond_of_batches": "`cond` inside vmap may take both branches: batching stands on graphs",
    "loop_of_batches": "`while_loop` inside vmap runs until every example ends; likewise",
    "compile_program": "a session runs what the compiler makes of its graph",
    "Graph.optimize": "a method of the user's class; passes are written over graphs",
    "Graph.memory_plan": "a method of the user's class; planning is",
    "Graph.draw": "a method of the user's class; pictures are",
    "Graph.repr_svg": "what a notebook shows; pictures are",
    "Graph.write_tensorboard": "a method of the user's class; TensorBoard's format is",
    "Graph.save": "a method of the user's class; files are",
    "Graph.load": "a method of the user's class; files are",
    "Module.compile": "Keras's methods of a network: training stands on networks",
    "Module.evaluate": "likewise",
    "Module.fit": "likewise",
    "Module.predict": "likewise",
}

# Classes that users know by these names in two places.
TWICE = {
    "Checkpoint": "wf.io: a saved state; wf.train: the extension that saves them",
    "EarlyStopping": "Keras's callback; the trainer's extension",
    "ReduceLROnPlateau": "PyTorch's schedule; Keras's callback",
    "Sampler": "wf.extend: sample inputs of an operator; wf.data: the order of examples",
    "Summary": "wf.nn: the table of a model; wf.train: means of what was observed",
}

# The mechanism: the only modules that may import by a name that is not written out.
IMPORTERS = ("core/imports.py", "injections.py")
BY_NAME = (
    *("import_module", "__import__", "load", "load_modules", "require", "is_available"),
    "resolve_name",
)

FORBIDDEN_EVERYWHERE = ("scipy", "torch", "jax", "tensorflow")
MAY_USE_LLVMLITE = ("backends", "compiler")
HARD_DEPENDENCIES = ("numpy", "llvmlite")


_LAYER = rf"{PACKAGE}\.(?:{'|'.join((*CHAIN, *SIBLINGS, *DOORS, *WIRING[1:]))})\b[\w.]*"
NAMES = re.compile(rf"^{_LAYER}(?=:\w+$|$)")
STATEMENTS = re.compile(rf"\b(?:from|import)\s+({_LAYER})")


@dataclass(frozen=True)
class Import:
    """One imported name: `from weft.ops import exp` has target `weft.ops` and name `exp`."""

    target: str
    name: str | None
    line: int
    at_import_time: bool


@dataclass
class ImportCollector(ast.NodeVisitor):
    """Collect the imports of one module, resolving relative ones against its package.

    unreadable   lines with imports whose names are made at run time
    slots        names that the module asks from above, with their lines
    """

    package: tuple[str, ...]
    found: list[Import] = field(default_factory=list)
    unreadable: list[int] = field(default_factory=list)
    slots: list[tuple[str, int]] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=lambda: {name: name for name in BY_NAME[:2]})
    function_depth: int = 0
    read: set[int] = field(default_factory=set)  # strings that need no second look

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(alias.name, None, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        target = self._absolute(node.level, node.module or "")
        by_name = target in {"importlib", "pkgutil", f"{PACKAGE}.core.imports"}
        for alias in node.names:
            self._add(target, alias.name, node.lineno)
            if by_name:
                self.names[alias.asname or alias.name] = alias.name

    def visit_Call(self, node: ast.Call) -> None:
        called = self._called(node.func)
        if called in BY_NAME:
            self._by_name(node)
        elif called == "lazy_attributes":
            self._lazy(node)
        elif called == "injected":
            self._slot(node)
        if isinstance(node.func, ast.Name):
            self.read.add(id(node.func))
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        passed_on = isinstance(node.ctx, ast.Load) and id(node) not in self.read
        if passed_on and self.names.get(node.id) in BY_NAME:
            self.unreadable.append(node.lineno)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Take names of the package's modules, and text that imports them, for imports."""
        if not isinstance(node.value, str) or id(node) in self.read:
            return
        for name in [*NAMES.findall(node.value), *STATEMENTS.findall(node.value)]:
            self._add(name, None, node.lineno)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Look into text only: half of a name may be a label."""
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.visit(part)
            elif id(part) not in self.read:
                for name in STATEMENTS.findall(str(part.value)):
                    self._add(name, None, node.lineno)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # else a docstring, which may name anything
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

    def _called(self, function: ast.expr) -> str | None:
        """Return what is called: a name that imports, by its name where it is defined."""
        if isinstance(function, ast.Attribute):
            return function.attr if function.attr in {"import_module", "__import__"} else None
        return self.names.get(function.id) if isinstance(function, ast.Name) else None

    def _by_name(self, node: ast.Call) -> None:
        argument = node.args[0] if node.args else None
        if argument is not None and ast.unparse(argument).startswith("f'{__name__}."):
            return  # a part of the package itself
        head = argument.values[0] if isinstance(argument, ast.JoinedStr) else argument
        text = head.value if isinstance(head, ast.Constant) else None
        outside = isinstance(text, str) and "." in text and text.split(".")[0] != PACKAGE
        if not isinstance(text, str) or (argument is not head and not outside):
            self.unreadable.append(node.lineno)
            return
        self.read.add(id(head))
        name = text.lstrip(".")
        self._add(self._absolute(len(text) - len(name), name), None, node.lineno)

    def _lazy(self, node: ast.Call) -> None:
        """Read the modules and packages that public names are taken from."""
        sources = node.args[1] if len(node.args) > 1 else None
        keys = sources.keys if isinstance(sources, ast.Dict) else [None]
        self.read |= set(map(id, keys))
        names = [getattr(key, "value", None) for key in keys]
        packages = [ast.literal_eval(k.value) for k in node.keywords if k.arg == "packages"]
        own = [".".join((*self.package, name)) for name in sum(packages, ())]
        for name in (*names, *own):
            if isinstance(name, str):
                self._add(name, None, node.lineno)
            else:
                self.unreadable.append(node.lineno)

    def _slot(self, node: ast.Call) -> None:
        name = node.args[0].value if isinstance(node.args[0], ast.Constant) else "?"
        self.slots.append((name, node.lineno))

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

    @property
    def name(self) -> str:
        """The path under the package."""
        return "/".join(self.path.relative_to(self.root).parts[1:])

    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text(encoding="utf-8"), str(self.path))

    def imports(self) -> ImportCollector:
        collector = ImportCollector(package=self.parts[:-1])
        collector.visit(self.tree())
        return collector


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
    for imported in imports.found:
        inside = imported.target.split(".")[0] == PACKAGE
        rule = _internal_rule(module, imported) if inside else _external_rule(module, imported)
        if rule is not None:
            yield imported.line, rule
    if module.name not in IMPORTERS:
        for line in imports.unreadable:
            yield line, "imports by a name that is made at run time; write the name out"
    yield from _slot_rules(module, imports.slots)


def _slot_rules(module: Module, slots: list[tuple[str, int]]) -> Iterator[tuple[int, str]]:
    """Yield the rules that slots of a module break: each is listed, filled, and from above."""
    sources = _injected(module.root) if slots else {}
    for name, line in slots:
        if name not in INJECTIONS:
            yield line, f"slot {name!r} is not listed, with a reason, in INJECTIONS of the tests"
        elif name not in sources:
            yield line, f"slot {name!r} is not filled by {PACKAGE}/injections.py"
        elif sources[name].split(".")[1].partition(":")[0] in _importable(module.layer):
            yield line, f"slot {name!r} is no injection: import {sources[name]} instead"


def _injected(root: Path) -> dict[str, str]:
    """Return what weft/injections.py says of slots."""
    path = root / PACKAGE / "injections.py"
    for node in ast.parse(path.read_text(encoding="utf-8")).body if path.is_file() else ():
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "INJECTED":
            found: dict[str, str] = ast.literal_eval(node.value)
            return found
    return {}


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
    if _is_private(module, imported):
        return f"imports {imported.target}, a private module of another package"
    if layer != module.layer and {layer, module.layer} <= set(SIBLINGS):
        return _sibling_rule(module, imported, layer)
    return None


def _is_private(module: Module, imported: Import) -> bool:
    """Tell whether an import reaches a module with a leading underscore outside its package."""
    parts = [*imported.target.split("."), *([imported.name] if imported.name else [])]
    if imported.name and not module.root.joinpath(*parts).with_suffix(".py").is_file():
        parts.pop()
    return any(
        part.startswith("_") and not part.startswith("__") and list(module.parts[:i]) != parts[:i]
        for i, part in enumerate(parts)
    )


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


def classes_of_one_name(root: Path) -> list[str]:
    """Return `name: files` for each public class name that several modules define."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted((root / PACKAGE).rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.relative_to(root).as_posix())
    return [f"{name}: {', '.join(files)}" for name, files in found.items() if len(files) > 1]


# --- the package -------------------------------------------------------------------------------


def test_every_import_points_to_a_lower_layer() -> None:
    found = violations(ROOT)
    assert not found, "\n" + "\n".join(found)


def test_every_slot_is_listed_once_and_used() -> None:
    used = defaultdict(list)
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        for name, _ in Module(ROOT, path).imports().slots:
            used[name].append(path)
    assert {*used} == {*INJECTIONS} == {*_injected(ROOT)}
    assert [name for name, users in used.items() if len(users) > 1] == []


def test_classes_have_names_of_their_own() -> None:
    found = {line.split(":")[0]: line for line in classes_of_one_name(ROOT)}
    assert [line for name, line in found.items() if name not in TWICE] == []
    assert found.keys() == {*TWICE}


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
        ("from importlib import import_module as get\nget('weft.graph')", 2),
        ("from ..core.imports import load as get\nget('weft.graph.node')", 2),
        ("from ..core.imports import require\nrequire('weft.graph', 'x', 'y')", 2),
        ("f = lazy_attributes(globals(), {'weft.graph.node': ('Node',)})", 1),
        ("from ..core.imports import lazy_attributes as l\nl(globals(), {'weft.graph': ()})", 2),
        ("import sys\nsys.modules['weft.graph.node'].Node", 2),
        ("WHERE = 'weft.graph.node:Node'", 1),
        ("exec('from weft.graph.node import Node')", 1),
        ("exec(f'import weft.graph as g; {1}')", 1),
    ],
)
def test_upward_import_is_caught(tmp_path: Path, source: str, line: int) -> None:
    assert check(tmp_path, ops__exp=source) == [UPWARD.format(line=line)]


@pytest.mark.parametrize(
    "source",
    [
        "from importlib import import_module\ndef f(name): import_module(name)",
        "import importlib\nimportlib.import_module('weft.' + 'graph')",
        "from ..core.imports import load\nload(f'weft.{1}')",
        "from ..core.imports import load\nlist(map(load, ['x']))",
        "from ..core.imports import lazy_attributes\nf = lazy_attributes(globals(), TABLE)",
        "from pkgutil import resolve_name\nresolve_name('wef' + 't.graph')",
        "from builtins import open\nget = __import__",
    ],
)
def test_name_made_at_run_time_is_caught(tmp_path: Path, source: str) -> None:
    (message,) = check(tmp_path, ops__exp=source)
    assert message.endswith("imports by a name that is made at run time; write the name out")


def test_names_of_other_packages_and_of_parts_may_be_put_together(tmp_path: Path) -> None:
    source = "from ..core.imports import require\ndef f(x): require(f'sklearn.{x}', 'a', 'b')\n"
    source += "from ..core.imports import load_modules\nload_modules(f'{__name__}.part')\n"
    assert check(tmp_path, ops__exp=source, core__imports="import_module(name)") == []


def test_text_that_names_the_package_is_no_import(tmp_path: Path) -> None:
    source = """
        '''weft.graph: see there; import weft.graph'''
        KIND = "weft.constant.pi"
        LABEL = f"weft.graph.{KIND}"
    """
    assert check(tmp_path, ops__exp=source) == []


SLOT = "from ..core.imports import injected\n_slot = injected({name!r})\n"


@pytest.mark.parametrize(
    ("name", "table", "message"),
    [
        ("Graph.draw", {"Graph.draw": "weft.graph.draw:draw"}, None),
        ("unheard of", {"unheard of": "weft.graph"}, "slot 'unheard of' is not listed"),
        ("Graph.draw", {}, "slot 'Graph.draw' is not filled by weft/injections.py"),
        ("Graph.draw", {"Graph.draw": "weft.core:x"}, "is no injection: import weft.core:x"),
        ("Graph.draw", {"Graph.draw": "weft.ops.x:x"}, "is no injection: import weft.ops.x:x"),
    ],
)
def test_slots_are_listed_and_from_above(
    tmp_path: Path, name: str, table: dict[str, str], message: str | None
) -> None:
    source = SLOT.format(name=name)
    found = check(tmp_path, ops__exp=source, injections=f"INJECTED = {table!r}\n")
    assert len(found) == (message is not None)
    assert all("weft/ops/exp.py:2: " in line and str(message) in line for line in found)


def test_wiring_is_imported_by_nobody(tmp_path: Path) -> None:
    (message,) = check(tmp_path, cli__main="from ..injections import INJECTED")
    assert message == "weft/cli/main.py:1: layer rule: 'cli' may not import 'injections'"


@pytest.mark.parametrize(
    ("user", "source", "private"),
    [
        ("graph__node", "from ..ops.index._spec import explicit", True),
        ("graph__node", "from ..ops.index import _spec", True),
        ("graph__node", "import weft.ops.index._spec", True),
        ("ops__nn/loss", "from ..index._spec import explicit", True),
        ("ops__index/take", "from ._spec import explicit", False),
        ("ops__index/deep/take", "from .._spec import explicit", False),
        ("graph__node", "from ..ops.index import _not_a_module", False),
        ("graph__node", "from .__init__ import x", False),
    ],
)
def test_private_module_of_another_package_is_caught(
    tmp_path: Path, user: str, source: str, private: bool
) -> None:
    found = check(tmp_path, **{"ops__index/_spec": "", user: source})
    assert [line.endswith("a private module of another package") for line in found] == [True][
        :private
    ]


def test_classes_of_one_name_are_found(tmp_path: Path) -> None:
    twice = "class Plan: pass\nclass _Own: pass\n"
    check(tmp_path, core__a=twice, ops__b=twice, graph__c="class Other:\n    class Plan: pass\n")
    assert classes_of_one_name(tmp_path) == ["Plan: weft/core/a.py, weft/ops/b.py"]


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
