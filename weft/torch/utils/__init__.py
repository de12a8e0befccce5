"""torch.utils: data, checkpoints, TensorBoard."""

from __future__ import annotations

from ...core.imports import lazy_attributes
from ..absent import absent
from . import checkpoint, data

__all__ = ["checkpoint", "data"]

_REASONS = {
    "benchmark": "use timeit",
    "cpp_extension": "declare operators in Python by weft.extend, see CONTRIBUTING.md",
    "dlpack": "use torch.from_numpy(numpy.from_dlpack(x))",
    "mobile_optimizer": "use wf.export, see docs/export.md",
    "model_zoo": "give torch.load a file that is here already",
}
__getattr__ = lazy_attributes(globals(), {}, ("tensorboard",), absent(globals(), _REASONS))
