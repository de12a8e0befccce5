"""Compare the imports of the package with the tables of layers.py."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .imports import Import, ImportCollector
from .layers import (
    CHAIN,
    COMPILING,
    DOORS,
    FACES,
    FORBIDDEN_EVERYWHERE,
    HARD_DEPENDENCIES,
    IMPORTERS,
    INJECTIONS,
    MAY_USE_LLVMLITE,
    MAY_USE_SIBLINGS,
    PACKAGE,
    REPLACED,
    SIBLINGS,
    SIBLINGS_STAND_ON,
    WIRING,
)


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
        yield 1, f"'{module.layer}' has no row in the tables of tests/architecture/layers.py"
        return
    try:
        imports = module.imports()
    except SyntaxError as error:
        yield error.lineno or 1, f"does not parse on Python {sys.version_info[:2]}: {error.msg}"
        return
    for imported in imports.found:
        inside = imported.target.split(".")[0] == PACKAGE
        rule = _internal_rule(module, imported) if inside else _external_rule(module, imported)
        rule = rule or _lock_rule(module, imported)
        if rule is not None:
            yield imported.line, rule
    if module.name not in IMPORTERS:
        for line in imports.unreadable:
            yield line, "imports by a name that is made at run time; write the name out"
    yield from _slot_rules(module, imports.slots)


def _slot_rules(module: Module, slots: list[tuple[str, int]]) -> Iterator[tuple[int, str]]:
    """Yield the rules that slots of a module break: each is listed, filled, and from above."""
    sources = injected(module.root) if slots else {}
    for name, line in slots:
        if name not in INJECTIONS:
            yield line, f"slot {name!r} is not listed, with a reason, in INJECTIONS of the tests"
        elif name not in sources:
            yield line, f"slot {name!r} is not filled by {PACKAGE}/injections.py"
        elif sources[name].split(".")[1].partition(":")[0] in _importable(module.layer):
            yield line, f"slot {name!r} is no injection: import {sources[name]} instead"


def injected(root: Path) -> dict[str, str]:
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
    full_name = f"{imported.target}.{imported.name}"
    if full_name in REPLACED:
        return f"imports {full_name}; use {REPLACED[full_name]}"
    if package in sys.stdlib_module_names or package == "numpy":
        return None
    if package in FORBIDDEN_EVERYWHERE:
        return f"imports {package}, which nothing in {PACKAGE} may import"
    if package == "llvmlite" and module.layer not in MAY_USE_LLVMLITE:
        return f"imports llvmlite, which only {', '.join(MAY_USE_LLVMLITE)} may import"
    if imported.at_import_time and package not in HARD_DEPENDENCIES:
        return f"imports {package} when it loads; only numpy and the standard library may be"
    return None


def _lock_rule(module: Module, imported: Import) -> str | None:
    """Return a message for an import that a fork may meet half done, in another thread."""
    if module.layer in COMPILING and imported.unlocked:
        return f"imports {imported.target} in a function: write it under `with deferred_imports:`"
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
        if path.relative_to(root / PACKAGE).parts[0] in FACES:
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.relative_to(root).as_posix())
    return [f"{name}: {', '.join(files)}" for name, files in found.items() if len(files) > 1]
