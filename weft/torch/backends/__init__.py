"""torch.backends: settings of PyTorch's libraries, which may be set and change nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


class _Backend(SimpleNamespace):
    """A library of PyTorch's that is not there."""

    def is_available(self) -> bool:
        """Tell whether it is there: it is not."""
        return False

    def is_built(self) -> bool:
        """Tell whether it is there: it is not."""
        return False

    def flags(self, **settings: Any) -> Any:
        """Return a context in which settings would hold."""
        from contextlib import nullcontext  # noqa: PLC0415  (for this alone)

        return nullcontext()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: False


cudnn = _Backend(benchmark=False, deterministic=False, enabled=False, allow_tf32=False)
cuda = _Backend(matmul=SimpleNamespace(allow_tf32=False, fp32_precision="ieee"))
mps = _Backend()
mkl = _Backend()
mkldnn = _Backend(enabled=False)
openmp = _Backend()
opt_einsum = _Backend(enabled=False)
