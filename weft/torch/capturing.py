"""`weft run --jit`: the outermost modules of a script run by compiled programs.

A script that knows nothing of Weft calls its network once a step, and `loss.backward()` goes back
through it. So the call is captured as `torch.compile(model)` would, and its gradient is a compiled
program too. What is called inside of another module is part of that one's program. Where the whole
step around it is captured (faces/steps), the call is part of that.
"""

from __future__ import annotations

import weakref
from typing import Any

from ..core.modes import is_transformed


class Capturing:
    """Whether modules are captured, and what was made of them."""

    def __init__(self) -> None:
        self.on = False
        self._inside = False
        self._made: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    def wants(self) -> bool:
        """Tell whether a call that begins now is to be captured."""
        return self.on and not self._inside and not is_transformed()

    def call(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a module by its compiled programs."""
        from .compiling import CompiledFunction  # noqa: PLC0415  (which stands above modules)

        made = self._made.get(module)
        if made is None:
            made = self._made[module] = CompiledFunction(module)
        self._inside = True
        try:
            return made(*args, **kwargs)
        finally:
            self._inside = False


capturing = Capturing()


def capture_modules(on: bool) -> None:
    """Let the outermost calls of modules be captured, or not any more."""
    capturing.on = on


def captured_step(function: Any, rules: Any) -> Any:
    """Return a part of a step that runs by compiled programs, or not at all."""
    from .compiling import CompiledStep  # noqa: PLC0415  (which stands above modules)

    return CompiledStep(function, rules)
