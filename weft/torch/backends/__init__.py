"""torch.backends: settings of PyTorch's libraries, which may be set and change nothing."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

from ..parts import serve_parts


class _Backend(ModuleType):
    """A library of PyTorch's that is not there."""

    def __init__(self, name: str, **settings: Any) -> None:
        super().__init__(f"{__name__}.{name}")
        vars(self).update(settings)

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


cudnn = _Backend("cudnn", benchmark=False, deterministic=False, enabled=False, allow_tf32=False)
cuda = _Backend("cuda", matmul=SimpleNamespace(allow_tf32=False, fp32_precision="ieee"))
mps, mkl, openmp = _Backend("mps"), _Backend("mkl"), _Backend("openmp")
mkldnn = _Backend("mkldnn", enabled=False)
opt_einsum = _Backend("opt_einsum", enabled=False)
_ALL = (cudnn, cuda, mps, mkl, openmp, mkldnn, opt_einsum)
serve_parts(__name__, {library.__name__.rpartition(".")[2]: library for library in _ALL})
