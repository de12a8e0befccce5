"""The results of functions that give several tensors: tuples with PyTorch's names."""

from __future__ import annotations

from collections import namedtuple
from typing import Any


def _show(self: Any) -> str:
    parts = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
    return f"torch.return_types.{type(self).__name__}(\n{parts})"


def result_class(name: str, *fields: str) -> Any:
    """Return the class of a function's results."""
    make: Any = namedtuple
    kind = make(name, fields)
    kind.__repr__ = _show
    kind.__module__ = "torch.return_types"
    return kind


PAIRS = {
    name: result_class(name, "values", "indices")
    for name in (
        *("max", "min", "sort", "topk", "median", "nanmedian", "mode", "kthvalue"),
        *("cummax", "cummin"),
    )
}
aminmax = result_class("aminmax", "min", "max")
qr = result_class("linalg_qr", "Q", "R")
slogdet = result_class("linalg_slogdet", "sign", "logabsdet")
svd = result_class("linalg_svd", "U", "S", "Vh")
old_svd = result_class("svd", "U", "S", "V")
eigh = result_class("linalg_eigh", "eigenvalues", "eigenvectors")
lstsq = result_class("linalg_lstsq", "solution", "residuals", "rank", "singular_values")
histogram = result_class("histogram", "hist", "bin_edges")
frexp = result_class("frexp", "mantissa", "exponent")
triangular_solve = result_class("triangular_solve", "solution", "cloned_coefficient")
