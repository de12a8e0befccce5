"""Running a script, and importing its neighbours, with their steps captured."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from .rewriting import RUNNER, rewrite
from .running import Make, Steps


class SteppedScript:
    """A script and the modules that it imports from its own folder.

    made   the steps of all of them
    """

    def __init__(self, script: Path, make: Make) -> None:
        self._script = script
        self._folder = script.resolve().parent
        self._make = make
        self.made: list[Steps] = []

    def run(self) -> None:
        """Run the script as the main module."""
        source = self._script.read_bytes()
        module = ModuleType("__main__")
        module.__dict__.update(__file__=str(self._script), __builtins__=__builtins__)
        module.__dict__.update(__cached__=None, __package__="")
        code = self.code(source, str(self._script), module.__dict__, is_program=True)
        with _as_main(module), self._importing():
            exec(code, module.__dict__)

    def staying(self) -> list[str]:
        """Return the statements of steps that run as they are written, with the reasons."""
        return [line for steps in self.made for line in steps.staying()]

    def code(
        self, source: bytes, filename: str, module: dict[str, Any], *, is_program: bool = False
    ) -> CodeType:
        """Return the code of a module; if it has steps, the module gets what runs them."""
        found = rewrite(source, filename, is_program=is_program)
        if found is None:
            return compile(source, filename, "exec", dont_inherit=True)
        steps = module[RUNNER] = Steps(found.stretches, module, self._make)
        self.made.append(steps)
        made: CodeType = compile(found.tree, filename, "exec", found.flags, dont_inherit=True)
        return made

    def is_near(self, origin: str | None) -> bool:
        """Tell whether a file is the script's neighbour, or below."""
        if origin is None or not origin.endswith(".py"):
            return False
        near = Path(origin).resolve()
        return self._folder in near.parents and "site-packages" not in near.parts

    @contextmanager
    def _importing(self) -> Iterator[None]:
        finder = _NeighbourFinder(self)
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            sys.meta_path.remove(finder)


class _NeighbourFinder:
    """Finds modules next to the script."""

    def __init__(self, program: SteppedScript) -> None:
        self._program = program

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module is, with what loads it, if it is a neighbour with source."""
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader:
            return None
        if not self._program.is_near(spec.origin):
            return None
        spec.loader = _NeighbourLoader(spec.loader.name, spec.loader.path, self._program)
        return spec


class _NeighbourLoader(SourceFileLoader):
    """Loads a module whose steps are captured."""

    def __init__(self, fullname: str, path: str, program: SteppedScript) -> None:
        super().__init__(fullname, path)
        self._program = program

    def exec_module(self, module: ModuleType) -> None:
        """Run the module; its code is not kept on disk, as it is not what others have."""
        source = self.get_data(self.path)
        exec(self._program.code(source, self.path, module.__dict__), module.__dict__)


@contextmanager
def _as_main(module: ModuleType) -> Iterator[None]:
    before = sys.modules.get("__main__")
    sys.modules["__main__"] = module
    try:
        yield
    finally:
        if before is not None:
            sys.modules["__main__"] = before
